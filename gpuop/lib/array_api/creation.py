"""Creation functions of the array API standard: arrays are grids of scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as dsl
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import is_dtyped
from gpuop.ir.dtype_names import dtype_name
from gpuop.ir.types import FieldType
from gpuop.lib.array_api.dtypes import check_device, default_of
from gpuop.lib.array_api.manipulation import stack
from gpuop.ops.create import computed_fields, evenly_spaced
from gpuop.ops.elementwise.algebra import apply, astype
from gpuop.ops.layout import shape_functions
from gpuop.ops.layout.axes import whole_number
from gpuop.ops.layout.gather import Place, Reading, gathered


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Field:
    """`asarray` of the array API standard: Python numbers become int64, float32, complex64 and bool."""
    check_device(device)
    if isinstance(obj, Field):
        return obj if dtype is None else astype(obj, dtype)
    if isinstance(obj, (list, tuple)) and any(isinstance(each, Field) for each in obj):
        return asarray(stack([asarray(each) for each in obj]), dtype=dtype)
    if is_dtyped(obj):
        return Field(obj, 0, dtype, copy=copy is not False)
    if copy is False:
        raise ArgumentError("asarray: a list has no memory that a field could use: `copy` is None or True")
    with np.errstate(over="ignore"):
        return Field(np.asarray(obj, default_of(obj) if dtype is None else dtype_name(dtype)))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Field:
    """`from_dlpack` of the array API standard; an array on a device is copied, unless it is immutable."""
    return asarray(x, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Field:
    """`arange` of the array API standard."""
    check_device(device)
    chosen = default_of([n for n in (start, stop, step) if n is not None]) if dtype is None else dtype
    return evenly_spaced.arange(start, stop, step, chosen)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Field:
    """`linspace` of the array API standard."""
    check_device(device)
    if isinstance(start, complex) or isinstance(stop, complex) or dtype == "complex64":
        parts = ((complex(start).real, complex(stop).real), (complex(start).imag, complex(stop).imag))
        real, imag = (evenly_spaced.linspace(*ends, num, endpoint) for ends in parts)
        return apply("add", real, apply("multiply", imag, 1j))
    return evenly_spaced.linspace(start, stop, num, endpoint, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Field:
    """`full` of the array API standard."""
    check_device(device)
    return computed_fields.filled(FieldType(shape, (), default_of(fill_value) if dtype is None else dtype), fill_value)


def full_like(x: Field, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Field:
    """`full_like` of the array API standard."""
    check_device(device)
    return computed_fields.full_like(x, fill_value, dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Field:
    """`zeros` of the array API standard."""
    check_device(device)
    return computed_fields.zeros(shape, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Field:
    """`ones` of the array API standard."""
    check_device(device)
    return computed_fields.ones(shape, dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Field:
    """`empty` of the array API standard: zeros."""
    return zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Field, /, *, dtype: Any = None, device: Any = None) -> Field:
    """`zeros_like` of the array API standard."""
    check_device(device)
    return computed_fields.zeros_like(x, dtype)


def ones_like(x: Field, /, *, dtype: Any = None, device: Any = None) -> Field:
    """`ones_like` of the array API standard."""
    check_device(device)
    return computed_fields.ones_like(x, dtype)


def empty_like(x: Field, /, *, dtype: Any = None, device: Any = None) -> Field:
    """`empty_like` of the array API standard: zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Field:
    """`eye` of the array API standard."""
    check_device(device)
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    shift = max(
        -shape[0], min(whole_number(k, "`k`, a number of a diagonal,"), shape[1])
    )  # clipped, as kernels have int

    def value(at: Place, _: Reading) -> Any:
        return dsl._where(at[1] - at[0] == shift, 1, 0)

    return astype(gathered("eye", FieldType(shape, (), "uint8"), [], value, shift, True), dtype or "float32")


def tril(x: Field, /, *, k: int = 0) -> Field:
    """`tril` of the array API standard."""
    return shape_functions.tril(x, k)


def triu(x: Field, /, *, k: int = 0) -> Field:
    """`triu` of the array API standard."""
    return shape_functions.triu(x, k)


def meshgrid(*arrays: Field, indexing: str = "xy") -> list[Field]:
    """`meshgrid` of the array API standard."""
    return evenly_spaced.meshgrid(*arrays, indexing=indexing)


MADE = (asarray, from_dlpack, arange, linspace, full, full_like, zeros, ones, empty, zeros_like, ones_like, empty_like)
FUNCTIONS = {f.__name__: f for f in (*MADE, eye, tril, triu, meshgrid)}
