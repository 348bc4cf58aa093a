"""Persistent caches: files that processes share, each written whole or not at all."""
