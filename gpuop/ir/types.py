"""Types: scalars and short vectors of kernel values, field types, and the conversion order of C."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from gpuop.base.errors import NearNames, SemanticError, warn
from gpuop.base.misspelt import hinted
from gpuop.base.records import dataclass
from gpuop.ir.bfloat16 import BFLOAT16, BITS, CODED, GREATEST, rounded
from gpuop.ir.dims import Dims, folded, names_of, spelled
from gpuop.ir.dtype_names import (
    COMPLEX_DTYPES,
    FIELD_DTYPES,
    DTypeName,
    dtype_name,
    part_dtype,
    values_dtype,
)

WIDE = 256  # with so many points and so many elements, a shape of two axes is rather a grid than a row of vectors
PICTURE = 64  # with so many rows and columns behind a first axis of 1, 3 or 4, a shape is rather one of channels
MOST_GRID, MOST_TENSOR = 3, 2  # axes that kernels know of the grid and of the tensor
SMALL_TENSOR = 4  # more elements than this make a big tensor, handled element by element


def is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    """True for a Python or NumPy integer; truth values are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """A scalar type, one object each: NumPy name, OpenCL name, NumPy kind letter, size in bits."""

    name: str
    c: str
    kind: str
    bits: int

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of its values in NumPy; bfloat16 is float32 there, which holds each of them."""
        return values_dtype(self.name)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value."""
        if self.kind == "f":
            return -math.inf, math.inf
        if self.kind == "b":
            return False, True
        limits = np.iinfo(self.numpy)
        return int(limits.min), int(limits.max)

    @property
    def greatest(self) -> float:
        """The greatest finite value of a floating type."""
        return GREATEST if self is BFLOAT else float(np.finfo(self.numpy).max)

    def values(self, numbers: Any) -> np.ndarray[Any, Any]:
        """The numbers as values of the type, floats rounded to it."""
        return rounded(numbers) if self is BFLOAT else np.asarray(numbers).astype(self.numpy, copy=False)

    def __str__(self) -> str:
        return self.c

    def __reduce__(self) -> tuple[Any, ...]:  # a singleton in other processes too
        return _dtype, (self.c,)

    def holds(self, value: bool | int | float) -> bool:
        """Return whether the number is representable: integers exactly, floating values without overflow."""
        if self.kind == "b":
            return isinstance(value, bool)
        if self.kind == "f":
            infinite = isinstance(value, float) and not math.isfinite(value)
            return infinite or abs(value) <= self.greatest
        info = np.iinfo(self.numpy)
        return (isinstance(value, int) or float(value).is_integer()) and int(info.min) <= int(value) <= int(info.max)


BOOL = DType("bool", "bool", "b", 8)
CHAR, UCHAR = DType("int8", "char", "i", 8), DType("uint8", "uchar", "u", 8)
SHORT, USHORT = DType("int16", "short", "i", 16), DType("uint16", "ushort", "u", 16)
INT, UINT = DType("int32", "int", "i", 32), DType("uint32", "uint", "u", 32)
LONG, ULONG = DType("int64", "long", "i", 64), DType("uint64", "ulong", "u", 64)
HALF, FLOAT = DType("float16", "half", "f", 16), DType("float32", "float", "f", 32)
DOUBLE = DType("float64", "double", "f", 64)
BFLOAT = DType(BFLOAT16, "bfloat", "f", 16)  # of memory alone: kernels read float and round what they write


def _dtype(c: str) -> DType:
    return BFLOAT if c == BFLOAT.c else DTYPES[c]


DTYPES = {d.c: d for d in (BOOL, CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, HALF, FLOAT, DOUBLE)}
BY_NUMPY = {d.name: d for d in (*DTYPES.values(), BFLOAT)}
RANKS = {d: (d.kind == "f", d.bits if d.kind != "b" else 0, d.kind == "u") for d in BY_NUMPY.values()}
_TYPES: dict[tuple[DType, int], Type] = {}


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Type:
    """The type of a kernel value, a singleton: a scalar (1 lane) or a vector of 2 to 4 lanes."""

    dtype: DType
    lanes: int

    def __new__(cls, dtype: DType, lanes: int = 1) -> Type:
        self = _TYPES.get((dtype, lanes))
        if self is None:
            self = object.__new__(cls)
            object.__setattr__(self, "dtype", dtype)
            object.__setattr__(self, "lanes", lanes)
            self = _TYPES.setdefault((dtype, lanes), self)  # another thread may have been first
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Type, (self.dtype, self.lanes)

    def __str__(self) -> str:
        return self.dtype.c + (str(self.lanes) if self.lanes > 1 else "")

    @property
    def kind(self) -> str:
        return self.dtype.kind

    @property
    def integer(self) -> bool:
        return self.dtype.kind in "iu"

    @property
    def scalar(self) -> Type:
        return Type(self.dtype)

    def of(self, dtype: DType) -> Type:
        """The same lanes of another scalar type."""
        return Type(dtype, self.lanes)


