"""Kernel builtins: functions that record code."""
