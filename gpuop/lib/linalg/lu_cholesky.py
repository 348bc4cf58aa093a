"""Determinants, inverses and solutions by Gaussian elimination with pivoting; and Cholesky factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import gpuop.dsl as k
from gpuop.dsl.fields.derivative_rules import Late, with_rule
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.lib.linalg.matrices import LinAlgError, MatrixArguments, loop, swap


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Any
    logabsdet: Any


@takes_arrays("a")
def det(a: Any) -> Any:
    """numpy.linalg.det: determinants of the matrices in the last two axes.

    Args:
        a: a field, an array or a list of matrices of up to 32×32; one thread factorises each matrix.

    Returns:
        A lazy Field of float32, or of float64 or complex numbers if the matrices are; for an array, an array of the same library.

    Raises:
        LinAlgError: the matrices are not square; a ValueError and a numpy.linalg.LinAlgError.
        UnsupportedError: the matrices are larger than 32×32.
    """
    matrices = MatrixArguments("det", a, complex_=True)

    def body() -> None:
        matrix = matrices.read()
        sign, power = eliminated(matrices, matrix), k._var(0)

        def more(n: Any) -> None:  # multiplies mantissas from 1 to 2, so products stay in range
            own = matrices.exponent(matrices.size(matrix[n, n]))
            sign.assign(matrices.times(sign, matrices.shifted(matrix[n, n], -own)))
            power.assign(power + own)

        loop(0, matrices.rows, more, matrices.rows)
        k._writeTensor(k._out0, matrices.shifted(sign, power))

    return with_rule(matrices.call(body, [()])[0], "det", [as_field(a)], None, Late("linalg.det pushed"))


def slogdet(a: Any) -> SlogdetResult:
    """numpy.linalg.slogdet: signs of determinants, and logarithms of their magnitudes.

    Args:
        a: as of `det`.

    Returns:
        `sign` and `logabsdet`, each as of `det`.

    Raises:
        LinAlgError, UnsupportedError: as of `det`.
    """
    return SlogdetResult(*_slogdet(a))


@takes_arrays("a")
def _slogdet(a: Any) -> Any:
    matrices = MatrixArguments("slogdet", a, complex_=True)

    def body() -> None:
        matrix = matrices.read()
        sign = eliminated(matrices, matrix)
        total = k._var(0 * matrices.real(sign))

        def more(n: Any) -> None:
            value = k._var(matrix[n, n])
            size = k._complexAbs(value) if matrices.products.complex else abs(value)
            side = value / k._where(size == 0, 1, size) if matrices.products.complex else k._sign(value)
            sign.assign(matrices.times(sign, side))
            total.assign(total + k._log(size))

        loop(0, matrices.rows, more, matrices.rows)
        k._writeTensor(k._out0, sign)
        k._writeTensor(k._out1, total)

    results = zip(matrices.call(body, [(), ()], real=(1,)), ("sign", "logabsdet"), strict=True)
    return tuple(with_rule(r, "slogdet", [as_field(a)], None, Late(f"linalg.slogdet {name}")) for r, name in results)


@takes_arrays("a")
def inv(a: Any) -> Any:
    """numpy.linalg.inv: inverses of matrices; singular matrices give infinities and NaN.

    Args:
        a: as of `det`.

    Returns:
        As of `det`.

    Raises:
        LinAlgError, UnsupportedError: as of `det`.
    """
    matrices = MatrixArguments("inv", a, complex_=True)
    size = matrices.rows

    def body() -> None:
        matrix, inverse = matrices.read(), matrices.identity(size)
        eliminated(matrices, matrix, inverse, size)
        substituted(matrices, matrix, inverse, size)
        matrices.write(k._out0, size, size, lambda i, j: inverse[i, j])

    result = matrices.call(body, [(size, size)])[0]
    return with_rule(result, "inv", [as_field(a)], Late("linalg.inv pulled"), Late("linalg.inv pushed"))


@takes_arrays("a", "b")
def solve(a: Any, b: Any) -> Any:
    """numpy.linalg.solve: x with a·x = b.

    Args:
        a: as of `det`.
        b: vectors, if it has one dimension or is a field of vectors; else matrices, in the last two axes. Grids are broadcast.

    Returns:
        As of `det`, of b's shape.

    Raises:
        LinAlgError: as of `det`; a and b have different numbers of rows.
        UnsupportedError: as of `det`.
    """
    right = as_field(b)
    vectors = right.ndim == 1 or len(right.tensor_shape) == 1
    matrices = MatrixArguments("solve", a, b, vectors=vectors, complex_=True)
    size, shape = matrices.rows, matrices.fields[1].tensor_shape
    if shape[0] != size:
        raise LinAlgError(f"solve: the matrices have {size} rows, and the right-hand sides {shape[0]}")
    columns = 1 if vectors else shape[1]

    def body() -> None:
        matrix, solution = matrices.read(), matrices.read(1)
        eliminated(matrices, matrix, solution, columns)
        substituted(matrices, matrix, solution, columns)
        matrices.write(k._out0, size, columns, lambda i, j: solution[i, j])

    pull, push = (Late(f"linalg.solve {mode}", (vectors,)) for mode in ("pulled", "pushed"))
    return with_rule(matrices.call(body, [tuple(shape)])[0], "solve", [as_field(a), right], pull, push)


def eliminated(matrices: MatrixArguments, matrix: Any, beside: Any = None, columns: int = 0) -> Any:
    """Reduce a matrix to an upper triangle with partial pivoting, and apply the same steps to the right-hand sides.

    Returns:
        A variable: the sign of the permutation of rows, -1 or 1.
    """
    size, sign = matrices.rows, k._var(matrices.number(1))

    def column(c: Any) -> None:
        def ordered(r: Any) -> None:
            with k._if(matrices.size(matrix[r, c]) > matrices.size(matrix[c, c])):
                loop(c, size, lambda j: swap(matrix, (r, j), (c, j)), size)
                loop(0, columns, lambda j: swap(beside, (r, j), (c, j)), max(size, columns))
                sign.assign(-sign)

        def cleared(r: Any) -> None:
            pivot = matrix[c, c]
            factor = k._where(matrices.size(pivot) == 0, matrices.number(0), matrices.over(matrix[r, c], pivot))
            loop(c, size, lambda j: matrices.minus(matrix, (r, j), factor, matrix[c, j]), size)
            loop(0, columns, lambda j: matrices.minus(beside, (r, j), factor, beside[c, j]), max(size, columns))

        loop(c + 1, size, ordered, size)
        loop(c + 1, size, cleared, size)

    loop(0, size, column, size)
    return sign


def substituted(matrices: MatrixArguments, triangle: Any, beside: Any, columns: int) -> None:
    """Solve an upper triangle by back substitution, in place of the right-hand sides."""
    size = matrices.rows

    def row(n: Any) -> None:
        own = size - 1 - n

        def solved(j: Any) -> None:
            loop(own + 1, size, lambda c: matrices.minus(beside, (own, j), triangle[own, c], beside[c, j]), size)
            beside[own, j] = matrices.over(beside[own, j], triangle[own, own])

        loop(0, columns, solved, max(size, columns))

    loop(0, size, row, size)


@takes_arrays("a")
def cholesky(a: Any, upper: bool = False) -> Any:
    """numpy.linalg.cholesky: Cholesky factors of symmetric or Hermitian matrices; NaN where a matrix is not positive definite.

    Args:
        a: as of `det`; only the lower triangle is read, with `upper` only the upper one.
        upper: whether the factor is the upper triangle.

    Returns:
        As of `det`.

    Raises:
        LinAlgError, UnsupportedError: as of `det`.
    """
    matrices = MatrixArguments("cholesky", a, complex_=True)
    size = matrices.rows

    def body() -> None:
        matrix = matrices.read()

        def at(i: Any, j: Any) -> Any:
            return (j, i) if upper else (i, j)

        def column(j: Any) -> None:
            def below(i: Any) -> None:
                loop(0, j, lambda c: less(i, j, c), size)

            loop(j, size, below, size)
            matrix[j, j] = matrices.number(k._sqrt(matrices.real(matrix[j, j])))
            loop(j + 1, size, lambda i: divide(matrix, at(i, j), matrices.real(matrix[j, j])), size)

        def less(i: Any, j: Any, c: Any) -> None:
            matrices.minus(matrix, at(i, j), matrix[at(i, c)], matrices.conjugate(matrix[at(j, c)]))

        loop(0, size, column, size)
        matrices.write(k._out0, size, size, lambda i, j: triangular(matrices, matrix, i, j, upper))

    push = Late("linalg.cholesky pushed", (upper,))
    return with_rule(matrices.call(body, [(size, size)], upper)[0], "cholesky", [as_field(a)], None, push)


def divide(array: Any, place: Any, by: Any) -> None:
    array[place] = array[place] / by


def triangular(matrices: MatrixArguments, matrix: Any, row: Any, column: Any, upper: bool) -> Any:
    """The value of a triangle at an index."""
    inside = row <= column if upper else column <= row
    if isinstance(inside, bool):
        return matrix[row, column] if inside else matrices.number(0)
    return k._where(inside, matrix[row, column], matrices.number(0))
