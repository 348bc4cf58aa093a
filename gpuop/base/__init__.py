"""Errors, settings, caches and other parts that do not depend on operators."""
