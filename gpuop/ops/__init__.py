"""Host algebra. Importing it fills in what fields ask for."""

from gpuop.ops import algebra, array_functions, slicing

__all__ = ["algebra", "array_functions", "slicing"]
