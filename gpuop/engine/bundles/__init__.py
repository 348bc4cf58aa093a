"""Bundles, compiled plans in files: `bundle.py` has the object of users, `writing.py` and `reading.py` the format."""
