"""Functions that move values: axes, slices, joins, padding."""
