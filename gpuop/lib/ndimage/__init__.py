"""SciPy's functions of images on fields."""
