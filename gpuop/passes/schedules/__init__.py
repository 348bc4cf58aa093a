"""Schedules: `methods.py` lists and chooses them."""
