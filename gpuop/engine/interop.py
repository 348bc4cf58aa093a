"""Arrays of other libraries: their memory as fields, and fields as their arrays, without copies."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError, SemanticError, described
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Making, Placeholder, folding, is_array, kind_made, without_gradient
from gpuop.dsl.fields.sources import Deferred
from gpuop.ir.bfloat16 import BFLOAT16, CODED, bits_of, is_bfloat16
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.layout import Layout, folded_strides, layout_of, planar, row_major, strides_of
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.ops.elementwise.algebra import copied
from gpuop.passes.coarsening_factor import ACCESS
from gpuop.runtime.base.backend import ALIGNED, Backend, Buffer
from gpuop.runtime.base.coded_arrays import CodedArray
from gpuop.runtime.base.device_sources import Shared
from gpuop.runtime.devices import current

IMMUTABLE = ("jax", "jaxlib")  # libraries whose arrays never change


def own(node: Node) -> Node:
    """The node, or a copy of a leaf in borrowed memory: planar, and not shared."""
    if type(node) is Leaf and node.source.borrowed:
        return copied(Field.of(node)).node
    return node


def library_of(array: Any) -> str:
    """The top-level module of an array's type; "numpy" for subclasses of its arrays."""
    if isinstance(array, np.ndarray):
        return "numpy"
    name = type(array).__module__.partition(".")[0]
    return "jax" if name == "jaxlib" else name


def share(array: Any, kind: FieldType, backend: Backend) -> Shared:
    """Share an array's memory as a field of a type with elements of the same size.

    Raises:
        DeviceError: the backend cannot use it.
    """
    borrowed = backend.borrow(without_gradient(array))
    facts = borrowed.array
    return Shared(backend, borrowed, _layout_there(kind, facts.shape, facts.strides, facts.address % ALIGNED))


