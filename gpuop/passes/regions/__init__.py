"""Kernels with barriers, whose surplus threads must reach them: the guard of the domain, region by region."""
