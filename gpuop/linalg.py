"""Linear algebra on fields: `gpuop.linalg` has the names of `numpy.linalg`, for matrices of grids and of tensors."""

import gpuop.lib.linalg.numpy_names  # noqa: F401 - it has NumPy's functions take fields
from gpuop.lib.linalg.einsum import einsum
from gpuop.lib.linalg.jacobi import eigh, eigvalsh, qr
from gpuop.lib.linalg.least_squares import lstsq
from gpuop.lib.linalg.lu_cholesky import cholesky, det, inv, slogdet, solve
from gpuop.lib.linalg.matrices import LinAlgError
from gpuop.lib.linalg.norms import norm
from gpuop.lib.linalg.products import (
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
from gpuop.lib.linalg.svd import cond, matrix_rank, pinv, svd, svdvals

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