def promote(a: DType, b: DType) -> DType:
    """Common type by C rank, without promotion to int below it: floating beats integer, wide beats narrow, unsigned wins
    ties.
    """
    return a if a is b or RANKS[a] >= RANKS[b] else b


class Shape(tuple[int, ...]):
    """The extents of a field or a tensor, slowest first: `Shape(layers, rows, columns)`; a tuple.

    Args:
        dims: integers of 0 or more, or one iterable of them.

    Raises:
        SemanticError: an extent is no integer, or negative.
    """

    def __new__(cls, *dims: int | Iterable[int]) -> Shape:
        flat = dims[0] if len(dims) == 1 and isinstance(dims[0], Iterable) else dims
        try:
            extents = tuple(operator.index(d) for d in flat)  # type: ignore[arg-type]
        except TypeError:
            raise SemanticError(f"a shape is made of integers, not {flat!r}") from None
        if any(d < 0 for d in extents):
            raise SemanticError(f"a shape has no negative extents: {extents}")
        return super().__new__(cls, extents)

    @property
    def dimensions(self) -> int:
        """The number of extents."""
        return len(self)

    @property
    def points(self) -> int:
        """The product of the extents; 1 of no extents."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self))})"


ShapeLike = int | Iterable[int]


@dataclass(frozen=True)
class FieldType(NearNames):
    """The immutable type of a field.

    Args:
        field_shape: extents of the grid: (layers, rows, columns), of which the last ones may be all, and more before them.
        tensor_shape: extents of the tensor at every point.
        dtype: a NumPy dtype or its name; bool, (u)int8…64, float16/32/64, bfloat16, complex64/128 or "unorm8".
        dims: names of all axes, the grid's first, as "img:chan:y:x"; labels, by which types do not differ.

    Raises:
        SemanticError: a tensor without elements, a dtype that fields cannot have, or not a name for each axis.
    """

    field_shape: Shape
    tensor_shape: Shape = Shape()
    dtype: DTypeName = FIELD_DTYPES["float32"]
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @hinted
    def __init__(
        self, field_shape: ShapeLike, tensor_shape: ShapeLike = (), dtype: Any = "float32", dims: Any = ""
    ) -> None:
        if isinstance(tensor_shape, (str, type, np.dtype)):
            raise SemanticError(
                f"{tensor_shape!r} is a dtype, not a tensor shape; write `dtype={dtype_name(tensor_shape)!r}`"
            )
        extents = [n for n in (field_shape, tensor_shape) if not isinstance(n, Iterable)]
        if len(extents) == 2 and min(extents) >= WIDE:
            warn(
                f"FieldType({field_shape}, {tensor_shape}) is a grid of {field_shape} with vectors of {tensor_shape} elements; "
                f"for a grid of two dimensions write FieldType(({field_shape}, {tensor_shape}))"
            )
        for name, value in (("field_shape", field_shape), ("tensor_shape", tensor_shape)):
            object.__setattr__(self, name, Shape(value if isinstance(value, Iterable) else (value,)))
        object.__setattr__(self, "dtype", dtype_name(dtype))
        if self.tensor_points == 0:
            raise SemanticError("a tensor has at least one element")
        object.__setattr__(self, "names", () if isinstance(dims, str) and not dims else self._labels(dims))

    def _labels(self, dims: Any) -> tuple[str, ...]:
        """The names of all axes; none where none has one. SemanticError where they are not as many, or extents others."""
        if isinstance(dims, Dims) and not dims.takes(self.dims):
            raise SemanticError(f"a field of {self.dims} has not the dimensions {dims}")
        names = dims.names if isinstance(dims, Dims) else names_of(dims, "`dims=`: names of dimensions")
        if names and len(names) != len(self.array_shape):
            shape = tuple(self.array_shape)
            raise SemanticError(
                f"{dims!r} names {len(names)} dimensions, and an array of shape {shape} has {len(shape)}"
            )
        return names if any(names) else ()

    def __reduce__(self) -> tuple[Any, ...]:
        return FieldType, (self.field_shape, self.tensor_shape, self.dtype, spelled(self.names))

    @property
    def dims(self) -> Dims:
        """The axes with their names and extents."""
        split, extents = len(self.field_shape), self.array_shape
        axes = list(zip(self.names or [""] * len(extents), extents, strict=True))
        return Dims.of(axes[:split], axes[split:])

    @cached_property
    def folded(self) -> FieldType:
        """The type that kernels know: the first axes are one where the grid has more than three, or the tensor than two."""
        if len(self.field_shape) <= MOST_GRID and len(self.tensor_shape) <= MOST_TENSOR and not self.names:
            return self
        return FieldType(folded(self.field_shape, MOST_GRID), folded(self.tensor_shape, MOST_TENSOR), self.dtype)

    @property
    def tensor_points(self) -> int:
        """The number of elements of a tensor; 1 for scalars."""
        return self.tensor_shape.points

    @cached_property
    def array_shape(self) -> Shape:
        """The shape of the field as a NumPy array: grid, then tensor."""
        return Shape(self.field_shape + self.tensor_shape)

    @cached_property
    def array_dtype(self) -> np.dtype[Any]:
        """The dtype of the field as a NumPy array: bytes for unorm8, float32 for bfloat16."""
        return values_dtype(self.dtype)

    @cached_property
    def shared_dtype(self) -> np.dtype[Any]:
        """The dtype of arrays that may share its memory: that of arrays of bits for bfloat16."""
        return CODED if self.dtype == BFLOAT16 else self.array_dtype

    def replace(self, **changes: Any) -> FieldType:
        """A copy with some of its facts changed.

        Args:
            changes: `field_shape=`, `tensor_shape=`, `dtype=` or `dims=`; names stay where shapes are as long as before.

        Returns:
            A FieldType.

        Raises:
            SemanticError: as of a FieldType.
        """
        current = {"field_shape": self.field_shape, "tensor_shape": self.tensor_shape, "dtype": self.dtype}
        result = FieldType(**(current | changes))
        if not self.names or "dims" in changes:
            return result
        mine, new = (self.dims.grid, self.dims.tensor), (result.dims.grid, result.dims.tensor)
        kinds = [old if len(old) == len(each) else each for old, each in zip(mine, new, strict=True)]
        return result.labelled([name for part in kinds for name, _ in part])

    def labelled(self, names: Sequence[str]) -> FieldType:
        if not self.names and not any(names):
            return self
        return FieldType(self.field_shape, self.tensor_shape, self.dtype, spelled(names) if any(names) else "")

    @cached_property
    def storage(self) -> DType:
        """The scalar type in device memory: bool and unorm8 are bytes, complex is pairs of its parts."""
        return {"bool": UCHAR, "unorm8": UCHAR}.get(self.dtype) or BY_NUMPY[part_dtype(self.dtype)]

    @cached_property
    def memory_dtype(self) -> np.dtype[Any]:
        """The dtype of its scalars in memory: the bits of bfloat16."""
        return BITS if self.storage is BFLOAT else self.storage.numpy

    @cached_property
    def element(self) -> DType:
        """The scalar type that a kernel sees."""
        return {"bool": BOOL, "unorm8": FLOAT, BFLOAT16: FLOAT}.get(self.dtype) or BY_NUMPY[part_dtype(self.dtype)]

    @property
    def parts(self) -> Shape:
        """The tensor as kernels see it: of complex numbers real and imaginary parts are one more axis."""
        return Shape((*self.tensor_shape, 2)) if self.dtype in COMPLEX_DTYPES else self.tensor_shape

    @cached_property
    def planes(self) -> int:
        """Scalars per point; each is stored as a plane of its own."""
        return self.parts.points

    @cached_property
    def longest(self) -> int:
        """The greatest extent that kernels count along: of an axis, of the first ones as one, or of big tensors and layers."""
        grid = self.folded.field_shape
        layers = grid[0] if len(grid) == MOST_GRID and self.planes > SMALL_TENSOR else 1
        result: int = max([*grid, *self.array_shape, layers * self.planes])
        return result

    @cached_property
    def nbytes(self) -> int:
        """The bytes of its values in a device's memory."""
        return self.field_shape.points * self.planes * self.storage.bits // 8

    def stored(self, value: float) -> float:
        """The number as it is stored."""
        return round(min(max(0.0, float(value)), 1.0) * 255) if self.dtype == "unorm8" else value

    def __str__(self) -> str:
        tensor = f"[{'×'.join(map(str, self.tensor_shape))}]" if self.tensor_shape else ""
        grid = "×".join(map(str, self.field_shape)) or "0D"
        return f"{grid} {self.dtype}{tensor}" + (f" ({spelled(self.names)})" if self.names else "")
