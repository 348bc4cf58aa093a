"""Fields: lazy, immutable nodes of a graph, made from arrays or by operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuop.dsl import hooks
from gpuop.dsl.value import Value
from gpuop.errors import SemanticError
from gpuop.ir.graph import Leaf, Node
from gpuop.ir.types import SMALL_TENSOR, FieldType, Shape

ArrayLike = Any
Array = NDArray[Any]
LATER = {"sum", "min", "max", "mean", "argmin", "argmax", "__getitem__", "draw"}


@dataclass(frozen=True)
class Placeholder:
    """Stands for an array argument while a pipeline is traced."""

    position: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, eq=False)
class Deferred:
    """The source of a leaf whose array comes with each call of a pipeline."""

    placeholder: Placeholder
    make: Callable[[Array], tuple[FieldType, Array]]


class Field:
    """A grid of 0 to 3 dimensions (layers, rows, columns) with a tensor of order 0 to 2 at every point.

    Args:
        array: anything array-like; the last `tensor_order` axes are the tensor's, the others the grid's. Arrays keep
            their dtype and are copied; Python numbers and lists become int32 or float32.
        tensor_order: 0, 1 or 2.
        dtype: converts to this dtype; "unorm8" reinterprets uint8.

    Raises:
        SemanticError: more dimensions than fields have, or a dtype that fields cannot have.
    """

    __slots__ = ("__weakref__", "name", "node")
    node: Node
    name: str

    def __init__(self, array: ArrayLike, tensor_order: int = 0, dtype: Any = None) -> None:
        self._from(array, lambda a: _as_field(a, tensor_order, dtype))

    def _from(self, array: ArrayLike, make: Callable[[Array], tuple[FieldType, Array]]) -> None:
        object.__setattr__(self, "name", "")
        if isinstance(array, Placeholder):
            probe = np.broadcast_to(np.zeros((), array.dtype), array.shape)
            object.__setattr__(self, "node", Leaf(make(probe)[0], Deferred(array, make)))
        else:
            object.__setattr__(self, "node", Leaf(*make(host_array(array))))

    @staticmethod
    def of(node: Node, name: str = "") -> Field:
        """The field that stands for a node of the graph."""
        field = object.__new__(Field)
        object.__setattr__(field, "node", node)
        object.__setattr__(field, "name", name)
        return field

    # --- facts --------------------------------------------------------------------------------------------------

    @property
    def type(self) -> FieldType:
        return self.node.type

    @property
    def field_shape(self) -> Shape:
        return self.type.field_shape

    @property
    def tensor_shape(self) -> Shape:
        return self.type.tensor_shape

    @property
    def dtype(self) -> str:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name + ' ' if self.name else ''}{self.type}>"

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "next":
            hooks.set_next(self, value)
        elif name == "name":
            object.__setattr__(self, name, str(value))
        else:
            raise AttributeError(
                f"a Field has no attribute {name!r} to set; fields are immutable, `.next` and `.name` are all that can be set"
            )

    def __getattr__(self, name: str) -> NoReturn:
        if name in LATER:
            raise AttributeError(f"Field.{name} is not available in this version of gpuop; use `.numpy()` and NumPy")
        raise AttributeError(f"a Field has no attribute {name!r}; `.numpy()` gives an array")

    __hash__ = object.__hash__

    # --- evaluation ---------------------------------------------------------------------------------------------

    def numpy(self) -> Array:
        """Evaluate and wait.

        Returns:
            An array of `field_shape + tensor_shape` in the field's dtype (uint8 for unorm8); yours to change.
        """
        result: Array = hooks.evaluate(self)[0]
        return result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def _scalar(self, what: str) -> Any:
        if self.type.array_shape.points != 1 or self.field_shape:
            raise SemanticError(f"{what} of a {self.type} Field is ambiguous: only 0D scalars convert; use `.numpy()`")
        return self.numpy().reshape(())[()]

    def __bool__(self) -> bool: return bool(self._scalar("the truth value"))  # fmt: skip

    def __float__(self) -> float: return float(self._scalar("float()"))  # fmt: skip

    def __int__(self) -> int: return int(self._scalar("int()"))  # fmt: skip

    def __iter__(self) -> NoReturn:
        raise SemanticError(
            "a Field cannot be iterated over; `.numpy()` gives an array, operators work on all points at once"
        )

    def __getitem__(self, index: Any) -> NoReturn:
        self.__getattr__("__getitem__")

    # --- host algebra -------------------------------------------------------------------------------------------

    def _algebra(self, name: str, *operands: Any) -> Any:
        return NotImplemented if any(isinstance(o, Value) for o in operands) else hooks.algebra[name](*operands)

    def __add__(self, other: Any) -> Field: return self._algebra("add", self, other)  # fmt: skip

    def __radd__(self, other: Any) -> Field: return self._algebra("add", other, self)  # fmt: skip

    def __sub__(self, other: Any) -> Field: return self._algebra("subtract", self, other)  # fmt: skip

    def __rsub__(self, other: Any) -> Field: return self._algebra("subtract", other, self)  # fmt: skip

    def __mul__(self, other: Any) -> Field: return self._algebra("multiply", self, other)  # fmt: skip

    def __rmul__(self, other: Any) -> Field: return self._algebra("multiply", other, self)  # fmt: skip

    def __truediv__(self, other: Any) -> Field: return self._algebra("divide", self, other)  # fmt: skip

    def __rtruediv__(self, other: Any) -> Field: return self._algebra("divide", other, self)  # fmt: skip

    def __floordiv__(self, other: Any) -> Field: return self._algebra("floor_divide", self, other)  # fmt: skip

    def __rfloordiv__(self, other: Any) -> Field: return self._algebra("floor_divide", other, self)  # fmt: skip

    def __mod__(self, other: Any) -> Field: return self._algebra("remainder", self, other)  # fmt: skip

    def __rmod__(self, other: Any) -> Field: return self._algebra("remainder", other, self)  # fmt: skip

    def __pow__(self, other: Any) -> Field: return self._algebra("power", self, other)  # fmt: skip

    def __rpow__(self, other: Any) -> Field: return self._algebra("power", other, self)  # fmt: skip

    def __and__(self, other: Any) -> Field: return self._algebra("bitwise_and", self, other)  # fmt: skip

    def __rand__(self, other: Any) -> Field: return self._algebra("bitwise_and", other, self)  # fmt: skip

    def __or__(self, other: Any) -> Field: return self._algebra("bitwise_or", self, other)  # fmt: skip

    def __ror__(self, other: Any) -> Field: return self._algebra("bitwise_or", other, self)  # fmt: skip

    def __xor__(self, other: Any) -> Field: return self._algebra("bitwise_xor", self, other)  # fmt: skip

    def __rxor__(self, other: Any) -> Field: return self._algebra("bitwise_xor", other, self)  # fmt: skip

    def __lt__(self, other: Any) -> Field: return self._algebra("less", self, other)  # fmt: skip

    def __le__(self, other: Any) -> Field: return self._algebra("less_equal", self, other)  # fmt: skip

    def __gt__(self, other: Any) -> Field: return self._algebra("greater", self, other)  # fmt: skip

    def __ge__(self, other: Any) -> Field: return self._algebra("greater_equal", self, other)  # fmt: skip

    def __eq__(self, other: Any) -> Field: return self._algebra("equal", self, other)  # type: ignore[override]  # fmt: skip

    def __ne__(self, other: Any) -> Field: return self._algebra("not_equal", self, other)  # type: ignore[override]  # fmt: skip

    def __neg__(self) -> Field: return self._algebra("negative", self)  # fmt: skip

    def __pos__(self) -> Field: return self  # fmt: skip

    def __abs__(self) -> Field: return self._algebra("absolute", self)  # fmt: skip

    def __invert__(self) -> Field: return self._algebra("invert", self)  # fmt: skip

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.__name__ not in hooks.algebra:
            raise TypeError(f"numpy.{ufunc.__name__} does not take Fields this way; evaluate first, with `.numpy()`")
        return self._algebra(ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ not in ("where", "clip"):
            raise TypeError(f"numpy.{function.__name__} does not take Fields; evaluate first, with `.numpy()`")
        return hooks.algebra[function.__name__](*args, **kwargs)


class ScalarField(Field):
    """A field of scalars: all axes of the array are the grid's."""

    __slots__ = ()

    def __init__(self, array: ArrayLike, dtype: Any = None) -> None:
        shape = np.shape(array) if not isinstance(array, Placeholder) else array.shape
        if len(shape) == 3 and shape[-1] in (3, 4):
            warnings.warn(
                f"a ScalarField of {shape} has {shape[-1]} columns; for {shape[-1]} channels use VectorField",
                stacklevel=2,
            )
        super().__init__(array, 0, dtype)


