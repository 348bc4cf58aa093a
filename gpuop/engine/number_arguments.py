"""Programs that differ in numbers alone: from the second one on, the numbers that differ are arguments of kernels.

The first program keeps its numbers in its text, which is the fastest. Of a second one the numbers that are others become
arguments; a third one that has no others besides needs no kernel of its own. The bits are those of numbers in the text
(`kernel_numbers.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.base.config import config
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.sources import HostArray
from gpuop.fusion.program import KEPT, Op, Program
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.kernel_numbers import KernelNumbers, NumberInput
from gpuop.ir.nodes import Array
from gpuop.ir.values import Leaf

_numbers: BoundedCache[str, KernelNumbers | None] = BoundedCache(KEPT)  # by the identity of kernels
_kernels: BoundedCache[str, Kernel] = BoundedCache(KEPT)  # with arguments, by identity


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Of each operator of the first program of a form its numbers, and the positions of those that are arguments since."""

    first: tuple[tuple[Any, ...], ...]
    arguments: tuple[frozenset[int], ...]


class NumberArguments:
    """Programs that were seen, by form.

    Args:
        most: how many forms are known.
    """

    def __init__(self, most: int) -> None:
        self._forms: BoundedCache[Any, _Numbered] = BoundedCache(most)

    def of(self, what: Program) -> Program:
        """The program, with arguments in the place of numbers that have changed since the first one of its form."""
        if what.cycle is not None or config.specialize == "1":
            return what
        each = [numbers_of(op) for op in what.ops]
        key = _form(what, each)
        values = tuple(numbers.values if numbers else () for numbers in each)
        entry = self._forms.get(key)
        if entry is None or values == entry.first:
            self._forms[key] = entry or _Numbered(values, (frozenset(),) * len(values))
            return what
        arguments = [
            before | {n for n, value in enumerate(own) if value != first[n]}
            for before, own, first in zip(entry.arguments, values, entry.first, strict=True)
        ]
        positions = [n.with_their_like(c) if n and c else [] for n, c in zip(each, arguments, strict=True)]
        self._forms[key] = replace(entry, arguments=tuple(map(frozenset, positions)))
        return _with_arguments(what, each, positions)


def arguments_among(text: Program, what: Program) -> str:
    """Return a sentence on the numbers of a program that `NumberArguments.of` made arguments; empty if there are none."""
    counts = [
        (new.kernel.name, sum(param.type.planes for param in new.kernel.inputs[len(old.kernel.inputs) :]))
        for old, new in zip(text.ops, what.ops, strict=True)
        if new is not old
    ]
    listed = ", ".join(f"{count} of `{name}`" for name, count in counts)
    return f"numbers that are arguments, as other calls had others: {listed}" if listed else ""


def kernel_with_inputs(op: Op) -> tuple[Launchable, str, int]:
    """Return an operator's kernel with inputs in the place of all its numbers, its identity, and the count of these inputs."""
    numbers = numbers_of(op)
    if numbers is None:
        return op.kernel, op.identity, 0
    positions = range(len(numbers.numbers))
    identity, make = numbers.with_inputs(positions, tables=False)  # a Parameter changes them where they are
    return _kernels.find(identity, make), identity, len(numbers.inputs(positions))


def leaves_of(what: Program) -> list[Leaf]:
    """Return the leaves for the inputs of `kernel_with_inputs`, of all operators in order."""
    each = (numbers for op in what.ops if (numbers := numbers_of(op)) is not None)
    return [_leaf(item, numbers) for numbers in each for item in numbers.inputs(range(len(numbers.numbers)))]


def numbers_of(op: Op) -> KernelNumbers | None:
    """Return the numbers of an operator's kernel; None if none may be inputs."""
    if type(op.kernel) is not Kernel:
        return None
    kernel = op.kernel
    return _numbers.find(op.identity, lambda: KernelNumbers.of(kernel))


def _form(what: Program, each: list[KernelNumbers | None]) -> Any:
    """Return the parts that programs which differ in numbers alone have in common."""
    leaves = tuple((v, n.type, isinstance(n, Leaf) and n.by_value) for v, n in what.leaves.items())
    ops = tuple(
        (op.identity if numbers is None else numbers.text, op.inputs)
        for op, numbers in zip(what.ops, each, strict=True)
    )
    return leaves, ops, what.results, what.dynamic


def _with_arguments(what: Program, each: list[KernelNumbers | None], by_op: list[list[int]]) -> Program:
    """The program, of whose operators these numbers are arguments."""
    leaves, types = dict(what.leaves), dict(what.types)
    ops = []
    for op, numbers, positions in zip(what.ops, each, by_op, strict=True):
        if numbers is None or not positions:
            ops.append(op)
            continue
        identity, make = numbers.with_inputs(positions, tables=True)
        own = []
        for item in numbers.inputs(positions):
            value = max(types) + 1
            leaves[value], types[value] = _leaf(item, numbers), item.type
            own.append(value)
        ops.append(replace(op, kernel=_kernels.find(identity, make), identity=identity, inputs=(*op.inputs, *own)))
    leaf_key = tuple((v, n.type, isinstance(n, Leaf) and n.by_value) for v, n in leaves.items())
    key = (leaf_key, tuple((op.identity, op.inputs) for op in ops), what.results, what.dynamic)
    return replace(what, leaves=leaves, ops=tuple(ops), types=types, key=key)


def _leaf(item: NumberInput, numbers: KernelNumbers) -> Leaf:
    parts = (numbers.numbers[n] for n in item.positions)
    values = [value for part in parts for value in (part.values if isinstance(part, Array) else (part.value,))]
    array = np.array(values, item.type.array_dtype).reshape(item.type.array_shape)
    return Leaf(item.type, HostArray(array), item.by_value, name="numbers")
