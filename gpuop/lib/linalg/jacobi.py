"""Eigenvalues by Jacobi rotations of two columns at a time, and QR by Householder reflections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.derivative_rules import Late, with_rule
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.lib.linalg.matrices import MatrixArguments, loop, swap

SWEEPS = 24  # over all pairs of columns; a matrix of 32 needs about ten


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


def eigh(a: Any, UPLO: str = "L") -> EighResult:  # noqa: N803 - NumPy's name
    """numpy.linalg.eigh: eigenvalues of symmetric matrices, in ascending order, and eigenvectors, which are columns.

    Args:
        a: as of `det`.
        UPLO: the triangle that is read: "L", the lower one, or "U", the upper one.

    Returns:
        `eigenvalues` and `eigenvectors`, each as of `det`; eigenvectors may differ from NumPy in sign.

    Raises:
        LinAlgError, UnsupportedError: as of `det`; UnsupportedError also for complex matrices.
        ArgumentError: another UPLO; a ValueError.
    """
    return EighResult(*_eigh(a, UPLO, True))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """numpy.linalg.eigvalsh: eigenvalues of symmetric matrices, in ascending order.

    Args:
        a, UPLO: as of `eigh`.

    Returns:
        As of `det`.

    Raises:
        LinAlgError, UnsupportedError, ArgumentError: as of `eigh`.
    """
    return _eigh(a, UPLO, False)


@takes_arrays("a")
def _eigh(a: Any, triangle: str, vectors: bool) -> Any:
    if triangle not in ("L", "U"):
        raise ArgumentError(f"eigh: UPLO is 'L' or 'U', not {triangle!r}")
    matrices = MatrixArguments("eigh", a)
    size = matrices.rows

    def body() -> None:
        matrix, basis = matrices.read(), matrices.identity(size)
        _symmetric(matrix, size, triangle)
        power = matrices.scaled(matrix, size, size)
        _diagonalised(matrices, matrix, basis if vectors else None)
        matrices.multiply(matrix, size, size, power)
        in_order(size, lambda i, j: matrix[j, j] < matrix[i, i], lambda i, j: _exchange(matrix, basis, size, i, j))
        loop(0, size, lambda n: k._writeTensorElement(k._out0, matrix[n, n], n), size)
        if vectors:
            matrices.write(k._out1, size, size, lambda i, j: basis[i, j])

    results = matrices.call(body, [(size,), (size, size)] if vectors else [(size,)], (triangle, vectors))
    for result, name in zip(results, ("values", "vectors"), strict=False):
        with_rule(result, "eigh", [as_field(a)], None, Late(f"linalg.eigh {name}", (triangle,)))
    return tuple(results) if vectors else results[0]


def _symmetric(matrix: Any, size: int, triangle: str) -> None:
    def row(i: Any) -> None:
        loop(0, i, lambda j: copy(matrix, *(((j, i), (i, j)) if triangle == "L" else ((i, j), (j, i)))), size)

    loop(0, size, row, size)


def copy(array: Any, there: Any, place: Any) -> None:
    array[there] = array[place]


def _exchange(matrix: Any, vectors: Any, size: int, i: Any, j: Any) -> None:
    swap(matrix, (i, i), (j, j))
    loop(0, size, lambda r: swap(vectors, (r, i), (r, j)), size)


def in_order(size: int, wrong: Callable[[Any, Any], Any], exchange: Callable[[Any, Any], None]) -> None:
    """Sort by pairwise exchanges."""

    def pair(i: Any, j: Any) -> None:
        with k._if(wrong(i, j)):
            exchange(i, j)

    pairs(size, pair)


def pairs(size: int, body: Callable[[Any, Any], None]) -> None:
    loop(0, size, lambda i: loop(i + 1, size, lambda j: body(i, j), size), size)


def rotation(zeta: Any) -> tuple[Any, Any]:
    """The cosine and the sine of the smaller rotation that makes two columns orthogonal."""
    tangent = k._where(zeta < 0, -1, 1) / (abs(zeta) + k._sqrt(zeta * zeta + 1))
    cosine = 1 / k._sqrt(tangent * tangent + 1)
    return cosine, cosine * tangent


def rotate(array: Any, one: Any, other: Any, cosine: Any, sine: Any) -> None:
    """Rotate the values at two indices into one another."""
    x, y = k._var(array[one]), k._var(array[other])
    array[one] = cosine * x - sine * y
    array[other] = sine * x + cosine * y


def _diagonalised(matrices: MatrixArguments, matrix: Any, vectors: Any) -> None:
    """Rotate until the elements off the diagonal are negligible."""
    size, least = matrices.rows, matrices.epsilon() ** 2

    def pair(p: Any, q: Any) -> None:
        beside = k._var(matrix[p, q])
        with k._if(beside != 0):
            cosine, sine = rotation((matrix[q, q] - matrix[p, p]) / (2 * beside))
            loop(0, size, lambda r: rotate(matrix, (r, p), (r, q), cosine, sine), size)
            loop(0, size, lambda r: rotate(matrix, (p, r), (q, r), cosine, sine), size)
            matrix[p, q] = 0
            matrix[q, p] = 0
            if vectors is not None:
                loop(0, size, lambda r: rotate(vectors, (r, p), (r, q), cosine, sine), size)

    with k._for(SWEEPS):
        outside, inside = (k._var(k._convert(0, matrices.dtype)) for _ in range(2))
        pairs(size, lambda p, q: outside.assign(k._fma(matrix[p, q], matrix[p, q], outside)))
        loop(0, size, lambda n: inside.assign(k._fma(matrix[n, n], matrix[n, n], inside)), size)
        with k._if(outside <= least * least * inside):
            k._break()
        pairs(size, pair)


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Any
    R: Any


def qr(a: Any, mode: str = "reduced") -> Any:
    """numpy.linalg.qr: matrices as products of orthogonal matrices and upper triangles.

    Args:
        a: as of `det`, with any numbers of rows and columns up to 32.
        mode: "reduced", "complete", or "r" for triangles alone.

    Returns:
        `Q` and `R`, each as of `det`; for "r" only R.

    Raises:
        LinAlgError, UnsupportedError: as of `det`.
        ArgumentError: another mode; a ValueError.
    """
    result = _qr(a, mode)
    return result if mode == "r" else QRResult(*result)


@takes_arrays("a")
def _qr(a: Any, mode: str) -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: `mode` is 'reduced', 'complete' or 'r', not {mode!r}")
    matrices = MatrixArguments("qr", a, square=False, complex_=True)
    rows, columns = matrices.rows, matrices.columns
    turned = min(rows if matrices.products.complex else rows - 1, columns)  # one complex number is rotated to be real
    count = rows if mode == "complete" else min(rows, columns)

    def body() -> None:
        matrix, basis, vector = matrices.read(), matrices.identity(rows), matrices.array(rows)
        power = matrices.scaled(matrix, rows, columns)
        loop(0, turned, lambda n: _reflected(matrices, matrix, basis, vector, n), max(rows, columns))
        matrices.multiply(matrix, count, columns, power)
        first, second = (None, k._out0) if mode == "r" else (k._out0, k._out1)
        if first is not None:
            matrices.write(first, rows, count, lambda i, j: basis[i, j])
        matrices.write(second, count, columns, lambda i, j: matrix[i, j])

    results = matrices.call(body, [(count, columns)] if mode == "r" else [(rows, count), (count, columns)], mode)
    for result, factor in zip(results, mode.upper() if mode == "r" else "QR", strict=True):
        with_rule(result, "qr", [as_field(a)], None, Late(f"linalg.qr {factor}", (mode,)))
    return results[0] if mode == "r" else tuple(results)


def _reflected(matrices: MatrixArguments, matrix: Any, result: Any, vector: Any, n: Any) -> None:
    """Annihilate a column below the diagonal by a reflection, as LAPACK does."""
    rows, columns, size = matrices.rows, matrices.columns, max(matrices.rows, matrices.columns)
    below = k._var(k._convert(0, matrices.products.summed))
    loop(n + 1, rows, lambda r: _add_square(matrices, below, matrix[r, n]), size)
    own = k._var(matrix[n, n])
    with k._if((below > 0) | (own.y != 0) if matrices.products.complex else below > 0):
        before = k._var(below)
        _add_square(matrices, before, own)
        length = k._sqrt(before)
        diagonal = k._var(k._where(matrices.real(own) < 0, length, -length))
        share = k._var((matrices.number(diagonal) - own) / diagonal)
        loop(
            n + 1,
            rows,
            lambda r: vector.__setitem__(r, matrices.over(matrix[r, n], own - matrices.number(diagonal))),
            size,
        )
        vector[n] = matrices.one()

        def mirrored(array: Any, at: Callable[[Any, Any], Any], line: Any, left: bool) -> None:
            """Apply the reflection; from the left it is the conjugate of that from the right."""
            one, other = (matrices.conjugate, _itself) if left else (_itself, matrices.conjugate)
            total = k._var(matrices.number(0))
            loop(
                n, rows, lambda r: total.assign(matrices.products.more(total, one(vector[r]), array[at(r, line)])), size
            )
            scaled = k._var(matrices.times(one(share), total))
            loop(n, rows, lambda r: matrices.minus(array, at(r, line), scaled, other(vector[r])), size)

        loop(n, columns, lambda c: mirrored(matrix, lambda r, line: (r, line), c, True), size)
        loop(0, rows, lambda c: mirrored(result, lambda r, line: (line, r), c, False), size)
        loop(n + 1, rows, lambda r: matrix.__setitem__((r, n), matrices.number(0)), size)


def _itself(x: Any) -> Any:
    return x


def _add_square(matrices: MatrixArguments, total: Any, value: Any) -> None:
    for part in (value.x, value.y) if matrices.products.complex else (value,):
        total.assign(k._fma(part, part, total))
