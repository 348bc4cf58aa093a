"""Fields whose values are computed at their readers."""