class VectorField(Field):
    """A field of vectors: the last axis of the array is the vector's."""

    __slots__ = ()

    def __init__(self, array: ArrayLike, dtype: Any = None) -> None:
        super().__init__(array, 1, dtype)


class MatrixField(Field):
    """A field of matrices: the last two axes of the array are the matrix's."""

    __slots__ = ()

    def __init__(self, array: ArrayLike, dtype: Any = None) -> None:
        super().__init__(array, 2, dtype)


class ColorField(Field):
    """RGBA colours of dtype "unorm8", from uint8 of shape (rows, columns, 3 or 4); RGB gets alpha 255."""

    __slots__ = ()

    def __init__(self, array: ArrayLike) -> None:
        self._from(array, _as_color)


class ComplexField(Field):
    """Complex scalars (complex64): complex in host algebra, a float2 (x real, y imaginary) in kernels."""

    __slots__ = ()

    def __init__(self, array: ArrayLike) -> None:
        super().__init__(array, 0, "complex64")


class Parameter(Field):
    """A 0D field (number, vector or matrix) passed to kernels by value; `set` changes it without recompiling."""

    __slots__ = ("_source",)

    def __init__(self, value: ArrayLike) -> None:
        array = host_array(value)
        if array.ndim > 2:
            raise SemanticError(
                f"a Parameter is a number, a vector or a matrix, not an array of {array.ndim} dimensions; use a Field"
            )
        object.__setattr__(self, "name", "")
        kind, data = _as_field(array, array.ndim, None)
        object.__setattr__(self, "_source", Adjustable(kind, data))
        object.__setattr__(self, "node", Leaf(kind, self._source, kind.planes <= SMALL_TENSOR))

    def set(self, value: ArrayLike) -> None:
        """Change the value, of the same shape; takes effect at the next evaluation or step. Safe from any thread."""
        self._source.set(value)


