"""C text of kernels, shared by all languages, and the table of their differences."""
