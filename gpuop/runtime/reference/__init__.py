"""The reference device: an interpreter of kernels in NumPy, and the checks of execution."""
