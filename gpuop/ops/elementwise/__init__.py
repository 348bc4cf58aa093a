"""NumPy's elementwise functions on fields."""
