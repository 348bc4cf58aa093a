"""Parameters in the place of numbers that functions compute with in Python, such as the standard deviation of a filter.

With arrays a function takes the value of the call. A field follows its Parameters: all numbers of its kernels are arguments, and
are recorded anew, in a few milliseconds, when one of the Parameters has been set; no kernel is planned or compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import SemanticError, UnsupportedError, here, located
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.fields.sources import Adjustable, HostArray
from gpuop.dsl.recorder.precisions import choosing, chosen
from gpuop.engine.number_arguments import kernel_with_inputs, leaves_of, numbers_of
from gpuop.fusion.program import Program, program
from gpuop.ir.values import Call, Leaf, LeafSource, Node, Result

LISTS = (tuple, list)
Values = Mapping[int, Any]  # by the identity of a Parameter


def parameters_among(values: Iterable[Any]) -> Iterator[Parameter]:
    """The Parameters among values, and in lists of them."""
    for value in values:
        if type(value) is Parameter:
            yield value
        elif type(value) in LISTS:
            yield from parameters_among(value)


def with_values(value: Any, values: Values) -> Any:
    """Return a value with numbers in the place of Parameters."""
    if type(value) is Parameter:
        return values[id(value)]
    return type(value)(with_values(each, values) for each in value) if type(value) in LISTS else value


class FollowedParameters:
    """The values that a function gets in the place of Parameters.

    Args:
        name: the function.
        parameters: these.
    """

    def __init__(self, name: str, parameters: Collection[Parameter]) -> None:
        self.name, self.loc, self.precision = name, here(), chosen()
        self.sources: dict[int, Adjustable] = {id(each): each._source for each in parameters}
        self.parameters = parameters  # keeps their identities

    def values(self) -> tuple[Values, int]:
        """The values of now, and the number of changes before."""
        states = {key: source.read() for key, source in self.sources.items()}
        values = {key: array.item() if array.ndim == 0 else array for key, (array, _) in states.items()}
        return values, sum(version for _, version in states.values())

    def field(self, function: Callable[[Values], Any], inputs: Collection[Node]) -> Any:
        """The result of a function of the values, which follows them if it is a field that is computed from `inputs`."""
        values, version = self.values()
        result = function(values)
        if not isinstance(result, Field):
            return result
        following = _Following(self, function, frozenset(inputs), version, result)
        if not following.state[2]:
            raise UnsupportedError(
                f"{self.name}: the value of a Parameter decides here which kernels there are, as the size of a window does: give a "
                "number of Python's, and call the function again where another is wanted"
            )
        return Field.of(following.node, kind=result.type)


class _Following:
    """A field that follows Parameters."""

    def __init__(
        self,
        of: FollowedParameters,
        function: Callable[[Values], Field],
        inputs: frozenset[Node],
        version: int,
        result: Field,
    ) -> None:
        self.of, self.function, self.inputs = of, function, inputs
        self.state = self._state(version, result)  # the number of changes, the program, and its numbers
        self.form = _form(self.state[1], self._is_own)

    def _state(self, version: int, result: Field) -> tuple[int, Program, list[Leaf]]:
        what = program([result.node], self.inputs)
        own = [node for node in what.leaves.values() if isinstance(node, Leaf) and self._is_own(node)]
        return version, what, [*own, *leaves_of(what)]

    def _recorded(self) -> tuple[int, Program, list[Leaf]]:
        values, version = self.of.values()
        with choosing(self.of.precision):
            return self._state(version, self.function(values))

    def _is_own(self, node: Node) -> bool:
        return node not in self.inputs and isinstance(node, Leaf) and isinstance(node.source, HostArray)

    @property
    def version(self) -> int:
        return sum(source.version for source in self.of.sources.values())

    def number(self, position: int) -> tuple[NDArray[Any], int]:
        """The numbers at a position, and the number of changes before.

        Raises:
            SemanticError: the function makes other kernels of the values.
        """
        version, what, leaves = self.state
        if version != self.version:
            version, what, leaves = self.state = self._recorded()
        if _form(what, self._is_own) != self.form:
            self._refuse()
        array, _ = leaves[position].source.read()
        return array, version

    def _refuse(self) -> NoReturn:
        values = ", ".join(str(np.asarray(value).tolist()) for value in self.of.values()[0].values())
        raise SemanticError(
            located(
                f"{self.of.name}: a Parameter was set to {values}, whose result has other kernels than that of the first value, "
                "as a window of another size has: fix what changes them, such as `radius=`, or call the function again",
                self.of.loc,
            )
        )

    @property
    def node(self) -> Node:
        """The value of the field: the calls of the program, with numbers that follow."""
        _, what, leaves = self.state
        follow = iter([self._leaf(n, leaf) for n, leaf in enumerate(leaves)])
        nodes = {v: next(follow) if self._is_own(node) else node for v, node in what.leaves.items()}
        for op in what.ops:
            kernel, identity, count = kernel_with_inputs(op)
            inputs = (*(nodes[v] for v in op.inputs), *(next(follow) for _ in range(count)))
            call = Call(kernel, identity, inputs, op.loc)
            nodes |= {v: Result(call, k) for k, v in enumerate(op.outputs)}
        return nodes[what.results[0]]

    def _leaf(self, position: int, leaf: Leaf) -> Node:
        return Leaf(leaf.type, FollowedNumbers(self, position), leaf.by_value, "numbers")


class FollowedNumbers(LeafSource):
    """Numbers that a function computes from Parameters."""

    role: ClassVar[str] = "parameter"

    def __init__(self, following: _Following, position: int) -> None:
        self.following, self.position = following, position

    @property
    def version(self) -> int:
        return self.following.version

    def read(self) -> tuple[NDArray[Any], int]:
        return self.following.number(self.position)


def _form(what: Program, is_own: Callable[[Node], bool]) -> Any:
    """Return the parts of a program that its numbers do not change."""
    leaves = tuple((v, n.type, None if is_own(n) else n) for v, n in what.leaves.items())
    ops = tuple((numbers.text if (numbers := numbers_of(op)) else op.identity, op.inputs) for op in what.ops)
    return leaves, ops, what.results
