"""Objects that are constant during tracing, by identity, type or module. Any other object may change."""

from __future__ import annotations

import builtins
import functools
from collections import namedtuple
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np

from gpuop.dsl.builtins.threads import ThreadConstant
from gpuop.dsl.guards import standard_library
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.target_facts import TargetExpression, Targets
from gpuop.ir.dims import Dims
from gpuop.ir.types import FieldType

PURE_BUILTINS = {
    "abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "format", "getattr", "hasattr", "hash", "hex", "isinstance",
    "issubclass", "iter", "len", "max", "min", "next", "oct", "ord", "pow", "print", "repr", "round", "sorted", "sum",
}  # fmt: skip
PURE_NUMPY = {
    "abs", "all", "allclose", "amax", "amin", "angle", "any", "append", "arange", "argmax", "argmin", "argsort", "argwhere",
    "around", "array", "array_equal", "array_equiv", "array_split", "asarray", "astype", "atleast_1d", "atleast_2d",
    "atleast_3d", "average", "bartlett", "bincount", "blackman", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "choose", "clip", "column_stack", "concatenate", "convolve", "copy", "copyto", "correlate", "count_nonzero", "cross", "cumprod",
    "cumsum", "cumulative_prod", "cumulative_sum", "delete", "diag", "diff", "digitize", "dot", "dsplit", "dstack", "dtype",
    "ediff1d", "einsum", "empty_like", "expand_dims", "eye", "finfo", "fix", "flatnonzero", "flip", "fliplr", "flipud", "full",
    "full_like", "gradient", "hamming", "hanning", "histogram", "hsplit", "hstack", "identity", "iinfo", "imag", "inner",
    "interp", "isclose", "iscomplex", "isin", "isneginf", "isposinf", "isreal", "kaiser", "kron", "linspace", "logspace",
    "matrix_transpose", "max", "mean", "median", "meshgrid", "min", "moveaxis", "nan_to_num", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile",
    "nanstd", "nansum", "nanvar", "ndim", "nonzero", "ones", "ones_like", "outer", "pad", "percentile", "piecewise", "prod",
    "ptp", "quantile", "ravel", "real", "repeat", "reshape", "result_type", "roll", "rollaxis", "rot90", "round",
    "searchsorted", "select", "shape", "sinc", "size", "sort", "split", "squeeze", "stack", "std", "sum", "swapaxes", "take",
    "take_along_axis", "tensordot", "tile", "trace", "transpose", "trapezoid", "tri", "tril", "triu", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unstack", "unwrap", "var", "vdot", "vsplit", "vstack", "where",
    "zeros", "zeros_like",
}  # fmt: skip
PURE_LINALG = ("cond", "det", "eigh", "eigvalsh", "inv", "lstsq", "matrix_power", "norm", "pinv", "qr", "solve", "svd")
PURE_MODULES = {"math", "cmath", "_operator", "itertools", "_functools"}  # written in C
PACKAGE = __name__.partition(".")[0]
# parts of gpuop whose functions use no device
PURE_PARTS = (
    *("dsl", "ir", "ops", "engine.iterate", "engine.jit"),
    *("lib.cog", "lib.fft", "lib.linalg", "lib.ndimage", "lib.random"),
    *("cog", "fft", "linalg", "ndimage", "random"),
)
_PURE = tuple(f"{PACKAGE}.{part}." for part in PURE_PARTS)

_LIBRARY = {
    id(function): function
    for function in (
        *(getattr(builtins, name) for name in PURE_BUILTINS),
        *(getattr(np, name, None) for name in PURE_NUMPY),
        *(getattr(np.linalg, name) for name in PURE_LINALG),
        *(function for function in vars(np).values() if isinstance(function, np.ufunc)),
        *(np.ndarray, np.ndindex, np.ndenumerate, np.mgrid, np.ogrid, functools.partial),
    )
}
_CHANGING = (np.void, np.object_)  # mutable NumPy scalars
SCALARS = {t for t in np.sctypeDict.values() if not issubclass(t, _CHANGING)}
FIELD_OF_TUPLE = type(vars(namedtuple("_Named", "field"))["field"])  # descriptor of a namedtuple field
# Types keyed by their text: floats, because 0.0 == -0.0; and types keyed by their value
BY_TEXT = {
    float,
    complex,
    TargetExpression,
    *standard_library.BY_TEXT,
    *(t for t in SCALARS if issubclass(t, np.inexact)),
}
PLAIN = {
    bool,
    int,
    str,
    bytes,
    type(None),
    type(...),
    type(NotImplemented),
    range,
    Dims,
    FieldType,
    OutputRef,
    *standard_library.BY_VALUE,
    *(SCALARS - BY_TEXT),
}


def is_constant(value: Any) -> bool:
    """True if an object without a plain value is certain to be, and to do, the same at all times."""
    if (
        id(value) in _LIBRARY
        or isinstance(value, (Targets, ThreadConstant, FIELD_OF_TUPLE))
        or standard_library.is_steady(value)
    ):
        return True
    if isinstance(value, type):
        scalar = issubclass(value, np.generic) and value.__module__ == "numpy"
        return scalar or value.__module__ in ("builtins", "itertools") or _is_own(value)
    if isinstance(value, BuiltinFunctionType):
        owner = value.__self__  # for `tuple.__new__` it is the class
        return (isinstance(owner, ModuleType) and owner.__name__ in PURE_MODULES) or _is_builtin(owner)
    if isinstance(value, (MethodDescriptorType, WrapperDescriptorType)):
        return _is_builtin(value.__objclass__)
    if isinstance(value, np.dtype):
        return value.isbuiltin == 1
    return isinstance(value, FunctionType) and _is_own(value)


def _is_builtin(cls: Any) -> bool:
    return isinstance(cls, type) and cls.__module__ == "builtins"


def _is_own(value: Any) -> bool:
    """True for a function or class of gpuop."""
    module = f"{value.__module__}."
    return module.startswith(_PURE) or (isinstance(value, type) and module.startswith(f"{PACKAGE}."))
