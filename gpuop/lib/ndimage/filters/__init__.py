"""Filters: correlations, ranks, derivatives, user functions."""
