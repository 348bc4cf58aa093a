"""Linear algebra on fields."""
