"""Rules of derivatives that users give an operator or a pipeline: `defjvp` and `defvjp`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from gpuop.base.errors import SemanticError, described
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.dsl.operators.tokens import Tokenized

Function = Callable[..., Any]
Rule = TypeVar("Rule", bound=Function)


@dataclass(frozen=True)
class OwnRules:
    """The rules of one operator: `jvp` of primals and tangents, `forward` and `backward` of arguments and cotangents."""

    jvp: Function | None = None
    forward: Function | None = None
    backward: Function | None = None


class WithRules(Tokenized):
    """A wrapper whose derivatives users may define."""

    recorded_by: ClassVar[tuple[str, ...]] = (*Tokenized.recorded_by, "own_rules")
    users: ClassVar[tuple[str, ...]] = (*Tokenized.users, "defjvp", "defvjp")
    own_rules: OwnRules | None = None

    def defjvp(self, jvp: Rule) -> Rule:
        """Define the derivatives by tangents; a decorator. Reverse mode transposes the rule.

            @length.defjvp
            def length_jvp(primals, tangents):
                (v,), (t,) = primals, tangents
                size = length(v)
                return size, dot(v, t) / size

        Args:
            jvp: a function of two tuples, the arguments of a call, and their tangents: a Field for each Field of floating or
                complex numbers, of zeros where nothing changes, and None for others. It returns the result and its tangent, which
                depends on the tangents linearly; tuples of several. The result is not used, so it may be None.

        Returns:
            The function.

        Raises:
            SemanticError: it is no function.
        """
        _check(self.name, "defjvp", jvp)
        self.own_rules = OwnRules(jvp=jvp)
        return jvp

    def defvjp(self, forward: Rule, backward: Function | None = None) -> Rule:
        """Define the derivatives by cotangents; with one function a decorator. Forward mode then needs `defjvp`.

            @length.defvjp
            def length_vjp(args, result, cotangent):
                return (cotangent / result * args[0],)

        Args:
            forward: with `backward`, a function of the arguments that returns the result and what `backward` needs; without, a
                function of three: the tuple of arguments, the result and its cotangent; tuples of several.
            backward: a function of what `forward` needs to pass on, and of a cotangent for each result.

        Returns:
            The first function. The last one returns a tuple with the gradient by each argument, None for what has none.

        Raises:
            SemanticError: it is no function.
        """
        for function in (forward, backward):
            if function is not None:
                _check(self.name, "defvjp", function)
        self.own_rules = OwnRules(forward=forward, backward=backward)
        return forward

    def _ruled(self, results: Any, bound: inspect.BoundArguments, fresh: bool = True) -> Any:
        """The results of a call, with the rules of this operator.

        Args:
            fresh: nothing else refers to the values that were returned.
        """
        if self.own_rules is None:
            return results
        several = isinstance(results, tuple)
        call = RuledCall(self.name, self.own_rules, bound, results if several else (results,), fresh)
        entered = tuple(call.entered(number) for number in range(len(call.results)))
        return entered if several else entered[0]


def _check(name: str, word: str, function: Any) -> None:
    if not callable(function):
        raise SemanticError(f"`{name}.{word}` takes a function, not {described(function)}")


class RuledCall:
    """A call of an operator that has rules of its own."""

    def __init__(
        self, name: str, rules: OwnRules, bound: inspect.BoundArguments, results: tuple[Any, ...], fresh: bool
    ) -> None:
        self.name, self.rules = name, rules
        self.args = list(bound.args)
        if bound.kwargs:
            raise SemanticError(
                f"`{name}` has a rule of derivatives, so its arguments are given by position, not by name alone"
            )
        for arg in self.args:
            if isinstance(arg, Placeholder) or (isinstance(arg, (tuple, list, dict)) and arg):
                raise SemanticError(
                    f"`{name}` has a rule of derivatives, so it takes Fields and constants one by one, not {described(arg)}; make "
                    "Fields of arrays, and pass those of a tuple as `*fields`"
                )
        self.places = [n for n, arg in enumerate(self.args) if _is_smooth(arg)]
        self.results = (
            results if fresh else tuple(services.algebra["positive"](f) if _is_smooth(f) else f for f in results)
        )

    def entered(self, number: int) -> Any:
        """One of the results, with its rule."""
        result = self.results[number]
        if not _is_smooth(result):
            return result
        inputs = [self.args[n] for n in self.places]
        if self.rules.jvp is None:
            backward_only = "its rule is one of cotangents; give it one of tangents with `defjvp`, or use `gp.vjp`"
            return with_rule(result, self.name, inputs, partial(self.pulled, number), backward_only)
        return with_rule(result, self.name, inputs, None, partial(self.pushed, number))

    def pushed(
        self, number: int, inputs: Sequence[Field], value: Field, tangents: Sequence[Field | None]
    ) -> Field | None:
        """The tangent of a result by the user's rule."""
        assert self.rules.jvp is not None
        full = [_zeros(x) if t is None else t for x, t in zip(inputs, tangents, strict=True)]
        primals = self.with_fields(self.args, inputs)
        returned = self.rules.jvp(primals, self.with_fields([None] * len(primals), full))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise SemanticError(
                f"the rule of `{self.name}` returns {described(returned)}; it returns the result and its tangent, `out, tangent`"
            )
        several = isinstance(returned[1], (tuple, list))
        return self.checked("tangent of its result", returned[1][number] if several else returned[1], value)

    def pulled(self, number: int, inputs: Sequence[Field], value: Field, cotangent: Field) -> Sequence[Field | None]:
        """The cotangents of the arguments by the user's rule."""
        assert self.rules.forward is not None
        args = self.with_fields(self.args, inputs)
        cotangents = tuple(cotangent if n == number else _zeros(f) for n, f in enumerate(self.results))
        if self.rules.backward is not None:
            _, rest = self.rules.forward(*args)
            returned = self.rules.backward(rest, *cotangents)
        else:
            outs = tuple(value if n == number else f for n, f in enumerate(self.results))
            one = len(outs) == 1
            returned = self.rules.forward(args, outs[0] if one else outs, cotangents[0] if one else cotangents)
        if not isinstance(returned, (tuple, list)) or len(returned) != len(args):
            raise SemanticError(
                f"the rule of `{self.name}` returns {described(returned)}; it returns a tuple with a gradient by each of "
                f"{len(args)} arguments, None for what has none"
            )
        pairs = zip(self.places, inputs, strict=True)
        return [self.checked(f"gradient by argument {n}", returned[n], field) for n, field in pairs]

    def with_fields(self, values: Sequence[Any], fields: Sequence[Field]) -> tuple[Any, ...]:
        """Values in the order of the arguments, with other Fields at the places of those that are differentiated by."""
        moved = list(values)
        for place, field in zip(self.places, fields, strict=True):
            moved[place] = field
        return tuple(moved)

    def checked(self, what: str, field: Any, like: Field) -> Field | None:
        if field is None:
            return None
        if not isinstance(field, Field) or field.node.type != like.node.type:
            shown = f"a {field.type} field" if isinstance(field, Field) else described(field)
            raise SemanticError(
                f"the rule of `{self.name}` gives as {what} {shown}; it is a {like.type} field, or None for 0"
            )
        return field


def _is_smooth(value: Any) -> bool:
    return isinstance(value, Field) and value.type.storage.kind == "f"


def _zeros(field: Field) -> Any:
    return services.array_functions["zeros_like"]("zeros_like", (field,), {})
