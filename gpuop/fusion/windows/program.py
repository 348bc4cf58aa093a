"""A program for windows of its grid: the same operators on fields with the extents of a window."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from gpuop.base.records import dataclass
from gpuop.fusion.iteration import Iteration, Part, Repeating, Reversal
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
        if isinstance(op.kernel, Repeating):
            return self._turns(op, op.kernel)
        assert isinstance(op.kernel, Kernel)
        cut = {p for v, p in zip(op.inputs, op.kernel.inputs, strict=True) if v in self.halos.cut}
        window = window_kernel(op.kernel, self.extents, cut, self.halos.of_ops[op.number])
        inputs = (*op.inputs, *map(self._leaf, window.numbers))
        return replace(op, kernel=window.kernel, identity=identity(window.kernel), inputs=inputs)

    def _turns(self, op: Op, kernel: Iteration | Reversal) -> Op:
        """An iteration, or the way back through one, on a window, with the window's numbers as inputs besides."""
        forward = kernel.forward if isinstance(kernel, Reversal) else kernel
        parts = [forward.turn, *([kernel.back] if isinstance(kernel, Reversal) else [])]
        windows = [
            window_program(part.program, halos, self.extents)
            for part, halos in zip(parts, self.halos.inner[op.number], strict=True)
        ]
        names = tuple(dict.fromkeys(name for window in windows for name in window.numbers))
        first = len(op.inputs) - len(kernel.outputs) if kernel is not forward else len(op.inputs)
        place = [*range(first), *range(first + len(names), len(op.inputs) + len(names))]  # what goes back stays last
        inner = [
            Part(
                window.program,
                {leaf: place[position] for leaf, position in part.positions.items()}
                | {leaf: first + names.index(name) for name, leaf in window.numbers.items()},
            )
            for part, window in zip(parts, windows, strict=True)
        ]
        params = [self._param(p) if v in self.halos.cut else p for v, p in zip(op.inputs, kernel.inputs, strict=True)]
        numbers = [FieldParam(f"{what}{axis}", NUMBER, by_value=True) for what, axis in names]
        inputs = (*params[:first], *numbers, *params[first:])
        count = len(forward.inputs) if kernel is not forward else len(inputs)
        turns = replace(
            forward,
            inputs=inputs[:count],
            outputs=self._outputs(forward),
            turn=inner[0],
        )
        new: Iteration | Reversal = turns
        if isinstance(kernel, Reversal):
            new = replace(kernel, inputs=inputs, outputs=self._outputs(kernel), forward=turns, back=inner[1])
        keys = [window.program.key for window in windows]
        name = hashlib.sha256(repr((op.identity, keys)).encode()).hexdigest()
        values = (*op.inputs[:first], *map(self._leaf, names), *op.inputs[first:])
        return replace(op, kernel=new, identity=name, inputs=values)

    def _outputs(self, kernel: Iteration | Reversal) -> tuple[Output, ...]:
        return tuple(Output(self._param(output.param)) for output in kernel.outputs)

    def _param(self, param: FieldParam) -> FieldParam:
        return replace(param, type=param.type.replace(field_shape=self.extents.window))


def _retyped(node: Node, kind: FieldType) -> Node:
    """A node of another type, for a value that comes in windows; a result that an iteration takes becomes a leaf."""
    return replace(node, type=kind) if isinstance(node, Leaf) else Leaf(kind)
