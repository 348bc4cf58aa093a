"""Functions of the array API standard, by a table: the standard's arguments, and the function of fields that gets them in order.

Arrays are grids of scalars, and axes are the grid's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gpuop.dsl as dsl
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import is_dtyped
from gpuop.ir.dtype_names import COMPLEX_DTYPES, dtype_name
from gpuop.ir.types import FieldType
from gpuop.lib.array_api.dtypes import check_device, default_of
from gpuop.lib.linalg import products
from gpuop.ops.create import computed_fields, evenly_spaced
from gpuop.ops.elementwise import algebra
from gpuop.ops.elementwise.algebra import apply, astype
from gpuop.ops.layout import join, layouts, reorder, shape_functions
from gpuop.ops.layout.axes import Axis, numbered, of_field, whole_number
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.reduce import calculus, row_products
from gpuop.ops.reduce.functions import called
from gpuop.ops.select import choices
from gpuop.ops.select import take as taking
from gpuop.ops.sort import search, sets, sorts

Function = Callable[..., Any]
OF_ONE = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "bitwise_invert": "invert", "conj": "conjugate",
    **{
        name: name
        for name in (
            "ceil", "cos", "cosh", "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p",
            "log2", "logical_not", "negative", "positive", "real", "reciprocal", "sign", "signbit", "sin", "sinh", "sqrt",
            "square", "tan", "tanh", "trunc",
        )
    },
}  # fmt: skip
OF_TWO = {
    "atan2": "arctan2", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "pow": "power",
    **{
        name: name
        for name in (
            "add", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "divide", "equal", "floor_divide", "greater",
            "greater_equal", "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum",
            "minimum", "multiply", "nextafter", "not_equal", "remainder", "subtract",
        )
    },
}  # fmt: skip


# --- creation ---------------------------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Field:
    """`asarray` of the array API standard: Python numbers become int64, float32, complex64 and bool."""
    check_device(device)
    if isinstance(obj, Field):
        return obj if dtype is None else astype(obj, dtype)
    if isinstance(obj, (list, tuple)) and any(isinstance(each, Field) for each in obj):
        return asarray(_stack([asarray(each) for each in obj], 0), dtype=dtype)
    if is_dtyped(obj):
        return Field(obj, 0, dtype, copy=copy is not False)
    if copy is False:
        raise ArgumentError("asarray: a list has no memory that a field could share: leave out `copy=False`")
    with np.errstate(over="ignore"):
        return Field(np.asarray(obj, default_of(obj) if dtype is None else dtype_name(dtype)))


def _here(make: Function) -> Function:
    """Return a function with a further argument, the device."""

    def on_device(*args: Any) -> Field:
        check_device(args[-1])
        return make(*args[:-1])  # type: ignore[no-any-return]

    return on_device


def _arange(start: Any, stop: Any, step: Any, dtype: Any) -> Field:
    chosen = default_of([n for n in (start, stop, step) if n is not None]) if dtype is None else dtype
    return evenly_spaced.arange(start, stop, step, chosen)


def _linspace(start: Any, stop: Any, num: int, dtype: Any, device: Any, endpoint: bool) -> Field:
    check_device(device)
    if isinstance(start, complex) or isinstance(stop, complex) or dtype in COMPLEX_DTYPES:
        parts = ((complex(start).real, complex(stop).real), (complex(start).imag, complex(stop).imag))
        real, imag = (evenly_spaced.linspace(*ends, num, endpoint) for ends in parts)
        return apply("add", real, apply("multiply", imag, 1j))
    return evenly_spaced.linspace(start, stop, num, endpoint, dtype)


def _full(shape: Any, value: Any, dtype: Any) -> Field:
    return computed_fields.filled(FieldType(shape, (), default_of(value) if dtype is None else dtype), value)


def _eye(n_rows: int, n_cols: int | None, k: int, dtype: Any) -> Field:
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    diagonal = whole_number(k, "`k`, a number of a diagonal,")
    shift = max(-shape[0], min(diagonal, shape[1]))  # clipped, as kernels have int

    def value(at: Place, _: Reading) -> Any:
        return dsl._where(at[1] - at[0] == shift, 1, 0)

    return astype(gathered("eye", FieldType(shape, (), "uint8"), [], value, shift, True), dtype or "float32")


# --- reductions, order and places -------------------------------------------------------------------------------------


def _reduced(name: str, x: Field, axis: Any, keepdims: bool) -> Field:
    return called(name, x, axis, keepdims=keepdims)


def _total(name: str, x: Field, axis: Any, dtype: Any, keepdims: bool) -> Field:
    total = called(name, x if dtype is None else astype(x, dtype), axis, keepdims=keepdims)
    return total if dtype is None else astype(total, dtype)


def _moment(name: str, x: Field, axis: Any, correction: float, keepdims: bool) -> Field:
    return called(name, x, axis, ddof=correction, keepdims=keepdims)


def _cumulative(scan: Function, x: Field, axis: Any, dtype: Any, include_initial: bool) -> Any:
    return scan(x, axis=axis, dtype=dtype, include_initial=include_initial)


def _sort(x: Field, axis: int, descending: bool, stable: bool) -> Field:
    ascending = sorts.sort(x, axis)
    return reorder.flip(ascending, axis) if descending else ascending


def _argsort(x: Field, axis: int, descending: bool, stable: bool) -> Field:
    if not descending:
        return sorts.argsort(x, axis)
    extent = x.shape[numbered(axis, *of_field(x))]
    return apply("subtract", extent - 1, reorder.flip(sorts.argsort(reorder.flip(x, axis), axis), axis))


def _stack(arrays: Any, axis: int) -> Field:
    stacked = join.stack(arrays, axis)
    return layouts.reshaped("stack", stacked, [Axis(n) for n in stacked.shape])


# --- the table --------------------------------------------------------------------------------------------------------

LIKE, OF_SHAPE = "x, /, *, dtype=None, device=None", "shape, *, dtype=None, device=None"
REDUCTION, TOTAL = "x, /, *, axis=None, keepdims=False", "x, /, *, axis=None, dtype=None, keepdims=False"
MOMENT = "x, /, *, axis=None, correction=0.0, keepdims=False"
CUMULATIVE = "x, /, *, axis=None, dtype=None, include_initial=False"
SORT, EVALUATED = "x, /, *, axis=-1, descending=False, stable=True", ", evaluated when it is called"
TABLE: dict[str, tuple[str, Function] | tuple[str, Function, str]] = {
    "from_dlpack": (
        "x, /, *, device=None, copy=None",
        lambda x, device, copy: asarray(x, device=device, copy=copy),
        "; an array on a device is copied, unless it is immutable",
    ),
    "arange": ("start, /, stop=None, step=1, *, dtype=None, device=None", _here(_arange)),
    "linspace": ("start, stop, /, num, *, dtype=None, device=None, endpoint=True", _linspace),
    "full": ("shape, fill_value, *, dtype=None, device=None", _here(_full)),
    "full_like": ("x, /, fill_value, *, dtype=None, device=None", _here(computed_fields.full_like)),
    "zeros": (OF_SHAPE, _here(computed_fields.zeros)),
    "ones": (OF_SHAPE, _here(computed_fields.ones)),
    "empty": (OF_SHAPE, _here(computed_fields.zeros), ": zeros"),
    "zeros_like": (LIKE, _here(computed_fields.zeros_like)),
    "ones_like": (LIKE, _here(computed_fields.ones_like)),
    "empty_like": (LIKE, _here(computed_fields.zeros_like), ": zeros"),
    "eye": ("n_rows, n_cols=None, /, *, k=0, dtype=None, device=None", _here(_eye)),
    "tril": ("x, /, *, k=0", shape_functions.tril),
    "triu": ("x, /, *, k=0", shape_functions.triu),
    "meshgrid": ("*arrays, indexing='xy'", lambda *args: evenly_spaced.meshgrid(*args[:-1], indexing=args[-1])),
    **{name: ("x, /", partial(apply, of_numpy)) for name, of_numpy in OF_ONE.items()},
    **{name: ("x1, x2, /", partial(apply, of_numpy)) for name, of_numpy in OF_TWO.items()},
    "clip": (
        "x, /, min=None, max=None",
        lambda x, least, most: astype(algebra.clip(x, least, most), x.dtype),
        ", in the field's dtype",
    ),
    "round": ("x, /", choices.around, ": halves go to the even neighbour"),
    "where": ("condition, x1, x2, /", algebra.where),
    "flip": ("x, /, *, axis=None", reorder.flip),
    "moveaxis": ("x, source, destination, /", layouts.moveaxis),
    "permute_dims": ("x, /, axes", layouts.transpose),
    "repeat": (
        "x, repeats, /, *, axis=None",
        lambda x, n, axis: reorder.repeat(x, n.numpy() if isinstance(n, Field) else n, axis),
        "; the repeats are evaluated, as the shape depends on them",
    ),
    "reshape": ("x, /, shape, *, copy=None", lambda x, shape, copy: layouts.reshape(x, shape)),
    "roll": ("x, /, shift, *, axis=None", reorder.roll),
    "squeeze": ("x, /, axis", layouts.squeeze),
    "tile": ("x, repetitions, /", reorder.tile),
    "take": (
        "x, indices, /, *, axis=None",
        lambda x, indices, axis: reorder.take(x, indices, axis, mode="wrap"),
        "; negative indices count from the end",
    ),
    "take_along_axis": ("x, indices, /, *, axis=-1", taking.take_along_axis),
    "broadcast_arrays": ("*arrays", shape_functions.broadcast_arrays),
    "broadcast_to": ("x, /, shape", layouts.broadcast_to),
    "concat": ("arrays, /, *, axis=0", join.concatenate),
    "stack": ("arrays, /, *, axis=0", _stack, ": the new axis is the grid's, wherever it stands"),
    "expand_dims": ("x, /, axis=0", layouts.expand_dims),
    "unstack": ("x, /, *, axis=0", lambda x, axis: shape_functions.unstack(x, axis=axis)),
    "matrix_transpose": ("x, /", shape_functions.matrix_transpose),
    "tensordot": ("x1, x2, /, *, axes=2", row_products.tensordot),
    "vecdot": ("x1, x2, /, *, axis=-1", products.vecdot, ": the sum of products; x1 is conjugated"),
    "matmul": ("x1, x2, /", products.matmul, ": sums of products, of stacks of matrices that broadcast"),
    **{
        name: (REDUCTION, partial(_reduced, name))
        for name in ("all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min")
    },
    **{name: (TOTAL, partial(_total, name)) for name in ("prod", "sum")},
    **{name: (MOMENT, partial(_moment, name)) for name in ("std", "var")},
    "cumulative_sum": (CUMULATIVE, partial(_cumulative, calculus.cumulative_sum)),
    "cumulative_prod": (CUMULATIVE, partial(_cumulative, calculus.cumulative_prod)),
    "diff": (
        "x, /, *, axis=-1, n=1, prepend=None, append=None",
        lambda x, axis, n, prepend, append: join.diff(x, n, axis, prepend, append),
    ),
    "sort": (SORT, _sort),
    "argsort": (SORT, _argsort, "; always stable"),
    "searchsorted": ("x1, x2, /, *, side='left', sorter=None", search.searchsorted),
    "nonzero": ("x, /", sets.nonzero, EVALUATED),
    "unique_all": ("x, /", sets.unique_all, EVALUATED),
    "unique_counts": ("x, /", sets.unique_counts, EVALUATED),
    "unique_inverse": ("x, /", sets.unique_inverse, EVALUATED),
    "unique_values": ("x, /", sets.unique_values, EVALUATED),
}


def _of_row(name: str, parameters: str, call: Function, remark: str = "") -> Function:
    """Return a function with the standard's parameters; its code is of this file, so that errors name the user's line."""
    args = ", ".join(each.partition("=")[0] for each in parameters.split(", ") if each not in ("/", "*"))
    code = compile(f"lambda {parameters}: call({args})", __file__, "eval")
    function: Function = eval(code, {"call": call})
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the array API standard{remark}."
    return function


FUNCTIONS = {"asarray": asarray, **{name: _of_row(name, *row) for name, row in TABLE.items()}}
