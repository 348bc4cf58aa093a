"""Fields of values that are computed where they are read."""
