"""Image functions of scipy.ndimage on fields."""
