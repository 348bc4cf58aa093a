"""Examples that learn, beside JAX and PyTorch."""
