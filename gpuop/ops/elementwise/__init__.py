"""The elementwise NumPy functions of fields."""
