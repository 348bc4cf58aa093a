"""OpenCL C dialect: spelling, vectors and vectorized calls."""
