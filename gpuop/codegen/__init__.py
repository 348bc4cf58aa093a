"""Kernels as source text."""
