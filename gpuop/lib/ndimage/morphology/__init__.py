"""Morphology of truth values and of grey values."""
