"""Functions that choose values or places by conditions and indices."""
