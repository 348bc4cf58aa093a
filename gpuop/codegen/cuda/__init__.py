"""CUDA C++ dialect."""
