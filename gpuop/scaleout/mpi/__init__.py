"""Graphs whose grid is spread over MPI ranks."""
