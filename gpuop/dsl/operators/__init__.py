"""Operators: functions recorded into kernels, and the checks on them."""
