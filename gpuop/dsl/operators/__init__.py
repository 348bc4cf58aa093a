"""Operators: functions that are recorded into kernels, and what is checked of them."""
