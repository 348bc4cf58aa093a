"""Intermediate representation of kernels."""
