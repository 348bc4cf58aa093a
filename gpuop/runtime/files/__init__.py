"""Untrusted files, and compiled programs on disk."""
