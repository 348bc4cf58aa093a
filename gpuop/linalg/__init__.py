"""numpy.linalg's functions, on fields: `gpuop.linalg` has its names, and works on matrices of grids and of tensors."""

import gpuop.linalg.numpy_names  # noqa: F401 - it has NumPy's functions take fields
from gpuop.linalg.einsum import einsum
from gpuop.linalg.products import (
    cross,
    diagonal,
    dot,
    matmul,
    matrix_transpose,
    matvec,
    outer,
    tensordot,
    trace,
    vecdot,
    vecmat,
)

__all__ = [
    "cross",
    "diagonal",
    "dot",
    "einsum",
    "matmul",
    "matrix_transpose",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vecmat",
]
