"""Errors, settings, caches and other parts that know nothing of operators."""
