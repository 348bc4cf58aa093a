"""Fields: lazy, immutable nodes of a graph, made from arrays or by operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gpuop.dsl.fields import services
from gpuop.dsl.fields.arrays import (
    Array,
    ArrayLike,
    Placeholder,
    as_color,
    as_field,
    host_array,
    is_device_array,
    numbers,
)
from gpuop.dsl.fields.conversions import Conversions
from gpuop.dsl.fields.copying import Copying, CopyingApart
from gpuop.dsl.fields.dlpack_methods import Lending
from gpuop.dsl.fields.field_names import names_given
from gpuop.dsl.fields.instead import ATTRIBUTES, FUNCTIONS, WAYS
from gpuop.dsl.fields.reduction_methods import Reductions
from gpuop.dsl.fields.sources import Adjustable, Deferred, HostArray
from gpuop.dsl.recorder.arithmetic import Arithmetic
from gpuop.dsl.recorder.field_like import FieldLike
from gpuop.dsl.recorder.looks import values_seen
from gpuop.dsl.recorder.value import Value
from gpuop.errors import MissingError, SemanticError, UnsupportedError, described
from gpuop.ir.types import SMALL_TENSOR, WIDE, DTypeName, FieldType, Shape
from gpuop.ir.values import Leaf, Node, label


class Field(FieldLike, Arithmetic["Field"], Reductions, Conversions, Lending, Copying):
    """A grid of 0 to 3 dimensions (layers, rows, columns) with a tensor of order 0 to 2 at every point.

    Args:
        array: anything array-like; the last `tensor_order` axes are the tensor's, the others the grid's. Arrays keep
            their dtype and are copied; Python numbers and lists become int32 or float32.
        tensor_order: 0, 1 or 2.
        dtype: converts to this dtype; "unorm8" reinterprets uint8.
        copy: False uses the array's own memory: it must not change while the field is in use. Arrays on a device (of CuPy,
            PyTorch, JAX, Numba, or what has `__dlpack__` or `__cuda_array_interface__`) are copied there, and not at all
            where they are immutable.

    Raises:
        SemanticError: more dimensions than fields have, or a dtype that fields cannot have.
    """

    __slots__ = ("__weakref__", "node")
    node: Node

    def __init__(self, array: ArrayLike, tensor_order: int = 0, dtype: Any = None, copy: bool = True) -> None:
        self._from(array, lambda a: as_field(a, tensor_order, dtype, copy), copy)

    def _from(self, array: ArrayLike, make: Callable[[Array], tuple[FieldType, Array]], copy: bool = True) -> None:
        name = "".join(names_given(1))
        if is_device_array(array):
            node = services.above.adopt(array, make, copy, name)
        elif isinstance(array, Placeholder):
            probe = np.broadcast_to(np.zeros((), array.dtype), array.shape)
            node = Leaf(make(probe)[0], Deferred(array, make), name=name)
        else:
            kind, values = make(host_array(array))
            node = Leaf(kind, HostArray(values), name=name)
        object.__setattr__(self, "node", node)

    @staticmethod
    def of(node: Node, name: str = "") -> Field:
        """The field that stands for a node of the graph."""
        field = object.__new__(Field)
        object.__setattr__(field, "node", node)
        if name:
            label(node, name)
        return field

    # --- facts --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The variable that it was assigned to first, or what it was set to: for people, and for states in files."""
        return self.node.name

    @name.setter
    def name(self, name: str) -> None:
        label(self.node, name)

    @property
    def field_shape(self) -> Shape:
        return self.type.field_shape

    @property
    def tensor_shape(self) -> Shape:
        return self.type.tensor_shape

    @property
    def dtype(self) -> DTypeName:
        """The name, which also equals NumPy's dtype: `field.dtype == np.float32`; "unorm8" has none."""
        return self.type.dtype

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name + ' ' if self.name else ''}{self.type}>"

    def _repr_html_(self) -> str:
        """The values as images, in notebooks."""
        return services.above.show(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "next":
            services.above.set_next(self, value)
        elif name == "name":
            object.__setattr__(self, name, str(value))
        else:
            raise MissingError(
                f"a Field has no attribute {name!r} to set; fields are immutable, `.next` and `.name` are all that can be set"
            )

    if not TYPE_CHECKING:  # a checker is to say of a name that there is none

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):  # Python and NumPy ask for these
                raise AttributeError(name)
            raise MissingError(
                f"a Field has no attribute {name!r}; {ATTRIBUTES.get(name, '`.numpy()` gives an array')}"
            )

    # --- evaluation ---------------------------------------------------------------------------------------------

    def numpy(self) -> Array:
        """Evaluate and wait.

        Returns:
            An array of `field_shape + tensor_shape` in the field's dtype (uint8 for unorm8); yours to change.
        """
        values_seen()
        return services.above.evaluate(self)[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __iter__(self) -> NoReturn:
        raise SemanticError(
            "a Field cannot be iterated over; slices of it are fields (`f[0]`), `.numpy()` gives an array, "
            "operators work on all points at once"
        )

    def __getitem__(self, index: Any) -> Field:
        return services.algebra["getitem"](self, index)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise SemanticError("a Field is immutable: operators make new ones; `np.where(c, a, b)` chooses between values")

    # --- host algebra -------------------------------------------------------------------------------------------

    def _operate(self, name: str, *operands: Any) -> Field:
        if any(isinstance(o, Value) for o in operands):
            return NotImplemented  # type: ignore[no-any-return]  # the value reads this field, if it is a 0D scalar
        return services.algebra[name](*operands)

    def __pos__(self) -> Field:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.__name__ not in services.algebra:
            call = ufunc.__name__ + (f".{method}" if method != "__call__" else "")
            raise UnsupportedError(
                f"numpy.{call} does not take Fields{' with options' * bool(kwargs)}; evaluate first, with `.numpy()`"
            )
        return self._operate(ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ not in FUNCTIONS:
            advice = WAYS.get(function.__name__, "evaluate first, with `.numpy()`")
            raise UnsupportedError(f"numpy.{function.__name__} does not take Fields; {advice}")
        return services.algebra[function.__name__](*args, **kwargs)


class ScalarField(Field):
    """A field of scalars: all axes of the array are the grid's."""

    __slots__ = ()

    def __init__(self, array: ArrayLike, dtype: Any = None, copy: bool = True) -> None:
        super().__init__(array, 0, dtype, copy)
        shape = tuple(self.field_shape)
        if len(shape) == 3 and shape[-1] in (3, 4):
            warnings.warn(
                f"a ScalarField of {shape} has {shape[-1]} columns; for {shape[-1]} channels use VectorField",
                stacklevel=2,
            )


class VectorField(Field):
    """A field of vectors: the last axis of the array is the vector's. Complex ones have two elements in kernels for each."""

    __slots__ = ()

    def __init__(self, array: ArrayLike, dtype: Any = None, copy: bool = True) -> None:
        super().__init__(array, 1, dtype, copy)
        shape = tuple(self.type.array_shape)
        if len(shape) == 2 and min(shape) >= WIDE:
            warnings.warn(
                f"a VectorField of {shape} is a grid of {shape[0]} with vectors of {shape[1]} elements; "
                f"for a grid of {shape[0]}×{shape[1]} use ScalarField",
                stacklevel=2,
            )


class MatrixField(Field):
    """A field of matrices: the last two axes of the array are the matrix's."""

    __slots__ = ()

    def __init__(self, array: ArrayLike, dtype: Any = None, copy: bool = True) -> None:
        super().__init__(array, 2, dtype, copy)


class ColorField(Field):
    """RGBA colours of dtype "unorm8", from uint8 of shape (rows, columns, 3 or 4); RGB gets alpha 255."""

    __slots__ = ()

    def __init__(self, array: ArrayLike) -> None:
        self._from(array, as_color)


class ComplexField(Field):
    """Complex scalars (complex64): complex in host algebra, a float2 (x real, y imaginary) in kernels.

    Kernels compute with them componentwise, and in `_complexMul`, `_complexExp` and their like as complex numbers; a
    returned float2 is complex64 where the first field that has pairs of floats does.
    """

    __slots__ = ()

    def __init__(self, array: ArrayLike) -> None:
        super().__init__(array, 0, "complex64")


class Parameter(CopyingApart, Field):
    """A 0D field (number, vector or matrix) passed to kernels by value; `set` changes it without recompiling."""

    __slots__ = ("_source",)
    _source: Adjustable

    def __init__(self, value: ArrayLike) -> None:
        array = host_array(value)
        if array.ndim > 2:
            raise SemanticError(
                f"a Parameter is a number, a vector or a matrix, not an array of {array.ndim} dimensions; use a Field"
            )
        kind, data = as_field(array, array.ndim, None)
        source = Adjustable(kind, data)
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "node", Leaf(kind, source, kind.planes <= SMALL_TENSOR, "".join(names_given(1))))

    def set(self, value: ArrayLike) -> None:
        """Change the value, of the same shape; takes effect at the next evaluation or step. Safe from any thread.

        Raises:
            SemanticError: another shape, or a value that the Parameter's dtype does not hold, as 0.5 of an integer one.
        """
        self._source.set(value)


def fromfunction(function: Callable[..., ArrayLike], field_type: FieldType) -> Field:
    """A field whose value at (grid indices, tensor indices) is `function(*indices)`, as numpy.fromfunction.

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
    return Field(as_field(whole, order, "uint8")[1] if field_type.dtype == "unorm8" else whole, order, field_type.dtype)


def is_big_tensor(x: Any) -> bool:
    """Whether a tensor Shape, a FieldType or a Field has more than 4 tensor elements; a complex number has two parts."""
    if isinstance(x, Field):
        return x.type.planes > SMALL_TENSOR
    return (x.planes if isinstance(x, FieldType) else Shape(x).points) > SMALL_TENSOR
