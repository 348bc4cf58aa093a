"""Devices: memory, compilation, launches."""
