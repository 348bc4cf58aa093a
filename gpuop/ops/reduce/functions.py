"""NumPy reductions of fields by name, with their options, and those in terms of others."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described, meant
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS, REALS
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import apply, astype, narrowed, where, widened
from gpuop.ops.layout.axes import Axis, axes_of
from gpuop.ops.layout.layouts import reshaped, spread
from gpuop.ops.reduce.complex_reductions import halved
from gpuop.ops.reduce.reductions import EmptyError, axes_reduced, reduced
from gpuop.ops.symbolic_numbers import scalar

Mask = Field | None  # bools at a field's points that select values; None selects all


@dataclass(frozen=True)
class Reduction:
    """A row of the table.

    Attributes:
        call: takes the name, the field, the axis, the mask, and an option by name.
        options: the NumPy options that it takes.
        about: a description, if no method of Field has one.
    """

    call: Callable[..., Field]
    options: tuple[str, ...]
    about: str = ""


def called(name: str, a: Any, axis: Any = None, *more: Any, **options: Any) -> Field:
    """Call a reduction with NumPy options.

    Raises:
        SemanticError: an argument that is no Field, or unsupported options.
    """
    row = TABLE[name]
    if not isinstance(a, Field):
        raise SemanticError(f"{name} of {described(a)} and a Field: a Field is reduced into a new Field")
    refused = [o for o in options if o not in row.options]
    if more or refused:
        what = ", ".join(f"`{o}=`" for o in refused) or "positional options"
        names = ", ".join(f"`{o}=`" for o in row.options)
        raise SemanticError(
            f"{name} of a Field takes `axis` and {names} by name, not {what}; evaluate first, with `.numpy()`"
            + (meant(refused[0], ("axis", *row.options)) if refused else "")
        )
    keepdims = options.pop("keepdims", False)
    mask = mask_of(name, a, options.pop("where", True))
    result = row.call(name, a, axis, mask, **options)
    return with_unit_axes(name, result, a, axis) if keepdims else result


def with_unit_axes(name: str, result: Field, field: Field, axis: Any) -> Field:
    """Return the result with extents of 1 for the reduced axes, in the grid or tensor as before."""
    gone = axes_reduced(name, field.type, axis)
    return reshaped(
        name, result, [Axis(1, at.tensor, at.name) if n in gone else at for n, at in enumerate(axes_of(field.type))]
    )


def mask_of(name: str, field: Field, chosen: Any) -> Mask:
    """Return the mask of `where=`: bools that broadcast to the field; a number holds for all values."""
    chosen = bool(chosen) if isinstance(chosen, (int, float, np.number)) else chosen
    if isinstance(chosen, (bool, np.bool_)):
        return None if chosen else filled(field.type.replace(dtype="bool"), False)
    if isinstance(chosen, (np.ndarray, list, tuple)) and np.asarray(chosen).dtype == np.bool_:
        chosen = Field(np.asarray(chosen), 0)
        chosen.name = ""  # it is no variable of the user
    if not isinstance(chosen, Field) or chosen.dtype != "bool":
        what = f"one of {chosen.dtype}" if isinstance(chosen, Field) else described(chosen)
        raise SemanticError(f"{name}: `where=` is a Field or an array of bools, not {what}")
    whole = apply("logical_and", filled(field.type.replace(dtype="bool"), True), chosen)
    if whole.type.array_shape != field.type.array_shape:
        raise SemanticError(f"{name}: `where=`, a {chosen.type} field, does not broadcast to a {field.type} field")
    return whole


# --- values that count ------------------------------------------------------------------------------------------------


def _accumulated(operation: str, name: str, a: Field, axis: Any, mask: Mask, initial: Any = None) -> Field:
    """Return a sum or product; masked values are replaced by the identity."""
    counted = a if mask is None else where(mask, a, 0 if operation == "add" else 1)
    products = operation == "multiply" and counted.dtype in COMPLEX_DTYPES
    axes = axes_reduced(name, a.type, axis)
    result = (
        halved(name, counted, axes, functools.partial(apply, "multiply"), 1)
        if products
        else reduced(name, counted, axis)
    )
    return result if initial is None else _same_dtype(name, apply(operation, result, initial), result)


def _same_dtype(name: str, result: Field, like: Field) -> Field:
    if result.dtype != like.dtype:
        raise SemanticError(
            f"{name}: `initial=` would turn {like.dtype} into {result.dtype}; convert first, with `.astype`"
        )
    return result


def _extreme(joined: str, name: str, a: Field, axis: Any, mask: Mask, initial: Any = None) -> Field:
    """Return the least or the greatest value; masked values are replaced by `initial=`."""
    if initial is None:
        if mask is not None:
            raise SemanticError(f"{name} with `where=` needs `initial=`, the value where nothing is chosen")
        return reduced(name, a, axis)
    like = astype(a, "float32") if a.dtype == "unorm8" else a
    counted = like if mask is None else _same_dtype(name, where(mask, like, initial), like)
    try:
        return _same_dtype(name, apply(joined, reduced(name, counted, axis), initial), like)
    except EmptyError:
        return filled(reduced("sum", counted, axis).type.replace(dtype=like.dtype), initial)


def _place(name: str, a: Field, axis: Any, mask: Mask) -> Field:
    return reduced(name, a, axis)


def _truth(name: str, a: Field, axis: Any, mask: Mask) -> Field:
    """Return the greatest or the least truth; False or True if there are no values."""
    truth = a if a.dtype == "bool" else apply("not_equal", a, 0)
    if mask is not None:
        truth = where(mask, truth, name == "all")
    try:
        return reduced("max" if name == "any" else "min", truth, axis)
    except EmptyError:
        return apply("not_equal" if name == "any" else "equal", reduced("sum", truth, axis), 0)


def _place_of_number(to: str, otherwise: float) -> Callable[..., Field]:
    """Return the index with NaN as the last choice, as NumPy does."""

    def place(name: str, a: Field, axis: Any, mask: Mask) -> Field:
        floats = a.dtype in REALS
        return reduced(to, where(apply("isnan", a), otherwise, a) if floats else a, axis)

    return place


def _count(name: str, a: Field, axis: Any, mask: Mask) -> Field:
    return reduced("sum", a if a.dtype == "bool" else apply("not_equal", a, 0), axis)


def _without_nan(call: Callable[..., Field], to: str) -> Callable[..., Field]:
    """Return a reduction without NaN values, as one with a mask."""

    def left_out(name: str, a: Field, axis: Any, mask: Mask, **options: Any) -> Field:
        if a.dtype in FLOATS:
            numbers = apply("logical_not", apply("isnan", a))
            mask = numbers if mask is None else apply("logical_and", mask, numbers)
        return call(to, a, axis, mask, **options)

    return left_out


# --- moments ----------------------------------------------------------------------------------------------------------


def _mean(name: str, a: Field, axis: Any, mask: Mask) -> Field:
    if mask is None:
        return reduced("mean", a, axis)
    exact = a.type.element.kind in "biu" and a.dtype not in ("unorm8", "int64", "uint64")  # exact in sums of 64 bits
    total = reduced("sum", where(mask, a if exact else widened(a), 0), axis)
    return narrowed(apply("true_divide", total, reduced("sum", mask, axis)), a)


def _variance(root: bool, name: str, a: Field, axis: Any, mask: Mask, ddof: Any = 0) -> Field:
    """Return the mean squared deviation from the mean, in two passes as NumPy: large means cost no digits."""
    if isinstance(ddof, (bool, Field)) or not isinstance(ddof, (int, float, np.integer, np.floating)):
        raise SemanticError(f"{name}: `ddof=` is a number, not {described(ddof)}")
    values = astype(a, "float64") if a.dtype in ("int16", "uint16") else widened(a)
    off = apply("subtract", values, _everywhere(name, _mean(name, values, axis, mask), values, axis))
    if mask is not None:
        off = where(mask, off, 0)  # before it is squared: the slope of a NaN would be NaN, though nothing counts it
    parts = (apply("real", off), apply("imag", off)) if off.dtype in COMPLEX_DTYPES else (off,)
    squares = functools.reduce(lambda x, y: x + y, (apply("multiply", part, part) for part in parts))
    if mask is None:
        count = math.prod(a.type.array_shape[n] for n in axes_reduced(name, a.type, axis))
        total, divisor = reduced("sum", squares, axis), max(float(count - ddof), 0.0)
        result = apply("true_divide", total, scalar(divisor, total.dtype) if total.node.dynamic else divisor)
    else:
        left = apply("subtract", reduced("sum", mask, axis), ddof)
        result = apply("true_divide", reduced("sum", squares, axis), where(apply("greater", left, 0), left, 0))
    return narrowed(apply("sqrt", result) if root else result, a)


def _everywhere(name: str, mean: Field, values: Field, axis: Any) -> Field:
    """Return means at all points that they are the means of; a single mean needs no copies."""
    if not mean.type.array_shape:
        return mean
    return spread(name, with_unit_axes(name, mean, values, axis), values.type.array_shape)


# --- the table --------------------------------------------------------------------------------------------------------

SUM, PRODUCT = functools.partial(_accumulated, "add"), functools.partial(_accumulated, "multiply")
LEAST, GREATEST = functools.partial(_extreme, "minimum"), functools.partial(_extreme, "maximum")
VARIANCE, DEVIATION = functools.partial(_variance, False), functools.partial(_variance, True)
WHERE, STARTED, MOMENT = ("keepdims", "where"), ("keepdims", "initial", "where"), ("ddof", "keepdims", "where")
TABLE = {
    "sum": Reduction(SUM, STARTED),
    "prod": Reduction(PRODUCT, STARTED),
    "mean": Reduction(_mean, WHERE),
    "std": Reduction(DEVIATION, MOMENT),
    "var": Reduction(VARIANCE, MOMENT),
    "min": Reduction(LEAST, STARTED),
    "max": Reduction(GREATEST, STARTED),
    "any": Reduction(_truth, WHERE),
    "all": Reduction(_truth, WHERE),
    "argmin": Reduction(_place, ("keepdims",)),
    "argmax": Reduction(_place, ("keepdims",)),
    "nanargmin": Reduction(_place_of_number("argmin", math.inf), ("keepdims",), "`.argmin` of what is not NaN; 0 where all is"),
    "nanargmax": Reduction(_place_of_number("argmax", -math.inf), ("keepdims",), "`.argmax` of what is not NaN; 0 where all is"),
    "count_nonzero": Reduction(_count, ("keepdims",), "int64"),
    "nansum": Reduction(_without_nan(SUM, "sum"), STARTED, "`.sum` of what is not NaN"),
    "nanprod": Reduction(_without_nan(PRODUCT, "prod"), STARTED, "`.prod` of what is not NaN"),
    "nanmean": Reduction(_without_nan(_mean, "mean"), WHERE, "`.mean` of what is not NaN; NaN where all is"),
    "nanstd": Reduction(_without_nan(DEVIATION, "std"), MOMENT, "`.std` of what is not NaN; NaN where all is"),
    "nanvar": Reduction(_without_nan(VARIANCE, "var"), MOMENT, "`.var` of what is not NaN; NaN where all is"),
    "nanmin": Reduction(functools.partial(_extreme, "fmin"), STARTED, "`.min` of what is not NaN; NaN where all is"),
    "nanmax": Reduction(functools.partial(_extreme, "fmax"), STARTED, "`.max` of what is not NaN; NaN where all is"),
}  # fmt: skip
FUNCTIONS = {name: functools.partial(called, name) for name in TABLE}
services.algebra.update(FUNCTIONS)
