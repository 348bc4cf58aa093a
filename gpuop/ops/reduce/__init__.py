"""Reductions, sums of products, and counts."""
