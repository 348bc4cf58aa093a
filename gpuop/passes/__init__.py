"""The passes from a recorded kernel to a printable one, a file each; `pipeline.py` lists them in order."""
