"""`@gp.operator`, and tuned operators: recorded once per choice of parameters, run with the fastest one."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from gpuop.base.errors import SemanticError, UnsupportedError, described, naming_arguments
from gpuop.dsl.guards.function_wrapper import Chosen, check_function
from gpuop.dsl.operators.operator import MOST_BODIES, Operator
from gpuop.dsl.operators.variants import Recording, together
from gpuop.dsl.recorder.precisions import checked
from gpuop.ir.types import FieldType
from gpuop.ir.values import Node
from gpuop.ir.variants import Parameters, Variant, shown

MOST_VARIANTS = 1024
Space = tuple[dict[str, Any], ...]


class TunedOperator(Operator):
    """An operator with parameters that a device chooses; recorded once for each choice, a variant.

    Args:
        space: the choices.
    """

    recorded_by = (*Operator.recorded_by, "space")

    def __init__(
        self,
        function: Callable[..., Any],
        outputs: Any,
        name: str | None,
        default: Any,
        precision: str | None,
        inout: Any,
        inputs: Any,
        dynamic: Chosen,
        space: Space,
    ) -> None:
        super().__init__(function, outputs, name, default, precision, inout, inputs, dynamic)
        self.space = space
        self.memo.most = MOST_BODIES * len(space)
        unknown = [parameter for parameter in space[0] if not self._takes(parameter)]
        if unknown:
            raise SemanticError(f"operator `{self.name}` has no argument {unknown[0]}, which `tune=` has choices for")
        parameters = [p for name, p in self.signature.parameters.items() if name not in space[0]]
        self.__signature__ = self.signature.replace(parameters=parameters)  # signature of calls

    def _takes(self, parameter: str) -> bool:
        kinds = [p.kind for p in self.signature.parameters.values()]
        positional = inspect.Parameter.POSITIONAL_ONLY
        entry = self.signature.parameters.get(parameter)
        return entry.kind is not positional if entry is not None else inspect.Parameter.VAR_KEYWORD in kinds

    def settings(self) -> tuple[Any, ...]:
        return (*super().settings(), self.space)

    def _results(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recording:
        passed = {name: value for name, value in self._passed(args, kwargs).items() if name in self.space[0]}
        if len(passed) == len(self.space[0]):
            return super()._results(args, kwargs)
        fitting = [v for v in self.space if all(v[name] == value for name, value in passed.items())]
        if not fitting:
            choice = shown(tuple(passed.items()))
            raise SemanticError(f"`tune=` of operator `{self.name}` has no choice with {choice}")
        return self._all(args, kwargs, fitting)

    def _passed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments that a call passes itself."""
        try:
            return self.signature.bind_partial(*self.receiver, *self.first, *args, **self.preset | kwargs).arguments
        except TypeError as wrong:
            raise UnsupportedError(f"operator `{self.name}`: {wrong}") from None

    def _all(self, args: tuple[Any, ...], kwargs: dict[str, Any], space: Iterable[dict[str, Any]]) -> Recording:
        """Every variant that can be recorded.

        Raises:
            UnsupportedError: none can; it is that of the last one.
        """
        recorded: list[tuple[Variant, tuple[Node, ...]]] = []
        error, kinds = None, tuple[FieldType, ...]()
        for choice in space:
            try:
                recording = super()._results(args, kwargs | choice)
            except UnsupportedError as unsupported:
                error = unsupported
                continue
            recorded += recording.variants(tuple(choice.items()))
            kinds = kinds or recording.kinds
        if not recorded:
            assert error is not None
            raise error
        return together(recorded, kinds)

    def _count(self, name: str, value: Any, constant: Any) -> None:
        if name not in self.space[0]:
            super()._count(name, value, constant)


def space_of(tune: Any) -> Space:
    """Choices of `tune=`: all combinations of the values of a dict, or the dicts of an iterable.

    Raises:
        SemanticError: it is neither, has no choices or too many, or these are of other parameters than the first.
    """
    if isinstance(tune, Mapping):
        values = [list(v) if isinstance(v, Iterable) and not isinstance(v, str) else None for v in tune.values()]
        wrong = next((name for name, v in zip(tune, values, strict=True) if not v), None)
        if wrong is not None:
            raise SemanticError(
                f"`tune=` has values for each parameter, as `(8, 16, 32)`, and for {wrong} {tune[wrong]!r}"
            )
        combined = itertools.product(*(v for v in values if v is not None))
        space = [dict(zip(tune, choice, strict=True)) for choice in itertools.islice(combined, MOST_VARIANTS + 1)]
    elif isinstance(tune, Iterable) and not isinstance(tune, str):
        space = [dict(v) if isinstance(v, Mapping) else v for v in itertools.islice(tune, MOST_VARIANTS + 1)]
    else:
        raise SemanticError(
            f'`tune=` takes a dict such as {{"block": (8, 16)}}, or several dicts, not {described(tune)}'
        )
    return _checked(space)


