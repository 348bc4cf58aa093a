"""Linear algebra on fields: `gpuop.linalg` has the names of `numpy.linalg`, for matrices of grids and of tensors."""

import gpuop.lib.linalg.numpy_names  # noqa: F401 - it has NumPy's functions take fields
from gpuop.base import lazy

FUNCTIONS = {
    "einsum": "einsum",
    "jacobi": "eigh eigvalsh qr",
    "least_squares": "lstsq",
    "lu_cholesky": "cholesky det inv slogdet solve",
    "matrices": "LinAlgError",
    "norms": "norm",
    "products": "cross diagonal dot matmul matrix_transpose matvec outer tensordot trace vecdot vecmat",
    "svd": "cond matrix_rank pinv svd svdvals",
}
_NAMES = lazy.defined("gpuop.lib.linalg", FUNCTIONS)
globals().update(_NAMES)
__all__ = [*sorted(_NAMES)]


def __dir__() -> list[str]:
    return list(__all__)
