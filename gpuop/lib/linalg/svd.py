"""Singular values, pseudo-inverses, ranks and condition numbers of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import gpuop.dsl as k
from gpuop.base.errors import UnsupportedError
from gpuop.dsl.fields.derivative_rules import Late, with_rule
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.lib.linalg.jacobi import SWEEPS, in_order, pairs, rotate, rotation
from gpuop.lib.linalg.lu_cholesky import inv
from gpuop.lib.linalg.matrices import MatrixArguments, for_each, loop, minus, swap
from gpuop.lib.linalg.norms import norm


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Any
    S: Any
    Vh: Any


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """numpy.linalg.svd: singular value decompositions, with singular values in descending order.

    Args:
        a: as of `det`, with any numbers of rows and columns up to 32.
        full_matrices: whether both orthogonal matrices are square.
        compute_uv: whether the orthogonal matrices are computed.

    Returns:
        `U`, `S` and `Vh`, each as of `det`; columns of U and rows of Vh may differ from NumPy in sign. Else S alone.

    Raises:
        LinAlgError, UnsupportedError: as of `det`; UnsupportedError also for complex matrices.
    """
    return SVDResult(*_svd(a, full_matrices)) if compute_uv else svdvals(a)


@takes_arrays("x")
def svdvals(x: Any) -> Any:
    """numpy.linalg.svdvals: singular values in descending order.

    Args:
        x: as of `svd`.

    Returns:
        As of `det`.

    Raises:
        LinAlgError, UnsupportedError: as of `det`; UnsupportedError also for complex matrices.
    """
    matrices = MatrixArguments("svdvals", x, square=False)
    count = min(matrices.rows, matrices.columns)

    def body() -> None:
        values = RotatedColumns(matrices).lengths()
        loop(0, count, lambda n: k._writeTensorElement(k._out0, values[n], n), count)

    return with_rule(matrices.call(body, [(count,)])[0], "svdvals", [as_field(x)], None, Late("linalg.svd S"))


@takes_arrays("a")
def _svd(a: Any, full: bool) -> Any:
    matrices = MatrixArguments("svd", a, square=False)
    rows, columns = matrices.rows, matrices.columns
    count = min(rows, columns)
    left, right = (rows, columns) if full else (count, count)

    def body() -> None:
        factors = RotatedColumns(matrices)
        factors.complete(max(left, right))
        one, other = (factors.turned, factors.long) if factors.wide else (factors.long, factors.turned)
        matrices.write(k._out0, rows, left, lambda i, j: one[i, j])
        values = factors.lengths()
        loop(0, count, lambda n: k._writeTensorElement(k._out1, values[n], n), count)
        matrices.write(k._out2, right, columns, lambda i, j: other[j, i])

    results = matrices.call(body, [(rows, left), (count,), (right, columns)], full)
    for result, name in zip(results, SVDResult._fields, strict=True):
        push = Late(f"linalg.svd {name}", () if name == "S" else (full,))
        with_rule(result, "svd", [as_field(a)], None, push)
    return tuple(results)


class RotatedColumns:
    """Columns after one-sided Jacobi rotations, which make them orthogonal: M = long · diag(values) · turnedᵀ.

    Attributes:
        wide: whether M is the transposed matrix, so that it has no more columns than rows.
        long: the rotated columns, in a square array of as many rows as M has.
        turned: the product of the rotations.
        values: the lengths of the columns in descending order, divided by a power of two.
        power: the exponent of that power.
    """

    def __init__(self, matrices: MatrixArguments) -> None:
        self.matrices, self.wide = matrices, matrices.rows < matrices.columns
        self.height, self.count = max(matrices.rows, matrices.columns), min(matrices.rows, matrices.columns)
        self.long, self.turned = matrices.array(self.height, self.height), matrices.identity(self.count)
        self.values = matrices.array(self.count)
        field = matrices.fields[0]

        def put(i: Any, j: Any) -> None:
            place = (j, i) if self.wide else (i, j)
            self.long[place] = k._readTensorElement(field, i * matrices.columns + j)

        for_each(matrices.rows, matrices.columns, put)
        self.power = matrices.scaled(self.long, self.height, self.count)
        with k._for(SWEEPS):
            self.changed = k._boolVar()
            pairs(self.count, self._turn)
            with k._if(k._not(self.changed)):
                k._break()
        loop(0, self.count, self._length, self.height)
        in_order(self.count, lambda i, j: self.values[j] > self.values[i], self._exchange)

    def _turn(self, p: Any, q: Any) -> None:
        one, other, both = self.product(p, p), self.product(q, q), self.product(p, q)
        least = 0.5 * self.matrices.epsilon()
        with k._if(abs(both) > least * k._sqrt(one) * k._sqrt(other)):
            cosine, sine = rotation((other - one) / (2 * both))
            loop(0, self.height, lambda r: rotate(self.long, (r, p), (r, q), cosine, sine), self.height)
            loop(0, self.count, lambda r: rotate(self.turned, (r, p), (r, q), cosine, sine), self.height)
            self.changed @= True

    def product(self, p: Any, q: Any) -> Any:
        """The dot product of two columns."""
        total = k._var(k._convert(0, self.matrices.dtype))
        loop(0, self.height, lambda r: total.assign(k._fma(self.long[r, p], self.long[r, q], total)), self.height)
        return total

    def _length(self, n: Any) -> None:
        self.values[n] = k._sqrt(self.product(n, n))

    def lengths(self) -> Any:
        """The singular values: `values`, multiplied in place by the power of two."""
        self.matrices.multiply(self.values, self.count, 0, self.power)
        return self.values

    def _exchange(self, i: Any, j: Any) -> None:
        swap(self.values, i, j)
        loop(0, self.height, lambda r: swap(self.long, (r, i), (r, j)), self.height)
        loop(0, self.count, lambda r: swap(self.turned, (r, i), (r, j)), self.height)

    def complete(self, count: int) -> None:
        """Make `count` columns orthonormal; columns without a length, and further ones, become new unit vectors."""
        least = self.values[0] * (self.matrices.epsilon() * self.height)

        def normed(n: Any) -> None:
            length = k._var(self.values[n])
            with k._if(length > least):
                self._scale(n, length)
            with k._else():
                self._new(n)

        loop(0, self.count, normed, self.height)
        loop(self.count, min(count, self.height), self._new, self.height)

    def invert(self, least: Any) -> None:
        """Divide both arrays by the singular values, for the pseudo-inverse; values up to `least` count as 0."""

        def inverted(n: Any) -> None:
            value = self.values[n]
            inverse = k._var(k._where(value > least, 1 / value, 0))
            loop(0, self.height, lambda r: times(self.long, (r, n), inverse), self.height)
            loop(0, self.count, lambda r: times(self.turned, (r, n), inverse), self.height)

        loop(0, self.count, inverted, self.height)

    def _scale(self, n: Any, length: Any) -> None:
        loop(0, self.height, lambda r: self.long.__setitem__((r, n), self.long[r, n] / length), self.height)

    def _new(self, n: Any) -> None:
        """Set a column to a unit vector orthogonal to those before, from the axis that they span least (Gram–Schmidt)."""
        zero = k._convert(0, self.matrices.dtype)
        best, axis = k._var(zero - 1), k._intVar()

        def tried(r: Any) -> None:
            rest = k._var(zero + 1)
            loop(0, n, lambda c: rest.assign(k._fma(-self.long[r, c], self.long[r, c], rest)), self.height)
            with k._if(rest > best):
                best.assign(rest)
                axis.assign(r)

        loop(0, self.height, tried, self.height)
        loop(0, self.height, lambda r: self.long.__setitem__((r, n), k._where(axis == r, zero + 1, zero)), self.height)
        for _ in range(2):  # the second pass removes what rounding leaves
            loop(0, n, lambda c: self._without(n, c), self.height)
        self._scale(n, k._sqrt(self.product(n, n)))

    def _without(self, n: Any, c: Any) -> None:
        share = self.product(n, c)
        loop(0, self.height, lambda r: minus(self.long, (r, n), share, self.long[r, c]), self.height)


@takes_arrays("a")
def pinv(a: Any, rcond: Any = None) -> Any:
    """numpy.linalg.pinv: pseudo-inverses of matrices.

    Args:
        a: as of `svd`.
        rcond: a number: singular values below this fraction of the greatest one count as 0; by default the greater extent times
            the rounding error of the dtype.

    Returns:
        As of `det`.

    Raises:
        LinAlgError, UnsupportedError: as of `det`; UnsupportedError also for complex matrices and for a Field as `rcond`.
    """
    matrices = MatrixArguments("pinv", a, square=False)
    rows, columns = matrices.rows, matrices.columns
    share = max(rows, columns) * matrices.epsilon() if rcond is None else rcond
    if not isinstance(share, NUMBERS):
        raise UnsupportedError("linalg.pinv: `rcond` is a number")

    def body() -> None:
        factors = RotatedColumns(matrices)
        factors.invert(factors.values[0] * share)
        one, other = (factors.long, factors.turned) if factors.wide else (factors.turned, factors.long)

        def at(i: Any, j: Any) -> Any:
            total = k._var(k._convert(0, matrices.dtype))
            loop(0, factors.count, lambda n: total.assign(k._fma(one[i, n], other[j, n], total)), factors.height)
            return matrices.shifted(total, -factors.power)

        matrices.write(k._out0, columns, rows, at)

    push = Late("linalg.pinv pushed", (rcond,))
    return with_rule(matrices.call(body, [(columns, rows)], share)[0], "pinv", [as_field(a)], None, push)


def times(array: Any, place: Any, factor: Any) -> None:
    array[place] = array[place] * factor


@takes_arrays("A")
def matrix_rank(A: Any, tol: Any = None) -> Any:  # noqa: N803 - NumPy's name
    """numpy.linalg.matrix_rank: the number of singular values above a tolerance.

    Args:
        A: as of `svd`.
        tol: the tolerance; by default the greatest singular value, times the greater extent, times the rounding error.

    Returns:
        A lazy Field of int64; for an array, an array of the same library.

    Raises:
        LinAlgError, UnsupportedError: as of `det`; UnsupportedError also for complex matrices.
    """
    matrices = MatrixArguments("matrix_rank", A, square=False)
    if tol is not None and not isinstance(tol, NUMBERS):
        raise UnsupportedError("linalg.matrix_rank: `tol` is a number")

    def body() -> None:
        factors, total = RotatedColumns(matrices), k._var(k._convert(0, matrices.dtype))
        values = factors.values if tol is None else factors.lengths()
        least = values[0] * (max(matrices.rows, matrices.columns) * matrices.epsilon()) if tol is None else tol
        count = min(matrices.rows, matrices.columns)
        loop(0, count, lambda n: total.assign(total + k._where(values[n] > least, 1, 0)), count)
        k._writeTensor(k._out0, total)

    return matrices.call(body, [()], tol)[0].astype("int64")


@takes_arrays("x")
def cond(x: Any, p: Any = None) -> Any:
    """numpy.linalg.cond: the greatest singular value over the least one; or the product of norms of a matrix and its inverse.

    Args:
        x: as of `svd`.
        p: None, or an order of matrices as of `norm`.

    Returns:
        As of `det`.

    Raises:
        LinAlgError, UnsupportedError: as of `det`; also complex ones.
    """
    matrix = as_field(x)
    if p in (None, 2, -2):
        values = svdvals(matrix)
        ends = values[..., 0], values[..., -1]
        return ends[1] / ends[0] if p == -2 else ends[0] / ends[1]
    near = _scaled(matrix)
    return norm(near, p, (-2, -1)) * norm(inv(near), p, (-2, -1))


def _scaled(matrix: Any) -> Any:
    """The matrices times powers of two, so that squares of values, also of inverses, are in range; condition numbers stay."""
    matrices = MatrixArguments("cond", matrix, complex_=True)

    def body() -> None:
        values = matrices.read()
        matrices.scaled(values, matrices.rows, matrices.columns)
        matrices.write(k._out0, matrices.rows, matrices.columns, lambda i, j: values[i, j])

    return matrices.call(body, [(matrices.rows, matrices.columns)])[0]
