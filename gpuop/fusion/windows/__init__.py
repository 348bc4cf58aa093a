"""Halo inference, and programs for windows of a grid."""
