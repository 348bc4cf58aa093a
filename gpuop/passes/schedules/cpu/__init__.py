"""Schedules for CPUs: vectors, line buffers, loop interchange."""
