"""Schedules for CPUs and GPUs."""
