"""Cache of calls: the trace of a call is found by its arguments before these are bound or checked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from operator import is_
from typing import Any, TypeVar

import numpy as np

from gpuop.base.lru import BoundedCache
from gpuop.base.trace import HostSpan
from gpuop.dsl.fields.field import Field
from gpuop.dsl.guards.function_wrapper import BY_POSITION
from gpuop.dsl.guards.guard import Snapshot
from gpuop.dsl.guards.trace_constants import BY_TEXT, PLAIN
from gpuop.dsl.operators.arguments import MOST_NUMBERS
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.recorder import recording
from gpuop.dsl.recorder.trace_effects import looks, warnings
from gpuop.engine.evaluate import PLANS_KEPT
from gpuop.engine.jit.call import PipelineCall, Trace, check_out
from gpuop.engine.jit.device_call import DeviceCall
from gpuop.engine.jit.host_call import HostCall
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf
from gpuop.ops.call_cache import CachedGraph, cached_graph
from gpuop.runtime.devices import current

BY_VALUE = frozenset({*PLAIN, type} - {FieldType})  # types whose equal values are interchangeable
ONE_PLACE = (
    "numpy",
    "cupy",
)  # libraries whose arrays are all on the host, or all on devices: arrays of others tell their device
ORDERED = (inspect.Parameter.KEYWORD_ONLY, *BY_POSITION)
MOST_NESTED = 8
Function = TypeVar("Function", bound=Callable[..., Any])


class Role(Enum):
    """The kind of values that a parameter takes."""

    DATA = "fields, arrays, and values that are converted to arrays"
    CONSTANT = "values that are no arrays of the pipeline"
    EITHER = "arrays, and constants"
    RESULT = "arrays for the results, as `out=`"


DATA, CONSTANT, RESULT = Role.DATA, Role.CONSTANT, Role.RESULT


@dataclass(frozen=True, slots=True, eq=False)
class TracedCall:
    """The trace of calls with arrays of some types, and with some constants.

    Attributes:
        name: name of the pipeline.
        device: True if the arrays are on a device.
        captured: values that the function and its constants capture; or the reason for a trace at each call.
    """

    name: str
    trace: Trace
    device: bool
    captured: Snapshot | str

    def holds(self) -> bool:
        """Return whether all captured values are as they were."""
        return isinstance(self.captured, Snapshot) and self.captured.lasts()

    def call(self, arrays: Sequence[Any], out: Any) -> PipelineCall:
        """A call with these arrays, in the order of the parameters; results go to new arrays or to `out`."""
        outs = None if out is None else check_out(self.name, out, self.trace.kinds)
        return (DeviceCall if self.device else HostCall)(self.trace, arrays, current(), outs)


Anew = tuple[Any, TracedCall | None, Sequence[Any]]  # a result, the trace that computed it, its arrays


class _NoKey(Exception):
    """An argument that has no key."""


class CallCache(BoundedCache[tuple[Any, ...], TracedCall | CachedGraph]):
    """A cache of the calls of a function, by the types of arrays or fields and the values of all other arguments.

    Args:
        signature: that of the function; calls of one with `*args` or `**kwargs` are not cached.
        roles: roles of parameters, and of `out=`.
        others: the role of all other parameters.
    """

    __slots__ = ("places", "roles")

    def __init__(self, signature: inspect.Signature, roles: Mapping[str, Role], others: Role = Role.EITHER) -> None:
        super().__init__(PLANS_KEPT)
        parameters = signature.parameters
        known = all(p.kind in ORDERED for p in parameters.values())
        self.roles = dict.fromkeys(parameters, others) | dict(roles) if known else {}
        self.places = tuple(parameters) if known else ()

    def result(self, args: tuple[Any, ...], kwargs: dict[str, Any], anew: Callable[..., Anew]) -> Any:
        """Return the result of a call; `anew` makes a call that is not cached, from `args` and `kwargs`."""
        try:
            request = self._key(args, kwargs)
        except _NoKey:
            request = None
        if request is None:
            return anew(args, kwargs)[0]
        key, inputs, out = request
        cached = self.get(key)
        if isinstance(cached, CachedGraph):
            with HostSpan("record"):
                return cached.of([field.node for field in inputs])
        if cached is not None and cached.holds():
            with HostSpan("prepare"):
                call = cached.call(inputs, out)
            return call.returned()
        effects = looks(), warnings()
        result, trace, arrays = anew(args, kwargs)
        entry: TracedCall | CachedGraph | None = None
        if type(result) is Field:
            entry = _graph_of(result, inputs) if (looks(), warnings()) == effects else None
        elif len(arrays) == len(inputs) and all(map(is_, arrays, inputs)):  # no argument was converted to an array
            entry = trace if trace is not None and isinstance(trace.captured, Snapshot) else None
        if entry is not None:
            self[key] = entry
        return result

    def calling(self, function: Function, anew: Callable[..., Anew]) -> Function:
        """Wrap `function`, so that calls go through this cache."""

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return self.result(args, kwargs, anew)

        return called  # type: ignore[return-value]

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any], Any]:
        """Return the key of a call, its arrays or fields, and `out=`."""
        if len(args) > len(self.places):
            raise _NoKey
        key: list[Any] = [chosen(), len(args)]
        arrays: list[Any] = []
        out, last = None, -1
        for name, value in chain(zip(self.places, args), kwargs.items()):  # noqa: B905 - there may be fewer arguments
            role, kind = self.roles.get(name), type(value)
            key.append(name)
            if role is None:
                raise _NoKey
            if kind in BY_VALUE:
                key += kind, value
            elif role is RESULT and (kind in (tuple, list) or _is_array(kind)):
                out = value
                key += kind, getattr(value, "dtype", None)
            elif role is not RESULT and role is not CONSTANT and _is_array(kind):
                place = self.places.index(name)
                if place < last:  # the pipeline has them in the order of its parameters
                    raise _NoKey
                last = place
                arrays.append(value)
                key += kind, value.shape, value.dtype, kind.__module__ in ONE_PLACE or value.__dlpack_device__()
            elif role is DATA:
                arrays.append(value)
                key += _facts(value, arrays)
            else:
                key.append(_constant(value, 0))
        return tuple(key), arrays, out


def _facts(field: Any, given: Sequence[Any]) -> tuple[Any, ...]:
    """The key of a field: the properties that a library function may use, and its position among equal arguments."""
    if not isinstance(field, Field) or field.node.dynamic or recording() is not None:
        raise _NoKey
    node, kind = field.node, field.type
    first = next(n for n, other in enumerate(given) if isinstance(other, Field) and other.node == node)
    return type(field), kind, kind.names, first, isinstance(node, Leaf) and (node.by_value, node.source.borrowed)


def _graph_of(made: Field, given: Sequence[Any]) -> CachedGraph | None:
    """The graph of a result that is computed from fields alone; None for any other."""
    fields = [each.node for each in given if isinstance(each, Field)]
    return cached_graph(made, fields) if 0 < len(fields) == len(given) else None


def _is_array(kind: type) -> bool:
    """Return whether arrays of a type have all attributes that a trace depends on."""
    return kind is np.ndarray or (hasattr(kind, "__dlpack_device__") and not issubclass(kind, (np.ndarray, FieldLike)))


def _constant(value: Any, depth: int) -> Any:
    """The key of a constant."""
    kind = type(value)
    if kind in BY_VALUE:
        return kind, value
    if kind in BY_TEXT:
        return kind, repr(value)
    if kind in (tuple, list) and depth < MOST_NESTED:
        return (kind, *(_constant(member, depth + 1) for member in value))
    if kind is np.ndarray and value.size <= MOST_NUMBERS and not value.dtype.hasobject:
        return kind, value.dtype, value.shape, value.tobytes()
    raise _NoKey
