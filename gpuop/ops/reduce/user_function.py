"""Reductions of fields with a user function."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, described, here
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.finish import finish
from gpuop.dsl.operators.gpu_operator import slots_of
from gpuop.dsl.recorder.callables import check_two_values
from gpuop.dsl.recorder.fill_values import numeric
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.recorder import Recorder
from gpuop.dsl.recorder.value import NUMBERS, Value
from gpuop.ir.dtype_names import COMPLEX_DTYPES, wide_float
from gpuop.ir.text import identity as identity_of
from gpuop.ir.types import BY_NUMPY, FieldType
from gpuop.ops.elementwise.algebra import where as chosen_where
from gpuop.ops.elementwise.complex_algebra import combined
from gpuop.ops.reduce.complex_reductions import Operation, halved
from gpuop.ops.reduce.functions import mask_of, with_unit_axes
from gpuop.ops.reduce.reducers import Reducer
from gpuop.ops.reduce.reductions import axes_reduced, reduced_by


@hinted
def reduce(
    function: Callable[[Any, Any], Any],
    field: Field,
    identity: Any,
    axis: Any = None,
    *,
    keepdims: bool = False,
    where: Any = True,
) -> Field:
    """Reduction by a function of two values, along axes: `gp.reduce(lambda a, b: _maxmag(a, b), f, 0.0)`.

    The order depends on the shape only, so results are equal on every device and in every run; it is that of trees, so the
    function should be associative and commutative, but for rounding.

    Args:
        function: of two recorded scalars of the field's dtype (float32 of shorter floats, pairs of complex numbers), which gives
            one; it may use anything of the vocabulary that needs no other field. Tensors are reduced element by element.
        field: of any dtype. Complex ones are reduced by whole fields, a half of an axis with the other.
        identity: the number that the function leaves any value as it is with. It is the result where there is no value.
        axis: an axis of `array_shape`, a tuple of them, or None for all.
        keepdims: whether axes that are reduced stay, with an extent of 1.
        where: a field of bools that broadcasts to the field: which values count.

    Returns:
        A lazy Field of the field's dtype, float32 of unorm8.

    Raises:
        SemanticError: a function that gives no number of the field's dtype or reads a field, an identity that the dtype does
            not hold, an axis that is none, or a mask that does not broadcast.
    """
    of_complex = getattr(field, "dtype", "") in COMPLEX_DTYPES  # arrays raise an error later
    reducer = (of_pairs if of_complex else reducer_by)("reduce", function, field, identity)
    axes = axes_reduced("reduce", field.type, axis)
    mask = mask_of("reduce", field, where)
    counted = field if mask is None else chosen_where(mask, field, identity)
    if isinstance(reducer, Reducer):
        result = reduced_by(reducer, counted, axes, axis)
    else:
        result = halved("reduce", counted, axes, reducer, identity)
    return with_unit_axes("reduce", result, field, axis) if keepdims else result


def of_pairs(name: str, function: Callable[[Any, Any], Any], field: Field, identity: Any) -> Operation:
    """Return a function of two complex fields from one of two complex numbers.

    Raises:
        SemanticError: as for `gp.reduce` and `gp.scan`; `name` is one of them.
    """
    if not numeric(identity):
        raise SemanticError(f"gp.{name}: the identity of a {field.dtype} field is a number, not {identity!r}")
    return combined(name, function, _recorded(name, function, field.dtype))


def reducer_by(name: str, function: Callable[[Any, Any], Any], field: Any, identity: Any) -> Reducer:
    """Return the reducer of a function: half-precision values are accumulated as floats, and bools as bytes.

    Raises:
        SemanticError: as for `gp.reduce` and `gp.scan`; `name` is one of them.
    """
    if not isinstance(field, Field):
        raise SemanticError(f"gp.{name} takes a Field, not {described(field)}; wrap arrays, as in `gp.ScalarField(a)`")
    kind = field.type
    dtype = "float32" if kind.dtype == "unorm8" else wide_float(kind.dtype)
    number = identity.item() if isinstance(identity, np.generic) else identity
    if not isinstance(number, (bool, int, float)) or not BY_NUMPY[dtype].holds(number):
        raise SemanticError(f"gp.{name}: the identity is a number that {kind.dtype} can represent, not {identity!r}")
    accumulator = "uint8" if dtype == "bool" else dtype

    def operation(a: Any, b: Any) -> Any:
        return k._convert(function(k._convert(a, dtype), k._convert(b, dtype)), accumulator)

    neutral = float(number) if np.dtype(accumulator).kind == "f" else int(number)
    key = f"{_recorded(name, function, dtype)} {neutral!r}"
    result = "float32" if kind.dtype == "unorm8" else kind.dtype
    return Reducer(name, accumulator, result, operation=operation, neutral=neutral, key=key)


def _recorded(name: str, function: Callable[[Any, Any], Any], dtype: str) -> str:
    """Return a key of the function: the recording of its body for two values.

    Raises:
        SemanticError: it is no function, reads fields, or does not return a number of the dtype.
    """
    check_two_values(f"gp.{name} takes a function of two values", function)
    types = (FieldType((), (), dtype),)
    recorder = Recorder(name, types[0].field_shape, here(), slots_of(types, None))
    values = _two_values(dtype)
    with recorder:
        result = function(*map(k._readTensor, values))
        _check(name, result, dtype)
        k._writeTensor(k._out0, result if dtype in COMPLEX_DTYPES else k._convert(result, dtype))
    if set(recorder.inputs) - {value.node for value in values}:
        raise SemanticError(f"gp.{name}: the function reads a field; it may use only its two values, and constants")
    return identity_of(finish(recorder, chosen()))


@lru_cache
def _two_values(dtype: str) -> tuple[Field, Field]:
    """Return placeholder fields for the two values of a function."""
    return Field(np.zeros((), dtype)), Field(np.ones((), dtype))


def _check(name: str, result: Any, dtype: str) -> None:
    if isinstance(result, NUMBERS):
        return
    if not isinstance(result, Value):
        raise SemanticError(f"gp.{name}: the function gives a value, not {described(result)}")
    if result.type.lanes > 1 + (dtype in COMPLEX_DTYPES) or (
        result.type.kind == "f" and np.dtype(dtype).kind not in "fc"
    ):
        raise SemanticError(
            f"gp.{name}: the function returns a {result.type}, but values are {dtype}; convert its result"
        )
