"""Fourier transforms as nodes of a graph, for `gpuop.fft` and filters: by a vendor library, or by passes."""
