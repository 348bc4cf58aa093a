"""Distance transforms."""
