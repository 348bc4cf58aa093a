"""Small matrices in a thread's own memory: reading, writing, scaling, and loops over their rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.precisions import exactly
from gpuop.engine.jit.array_arguments import as_field
from gpuop.ir.dtype_names import COMPLEX_DTYPES, complex_dtype, part_dtype
from gpuop.ir.types import FieldType
from gpuop.lib.linalg.product_dtypes import Products
from gpuop.ops.elementwise.algebra import astype
from gpuop.ops.layout.axes import Axis, axes_of
from gpuop.ops.layout.layouts import grids_spread, reshaped

MOST = 32  # most rows and columns of a matrix
WRITTEN_OUT = 4  # most rows and columns of a matrix in registers, with unrolled loops


class LinAlgError(ArgumentError, np.linalg.LinAlgError):
    """An error in the shapes of matrices; also a numpy.linalg.LinAlgError.

    Args:
        message, loc: as of SemanticError.
    """


class MatrixArguments:
    """Operands of a function of matrices, as fields of tensors.

    Args:
        name: the function's name.
        matrices: arrays, or fields, with matrices in the last two axes, of tensors or of the grid.
        vectors: whether the last operand has vectors.
        square: whether the matrices of the first operand must be square.
        complex_: whether complex matrices are supported.
    """

    def __init__(
        self, name: str, *matrices: Any, vectors: bool = False, square: bool = True, complex_: bool = False
    ) -> None:
        self.name, self.takes_complex = name, complex_
        self.grid = all(isinstance(m, Field) and not m.tensor_shape for m in matrices)
        last = len(matrices) - 1
        fields = [self._of_tensors(m, 1 if vectors and n == last else 2) for n, m in enumerate(matrices)]
        dtypes = {f.dtype for f in fields}
        real = "float64" if {"float64", "complex128"} & dtypes else "float32"
        self.dtype = complex_dtype(real) if dtypes & set(COMPLEX_DTYPES) else real
        self.products = Products(self.dtype)
        self.fields: list[Field] = grids_spread(f"linalg.{name}", [astype(f, self.dtype) for f in fields])
        self.rows, self.columns = self.fields[0].tensor_shape
        if square and self.rows != self.columns:
            raise LinAlgError(
                f"{name}: Last 2 dimensions of the array must be square, and are {self.rows}×{self.columns}"
            )
        if max(*self.fields[0].tensor_shape, *self.fields[-1].tensor_shape) > MOST:
            raise UnsupportedError(
                f"linalg.{name}: a thread decomposes matrices of up to {MOST}×{MOST}, not {self.rows}×{self.columns}; "
                f"`numpy.linalg.{name}(f.numpy())` computes on the host"
            )

    def _of_tensors(self, arg: Any, order: int) -> Field:
        """The field with its last axes as tensor axes."""
        field = arg if isinstance(arg, Field) else as_field(arg)
        axes = axes_of(field.type)
        if len(axes) < order:
            raise LinAlgError(
                f"{self.name}: {len(axes)}-dimensional array given. Array must be at least {order}-dimensional"
            )
        if field.dtype in COMPLEX_DTYPES and not self.takes_complex:
            raise UnsupportedError(f"linalg.{self.name} takes real matrices")
        if len(field.tensor_shape) == order:
            return field
        return reshaped(self.name, field, [Axis(axis.extent, n >= len(axes) - order) for n, axis in enumerate(axes)])

    def call(
        self, body: Callable[[], None], tensors: Sequence[tuple[int, ...]], key: Any = (), real: Sequence[int] = ()
    ) -> list[Field]:
        """The output fields of an operator, with tensors of these shapes; some outputs may be real."""
        grid = max((f.field_shape for f in self.fields), key=len)
        dtypes = [part_dtype(self.dtype) if n in real else self.dtype for n in range(len(tensors))]
        types = tuple(FieldType(grid, shape, dtype) for shape, dtype in zip(tensors, dtypes, strict=True))
        with exactly():
            result = library_call(self.name, types, self.fields, body, key, whole=True)
        return [self._of_grid(f) if self.grid else f for f in result]

    def _of_grid(self, field: Field) -> Field:
        return reshaped(self.name, field, [Axis(axis.extent) for axis in axes_of(field.type)])

    def array(self, *shape: int) -> Any:
        """A thread-private array of zeros."""
        return self.products.array(*shape)

    def read(self, number: int = 0) -> Any:
        """A thread-private copy of a matrix; a vector becomes a column."""
        field = self.fields[number]
        rows, columns = (*field.tensor_shape, 1)[:2]
        result = self.array(rows, columns)
        for_each(rows, columns, lambda i, j: result.__setitem__((i, j), self._element(field, i * columns + j)))
        return result

    def _element(self, field: Field, number: Any) -> Any:
        if not self.products.complex:
            return k._readTensorElement(field, number)
        return k._vector(*(k._readTensorElement(field, number * 2 + part) for part in range(2)))

    def write(self, out: Any, rows: int, columns: int, value: Callable[[Any, Any], Any]) -> None:
        """Write a matrix to an output."""

        def place(i: Any, j: Any) -> None:
            entry, number = value(i, j), i * columns + j
            parts = (entry.x, entry.y) if self.products.complex else (entry,)
            for n, part in enumerate(parts):
                k._writeTensorElement(out, part, number * len(parts) + n)

        for_each(rows, columns, place)

    def identity(self, count: int) -> Any:
        result = self.array(count, count)
        loop(0, count, lambda i: result.__setitem__((i, i), self.one()), count)
        return result

    def number(self, value: Any) -> Any:
        """A real number in the matrices' dtype."""
        number = k._convert(value, part_dtype(self.dtype))
        return k._vector(number, 0.0) if self.products.complex else number

    def one(self) -> Any:
        return self.number(1.0) if self.products.complex else 1

    def minus(self, array: Any, place: Any, factor: Any, value: Any) -> None:
        """Take a product from what is at a place."""
        array[place] = self.products.more(array[place], -factor, value)

    def times(self, x: Any, y: Any) -> Any:
        return k._complexMul(x, y) if self.products.complex else x * y

    def over(self, x: Any, y: Any) -> Any:
        return k._complexDiv(x, y) if self.products.complex else x / y

    def conjugate(self, x: Any) -> Any:
        return k._complexConj(x) if self.products.complex else x

    def real(self, x: Any) -> Any:
        return x.x if self.products.complex else x

    def size(self, x: Any) -> Any:
        """The magnitude; of complex numbers the sum of the magnitudes of both parts."""
        return abs(x.x) + abs(x.y) if self.products.complex else abs(x)

    def exponent(self, size: Any) -> Any:
        """The binary exponent of a magnitude; 0 of 0, infinity and NaN."""
        result = k._var(0)
        with k._if((size > 0) & (size < math.inf)):
            result.assign(k._ilogb(size))
        return result

    def scaled(self, array: Any, rows: int, columns: int) -> Any:
        """Divide a matrix by a power of two so that squares of its values neither overflow nor underflow; this is exact.

        Returns:
            The exponent of that power, a variable. It is 0 for most matrices, whose bits stay as they are.
        """
        least, most = (-100, 400) if self.dtype == "float64" else (-10, 40)
        greatest = k._var(k._convert(0, self.products.summed))
        for_each(rows, columns, lambda i, j: greatest.assign(k._fmax(greatest, self.size(array[i, j]))))
        power = self.exponent(greatest)
        power.assign(k._where(power > most, power - most, k._where(power < least, power, 0)))
        self.multiply(array, rows, columns, -power)
        return power

    def multiply(self, array: Any, rows: int, columns: int, power: Any) -> None:
        """Multiply a matrix, or a vector if `columns` is 0, by a power of two."""

        def place(i: Any, j: Any) -> None:
            at = (i, j) if columns else i
            array[at] = self.shifted(array[at], power)

        with k._if(power != 0):
            for_each(rows, columns or 1, place)

    def shifted(self, value: Any, power: Any) -> Any:
        """A number times a power of two."""
        if self.products.complex:
            return k._vector(k._ldexp(value.x, power), k._ldexp(value.y, power))
        return k._ldexp(value, power)

    def epsilon(self) -> float:
        return float(np.finfo(self.dtype).eps)


def loop(start: Any, stop: Any, body: Callable[[Any], object], size: int) -> None:
    """Record a loop; for small matrices it is unrolled."""
    if isinstance(start, int) and isinstance(stop, int) and start >= stop:
        return
    if size <= WRITTEN_OUT:
        for n in range(start, stop):
            body(n)
    else:
        with k._for(start, stop) as n:
            body(n)


def for_each(rows: int, columns: int, body: Callable[[Any, Any], object]) -> None:
    """Record `body` for each row and column of a matrix."""
    size = max(rows, columns)
    loop(0, rows, lambda i: loop(0, columns, lambda j: body(i, j), size), size)


def swap(array: Any, one: Any, other: Any) -> None:
    """Exchange the values at two indices."""
    before = k._var(array[one])
    array[one] = array[other]
    array[other] = before


def minus(array: Any, place: Any, factor: Any, value: Any) -> None:
    """Take a product from what is at a place."""
    array[place] = k._fma(-factor, value, array[place])
