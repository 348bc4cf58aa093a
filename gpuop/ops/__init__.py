"""Host algebra. Importing it fills in what fields ask for."""

from gpuop.ops import algebra, reductions, slicing

__all__ = ["algebra", "reductions", "slicing"]
