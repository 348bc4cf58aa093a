"""numpy.linalg's functions, on fields: `gpuop.linalg` has its names, and works on matrices of grids and of tensors."""

import gpuop.linalg.numpy_names  # noqa: F401 - it has NumPy's functions take fields
from gpuop.linalg.einsum import einsum
from gpuop.linalg.elimination import cholesky, det, inv, slogdet, solve
from gpuop.linalg.least_squares import lstsq
from gpuop.linalg.matrices import LinAlgError
from gpuop.linalg.norms import norm
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
from gpuop.linalg.rotations import eigh, eigvalsh, qr
from gpuop.linalg.singular_values import cond, matrix_rank, pinv, svd, svdvals

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "dot",
    "eigh",
    "eigvalsh",
    "einsum",
    "inv",
    "lstsq",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vecmat",
]


def __dir__() -> list[str]:
    return list(__all__)
