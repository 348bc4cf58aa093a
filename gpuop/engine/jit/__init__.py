"""Functions of arrays as compiled graphs."""
