"""Schedules for GPUs: register windows, tiles in local memory, words of bytes."""
