"""Tests of the library above the language: SciPy's functions on fields, against SciPy."""
