"""Scans along axes."""
