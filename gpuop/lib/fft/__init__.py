"""Fourier, cosine and sine transforms on fields."""
