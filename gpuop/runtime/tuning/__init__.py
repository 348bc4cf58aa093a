"""Tuning: what was measured on which device, kept on disk, and who measures."""
