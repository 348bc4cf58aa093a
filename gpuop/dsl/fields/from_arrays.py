"""Conversion of user data to the arrays behind fields."""

from __future__ import annotations

import sys
import threading
from array import array as PlainArray
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import SemanticError, described
from gpuop.base.records import dataclass
from gpuop.dsl.recorder.arithmetic import Arithmetic
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.ir.bfloat16 import BFLOAT16, coded, is_bfloat16, rounded, values_of
from gpuop.ir.dtype_names import COMPLEX_DTYPES, values_dtype
from gpuop.ir.types import BY_NUMPY, FLOAT, FieldType

_local = threading.local()  # `wrapped`: a pipeline runs for a framework that differentiates it
ArrayLike = Any
Array = NDArray[Any]
# The type of a field, and its numbers, which are made when they are asked for
Made = tuple[FieldType, Callable[[], Array]]
Making = Callable[[Array], Made]
NUMERIC = "biufc"  # NumPy kinds of numbers
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
WORDS = {"U": "text", "S": "bytes", "M": "dates", "m": "time spans", "V": "records"}


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise SemanticError(
        "a pipeline's array argument has no values while the pipeline is traced: it has `.shape`, `.dtype` and `.ndim`, "
        "and becomes a Field, as in `gp.ScalarField(image)`"
    )


