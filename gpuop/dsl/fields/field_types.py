"""Field classes by their source: arrays, numbers and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described, warn
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.copying import CopyingApart
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import ArrayLike, as_color, as_field, host_array, numbers
from gpuop.dsl.fields.names import names_given
from gpuop.dsl.fields.sources import Adjustable
from gpuop.ir.types import PICTURE, SMALL_TENSOR, WIDE, FieldType, Shape
from gpuop.ir.values import Leaf


class ScalarField(Field):
    """A field of scalars: all axes of the array are the grid's.

    Args:
        array, dtype, copy, dims: as of a Field. An array of (…, …, 3 or 4) without names warns, as colours are vectors.

    Raises:
        SemanticError: as of a Field.
    """

    __slots__ = ()

    @hinted
    def __init__(self, array: ArrayLike, dtype: Any = None, copy: bool = True, dims: Any = "") -> None:
        super().__init__(array, 0, dtype, copy, dims)
        shape = tuple(self.field_shape)
        if len(shape) == 3 and shape[-1] in (3, 4) and not dims:
            warn(f"a ScalarField of {shape} has {shape[-1]} columns; for {shape[-1]} channels use VectorField")


class VectorField(Field):
    """A field of vectors: the last axis of the array is the vector's. Complex ones have two elements in kernels for each.

    Args:
        array, dtype, copy, dims: as of a Field; the array has 1 axis or more. What is rather a picture without channels, or
            with its channels first, warns.

    Raises:
        SemanticError: as of a Field.
    """

    __slots__ = ()

    @hinted
    def __init__(self, array: ArrayLike, dtype: Any = None, copy: bool = True, dims: Any = "") -> None:
        super().__init__(array, 1, dtype, copy, dims)
        shape = tuple(self.type.array_shape)
        if len(shape) == 2 and min(shape) >= WIDE:
            warn(
                f"a VectorField of {shape} is a grid of {shape[0]} with vectors of {shape[1]} elements; "
                f"for a grid of {shape[0]}×{shape[1]} use ScalarField"
            )
        if len(shape) == 3 and shape[0] in (1, 3, 4) and min(shape[1:]) >= PICTURE and not dims:
            warn(
                f"a VectorField of {shape} is a grid of {shape[0]}×{shape[1]} with vectors of {shape[2]} elements; for "
                f"{shape[0]} channels of {shape[1]}×{shape[2]} put them last, as in `np.moveaxis(array, 0, -1)`"
            )


class MatrixField(Field):
    """A field of matrices: the last two axes of the array are the matrix's.

    Args:
        array, dtype, copy, dims: as of a Field; the array has 2 axes or more.

    Raises:
        SemanticError: as of a Field.
    """

    __slots__ = ()

    @hinted
    def __init__(self, array: ArrayLike, dtype: Any = None, copy: bool = True, dims: Any = "") -> None:
        super().__init__(array, 2, dtype, copy, dims)


class ColorField(Field):
    """RGBA colours of dtype "unorm8": stored as 0 to 255, in kernels and host algebra 0.0 to 1.0.

    Args:
        array: uint8 of shape (rows, columns, 3 or 4); RGB gets alpha 255.

    Raises:
        SemanticError: an array of another dtype or shape.
    """

    __slots__ = ()

    @hinted
    def __init__(self, array: ArrayLike) -> None:
        self._from(array, as_color)


class ComplexField(Field):
    """Complex scalars: complex in host algebra, a float2 or double2 (x real, y imaginary) in kernels.

    Kernels compute with them componentwise, and in `_complexMul`, `_complexExp` and their like as complex numbers; numbers as
    `2j` stand beside them where that is the same, as in sums, and where it is not, an error names the function. A
    returned float2 is complex64, and a double2 complex128, where the first field that has pairs is of that dtype.

    Args:
        array: real or complex numbers, whose axes are the grid's.
        dims: as of a Field.
        dtype: "complex64" or, for devices with doubles, "complex128".

    Raises:
        SemanticError: as of a Field.
    """

    __slots__ = ()

    @hinted
    def __init__(self, array: ArrayLike, dims: Any = "", dtype: Any = "complex64") -> None:
        super().__init__(array, 0, dtype, dims=dims)


class Parameter(CopyingApart, Field):
    """A 0D field (number, vector or matrix) passed to kernels by value; `set` changes it without recompiling.

    Args:
        value: a number, or an array-like of 1 or 2 axes, whose dtype is the Parameter's; Python numbers become int32 or float32.

    Raises:
        SemanticError: more than two axes, or a dtype that fields cannot have.
    """

    __slots__ = ("_source",)
    _source: Adjustable

    @hinted
    def __init__(self, value: ArrayLike) -> None:
        array = host_array(value)
        if array.ndim > 2:
            raise SemanticError(
                f"a Parameter is a number, a vector or a matrix, not an array of {array.ndim} dimensions; use a Field"
            )
        kind, values = as_field(array, array.ndim, None)
        source = Adjustable(kind, values())
        object.__setattr__(self, "_source", source)
        self._stand_for(Leaf(kind, source, kind.planes <= SMALL_TENSOR, "".join(names_given(1))), None)

    @hinted
    def set(self, value: ArrayLike) -> None:
        """Change the value; takes effect at the next evaluation or step. Safe from any thread.

        Args:
            value: of the same shape.

        Raises:
            SemanticError: another shape, or a value that the Parameter's dtype does not hold, as 0.5 of an integer one.
        """
        self._source.set(value)


@hinted
def asarray(array: ArrayLike, dtype: Any = None, *, copy: bool = True, dims: Any = "") -> Field:
    """A Field of scalars of anything array-like, as numpy.asarray; a Field as it is.

    Args:
        array: a Field, an array of any library, a list or a number. All axes of an array are those of the grid.
        dtype: converts to this dtype.
        copy, dims: as of a Field.

    Returns:
        A Field.

    Raises:
        SemanticError: as of a Field.
    """
    if isinstance(array, Field):
        converted = array if dtype is None else array.astype(dtype)
        return converted.named(dims) if dims else converted
    return Field(array, 0, dtype, copy, dims)


@hinted
def from_dlpack(array: Any, /, *, copy: bool | None = None) -> Field:
    """A Field of scalars of an array of another library, which exports its memory by DLPack; a Field as it is.

    Args:
        array: an object with `__dlpack__`. All its axes are those of the grid.
        copy: True copies; False and None share the memory, which must not change while the field is in use.

    Returns:
        A Field.

    Raises:
        SemanticError: an object without `__dlpack__`, or as of a Field.
    """
    if not hasattr(array, "__dlpack__"):
        raise SemanticError(
            f"from_dlpack takes an array with `__dlpack__`, not {described(array)}; `gp.asarray` takes lists too"
        )
    return array if isinstance(array, Field) else Field(array, 0, copy=bool(copy))


@hinted
def fromfunction(function: Callable[..., ArrayLike], field_type: FieldType) -> Field:
    """A field whose value at (grid indices, tensor indices) is `function(*indices)`, as numpy.fromfunction.

    Args:
        function: of as many float64 arrays of indices as `array_shape` has axes, each of that shape; returns the values, or
            what broadcasts to them.
        field_type: a FieldType.

    Returns:
        A Field of that type; values of "unorm8" are given as 0 to 255.

    Raises:
        SemanticError: the function's result has another shape, or numbers that the dtype does not take.
    """
    if not isinstance(field_type, FieldType):
        raise SemanticError(f"fromfunction takes a FieldType, as `gp.FieldType((4, 5))`, not {described(field_type)}")
    shape, order = tuple(field_type.array_shape), len(field_type.tensor_shape)
    array = numbers(np.fromfunction(function, shape))
    try:
        whole = np.broadcast_to(array, shape)
    except ValueError:
        raise SemanticError(
            f"the function that fromfunction calls gives an array of shape {array.shape}; a {field_type} field is made of {shape}"
        ) from None
    values = as_field(whole, order, "uint8")[1]() if field_type.dtype == "unorm8" else whole
    return Field(values, order, field_type.dtype, dims=field_type.dims if field_type.names else "")


def is_big_tensor(x: Any) -> bool:
    """Return whether a tensor has more than 4 elements: kernels read and write big ones element by element.

    Args:
        x: a tensor Shape (or what makes one), a FieldType or a Field; of complex dtypes each number counts twice.

    Returns:
        A bool.
    """
    if isinstance(x, Field):
        return x.type.planes > SMALL_TENSOR
    return (x.planes if isinstance(x, FieldType) else Shape(x).points) > SMALL_TENSOR
