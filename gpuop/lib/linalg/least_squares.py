"""Least-squares solutions, by singular values."""

from __future__ import annotations

from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import UnsupportedError
from gpuop.dsl.fields.derivative_rules import Late, with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.ir.types import FieldType
from gpuop.lib.linalg.matrices import LinAlgError, MatrixArguments, for_each, loop
from gpuop.lib.linalg.svd import RotatedColumns
from gpuop.ops.create.computed_fields import filled


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """numpy.linalg.lstsq: the x of least norm that minimises the norm of b - a·x.

    Args:
        a: as of `svd`; also many matrices: a field has one at each point.
        b: as of `solve`.
        rcond: as of `pinv`.

    Returns:
        Four results, each as of `det`: x; the sums of squares of b - a·x, empty unless a has more rows than columns; int32 ranks;
        and singular values.

    Raises:
        LinAlgError: as of `solve`.
        UnsupportedError: as of `pinv`.
    """
    return tuple(_lstsq(a, b, rcond))


@takes_arrays("a", "b")
def _lstsq(a: Any, b: Any, rcond: Any) -> Any:
    right = as_field(b)
    vectors = right.ndim == 1 or len(right.tensor_shape) == 1
    matrices = MatrixArguments("lstsq", a, b, vectors=vectors, square=False)
    rows, columns = matrices.rows, matrices.columns
    if matrices.fields[1].tensor_shape[0] != rows:
        raise LinAlgError(
            f"lstsq: the matrices have {rows} rows, and the right-hand sides {matrices.fields[1].tensor_shape[0]}"
        )
    share = max(rows, columns) * matrices.epsilon() if rcond is None else rcond
    if not isinstance(share, NUMBERS):
        raise UnsupportedError("linalg.lstsq: `rcond` is a number")
    several = 1 if vectors else matrices.fields[1].tensor_shape[1]
    solution = (columns,) if vectors else (columns, several)
    tensors = [solution, (several,), (), (min(rows, columns),)]
    body = _Nearest(matrices, several, float(share)).body
    x, rest, rank, values = matrices.call(body, tensors, (share, vectors))
    sides, left = (rcond, vectors), as_field(a)
    with_rule(x, "lstsq", [left, right], None, Late("linalg.lstsq pushed", sides))
    with_rule(rest, "lstsq", [left, right], None, Late("linalg.lstsq residuals", sides))
    with_rule(values, "lstsq", [left], None, Late("linalg.svd S"))
    return x, rest if rows > columns else _none(matrices), rank.astype("int32"), values


def _none(matrices: MatrixArguments) -> Field:
    return filled(FieldType(0, (), matrices.dtype), 0)


class _Nearest:
    def __init__(self, matrices: MatrixArguments, several: int, share: Any) -> None:
        self.matrices, self.several, self.share = matrices, several, share

    def body(self) -> None:
        matrices, columns = self.matrices, RotatedColumns(self.matrices)
        count = columns.count
        least, rank = columns.values[0] * self.share, k._var(self._zero())
        loop(0, count, lambda n: rank.assign(rank + k._where(columns.values[n] > least, 1, 0)), count)
        k._writeTensor(k._out2, rank)
        columns.invert(least)
        values = columns.lengths()
        loop(0, count, lambda n: k._writeTensorElement(k._out3, values[n], n), count)
        one, other = (columns.long, columns.turned) if columns.wide else (columns.turned, columns.long)
        matrix, beside, shares = matrices.read(), matrices.read(1), matrices.array(count, self.several)

        def share(n: Any, j: Any) -> None:
            shares[n, j] = self._sum(matrices.rows, lambda r: (other[r, n], beside[r, j]))

        def solved(i: Any, j: Any) -> None:
            total = self._sum(count, lambda n: (one[i, n], shares[n, j]))
            result[i, j] = matrices.shifted(total, -columns.power)

        result = matrices.array(matrices.columns, self.several)
        for_each(count, self.several, share)
        for_each(matrices.columns, self.several, solved)
        matrices.write(k._out0, matrices.columns, self.several, lambda i, j: result[i, j])
        loop(0, self.several, lambda j: self._rest(matrix, beside, result, j), self.several)

    def _zero(self) -> Any:
        return k._convert(0, self.matrices.dtype)

    def _sum(self, count: int, pair: Any) -> Any:
        """A sum of products."""
        total = k._var(self._zero())

        def more(n: Any) -> None:
            one, other = pair(n)
            total.assign(k._fma(one, other, total))

        loop(0, count, more, self.matrices.rows + self.matrices.columns)
        return total

    def _rest(self, matrix: Any, beside: Any, result: Any, j: Any) -> None:
        """The squared residual of a solution."""
        total = k._var(self._zero())

        def row(r: Any) -> None:
            apart = k._var(beside[r, j])
            loop(
                0,
                self.matrices.columns,
                lambda i: apart.assign(k._fma(-matrix[r, i], result[i, j], apart)),
                self.matrices.rows,
            )
            total.assign(k._fma(apart, apart, total))

        loop(0, self.matrices.rows, row, self.matrices.rows)
        k._writeTensorElement(k._out1, total, j)
