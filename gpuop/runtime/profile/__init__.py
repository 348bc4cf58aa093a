"""Profiling: times of kernels and copies, and measured properties of devices."""
