"""Interpolation by splines."""