@lru_cache(maxsize=1024)
def _layout_there(kind: FieldType, shape: tuple[int, ...], steps: tuple[int, ...], behind: int) -> Layout | None:
    """The layout of a field in an array `behind` bytes after an aligned address; None if it equals that of memory of gpuop."""
    strides = folded_strides(shape, steps, kind.array_shape)
    if strides is None:
        raise DeviceError(
            "kernels take the first axes of this array as one, which its strides do not allow; make it contiguous"
        )
    if not has_layout(kind, strides):
        raise DeviceError("a complex vector or matrix must be contiguous in memory; make the array contiguous")
    layout = layout_of(kind, strides)
    if layout == planar(kind) and behind == 0:
        return None
    size = kind.storage.bits // 8
    return replace(layout, behind=behind % ACCESS // size if behind % size == 0 else None)


def has_layout(kind: FieldType, strides: tuple[int, ...]) -> bool:
    """Return whether an array with these strides, in elements, can be used in place: each complex tensor must be contiguous."""
    return kind.dtype not in COMPLEX_DTYPES or strides[len(kind.field_shape) :] == row_major(kind.tensor_shape)


def numpy_dtype(array: Any) -> np.dtype[Any]:
    """The NumPy dtype of an array of any library."""
    dtype = array.dtype
    return dtype if isinstance(dtype, np.dtype) and dtype.isbuiltin == 1 else _numpy_dtype(dtype)


@lru_cache(maxsize=256)
def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    if is_bfloat16(dtype):
        return CODED
    name = str(dtype).rpartition(".")[2]  # PyTorch has torch.float32
    try:
        return np.dtype(name)
    except TypeError:
        raise SemanticError(f"fields have no dtype {name!r}; convert the array first") from None


def adopt(array: Any, make: Making, copy: bool, name: str) -> tuple[Node, FieldType]:
    """A leaf with the current values of a device array, and its type; with `copy=False` the leaf shares the array's memory."""
    dtype = array.dtype if isinstance(array, Placeholder) else numpy_dtype(array)
    shape = tuple(array.shape)
    kind = kind_made(make, shape, dtype)
    if kind.array_shape != shape:
        raise SemanticError(
            f"an array of a device becomes a field of its own shape, {shape}, not of {kind}; add alpha first"
        )
    return _adopted(array, kind, make, copy, name, dtype), kind


def _adopted(
    array: Any,
    view: FieldType,
    make: Making,
    copy: bool,
    name: str,
    dtype: np.dtype[Any],
) -> Node:
    """The leaf, converted to the dtype of the type that users see."""
    kind = view.folded
    stored = kind if kind.dtype == "unorm8" and dtype == np.uint8 else kind.replace(dtype=dtype)
    if isinstance(array, Placeholder):
        raw, fixed = Leaf(stored, Deferred(array, folding(make), view), name=name), True
    else:
        backend = current()
        raw = Leaf(stored, share(array, stored, backend), name=name)
        fixed = not copy or library_of(array) in IMMUTABLE
    if fixed and stored == kind:
        return raw
    values: Field = copied(Field.of(raw), kind)
    if fixed:
        return values.node
    field = services.above.keep(values)
    backend.synchronize()  # the array may change from now on
    return Leaf(kind, field.node.source, name=name) if isinstance(field.node, Leaf) else field.node


# --- out --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def array_facts(kind: FieldType, layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]]:
    """The shape of an array, its strides and its dtype."""
    return tuple(kind.array_shape), strides_of(kind, layout), kind.shared_dtype


def lend(backend: Backend, buffer: Buffer, kind: FieldType, layout: Layout | None) -> Any:
    """An object from which other libraries take a buffer; there is none for planes of complex numbers."""
    return backend.lend(buffer, *array_facts(kind, layout or planar(kind.folded)))


def array_like(sample: Any, lent: Any) -> Any:
    """An array of the library of `sample`, in the same memory as `lent`."""
    return importer(sample)(_exported(lent))


def _exported(array: Any) -> Any:
    """The object that other libraries take an array of the host from."""
    return CodedArray(array) if isinstance(array, np.ndarray) and array.dtype == CODED else array


def importer(sample: Any) -> Callable[[Any], Any]:
    """The function of the library of `sample` that returns an array in the memory of what is lent."""
    name = library_of(sample)
    if name == "gpuop":
        return sample.written  # type: ignore[no-any-return]  # the array of XLA itself
    if name == "numba":
        return sys.modules["numba.cuda"].as_cuda_array  # type: ignore[no-any-return]
    module = importlib.import_module("jax.dlpack") if name == "jax" else sys.modules[name]
    if not hasattr(module, "from_dlpack"):
        raise SemanticError(f"{name} has no `from_dlpack`, so there is no {name} array of a result; pass NumPy arrays")
    return module.from_dlpack  # type: ignore[no-any-return]


def export(field: Field) -> Any:
    """The values of a field for other libraries: on its device, or else as a NumPy array."""
    backend = current()
    try:
        if field.dtype in COMPLEX_DTYPES:
            raise DeviceError("complex fields are stored as two planes")
        buffer = services.above.buffer(field)
        return lend(backend, buffer, field.type, None)
    except DeviceError:
        values = field.numpy()
        return CodedArray(bits_of(values).view(CODED)) if field.dtype == BFLOAT16 else values


def unfit(array: Any, kind: FieldType) -> str:
    """The reason why a result does not fit into an array; empty if it does."""
    fit = (kind.shared_dtype, kind.array_dtype) if isinstance(array, np.ndarray) else (kind.shared_dtype,)
    expected = f"`out=` takes an array of shape {tuple(kind.array_shape)} and dtype {_named(fit[-1])}"
    if not is_array(array):
        return f"{expected}, not {described(array)}"
    if tuple(array.shape) != tuple(kind.array_shape) or numpy_dtype(array) not in fit:
        return f"{expected}, not one of shape {tuple(array.shape)} and dtype {_named(numpy_dtype(array))}"
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return f"{expected} that can be written to; this one is read-only"
    if (
        isinstance(array, np.ndarray)
        and array.size
        and any(n > 1 and not step for n, step in zip(array.shape, array.strides, strict=True))
    ):
        return f"{expected} whose elements do not share memory, as those of this one do"
    return ""


def _named(dtype: np.dtype[Any]) -> str:
    return BFLOAT16 if is_bfloat16(dtype) else dtype.name


def device_in_use() -> str:
    """The name of the device that fields are evaluated on."""
    return current().name
