"""Derivatives of one kernel, as kernels."""
