"""Whether an operator's body may be skipped: what it captured, as values that can be compared, or None if it cannot be known."""

from __future__ import annotations

import builtins
import dis
import math
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from gpuop.dsl.record import OutputRef
from gpuop.dsl.targets import TargetExpression, Targets
from gpuop.dsl.value import Value
from gpuop.ir.types import FieldType, Shape

SIMPLE = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, FieldType, OutputRef)
STABLE_MODULES = {"numpy", "math", "gpuop", "gpuop.dsl"}
PURE_BUILTINS = {
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "map", "max", "min",
    "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "zip",
}  # fmt: skip


class Unknown(Exception):
    """The body depends on something whose changes cannot be seen."""


def snapshot(*parts: Any) -> tuple[Any, ...] | None:
    """The values that a body depends on besides Fields, given its functions and constants; None when it must run every time."""
    try:
        return tuple(_value(part, set()) for part in parts)
    except Unknown:
        return None


def _function(function: FunctionType, seen: set[int]) -> tuple[Any, ...]:
    if id(function) in seen:
        return ("again", function.__qualname__)
    seen.add(id(function))
    if function.__module__ and function.__module__.split(".")[0] == "gpuop":
        return ("gpuop", function.__qualname__)
    captured: list[Any] = [function.__code__]
    captured += [_value(v, seen) for v in function.__defaults__ or ()]
    captured += [_value(v, seen) for v in (function.__kwdefaults__ or {}).values()]
    captured += [(name, _value(v, seen)) for name, v in function.__dict__.items()]
    for cell in function.__closure__ or ():
        try:
            captured.append(_value(cell.cell_contents, seen))
        except ValueError:
            raise Unknown from None
    captured += [_global(name, function.__globals__, seen) for name in _names(function.__code__)]
    return tuple(captured)


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> tuple[str, ...]:
    """The globals and attributes that a function's code names, inner functions included."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _names(constant)
    imported = [i.argval for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME"]
    if not STABLE_MODULES.issuperset(imported):
        raise Unknown
    return tuple(names)


def _global(name: str, scope: dict[str, Any], seen: set[int]) -> Any:
    if name in scope:
        return _value(scope[name], seen)
    if hasattr(builtins, name):
        if name not in PURE_BUILTINS:
            raise Unknown
        return name
    return name  # an attribute's name


def _value(value: Any, seen: set[int]) -> Any:
    if isinstance(value, (float, np.floating)):
        return (type(value), math.copysign(1.0, value), repr(value))
    if isinstance(value, SIMPLE):
        return (type(value), value)
    if type(value) in (tuple, Shape):
        return (type(value), *(_value(v, seen) for v in value))
    if isinstance(value, FunctionType):
        return _function(value, seen)
    if isinstance(value, ModuleType) and value.__name__ in STABLE_MODULES:
        return value.__name__
    if isinstance(value, Value) and type(value).__name__ == "ThreadConstant":
        return repr(value)
    if isinstance(value, (Targets, TargetExpression)):
        return repr(value)
    if isinstance(value, type) and value.__module__.split(".")[0] in ("builtins", "gpuop", "numpy"):
        return value
    if isinstance(value, np.ufunc) or (
        callable(value) and getattr(value, "__module__", None) in ("math", "numpy", "gpuop.dsl.declare")
    ):
        return id(value)
    raise Unknown
