"""Functions that select values or places by conditions and indices."""
