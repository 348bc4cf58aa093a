"""Programs with open extents: numbers that Python has computed from extents become arguments of kernels.

Programs of two sizes say which numbers follow from extents: those that differ. Operators are compared one by one, by form. An
operator whose form no other size has had has its numbers in its text; sizes of the same kind are traced for it to be compared with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.sources import HostArray
from gpuop.fusion.program import Op, Program
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.ir.open_numbers import OpenNumbers
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.ir.variants import Variants

FORMS_KEPT = 512
LESS = (0, 1, 2)  # by how much numbers may be less than an extent: it, its last place, and the one before


class _OperatorForm:
    """Operators that differ in numbers and extents alone.

    Attributes:
        first: the values of the first one.
        groups: for each position a number, equal for values that were equal in all of them.
        differing: the positions of those values that differ.
        like: for each number the extents of fields that were by an equal difference greater in all of them, with that.
    """

    def __init__(self, numbers: OpenNumbers) -> None:
        self.first = numbers.values
        self.groups = [0] * len(self.first)
        self.differing = set[int]()
        pairs = ((n, at, numbers.less(n, at)) for n in range(len(numbers.numbers)) for at in numbers.field_extents)
        self.like: dict[int, dict[int, int]] = {}
        for n, at, less in pairs:
            if less in LESS:
                self.like.setdefault(n, {})[at] = less
        self.note(numbers)

    def note(self, numbers: OpenNumbers) -> None:
        """Note the values of another one."""
        values = numbers.values
        count = len(numbers.numbers)
        self.differing |= {n for n, (value, first) in enumerate(zip(values, self.first, strict=True)) if value != first}
        names: dict[Any, int] = {}
        for n, group in enumerate(self.groups):
            kind = numbers.numbers[n].type.dtype.name if n < count else n
            self.groups[n] = names.setdefault((group, values[n], kind), len(names))
        for n, each in list(self.like.items()):
            self.like[n] = {at: less for at, less in each.items() if numbers.less(n, at) == less}

    @property
    def follows(self) -> dict[int, tuple[int, int]]:
        """The numbers that are extents of fields or less, by position, with the positions of these and by how much."""
        nearest = ((n, min(each.items(), key=lambda at: (at[1], at[0]))) for n, each in self.like.items() if each)
        return dict(nearest)

    def arguments(self) -> list[list[int]]:
        """The positions of values that differ, those that need one argument together."""
        result: dict[int, list[int]] = {}
        for n in sorted(self.differing):
            result.setdefault(self.groups[n], []).append(n)
        return list(result.values())


class OpenPrograms:
    """The forms of the operators of programs with open extents, on one target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._forms: BoundedCache[Any, _OperatorForm] = BoundedCache(FORMS_KEPT)

    def note(self, what: Program) -> bool:
        """Note the numbers of a program; return whether an operator has a new form."""
        new = False
        for _, numbers, key in self._numbered(what):
            form = self._forms.get(key)
            if form is None:
                self._forms[key] = _OperatorForm(numbers)
                new = True
            else:
                form.note(numbers)
        return new

    def with_arguments(self, what: Program) -> Program:
        """The program for the target, in whose operators all numbers and extents that differ from size to size are arguments."""
        making = _Making(what)
        ops = {op.number: op for op in what.ops}
        for op, numbers, key in self._numbered(what):
            form = self._forms.get(key)
            ops[op.number] = making.opened(op, numbers, form) if form is not None and form.differing else op
        return making.program(list(ops.values()))

    def _numbered(self, what: Program) -> Iterator[tuple[Op, OpenNumbers, Any]]:
        """The operators of a program that are kernels on the target, with their numbers and the keys of their forms."""
        seen = Counter[Any]()
        for op in what.ops:
            settled = _settled(op, self.target)
            if isinstance(settled.kernel, Kernel):
                numbers = OpenNumbers.of(settled.kernel)
                seen[numbers.form] += 1
                yield settled, numbers, (numbers.form, seen[numbers.form])


def _settled(op: Op, target: Target) -> Op:
    """The operator with the only variant that suits a target, if there is one."""
    fitting = op.kernel.fitting(target) if isinstance(op.kernel, Variants) else ()
    if len(fitting) != 1:
        return op
    inputs = tuple(op.inputs[k] for k in fitting[0].inputs)
    return replace(op, kernel=fitting[0].kernel, identity=fitting[0].identity, inputs=inputs)


class _Making:
    """A program in the making, with further leaves."""

    def __init__(self, what: Program) -> None:
        self.what = what
        self.leaves: dict[int, Node] = dict(what.leaves)
        self.types: dict[int, FieldType] = dict(what.types)
        self.dynamic = set[int]()

    def opened(self, op: Op, numbers: OpenNumbers, form: _OperatorForm) -> Op:
        """The operator with arguments."""
        groups, follows = form.arguments(), form.follows
        new = numbers.opened(groups, follows)
        inputs = (*op.inputs, *map(self._leaf, new.params, new.values))
        extents = set(new.kernel.extents)
        values = zip((*new.kernel.inputs, *new.kernel.written), (*inputs, *op.outputs), strict=True)
        self.dynamic.update(v for param, v in values if not extents.isdisjoint(param.type.field_shape))
        identity = f"{op.identity} {groups} {sorted(follows.items())} {new.kernel.extents}"
        return replace(op, kernel=new.kernel, identity=identity, inputs=inputs)

    def _leaf(self, param: FieldParam, values: Sequence[Any]) -> int:
        array = np.array(values, param.type.array_dtype).reshape(param.type.array_shape)
        number = max(self.types) + 1
        self.leaves[number] = Leaf(param.type, HostArray(array), True, name="numbers")
        self.types[number] = param.type
        return number

    def program(self, ops: Sequence[Op]) -> Program:
        needed: Iterable[int] = {v for op in ops for v in op.inputs} | {*self.what.results}
        leaves = {v: node for v, node in self.leaves.items() if v in needed}
        leaf_key = tuple((v, n.type, isinstance(n, Leaf) and n.by_value) for v, n in leaves.items())
        dynamic = frozenset(self.dynamic)
        key = (leaf_key, tuple((op.identity, op.inputs) for op in ops), self.what.results, dynamic)
        return replace(self.what, leaves=leaves, ops=tuple(ops), types=self.types, key=key, dynamic=dynamic)
