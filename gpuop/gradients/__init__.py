"""Derivatives of functions of Fields: forward and reverse mode, from recorded kernels to recorded kernels."""
