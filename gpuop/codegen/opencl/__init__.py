"""OpenCL C: its spelling, vectors and vectorized calls."""
