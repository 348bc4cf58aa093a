"""Limits of types: start values of minima and maxima."""

from __future__ import annotations

from typing import Any

from gpuop.dsl.builtins.declarations import dtype_of
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.recorder import current
from gpuop.dsl.recorder.value import Value
from gpuop.ir.build import constant
from gpuop.ir.types import SMALL_TENSOR, FieldType, Type


def _lowest(of: Any) -> Value:
    """The least value of a type, for floats minus infinity: the start value of a maximum, as in `most = _var(_lowest(f))`.

    Args:
        of: a value of the kernel's; or a Field, a FieldType or an output, whose tensors it is of, or elements where they are big;
            or a dtype.
    """
    return _end("_lowest", of, 0)


def _highest(of: Any) -> Value:
    """The greatest value of a type, for floats infinity: the start value of a minimum, as in `least = _var(_highest(f))`.

    Args:
        of: as of `_lowest`.
    """
    return _end("_highest", of, 1)


def _end(word: str, of: Any, number: int) -> Value:
    recorder = current(f"`{word}`")
    kind = recorder.output(of.index).kind if isinstance(of, OutputRef) else of.type if isinstance(of, FieldLike) else of
    if isinstance(kind, FieldType):
        type_ = Type(kind.element, kind.planes if kind.planes <= SMALL_TENSOR else 1)
    else:
        type_ = of.type if isinstance(of, Value) else Type(dtype_of(of))
    return Value(recorder.build.cast(constant(type_.dtype.ends[number], type_.dtype), type_))