def _checked(space: list[Any]) -> Space:
    if not space or space[0] == {}:
        raise SemanticError("`tune=` has no choices; leave it out")
    if len(space) > MOST_VARIANTS:
        raise SemanticError(f"`tune=` has more than {MOST_VARIANTS} choices, and each is recorded")
    for choice in space:
        if not isinstance(choice, dict) or not all(isinstance(name, str) for name in choice):
            raise SemanticError(f"each choice of `tune=` is a dict of parameters by name, not {choice!r}")
        if choice.keys() != space[0].keys():
            names = " and ".join(", ".join(c) or "nothing" for c in (space[0], choice))
            raise SemanticError(f"all choices of `tune=` are of the same parameters, not of {names}")
    keys: list[Parameters] = [tuple(sorted(choice.items())) for choice in space]
    if len({shown(key) for key in keys}) < len(keys):
        raise SemanticError("`tune=` has one choice twice")
    return tuple({name: choice[name] for name in space[0]} for choice in space)


@overload
def operator(function: Callable[..., Any], /) -> Operator: ...
@overload
def operator(
    *,
    outputs: Any = None,
    name: str | None = None,
    default: Any = None,
    precision: str | None = None,
    tune: Any = None,
    inout: Any = (),
    inputs: Any = None,
    dynamic: Chosen = False,
) -> Callable[[Callable[..., Any]], Operator]: ...
@naming_arguments
def operator(
    function: Callable[..., Any] | None = None,
    /,
    *,
    outputs: Any = None,
    name: str | None = None,
    default: Any = None,
    precision: str | None = None,
    tune: Any = None,
    inout: Any = (),
    inputs: Any = None,
    dynamic: Chosen = False,
) -> Any:
    """Make an operator of a function that records a kernel body: `@gp.operator`, or `@gp.operator(outputs=…)`.

    Args:
        function: its arguments are Fields, and constants: numbers, text, Shapes, FieldTypes, small arrays, lists and tuples
            of these. It returns the values of this thread's own point (a tuple for several outputs), or writes outputs.
        outputs: FieldTypes or Dims, "same" (the first Field's type), or a function of arguments; else the values' types.
        name: of the operator in generated text and in plans.
        default: what an output holds where nothing is written; a number, or a tuple with one for each output.
        precision: "exact", "contract" or "fast", as of `gp.precision`, whatever stands around a call.
        tune: choices of some of the function's arguments, for each of which it is recorded: a dict such as `{"block": (8, 16)}`,
            of which all combinations are tried, or an iterable of dicts. A call leaves them out, and the fastest choice runs that
            was measured (`gp.tuning`), else the first that can; `gp.UnsupportedError` in the body skips one.
        inout: the names of arguments (a tuple, or one) that the body reads and writes anywhere. They are the outputs, and there
            are no others; the caller's fields stay. What one thread writes and another touches needs `_syncThreadsGlobal()`.
        inputs: Dims or a FieldType of arguments by name, which get names they lack; those of one name are equally long, or 1.
        dynamic: True, or names of arguments: their extents are arguments of kernels, which are compiled once (`explain`).

    Returns:
        An Operator: called with Fields it gives a lazy Field, or a tuple of them if there are several outputs.

    Raises:
        SemanticError: wrong options; when called, for arguments not as declared, and for the body, at its line.
        UnsupportedError: when called, what the body raised for the last variant, where it did so for each.
    """
    settings = outputs, name, default, None if precision is None else checked(precision), inout, inputs, dynamic
    options = settings, None if tune is None else space_of(tune)
    return operator_of(function, *options) if function is not None else lambda f: operator_of(f, *options)


def operator_of(function: Any, settings: tuple[Any, Any, Any, Any, Any, Any, Any], space: Space | None) -> Operator:
    check_function("an operator", function)
    return Operator(function, *settings) if space is None else TunedOperator(function, *settings, space)
