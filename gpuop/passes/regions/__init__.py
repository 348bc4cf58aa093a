"""Predication of tail threads: the guard of the domain, by barrier regions where kernels have barriers."""
