"""A program for windows of its grid: the same operators on fields with the extents of a window."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from gpuop.base.records import dataclass
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.program import Op, Program
from gpuop.fusion.windows.halo_inference import ProgramHalo
from gpuop.fusion.windows.kernel import NUMBER, Name, WindowExtents, window_kernel
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.text import identity
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node


@dataclass(frozen=True, eq=False)
class WindowedProgram:
    """A program on windows.

    Attributes:
        numbers: the leaves that are numbers of the window.
    """

    program: Program
    numbers: Mapping[Name, int]


def window_program(what: Program, halos: ProgramHalo, extents: WindowExtents) -> WindowedProgram:
    """Make the program of a window."""
    return _Windowing(what, halos, extents).result()


class _Windowing:
    def __init__(self, what: Program, halos: ProgramHalo, extents: WindowExtents) -> None:
        self.what, self.halos, self.extents = what, halos, extents
        self.numbers: dict[Name, int] = {}
        self.next = max(what.types, default=-1) + 1

    def result(self) -> WindowedProgram:
        what, cut = self.what, self.halos.cut
        changed = cut | self.halos.parts
        ops = tuple(op if changed.isdisjoint(op.outputs) else self._op(op) for op in what.ops)
        types = {
            v: kind.replace(field_shape=self.extents.window) if v in cut else kind for v, kind in what.types.items()
        }
        types |= dict.fromkeys(self.numbers.values(), NUMBER)
        leaves: dict[int, Node] = {v: _retyped(node, types[v]) if v in cut else node for v, node in what.leaves.items()}
        leaves |= {v: Leaf(NUMBER, by_value=True, name=f"{what}{axis}") for (what, axis), v in self.numbers.items()}
        keys = tuple((i, n.type, isinstance(n, Leaf) and n.by_value) for i, n in leaves.items())
        key = ("window", keys, tuple((op.identity, op.inputs) for op in ops), what.results, what.dynamic)
        return WindowedProgram(replace(what, leaves=leaves, ops=ops, types=types, key=key, cycle=None), self.numbers)

    def _leaf(self, name: Name) -> int:
        """The leaf of a number of the window."""
        if name not in self.numbers:
            self.numbers[name] = self.next
            self.next += 1
        return self.numbers[name]

    def _op(self, op: Op) -> Op:
        if isinstance(op.kernel, Iteration):
            return self._turns(op, op.kernel)
        assert isinstance(op.kernel, Kernel)
        cut = {p for v, p in zip(op.inputs, op.kernel.inputs, strict=True) if v in self.halos.cut}
        window = window_kernel(op.kernel, self.extents, cut, self.halos.of_ops[op.number])
        inputs = (*op.inputs, *map(self._leaf, window.numbers))
        return replace(op, kernel=window.kernel, identity=identity(window.kernel), inputs=inputs)

    def _turns(self, op: Op, kernel: Iteration) -> Op:
        """An iteration on a window, with the window's numbers as inputs besides."""
        window = window_program(kernel.turn.program, self.halos.inner[op.number], self.extents)
        names = tuple(window.numbers)
        leaves = kernel.turn.positions | {window.numbers[name]: len(op.inputs) + n for n, name in enumerate(names)}
        params = [self._param(p) if v in self.halos.cut else p for v, p in zip(op.inputs, kernel.inputs, strict=True)]
        params += [FieldParam(f"{what}{axis}", NUMBER, by_value=True) for what, axis in names]
        turns = replace(
            kernel,
            inputs=tuple(params),
            outputs=tuple(Output(self._param(o.param)) for o in kernel.outputs),
            turn=Part(window.program, leaves),
        )
        name = hashlib.sha256(repr((op.identity, window.program.key)).encode()).hexdigest()
        return replace(op, kernel=turns, identity=name, inputs=(*op.inputs, *map(self._leaf, names)))

    def _param(self, param: FieldParam) -> FieldParam:
        return replace(param, type=param.type.replace(field_shape=self.extents.window))


def _retyped(node: Node, kind: FieldType) -> Node:
    """A node of another type, for a value that comes in windows; a result that an iteration takes becomes a leaf."""
    return replace(node, type=kind) if isinstance(node, Leaf) else Leaf(kind)
