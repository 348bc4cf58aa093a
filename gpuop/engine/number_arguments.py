"""Programs that differ in numbers alone: from the second one on, the numbers that differ are arguments of kernels.

The first program keeps its numbers in its text, which is the fastest. Of a second one the numbers that are others become
arguments; a third one that has no others besides needs no kernel of its own. The bits are those of numbers in the text
(`kernel_numbers.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.sources import HostArray
from gpuop.fusion.program import KEPT, Op, Program
from gpuop.ir.kernel import Kernel
from gpuop.ir.kernel_numbers import MOST_ARGUMENTS, KernelNumbers, pieces
from gpuop.ir.nodes import Const
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node

Place = tuple[int, int]  # the position of an operator in its program, and of a number in its kernel

_numbers: BoundedCache[str, KernelNumbers | None] = BoundedCache(KEPT)  # by the identity of kernels
_kernels: BoundedCache[str, Kernel] = BoundedCache(KEPT)  # with arguments, by identity


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The numbers of the first program of a form, and the places whose numbers have been others since."""

    first: tuple[tuple[str, ...], ...]
    changing: frozenset[Place] = frozenset()


class NumberArguments:
    """Programs that were seen, by form.

    Args:
        most: how many forms are known.
    """

    def __init__(self, most: int) -> None:
        self._forms: BoundedCache[Any, _Numbered] = BoundedCache(most)

    def of(self, what: Program) -> Program:
        """The program, with arguments in the place of numbers that have changed since the first one of its form."""
        each = [_numbers_of(op) for op in what.ops]
        key = _form(what, each)
        texts = tuple(tuple(number.text for number in numbers.numbers) if numbers else () for numbers in each)
        known = self._forms.get(key)
        if known is None or texts == known.first:
            self._forms[key] = known or _Numbered(texts)
            return what
        pairs = enumerate(zip(texts, known.first, strict=True))
        others = {(k, n) for k, (own, first) in pairs for n, text in enumerate(own) if text != first[n]}
        changing = known.changing | others
        by_op = [[n for n in range(len(own)) if (k, n) in changing] for k, own in enumerate(texts)]
        if max(map(len, by_op)) > MOST_ARGUMENTS:
            return what
        self._forms[key] = replace(known, changing=changing)
        return _with_arguments(what, each, by_op)


def _numbers_of(op: Op) -> KernelNumbers | None:
    if type(op.kernel) is not Kernel:
        return None
    kernel = op.kernel
    return _numbers.find(op.identity, lambda: KernelNumbers.of(kernel))


def _form(what: Program, each: list[KernelNumbers | None]) -> Any:
    """What programs that differ in numbers alone have in common."""
    leaves = tuple((v, n.type, isinstance(n, Leaf) and n.by_value) for v, n in what.leaves.items())
    ops = tuple(
        (op.identity if numbers is None else numbers.text, op.inputs)
        for op, numbers in zip(what.ops, each, strict=True)
    )
    return leaves, ops, what.wanted, what.dynamic


def _with_arguments(what: Program, each: list[KernelNumbers | None], by_op: list[list[int]]) -> Program:
    """The program, of whose operators these numbers are arguments."""
    leaves, types = dict(what.leaves), dict(what.types)
    ops = []
    for op, numbers, chosen in zip(what.ops, each, by_op, strict=True):
        if numbers is None or not chosen:
            ops.append(op)
            continue
        identity, make = numbers.with_arguments(chosen)
        own = []
        for kind, positions in pieces(numbers.numbers, chosen):
            value = max(types) + 1
            leaves[value], types[value] = _leaf(kind, [numbers.numbers[n] for n in positions]), kind
            own.append(value)
        ops.append(replace(op, kernel=_kernels.find(identity, make), identity=identity, inputs=(*op.inputs, *own)))
    leaf_key = tuple((v, n.type, isinstance(n, Leaf) and n.by_value) for v, n in leaves.items())
    key = (leaf_key, tuple((op.identity, op.inputs) for op in ops), what.wanted, what.dynamic)
    return replace(what, leaves=leaves, ops=tuple(ops), types=types, key=key)


def _leaf(kind: FieldType, numbers: list[Const]) -> Node:
    values = np.array([number.value for number in numbers], kind.array_dtype)
    return Leaf(kind, HostArray(values.reshape(kind.array_shape)), by_value=True, name="numbers")
