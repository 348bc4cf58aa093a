"""`gp.iterate`: a function of fields applied to its own results, on the device, as one node of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpuop.base.errors import SemanticError, described, naming_arguments
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.callables import unbound
from gpuop.engine.repeated import Settings, computed, repeat
from gpuop.ir.bfloat16 import BFLOAT16
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import BY_NUMPY, is_integer
from gpuop.ir.values import Leaf, Node


@naming_arguments
def iterate(
    function: Callable[..., Any],
    u: Any,
    *,
    times: int | None = None,
    until: Callable[..., Any] | None = None,
    every: int = 1,
    checkpoints: int | None = None,
) -> Any:
    """Apply a function to a field, to the result, and so on: `function(function(… function(u)))`.

        u = gp.iterate(sweep, u, times=100)
        u, v = gp.iterate(react, (u, v), until=lambda u, v: abs(u - v).max() < 1e-3, every=10, times=10_000)

    It is lazy like every operator, outside of graphs, in pipelines and in graphs: the function is called once, its
    iterations are planned once, and the values stay on the device. Captured values are computed before the first iteration.
    If a schedule can keep the states between them, two iterations are one launch (`explain()`: "two at a time").

    Args:
        function: of as many fields as there are in `u`; returns as many, of the same types.
        u: a Field, or a tuple or list of them.
        times: the number of iterations; with `until`, the most.
        until: of the same fields; a 0D field of bool, which ends the iteration when it is true. Only that number goes to the
            host, which waits for it.
        every: the number of iterations before each test of the condition.
        checkpoints: for gradients, the most values of `u` in memory at a time: reverse mode computes the others again from those,
            in the order that takes the fewest iterations (of 1,000 with 20 each runs 1.7 times more). By default all of them if
            they take less than a tenth of the device's memory, else √iterations. Results are the same bits.

    Returns:
        A Field, or a tuple where `u` is one or a list.

    Raises:
        SemanticError: neither `times` nor `until`, or wrong values of these; results of the function whose types are not
            those of `u`; a condition that is no 0D bool.
    """
    _check(function, u, times, until, every, checkpoints)
    return _call(function, u, until, Settings(times, every, checkpoints))


def _call(function: Callable[..., Any], u: Any, until: Callable[..., Any] | None, settings: Settings) -> Any:
    several = isinstance(u, (tuple, list))
    fields: tuple[Field, ...] = tuple(u) if several else (u,)
    if settings.times == 0:
        return fields if several else u
    name = getattr(function, "__name__", "iterate").strip("<>")
    states = tuple(Field.of(Leaf(f.node.type, name=f.name), kind=f.type) for f in fields)
    nexts = _nexts(name, function, states, several)
    ends = _condition(name, until, states) if until is not None else []
    results = repeat(name, states, nexts, ends, settings, fields)
    return results if several else results[0]


# --- what is given --------------------------------------------------------------------------------------------------


def _check(function: Any, u: Any, times: Any, until: Any, every: Any, checkpoints: Any) -> None:
    if not callable(function):
        raise SemanticError(f"iterate wants a function of fields, not {described(function)}")
    fields = u if isinstance(u, (tuple, list)) else (u,)
    if not fields or not all(isinstance(f, Field) for f in fields):
        what = next((described(f) for f in fields if not isinstance(f, Field)), "an empty tuple")
        raise SemanticError(f"iterate starts from a Field or a tuple of Fields, not from {what}")
    if times is None and until is None:
        raise SemanticError("iterate never ends: give `times=`, or a condition `until=`")
    if times is not None and (not is_integer(times) or times < 0):
        raise SemanticError(f"`times=` is the number of iterations, an integer that is not negative, not {times!r}")
    if not is_integer(every) or every < 1:
        raise SemanticError(f"`every=` is a number of iterations, an integer of 1 or more, not {every!r}")
    if checkpoints is not None and (not is_integer(checkpoints) or checkpoints < 1):
        raise SemanticError(
            f"`checkpoints=` is the number of values that reverse mode keeps, an integer of 1 or more, not {checkpoints!r}"
        )
    if until is not None and not callable(until):
        raise SemanticError(f"`until=` is a function of the fields, not {described(until)}: `until=lambda u: …`")


def _of_states(function: Callable[..., Any], states: Sequence[Field], what: str) -> Any:
    """Call a function with the states; SemanticError if it does not take so many arguments."""
    if wrong := unbound(function, len(states)):
        count = "1 field" if len(states) == 1 else f"{len(states)} fields"
        raise SemanticError(f"iterate: {what}: {wrong}; it gets {count}, as many as iterate starts from")
    return function(*states)


def _nexts(name: str, function: Callable[..., Any], states: Sequence[Field], several: bool) -> list[Node]:
    """The next values of the states."""
    returned = _of_states(function, states, f"`{name}`")
    if isinstance(returned, (tuple, list)) != several or (several and len(returned) != len(states)):
        actual = f"a tuple of {len(returned)}" if isinstance(returned, (tuple, list)) else described(returned)
        expected = f"a tuple of {len(states)}" if several else "a Field"
        raise SemanticError(
            f"iterate: `{name}` returns {actual}, and gets {expected}; one iteration gives what the next one takes"
        )
    nexts = []
    for state, following in zip(states, returned if several else (returned,), strict=True):
        if not isinstance(following, Field):
            raise SemanticError(f"iterate: `{name}` returns {described(following)}; it returns Fields")
        if following.type != state.type:
            raise SemanticError(
                f"iterate: `{name}` returns a {following.type} field for a {state.type} field; "
                f"one iteration gives what the next one takes{_remedy(state, following)}"
            )
        nexts.append(following.node if any(following.node is s.node for s in states) else computed(following))
    return nexts


def _remedy(state: Field, following: Field) -> str:
    """The conversion to the state's dtype, for a message; empty if the types differ otherwise."""
    if following.type.replace(dtype=state.dtype) != state.type or following.dtype in COMPLEX_DTYPES:
        return ""
    kernels = BY_NUMPY.get(state.dtype)
    inside = f", or `_convert_{kernels.c}(…)` in the operator" if kernels and kernels.kind in "iuf" else ""
    if state.dtype == BFLOAT16:
        inside = ', or `@gp.operator(outputs="same")`'
    return f': write `.astype("{state.dtype}")`{inside}'


def _condition(name: str, until: Callable[..., Any], states: Sequence[Field]) -> list[Node]:
    ends = _of_states(until, states, f"the condition of `{name}`")
    if not isinstance(ends, Field) or ends.type.array_shape or ends.dtype != "bool":
        what = f"a {ends.type} field" if isinstance(ends, Field) else described(ends)
        raise SemanticError(
            f"iterate: the condition of `{name}` is {what}; it is a 0D field of bool, as `abs(u).max() < 1e-3`"
        )
    return [computed(ends)]
