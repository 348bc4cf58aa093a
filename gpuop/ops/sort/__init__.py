"""Sorting, searching, and sets."""
