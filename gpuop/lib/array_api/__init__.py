"""The array API standard's functions of fields."""
