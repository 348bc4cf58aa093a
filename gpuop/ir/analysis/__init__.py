"""Analyses of kernels: they ask, and change nothing."""
