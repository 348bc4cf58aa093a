"""Implementations of `numpy` and `numpy.linalg` functions for fields."""

from __future__ import annotations

from typing import Any

from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.lib.linalg import jacobi, least_squares, lu_cholesky, norms, products, svd
from gpuop.lib.linalg.einsum import einsum
from gpuop.ops.array_functions import ArrayFunction
from gpuop.ops.layout.layouts import moveaxis


def trace(a: Field, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """numpy.trace."""
    return products.trace(moveaxis(a, (axis1, axis2), (-2, -1)), offset)


def diagonal(a: Field, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """numpy.diagonal."""
    return products.diagonal(moveaxis(a, (axis1, axis2), (-2, -1)), offset)


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """numpy.cross, of 3-vectors."""
    if axis is not None:
        return products.cross(a, b, axis=axis)
    one, two = (x if n == -1 else moveaxis(x, n, -1) for x, n in ((a, axisa), (b, axisb)))
    result = products.cross(one, two)
    return result if axisc == -1 else moveaxis(result, -1, axisc)


PRODUCTS, MATRICES = "Products", "Matrices"
SIGNS = "columns may differ in sign from those of NumPy"
BY_PLACE = "a thread for each sum; products of matrices run as `a @ b`"
TABLE = {
    "einsum": ArrayFunction(einsum, PRODUCTS, BY_PLACE),
    "dot": ArrayFunction(
        products.dot, PRODUCTS, "products of matrices run as `a @ b`; else all axes of the result belong to the grid"
    ),
    "trace": ArrayFunction(trace, PRODUCTS),
    "diagonal": ArrayFunction(diagonal, PRODUCTS),
    "cross": ArrayFunction(cross, PRODUCTS, "of three components"),
    "matmul": ArrayFunction(
        products.matmul, MATRICES, "also `a @ b`: over the last two axes, of the grid or of tensors"
    ),
    "matvec": ArrayFunction(products.matvec, MATRICES),
    "vecmat": ArrayFunction(products.vecmat, MATRICES),
    "vecdot": ArrayFunction(products.vecdot, MATRICES),
    "linalg.matmul": ArrayFunction(products.matmul, MATRICES),
    "linalg.vecdot": ArrayFunction(products.vecdot, MATRICES),
    "linalg.outer": ArrayFunction(products.outer, MATRICES),
    "linalg.tensordot": ArrayFunction(products.tensordot, MATRICES),
    "linalg.cross": ArrayFunction(products.cross, MATRICES),
    "linalg.trace": ArrayFunction(products.trace, MATRICES),
    "linalg.diagonal": ArrayFunction(products.diagonal, MATRICES),
    "linalg.matrix_transpose": ArrayFunction(products.matrix_transpose, MATRICES),
    "linalg.det": ArrayFunction(lu_cholesky.det, MATRICES, "matrices up to 32×32, as in the rows below"),
    "linalg.slogdet": ArrayFunction(lu_cholesky.slogdet, MATRICES),
    "linalg.inv": ArrayFunction(lu_cholesky.inv, MATRICES, "gives infinities and NaN for singular matrices"),
    "linalg.solve": ArrayFunction(lu_cholesky.solve, MATRICES, "the right-hand sides of a VectorField are vectors"),
    "linalg.cholesky": ArrayFunction(lu_cholesky.cholesky, MATRICES, "gives NaN where there is no factor"),
    "linalg.qr": ArrayFunction(jacobi.qr, MATRICES),
    "linalg.eigh": ArrayFunction(jacobi.eigh, MATRICES, SIGNS),
    "linalg.eigvalsh": ArrayFunction(jacobi.eigvalsh, MATRICES),
    "linalg.svd": ArrayFunction(svd.svd, MATRICES, SIGNS),
    "linalg.svdvals": ArrayFunction(svd.svdvals, MATRICES),
    "linalg.pinv": ArrayFunction(svd.pinv, MATRICES, "the default of `rcond` follows from the dtype"),
    "linalg.lstsq": ArrayFunction(
        least_squares.lstsq,
        MATRICES,
        "many systems at once; residuals also where the rank is below the number of columns",
    ),
    "linalg.matrix_rank": ArrayFunction(svd.matrix_rank, MATRICES),
    "linalg.cond": ArrayFunction(svd.cond, MATRICES),
    "linalg.norm": ArrayFunction(norms.norm, MATRICES, '`ord` of matrices is "fro", 1, -1, inf or -inf'),
}
services.array_functions.update(TABLE)
services.algebra["matmul"] = products.matmul
