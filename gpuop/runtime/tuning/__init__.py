"""Tuning: measured choices of schedules and variants, on disk, and their measurement."""
