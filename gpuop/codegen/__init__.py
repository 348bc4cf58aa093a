"""Source text of kernels."""
