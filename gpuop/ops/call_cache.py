"""The cache of calls: a call is found by its arguments before these are bound or checked.

What is cached is the trace of a pipeline, the graph that a function of fields builds, or a function of a vendor's library.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import chain
from operator import is_
from typing import Any, Protocol, TypeVar

import numpy as np

from gpuop.base.errors import here
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.base.trace import HostSpan
from gpuop.dsl.fields.derivative_rules import has_rules
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.fields.names import names_given
from gpuop.dsl.guards.function_wrapper import BY_POSITION
from gpuop.dsl.guards.trace_constants import BY_TEXT, PLAIN
from gpuop.dsl.operators.arguments import MOST_NUMBERS
from gpuop.dsl.operators.operator import MOST_CACHED
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.recorder import recording
from gpuop.dsl.recorder.trace_effects import looks, warnings
from gpuop.ir.kernel import Launchable
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Leaf, Node, Result, calls
from gpuop.ops.reduce.reductions import reductions

MOST_CALLS = 32  # calls of one cached graph
MOST_FUNCTION_CALLS = 128  # cached calls of one function
BY_VALUE = frozenset({*PLAIN, type} - {FieldType})  # types whose equal values are interchangeable
ONE_PLACE = ("numpy", "cupy", "numba")  # libraries whose arrays are all on the host, or all on devices
ORDERED = (inspect.Parameter.KEYWORD_ONLY, *BY_POSITION)
LISTS = (tuple, list)
MOST_NESTED = 8
KINDS = 64  # types of arrays
Function = TypeVar("Function", bound=Callable[..., Any])


class Role(Enum):
    """The kind of values that a parameter takes."""

    DATA = "fields, arrays, and values that are converted to arrays"
    CONSTANT = "values that are no arrays of the pipeline"
    EITHER = "arrays, and constants"
    RESULT = "arrays for the results, as `out=`"


DATA, CONSTANT, RESULT = Role.DATA, Role.CONSTANT, Role.RESULT


class CachedCall(Protocol):
    """A call in the cache."""

    def holds(self) -> bool:
        """Return whether all that it depends on besides its arguments is as it was."""

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """Return the result for arrays or fields of the same types; in `out` if that is given."""


New = tuple[Any, CachedCall | None, Sequence[Any]]  # a result, what can be cached of the call, its arrays


@dataclass(frozen=True, slots=True)
class CachedGraph:
    """The graph of a library function, whatever the values of its operands.

    Attributes:
        calls: kernels with their identities, and the value numbers of their inputs: operands first, then results of calls.
        output: the value number of the result.
        kind: the type of the result.
    """

    calls: tuple[tuple[Launchable, str, tuple[int, ...]], ...]
    output: int
    kind: FieldType

    def holds(self) -> bool:
        """Return True: a graph depends on nothing else."""
        return True

    def result(self, inputs: Sequence[Field], out: Any) -> Field:
        """Return the result for these fields."""
        with HostSpan("record"):
            return self.of([field.node for field in inputs])

    def of(self, operands: Sequence[Node | None]) -> Field:
        """Return the result for these operands."""
        values: list[Any] = list(operands)
        loc = here()
        for kernel, identity, inputs in self.calls:
            call = Call(kernel, identity, tuple(values[n] for n in inputs), loc, names_given(len(kernel.outputs)))
            values += (Result(call, k) for k in range(len(kernel.outputs)))
        return Field.of(values[self.output], kind=self.kind)


def cached_graph(result: Field, operands: Sequence[Node | None]) -> CachedGraph | None:
    """Return the graph that a call has built; None if its result is an operand, or depends on more than operands and calls."""
    values = list(operands)
    steps: list[tuple[Launchable, str, tuple[int, ...]]] = []
    if not isinstance(result.node, Result) or result.node in values:
        return None
    for call in calls([result.node], operands):
        if (
            call in reductions
            or has_rules(call)
            or len(steps) == MOST_CALLS
            or not all(node in values for node in call.inputs)
        ):
            return None
        steps.append((call.kernel, call.identity, tuple(map(values.index, call.inputs))))
        values += (Result(call, k) for k in range(len(call.kernel.outputs)))
    return CachedGraph(tuple(steps), values.index(result.node), result.type)


class _NoKey(Exception):
    """An argument that has no key."""


class CallCache(BoundedCache[tuple[Any, ...], CachedCall]):
    """A cache of the calls of a function, by the types of arrays or fields and the values of all other arguments.

    Args:
        signature: that of the function; calls of one with `*args` or `**kwargs` are not cached.
        roles: roles of parameters, and of `out=`.
        others: the role of all other parameters.
    """

    __slots__ = ("arity", "places", "roles")

    def __init__(self, signature: inspect.Signature, roles: Mapping[str, Role], others: Role = Role.EITHER) -> None:
        super().__init__(MOST_FUNCTION_CALLS)
        parameters = signature.parameters
        cacheable = all(p.kind in ORDERED for p in parameters.values())
        self.roles = dict.fromkeys(parameters, others) | dict(roles) if cacheable else {}
        self.places = {name: place for place, name in enumerate(parameters)} if cacheable else {}
        self.arity = len(self.places)

    def result(self, args: tuple[Any, ...], kwargs: dict[str, Any], anew: Callable[..., New]) -> Any:
        """Return the result of a call; `anew` makes a call that is not cached, from `args` and `kwargs`."""
        try:
            request = self._key(args, kwargs)
        except (_NoKey, AttributeError):  # the latter of an array that only has an interface
            request = None
        if request is None:
            return anew(args, kwargs)[0]
        key, inputs, out = request
        cached = self.get(key)
        if cached is not None and cached.holds():
            return cached.result(inputs, out)
        effects = looks(), warnings()
        result, entry, arrays = anew(args, kwargs)
        if type(result) is Field:
            entry = _graph_of(result, inputs) if (looks(), warnings()) == effects else None
        elif len(arrays) != len(inputs) or not all(map(is_, arrays, inputs)):  # an argument was converted to an array
            entry = None
        if entry is not None:
            self[key] = entry
        return result

    def calling(self, function: Function, anew: Callable[..., New]) -> Function:
        """Wrap `function`, so that calls go through this cache."""

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return self.result(args, kwargs, anew)

        return called  # type: ignore[return-value]

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any], Any]:
        """Return the key of a call, its arrays or fields, and `out=`."""
        count = len(args)
        if count > self.arity:
            raise _NoKey
        key: list[Any] = [chosen(), count]
        arrays: list[Any] = []
        out, last = None, -1
        for name, value in chain(zip(self.places, args), kwargs.items() if kwargs else ()):  # noqa: B905 - there may be fewer
            if name not in self.roles:
                raise _NoKey
            role, kind = self.roles[name], type(value)
            if kind in BY_VALUE:
                key += name, kind, value
            elif role is RESULT and (kind is np.ndarray or kind in LISTS or _is_array(kind)):
                out = value
                key += name, kind, value.dtype if kind is np.ndarray else getattr(value, "dtype", None)
            elif role is not RESULT and role is not CONSTANT and (kind is np.ndarray or _is_array(kind)):
                place = self.places[name]
                if place < last:  # the pipeline has them in the order of its parameters
                    raise _NoKey
                last = place
                arrays += (value,)
                key += name, kind, value.shape, value.dtype, _has_one_place(kind) or _place_of(value)
            elif role is DATA:
                arrays += (value,)
                key += name, *_facts(value, arrays)
            else:
                key += name, _constant(value, 0)
        return tuple(key), arrays, out


def _once_for_each_type(test: Callable[[type], bool]) -> Callable[[type], bool]:
    return lru_cache(maxsize=KINDS)(test)


@_once_for_each_type
def _has_one_place(kind: type) -> bool:
    """Return whether all arrays of a type are on the host, or all on devices."""
    return kind.__module__.partition(".")[0] in ONE_PLACE or not hasattr(kind, "__dlpack_device__")


def _place_of(array: Any) -> Any:
    """The key of the device that an array lies on."""
    return array.device if type(array).__module__ == "torch" and array.is_cuda else array.__dlpack_device__()


def _facts(field: Any, others: Sequence[Any]) -> tuple[Any, ...]:
    """The key of a field: the properties that a library function may use, and its position among equal arguments."""
    if not isinstance(field, Field) or field.node.dynamic or recording() is not None:
        raise _NoKey
    node, kind = field.node, field.type
    first = next(n for n, other in enumerate(others) if isinstance(other, Field) and other.node == node)
    return type(field), kind, kind.names, first, isinstance(node, Leaf) and (node.by_value, node.source.borrowed)


def _graph_of(result: Field, inputs: Sequence[Any]) -> CachedGraph | None:
    """The graph of a result that is computed from fields alone; None for any other."""
    fields = [each.node for each in inputs if isinstance(each, Field)]
    return cached_graph(result, fields) if 0 < len(fields) == len(inputs) else None


@_once_for_each_type
def _is_array(kind: type) -> bool:
    """Return whether arrays of a type have all attributes that a trace depends on."""
    tells = hasattr(kind, "__dlpack_device__") or hasattr(kind, "__cuda_array_interface__")
    return kind is np.ndarray or (tells and not issubclass(kind, (np.ndarray, FieldLike)))


def _constant(value: Any, depth: int) -> Any:
    """The key of a constant."""
    kind = type(value)
    if kind in BY_VALUE:
        return kind, value
    if kind in BY_TEXT:
        return kind, repr(value)
    if issubclass(kind, Parameter):  # whatever its value, which kernels take by its node
        return kind, value.node
    if kind in LISTS and depth < MOST_NESTED:
        return (kind, *(_constant(member, depth + 1) for member in value))
    if kind is np.ndarray and value.size <= MOST_NUMBERS and not value.dtype.hasobject:
        return kind, value.dtype, value.shape, value.tobytes()
    raise _NoKey


# --- functions of fields and numbers ---------------------------------------------------------------------------------------

_graphs: BoundedCache[Any, CachedGraph] = BoundedCache(MOST_CACHED)


def cached_call(name: str, operands: Sequence[Any], make: Callable[..., Field]) -> Field:
    """Return `make(name, *operands)`, cached by the types of fields and the values of numbers."""
    with HostSpan("record"):
        key = _key(name, operands)
        if key is None:
            return make(name, *operands)
        nodes = [operand.node if isinstance(operand, Field) else None for operand in operands]
        cached: CachedGraph | None = _graphs.get(key)
        if cached is not None:
            return cached.of(nodes)
        result = make(name, *operands)
        graph = cached_graph(result, nodes)
        if graph is not None:
            _graphs[key] = graph
        return result


def _key(name: str, operands: Sequence[Any]) -> Any:
    """Return the cache key; None if an operand has none, and in kernels, which observe reads of fields."""
    if recording() is not None:
        return None
    parts: list[Any] = [name, chosen()]
    nodes: list[Node] = []
    for operand in operands:
        if isinstance(operand, Field):
            node, kind = operand.node, operand.type
            nodes.append(node)
            parts += kind, kind.names, isinstance(node, Leaf) and node.by_value, nodes.index(node)
        elif isinstance(operand, (int, float, np.number)):
            parts += type(operand), operand if type(operand) is int else repr(operand)  # repr() keeps the sign of zeros
        else:
            return None
    return tuple(parts)
