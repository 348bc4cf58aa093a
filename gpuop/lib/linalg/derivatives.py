"""The derivatives of decompositions: of determinants, inverses, solutions, factors, eigenvalues and singular values.

Formulas are those of M. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), of C. Ionescu, O. Vantzos and C. Sminchisescu, "Matrix backpropagation for deep networks with structured
layers" (2015), and for pseudo-inverses of G. Golub and V. Pereyra (1973), with the conventions of JAX. A rule is a tangent where
reverse mode can transpose it; those of inverses and solutions, which the others are made of, have cotangents too.

Rules compute with matrices of the grid; what they need of the function they call again with the same arguments, which the program
of calls merges with the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.derivative_rules import derivatives
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.lib.linalg.jacobi import eigh, qr
from gpuop.lib.linalg.least_squares import lstsq
from gpuop.lib.linalg.lu_cholesky import inv, solve
from gpuop.lib.linalg.products import diagonal, matmul, trace
from gpuop.lib.linalg.svd import pinv, svd
from gpuop.ops.elementwise.algebra import apply, astype
from gpuop.ops.layout.axes import Axis, axes_of
from gpuop.ops.layout.layouts import expand_dims, reshaped, swapaxes
from gpuop.ops.layout.shape_functions import tril, triu
from gpuop.ops.layout.slicing import sliced
from gpuop.ops.reduce.reductions import reduced

Inputs = Sequence[Field]
Tangents = Sequence[Field | None]


def _plain(field: Field) -> Field:
    """The same values, with all axes in the grid."""
    return reshaped("derivative", field, [Axis(axis.extent) for axis in axes_of(field.type)])


def _as(field: Field, like: Field) -> Field:
    """Values in the axes and the dtype of another field; summed where that was broadcast, and real where that is."""
    extra = len(field.type.array_shape) - len(like.type.array_shape)
    if extra:
        field = reduced("sum", field, tuple(range(extra)))
    spread = [n for n, extent in enumerate(like.type.array_shape) if extent != field.type.array_shape[n]]
    if spread:
        field = reduced("sum", field, tuple(spread))
    if field.dtype in COMPLEX_DTYPES and like.dtype not in COMPLEX_DTYPES:
        field = field.real
    return reshaped("derivative", astype(field, like.dtype), axes_of(like.type))


def _transposed(field: Field) -> Field:
    return swapaxes(field, -2, -1)


def _adjoint(field: Field) -> Field:
    turned = _transposed(field)
    return apply("conjugate", turned) if field.dtype in COMPLEX_DTYPES else turned


def _minus(a: Field, b: Field) -> Field:
    return apply("subtract", a, b)


def _times(a: Any, b: Any) -> Field:
    return apply("multiply", a, b)


def _product(*factors: Field) -> Field:
    result = factors[0]
    for factor in factors[1:]:
        result = matmul(result, factor)
    return result


def _diagonal(matrices: Field) -> Field:
    result: Field = diagonal(matrices)
    return result


def _columns(values: Field) -> Field:
    """Numbers for the columns of matrices."""
    return expand_dims(values, -2)


def _rows(values: Field) -> Field:
    return expand_dims(values, -1)


def _pushed(push: Callable[..., Any]) -> Callable[..., Field | None]:
    """A rule of one argument, from its tangent as matrices of the grid."""

    def rule(*args: Any) -> Field | None:
        *static, inputs, result, (tangent,) = args
        return None if tangent is None else _as(push(*static, inputs[0], result, _plain(tangent)), result)

    return rule


# --- products ---------------------------------------------------------------------------------------------------------


def _multiplied(inputs: Inputs, result: Field, tangents: Tangents) -> Field | None:
    parts = []
    if tangents[0] is not None:
        parts.append(_product(tangents[0], inputs[1]))
    if tangents[1] is not None:
        parts.append(_product(inputs[0], tangents[1]))
    return _as(apply("add", *parts) if len(parts) == 2 else parts[0], result) if parts else None


def _multiplied_pulled(inputs: Inputs, result: Field, cotangent: Field) -> list[Field]:
    a, b = inputs
    return [_as(_product(cotangent, _transposed(b)), a), _as(_product(_transposed(a), cotangent), b)]


# --- determinants, inverses, solutions --------------------------------------------------------------------------------


def _relative(matrices: Field, tangent: Field) -> Field:
    """The tangent of the logarithm of a determinant."""
    result: Field = trace(_product(_plain(inv(matrices)), tangent))
    return result


def _det(matrices: Field, result: Field, tangent: Field) -> Field:
    return _times(_plain(result), _relative(matrices, tangent))


def _logabsdet(matrices: Field, result: Field, tangent: Field) -> Field:
    relative = _relative(matrices, tangent)
    return relative.real if relative.dtype in COMPLEX_DTYPES else relative


def _sign(matrices: Field, result: Field, tangent: Field) -> Field:
    """The turn of a complex sign; a real one is constant."""
    if result.dtype not in COMPLEX_DTYPES:
        return _times(_plain(result), 0)
    return _times(_times(_plain(result), 1j), _relative(matrices, tangent).imag)


def _inv(matrices: Field, result: Field, tangent: Field) -> Field:
    inverse = _plain(result)
    return apply("negative", _product(inverse, tangent, inverse))


def _inv_pulled(inputs: Inputs, result: Field, cotangent: Field) -> list[Field]:
    turned = _transposed(_plain(result))
    return [_as(apply("negative", _product(turned, _plain(cotangent), turned)), inputs[0])]


def _sides(vectors: bool, *fields: Field) -> list[Field]:
    """Right-hand sides as matrices of the grid: a vector is a column."""
    return [_rows(_plain(field)) if vectors else _plain(field) for field in fields]


def _solved(vectors: bool, inputs: Inputs, result: Field, tangents: Tangents) -> Field | None:
    matrices, right = tangents
    (total,) = _sides(vectors, right) if right is not None else [None]
    if matrices is not None:
        moved = _product(_plain(matrices), *_sides(vectors, result))
        total = apply("negative", moved) if total is None else _minus(total, moved)
    if total is None:
        return None
    slope = solve(_plain(inputs[0]), total)
    return _as(sliced(slope, (..., 0)) if vectors else slope, result)


def _solved_pulled(vectors: bool, inputs: Inputs, result: Field, cotangent: Field) -> list[Field]:
    x, bar = _sides(vectors, result, cotangent)
    share = solve(_transposed(_plain(inputs[0])), bar)
    by_matrices = apply("negative", _product(share, _transposed(x)))
    return [_as(by_matrices, inputs[0]), _as(sliced(share, (..., 0)) if vectors else share, inputs[1])]


# --- factors ----------------------------------------------------------------------------------------------------------


def _symmetric(tangent: Field, upper: bool) -> Field:
    """The tangent of symmetric or Hermitian matrices, of which one triangle is read."""
    half = triu(tangent) if upper else tril(tangent)
    rest = triu(tangent, 1) if upper else tril(tangent, -1)
    if tangent.dtype in COMPLEX_DTYPES:
        half = apply("add", rest, _minus(half, rest).real)
    return apply("add", half, _adjoint(rest))


def _halved(field: Field) -> Field:
    """The lower triangle with half of the diagonal."""
    return _times(apply("add", tril(field), tril(field, -1)), 0.5)


def _cholesky(upper: bool, matrices: Field, result: Field, tangent: Field) -> Field:
    factor = _adjoint(_plain(result)) if upper else _plain(result)
    half = solve(factor, _symmetric(tangent, upper))
    slope = _product(factor, _halved(_adjoint(solve(factor, _adjoint(half)))))
    return _adjoint(slope) if upper else slope


def _skew(field: Field) -> Field:
    """The skew-Hermitian matrix of the same lower triangle; the diagonals of R are real."""
    below = tril(field, -1)
    result = _minus(below, _adjoint(below))
    if field.dtype not in COMPLEX_DTYPES:
        return result
    own = _minus(tril(field), below)
    return apply("add", result, _times(own.imag, 1j))


def _turned(matrices: Field, tangent: Field) -> tuple[Field, Field, Field]:
    """Q as matrices of the grid, its tangent, and Qᴴ times that of the matrices."""
    q, r = (_plain(field) for field in qr(matrices))
    count = q.type.array_shape[-1]
    square = sliced(r, (..., slice(count)))
    moved = _transposed(solve(_transposed(square), _transposed(sliced(tangent, (..., slice(count))))))
    own = _product(_adjoint(q), moved)
    return q, apply("add", _product(q, _minus(_skew(own), own)), moved), _product(_adjoint(q), tangent)


def _complete(mode: str, matrices: Field) -> None:
    rows, columns = matrices.type.array_shape[-2:]
    if mode == "complete" and rows > columns:
        raise SemanticError(
            f'`linalg.qr` with mode="complete" of {rows}×{columns} matrices has no derivative: the last {rows - columns} columns '
            'of Q are any basis of the rest; take mode="reduced"'
        )


def _q(mode: str, matrices: Field, result: Field, tangent: Field) -> Field:
    _complete(mode, matrices)
    return _turned(matrices, tangent)[1]


def _r(mode: str, matrices: Field, result: Field, tangent: Field) -> Field:
    _complete(mode, matrices)
    _, slope, own = _turned(matrices, tangent)
    return triu(apply("add", _product(_adjoint(slope), _plain(matrices)), own))


# --- eigenvalues and singular values ----------------------------------------------------------------------------------


def _inverse_gaps(values: Field) -> Field:
    """1 / (xⱼ − xᵢ) off the diagonal, 0 on it; equal values give infinities."""
    own = np.eye(values.type.array_shape[-1], dtype=values.dtype)
    gaps = apply("add", _minus(_columns(values), _rows(values)), Field(own))
    return _minus(apply("divide", 1.0, gaps), Field(own))


def _eigenvalues(triangle: str, matrices: Field, result: Field, tangent: Field) -> Field:
    vectors = _plain(eigh(matrices, triangle)[1])
    return _diagonal(_product(_transposed(vectors), _symmetric(tangent, triangle == "U"), vectors))


def _eigenvectors(triangle: str, matrices: Field, result: Field, tangent: Field) -> Field:
    values, vectors = (_plain(field) for field in eigh(matrices, triangle))
    own = _product(_transposed(vectors), _symmetric(tangent, triangle == "U"), vectors)
    return _product(vectors, _times(_inverse_gaps(values), own))


def _singular(matrices: Field, result: Field, tangent: Field) -> Field:
    left, _, right = (_plain(field) for field in svd(matrices, False))
    return _diagonal(_product(_transposed(left), tangent, _transposed(right)))


def _left(full: bool, matrices: Field, result: Field, tangent: Field) -> Field:
    left, values, right = (_plain(field) for field in svd(matrices, False))
    return _basis(full, matrices, (left, values, _transposed(right)), tangent)


def _right(full: bool, matrices: Field, result: Field, tangent: Field) -> Field:
    left, values, right = (_plain(field) for field in svd(matrices, False))
    return _transposed(_basis(full, matrices, (_transposed(right), values, left), _transposed(tangent)))


def _basis(full: bool, matrices: Field, factors: tuple[Field, Field, Field], tangent: Field) -> Field:
    """The tangent of the first factor U of U · diag(s) · Vᵀ."""
    rows, columns = matrices.type.array_shape[-2:]
    if full and rows != columns:
        raise SemanticError(
            f"`linalg.svd` with full_matrices=True of {rows}×{columns} matrices has no derivative: the last vectors are any basis "
            "of the rest; take full_matrices=False"
        )
    one, values, other = factors
    moved = _product(tangent, other)
    own = _product(_transposed(one), moved)
    scaled = _times(own, _columns(values))
    squares = _times(values, values)
    slope = _product(one, _times(_inverse_gaps(squares), apply("add", scaled, _transposed(scaled))))
    if one.type.array_shape[-2] == one.type.array_shape[-1]:
        return slope
    rest = _minus(moved, _product(one, own))
    return apply("add", slope, apply("divide", rest, _columns(values)))


def _inverse_tangent(matrices: Field, inverse: Field, tangent: Field) -> Field:
    """The tangent of a pseudo-inverse P of A: −P·dA·P + P·Pᵀ·dAᵀ·(1 − A·P) + (1 − P·A)·dAᵀ·Pᵀ·P; ranks stay."""
    turned, back = _transposed(tangent), _transposed(inverse)
    first = _product(inverse, back, turned)
    second = _product(turned, back, inverse)
    first = _minus(first, _product(first, matrices, inverse))
    second = _minus(second, _product(inverse, matrices, second))
    return _minus(apply("add", first, second), _product(inverse, tangent, inverse))


def _pinv(rcond: Any, matrices: Field, result: Field, tangent: Field) -> Field:
    return _inverse_tangent(_plain(matrices), _plain(result), tangent)


def _nearest(rcond: Any, vectors: bool, inputs: Inputs, tangents: Tangents) -> Field | None:
    """The tangent of least-squares solutions, as matrices of the grid."""
    inverse = _plain(pinv(inputs[0], rcond))
    total = None
    if tangents[1] is not None:
        total = _product(inverse, *_sides(vectors, tangents[1]))
    if tangents[0] is not None:
        slope = _inverse_tangent(_plain(inputs[0]), inverse, _plain(tangents[0]))
        moved = _product(slope, *_sides(vectors, inputs[1]))
        total = moved if total is None else apply("add", total, moved)
    return total


def _least_squares(rcond: Any, vectors: bool, inputs: Inputs, result: Field, tangents: Tangents) -> Field | None:
    slope = _nearest(rcond, vectors, inputs, tangents)
    if slope is None:
        return None
    return _as(sliced(slope, (..., 0)) if vectors else slope, result)


def _residuals(rcond: Any, vectors: bool, inputs: Inputs, result: Field, tangents: Tangents) -> Field | None:
    slope = _nearest(rcond, vectors, inputs, tangents)
    if slope is None:
        return None
    matrices, (right, x) = _plain(inputs[0]), _sides(vectors, inputs[1], lstsq(inputs[0], inputs[1], rcond)[0])
    moved = _product(matrices, slope)
    if tangents[0] is not None:
        moved = apply("add", moved, _product(_plain(tangents[0]), x))
    if tangents[1] is not None:
        moved = _minus(moved, *_sides(vectors, tangents[1]))
    rest = _minus(_product(matrices, x), right)
    return _as(_times(reduced("sum", _times(rest, moved), (moved.ndim - 2,)), 2), result)


_PUSHES: dict[str, Callable[..., Any]] = {
    "det pushed": _det,
    "slogdet sign": _sign,
    "slogdet logabsdet": _logabsdet,
    "inv pushed": _inv,
    "cholesky pushed": _cholesky,
    "qr Q": _q,
    "qr R": _r,
    "eigh values": _eigenvalues,
    "eigh vectors": _eigenvectors,
    "svd U": _left,
    "svd S": _singular,
    "svd Vh": _right,
    "pinv pushed": _pinv,
}
derivatives.update(
    {
        **{f"linalg.{name}": _pushed(push) for name, push in _PUSHES.items()},
        "linalg.matmul pushed": _multiplied,
        "linalg.matmul pulled": _multiplied_pulled,
        "linalg.inv pulled": _inv_pulled,
        "linalg.solve pushed": _solved,
        "linalg.solve pulled": _solved_pulled,
        "linalg.lstsq pushed": _least_squares,
        "linalg.lstsq residuals": _residuals,
    }
)
