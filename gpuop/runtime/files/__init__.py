"""Files that are read from anywhere, and the programs on disk."""
