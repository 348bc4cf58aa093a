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
from gpuop.dsl.guards.libraries import is_library_constant
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.target_facts import TargetExpression, Targets
from gpuop.ir.dims import Dims
from gpuop.ir.types import FieldType

PURE_BUILTINS = {
    "abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "format", "getattr", "hasattr", "hash", "hex", "isinstance",
    "issubclass", "iter", "len", "max", "min", "next", "oct", "ord", "pow", "print", "repr", "round", "sorted", "sum",
}  # fmt: skip
PURE_MODULES = {"math", "cmath", "_operator", "itertools", "_functools"}  # written in C
PACKAGE = __name__.partition(".")[0]
# parts of gpuop whose functions use no device
PURE_PARTS = (
    *("dsl", "gradients", "ir", "ops", "transforms", "engine.iterate", "engine.jit"),
    *("lib.cog", "lib.fft", "lib.linalg", "lib.ndimage", "lib.random"),
    *("cog", "fft", "linalg", "ndimage", "random"),
)
_PURE = tuple(f"{PACKAGE}.{part}." for part in PURE_PARTS)

_LIBRARY = {
    id(function): function
    for function in (
        *(getattr(builtins, name) for name in PURE_BUILTINS),
        *(np.mgrid, np.ogrid, functools.partial),
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
        or is_library_constant(value)
    ):
        return True
    if isinstance(value, type):
        return value.__module__ in ("builtins", "itertools") or _is_own(value)
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