class Adjustable:
    """The source of a parameter: its value, and a count of its changes."""

    def __init__(self, kind: FieldType, data: Array) -> None:
        self.kind = kind
        self.state = (0, data)

    def set(self, value: ArrayLike) -> None:
        array = host_array(value)
        if array.shape != tuple(self.kind.array_shape):
            raise SemanticError(
                f"this Parameter has shape {tuple(self.kind.array_shape)}, the new value {array.shape}; make another Parameter"
            )
        self.state = (self.state[0] + 1, np.array(array, self.kind.dtype))


# --- arrays -----------------------------------------------------------------------------------------------------------


def host_array(value: ArrayLike) -> Array:
    """A NumPy array of what the user gave; Python numbers and lists become int32, float32 or complex64."""
    if isinstance(value, Field):
        raise SemanticError("this is a Field already; its type is in `.type`, its values come with `.numpy()`")
    given = isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise SemanticError(f"fields are made of numbers, not of {array.dtype.name} ({type(value).__name__})")
    if given:
        return array
    short = {"i": "int32", "u": "int64", "f": "float32", "c": "complex64"}.get(array.dtype.kind, array.dtype.name)
    if short == "int32" and array.size and not -(2**31) <= int(array.min()) <= int(array.max()) < 2**31:
        raise SemanticError("an integer of this list does not fit int32; give a NumPy array of int64")
    return array.astype(short)


def _as_field(array: Array, order: int, dtype: Any) -> tuple[FieldType, Array]:
    if array.ndim < order:
        raise SemanticError(f"an array of shape {array.shape} has no {order} tensor axes at its end")
    split = array.ndim - order
    if isinstance(dtype, str) and dtype == "unorm8":
        if array.dtype != np.uint8:
            raise SemanticError(f'dtype="unorm8" reinterprets uint8, not {array.dtype.name}')
        return FieldType(array.shape[:split], array.shape[split:], dtype), np.array(array)
    kind = FieldType(array.shape[:split], array.shape[split:], array.dtype if dtype is None else dtype)
    return kind, np.array(array, dtype=kind.dtype, order="C")


def _as_color(array: Array) -> tuple[FieldType, Array]:
    if array.ndim != 3 or array.shape[2] not in (3, 4) or array.dtype != np.uint8:
        raise SemanticError(
            f"a ColorField is made from uint8 of shape (rows, columns, 3 or 4), not from {array.dtype.name} of shape {array.shape}"
        )
    rgba = np.full((*array.shape[:2], 4), 255, np.uint8)
    rgba[..., : array.shape[2]] = array
    return FieldType(array.shape[:2], 4, "unorm8"), rgba


def fromfunction(function: Callable[..., ArrayLike], field_type: FieldType) -> Field:
    """A field whose value at (grid indices, tensor indices) is `function(*indices)`, as numpy.fromfunction."""
    array = np.fromfunction(function, tuple(field_type.array_shape))
    whole = np.broadcast_to(np.asarray(array), tuple(field_type.array_shape))
    dtype = "uint8" if field_type.dtype == "unorm8" else field_type.dtype
    return Field(whole.astype(dtype), len(field_type.tensor_shape), field_type.dtype)


def is_big_tensor(x: Any) -> bool:
    """Whether a tensor Shape, a FieldType or a Field has more than 4 tensor elements."""
    if isinstance(x, Field):
        return x.type.tensor_points > SMALL_TENSOR
    return (x.tensor_points if isinstance(x, FieldType) else Shape(x).points) > SMALL_TENSOR
