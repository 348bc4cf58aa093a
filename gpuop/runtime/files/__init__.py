"""Untrusted files."""
