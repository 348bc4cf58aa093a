"""The intermediate representation of kernels."""