@dataclass(frozen=True, eq=False)
class Placeholder(Arithmetic[Any]):
    """Stands for an array argument while a pipeline is traced."""

    in_words: ClassVar[str] = "an argument of a pipeline"
    position: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: bool = False  # True if its array is on a device
    dynamic: bool = False  # True if its extents change from call to call

    @property
    def ndim(self) -> int:
        return len(self.shape)

    _operate = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __int__ = __index__ = _refuse
    __array__ = __array_ufunc__ = __array_function__ = _refuse

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise SemanticError(
            "an array argument of a pipeline does not change: `gp.updated(gp.ScalarField(image), index, values)` makes a new Field"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # names that Python and NumPy look up in any object
            raise AttributeError(name)
        _refuse()


def unfilled(value: Any) -> Any:
    """An array of a type, whose numbers nobody looks at; anything else as it is."""
    return np.empty(value.array_shape, value.array_dtype) if isinstance(value, FieldType) else value


# Arrays that are no memory yet, or not only: the package of their type, and what to write instead
REMEDIES = {
    "dask": "map the pipeline over its blocks with `gpuop.dask.map_blocks`, or `.compute()` it where all of it has room",
    "xarray": "give the array that is in it, `.data`, or map the pipeline with `array.gpuop.map` (`import gpuop.dask`)",
    "zarr": "read as much as has room, as `array[:100]`, into a NumPy array",
    "h5py": "read as much as has room, as `array[:100]`, into a NumPy array",
}


def remedy(value: Any) -> str:
    """Advice about an array of a library whose arrays are not memory, for the end of a message; empty for anything else."""
    advice = REMEDIES.get(type(value).__module__.partition(".")[0]) if hasattr(value, "shape") else None
    return f": {advice}" if advice else ""


HOST = (1, 3)  # DLPack's devices whose memory NumPy can read: the CPU's, and that pinned for CUDA


def is_device_array(value: Any) -> bool:
    """True for an array of another library in device memory."""
    if isinstance(value, Placeholder):
        return value.device
    if isinstance(value, (np.ndarray, np.generic, FieldLike)):
        return False
    _check_has_numbers(value)
    if hasattr(type(value), "__dlpack_device__"):
        return int(value.__dlpack_device__()[0]) not in HOST
    return hasattr(value, "__cuda_array_interface__") and not isinstance(value, type)  # classes have it too


def is_array(value: Any) -> bool:
    """True for an array of NumPy or of another library."""
    if isinstance(value, np.ndarray):
        return True
    return (hasattr(type(value), "__dlpack__") and not isinstance(value, FieldLike)) or is_device_array(value)


def numbers(value: ArrayLike) -> Array:
    """NumPy array of user data, in its NumPy dtype; an array of objects for Python integers beyond all dtypes."""
    if isinstance(value, FieldLike):
        raise SemanticError(
            "this is a Field already, use it as it is; its type is in `.type`, its values come with `.numpy()`"
        )
    if remedy(value) and hasattr(value, "__dask_graph__") and value.__dask_graph__() is not None:
        raise SemanticError(f"{described(value)} is to be computed yet, and may have no room in memory{remedy(value)}")
    if isinstance(value, np.ndarray) and hasattr(value, "mask") and np.any(value.mask):
        raise SemanticError(
            "a Field has no mask: give `a.filled(number)` of the masked array, or a Field of `a.data` and one of `a.mask`"
        )
    try:
        array = readable(value)
        if array.dtype.kind == "O" and not isinstance(value, np.ndarray) and hasattr(type(value), "__dlpack__"):
            array = value = np.from_dlpack(value)  # an array of a library that does not know NumPy
    except ValueError as ragged:
        raise SemanticError(f"{described(value)} makes no array: {ragged}") from None
    if not is_dtyped(value) and (array.dtype.kind == "O" or _is_huge(array)):
        objects = np.asarray(value, object)
        if all(isinstance(v, (int, np.integer)) for v in objects.flat):
            return objects
    check_numbers(array.dtype)
    return array


def _check_has_numbers(value: Any) -> None:
    """Refuse values that another library traces: JAX tracers, and PyTorch tensors that require a gradient."""
    kind, package = type(value), type(value).__module__.partition(".")[0]
    if package in ("jax", "jaxlib") and "Tracer" in kind.__name__:
        raise SemanticError(
            "this is a tracer: inside of `jax.jit`, `jax.grad` and `jax.vmap` arrays have no values; `gpuop.jax.wrap(pipeline)` is "
            "a function that has its place there"
        )
    without_gradient(value)


def readable(array: Any) -> Array:
    """An array on the host as NumPy reads it; one of bfloat16 as one of bits."""
    array = without_gradient(array)
    return coded(array) if is_bfloat16(getattr(array, "dtype", None)) else np.asarray(array)


@contextmanager
def captures_with_gradients_refused() -> Iterator[None]:
    """Refuse arrays of which PyTorch keeps a record also where it keeps none, as inside of its operators."""
    before, _local.wrapped = getattr(_local, "wrapped", False), True
    try:
        yield
    finally:
        _local.wrapped = before


def without_gradient(array: Any) -> Any:
    """An array of whose use PyTorch keeps no record.

    Raises:
        SemanticError: PyTorch keeps one, and would lose the gradient without a word.
    """
    if getattr(array, "requires_grad", False) is not True:
        return array
    if getattr(_local, "wrapped", False):
        raise SemanticError(
            "this tensor requires a gradient, and the wrapped pipeline captures it, so it would get none: make it an argument of "
            "the pipeline, or capture `tensor.detach()`"
        )
    torch = sys.modules.get("torch")
    if torch is None or torch.is_grad_enabled():
        raise SemanticError(
            "this tensor requires a gradient, and PyTorch does not see what is computed with it here: "
            "`gpuop.torch.wrap(pipeline)` is a function of tensors with gradients; for values alone give `tensor.detach()`, or "
            "compute in `torch.no_grad()`"
        )
    return array.detach()


def check_numbers(dtype: np.dtype[Any]) -> None:
    if is_bfloat16(dtype):
        return
    if dtype.kind not in NUMERIC or dtype.type.__module__ == "ml_dtypes":
        if dtype.names is None and dtype.type is not np.void and dtype.kind not in "USMmO":
            raise SemanticError(f"fields have no dtype {dtype.name!r}; convert the array, as in `a.astype('float32')`")
        raise SemanticError(f"fields are made of numbers, not of {WORDS.get(dtype.kind, 'Python objects')}")


DTYPED = (np.ndarray, np.generic, memoryview, bytearray, PlainArray)
OF_ARRAYS = ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")  # attributes of what says its dtype


def is_dtyped(value: ArrayLike) -> bool:
    """True if the user chose a dtype: that of Python numbers, and of lists of them, follows from their values."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, DTYPED) or any(hasattr(value, name) for name in OF_ARRAYS)


def _is_huge(array: Array) -> bool:
    """True if these floats may be integers without a common NumPy dtype, such as -1 and 2**63."""
    return array.dtype.kind == "f" and array.size > 0 and bool(np.abs(array).max() >= 2**63)


def host_array(value: ArrayLike, dtype: Any = None) -> Array:
    """A NumPy array of what the user gave; Python numbers and lists become int32, float32 or complex64.

    Args:
        dtype: of the field that is made of it; numbers and lists then keep the digits that NumPy gives them.
    """
    array = numbers(value)
    if is_dtyped(value):
        return array
    if dtype is not None and not is_unorm8(dtype):
        return _digits(array, FieldType((), (), dtype).dtype)
    kind = array.dtype.kind
    if kind in "iuO" and array.size:
        low, high = int(array.min()), int(array.max())
        if not (0 <= high < 2**63 if kind == "u" else -(2**31) <= low <= high < 2**31):
            wide = "int64" if -(2**63) <= low <= high < 2**63 else "uint64" if 0 <= low <= high < 2**64 else "float64"
            what = "an integer of this list" if array.ndim else "this integer"
            raise SemanticError(f"{what} does not fit int32; give a NumPy array of {wide}")
    return array.astype({"i": "int32", "u": "int64", "f": "float32", "c": "complex64"}.get(kind, array.dtype.name))


def _digits(array: Array, dtype: str) -> Array:
    """Numbers of Python as an array of numbers; SemanticError where the dtype of their field does not hold them."""
    check_holds(array, dtype)
    if array.dtype.kind != "O":
        return array
    try:
        result: Array = array.astype(dtype if dtype in INTEGERS else "float64")
    except OverflowError:
        raise SemanticError(f"an integer beyond ±{np.finfo(float).max:.1e} does not fit {dtype}") from None
    return result


def converted(array: Array, dtype: str, what: str, advice: str) -> Array:
    """An array in the dtype of what takes it, floats rounded to it; SemanticError where that does not hold the values."""
    if is_bfloat16(array.dtype):
        array = values_of(array)
    target: np.dtype[Any] = values_dtype(dtype)
    fits = target.kind == "c" or array.dtype.kind != "c"
    if array.dtype.kind == "O":
        fits = all(BY_NUMPY.get(dtype, FLOAT).holds(v) for v in array.flat)
    exact = np.full(array.shape, fits)
    with np.errstate(all="ignore"):
        result = rounded(array) if dtype == BFLOAT16 else array.astype(target) if fits else array
        if fits and target.kind in "iub":
            exact &= (result.astype(array.dtype) == array) & ((result < 0) == (array < 0))
        elif fits and array.dtype.kind != "O":
            exact &= np.isfinite(result) == np.isfinite(array)
    if not exact.all():
        first = array[~exact][0] if array.ndim else array
        raise SemanticError(f"{what} {dtype}, which does not hold {np.asarray(first).item()}; {advice}")
    return result


def check_holds(array: Array, dtype: str) -> None:
    """Refuse numbers of Python that an integer dtype does not hold; NumPy raises OverflowError or ValueError."""
    if dtype in INTEGERS and (outside := numbers_outside(array, dtype)).size:
        ends = np.iinfo(dtype)
        raise SemanticError(f"{np.asarray(outside[0]).item()} does not fit {dtype}, which is {ends.min} to {ends.max}")


def numbers_outside(array: Array, dtype: str) -> Array:
    """The numbers of an array, in a row, that an integer dtype does not hold, whatever their fractions."""
    ends = np.iinfo(dtype)
    if array.dtype.kind == "f":
        whole = np.trunc(array.astype("float64"))
        outside = ~((whole >= ends.min) & (whole < ends.max + 1.0))
    else:
        outside = (array < ends.min) | (array > ends.max) if array.dtype.kind in "iuO" else np.zeros(array.shape, bool)
    return np.extract(outside, array)


def is_unorm8(dtype: Any) -> bool:
    """Return whether a dtype is that of colours, which NumPy has not."""
    return isinstance(dtype, str) and dtype == "unorm8"


def as_field(array: Array, order: Any, dtype: Any, copy: bool = True, dims: Any = "") -> Made:
    """Field of an array; only shape and dtype are used before its numbers are needed."""
    if not isinstance(order, (int, np.integer)) or order < 0:
        raise SemanticError(f"a tensor_order is 0, 1 or 2, or more, not {order!r}")
    if array.ndim < order:
        raise SemanticError(f"an array of shape {array.shape} has no {order} tensor axes at its end")
    check_numbers(array.dtype)
    split = array.ndim - order
    if is_unorm8(dtype):
        if array.dtype != np.uint8:
            raise SemanticError(f'dtype="unorm8" reinterprets uint8, not {array.dtype.name}')
        color = FieldType(array.shape[:split], array.shape[split:], dtype, dims)
        return color, lambda: np.array(array) if copy else array
    kind = FieldType(array.shape[:split], array.shape[split:], array.dtype if dtype is None else dtype, dims)
    if array.dtype.kind == "c" and kind.dtype not in COMPLEX_DTYPES:
        raise SemanticError(
            f"an array of {array.dtype.name} does not convert to {kind.dtype}; take `.real`, `.imag` or `abs(a)`"
        )
    if kind.dtype == BFLOAT16 or is_bfloat16(array.dtype):
        return kind, lambda: _by_way_of_bfloat16(array, kind)
    return kind, lambda: (np.array if copy else np.asarray)(array, dtype=kind.dtype, order="C")


def _by_way_of_bfloat16(array: Array, kind: FieldType) -> Array:
    """Numbers of bfloat16 as an array of a type, or numbers of others rounded to it."""
    numbers = values_of(array) if is_bfloat16(array.dtype) else array
    return np.ascontiguousarray(rounded(numbers) if kind.dtype == BFLOAT16 else numbers.astype(kind.array_dtype))


def check_fits(kind: FieldType, order: Any, dtype: Any) -> None:
    """Refuse a Field of this type where one of other tensors is made, or of another dtype."""
    if len(kind.tensor_shape) != order:
        raise SemanticError(
            f"this is a Field already, a {kind} field, whose tensor_order is {len(kind.tensor_shape)}, not {order}"
        )
    if dtype is not None and (other := kind.replace(dtype=dtype).dtype) != kind.dtype:
        raise SemanticError(f'this is a Field already, a {kind} field; `.astype("{other}")` converts it')


def kind_made(make: Making, shape: tuple[int, ...], dtype: np.dtype[Any]) -> FieldType:
    """The type of a field that is made of such an array, whatever its numbers."""
    return make(np.broadcast_to(np.zeros((), dtype), shape))[0]


def folding(make: Making) -> Making:
    """The same, of a field as kernels know it."""

    def folded(array: Array) -> Made:
        kind, values = make(array)
        return kind.folded, lambda: values().reshape(kind.folded.array_shape)

    return folded


def as_color(array: Array) -> Made:
    if array.ndim != 3 or array.shape[2] not in (3, 4) or array.dtype != np.uint8:
        raise SemanticError(
            f"a ColorField is made from uint8 of shape (rows, columns, 3 or 4), not from {array.dtype.name} of shape {array.shape}"
        )

    def values() -> Array:
        rgba = np.full((*array.shape[:2], 4), 255, np.uint8)
        rgba[..., : array.shape[2]] = array
        return rgba

    return FieldType(array.shape[:2], 4, "unorm8"), values
