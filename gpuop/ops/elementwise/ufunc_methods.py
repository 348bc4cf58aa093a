"""Methods of NumPy ufuncs, and ufuncs of two results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.ir.monoids import MONOIDS
from gpuop.ops.elementwise import numpy_functions
from gpuop.ops.elementwise.algebra import astype
from gpuop.ops.layout.axes import a_field, numbered, of_field
from gpuop.ops.layout.layouts import ravel
from gpuop.ops.reduce import row_products
from gpuop.ops.reduce.derivatives import with_running_rule
from gpuop.ops.reduce.functions import called
from gpuop.ops.scan.scans import cumprod, cumsum, scan
from gpuop.ops.select import choices

REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
    "fmax": "nanmax", "fmin": "nanmin",
}  # fmt: skip


def _reduce(
    name: str, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any
) -> Field:
    """ufunc.reduce: along the first axis, if none is given."""
    field = a_field(f"{name}.reduce", array)
    if out is not None:
        raise SemanticError(f"{name}.reduce: there is no `out`, a Field's values do not change")
    result = called(
        REDUCTIONS[name], field if dtype is None else astype(field, dtype), axis, keepdims=bool(keepdims), **options
    )
    return result if dtype is None else astype(result, dtype)


def _accumulate(name: str, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Field:
    """ufunc.accumulate: along the first axis, if none is given."""
    field = a_field(f"{name}.accumulate", array)
    if out is not None:
        raise SemanticError(f"{name}.accumulate: there is no `out`, a Field's values do not change")
    field = field if dtype is None else astype(field, dtype)
    if name in ("add", "multiply"):
        return (cumsum if name == "add" else cumprod)(field, axis)
    kind = np.dtype(field.type.array_dtype)
    if kind.kind == "c":
        raise SemanticError(f"{name}.accumulate does not take {kind} fields: complex numbers have no order")
    identity = MONOIDS["min" if name == "minimum" else "max"].identity(field.type.element)
    field, axis = (ravel(field), 0) if axis is None else (field, numbered(axis, *of_field(field)))
    result = scan(numpy_functions.TABLE[name][1], field, identity, axis)
    return with_running_rule(name, result, field, axis) if kind.kind == "f" else result


def _outer(name: str, A: Any, B: Any, /) -> Field:
    """ufunc.outer."""
    return row_products.outer_of(name, A, B)


FUNCTIONS: dict[str, Callable[..., Any]] = {"divmod": choices.divmod_of, "modf": choices.modf}
FUNCTIONS |= {f"{name}.reduce": functools.partial(_reduce, name) for name in REDUCTIONS}
FUNCTIONS |= {
    f"{name}.accumulate": functools.partial(_accumulate, name) for name in ("add", "multiply", "maximum", "minimum")
}
FUNCTIONS |= {
    f"{name}.outer": functools.partial(_outer, name)
    for name in numpy_functions.TABLE
    if isinstance(getattr(np, name, None), np.ufunc) and getattr(np, name).nin == 2
}
