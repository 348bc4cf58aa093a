"""Fourier transforms as nodes of a graph, which `gpuop.fft` and filters are made of: by a library, or by passes."""
