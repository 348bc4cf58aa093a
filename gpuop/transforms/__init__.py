"""Transformations of functions of fields, by their recorded kernels."""
