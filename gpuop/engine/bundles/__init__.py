"""Compiled plans in files: `bundle.py` is what users hold, `writing.py` and `reading.py` the format."""
