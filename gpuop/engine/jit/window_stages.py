"""What all windows of a grid make together, reductions and updates: what is before is computed in all, then what is behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import Deferred
from gpuop.engine.interop import own
from gpuop.engine.jit.call import Traced, traced
from gpuop.engine.jit.partial_reductions import Region, UpdatedPart, WindowPart
from gpuop.fusion.program import program
from gpuop.fusion.windows.footprint import Place, kernels_grid
from gpuop.fusion.windows.kernel_halo import said
from gpuop.fusion.windows.partial_updates import combined
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Leaf, Node, Result, calls
from gpuop.ops.layout.slicing import sliced_from
from gpuop.ops.reduce.reducers import Reducer, reducer_of
from gpuop.ops.reduce.reductions import Reduced, reduced_by, reductions
from gpuop.runtime.base.backend import Array

Firsts: TypeAlias = Mapping[int, Field]  # where in a window the points begin that are wanted, by axes


@dataclass(frozen=True, eq=False)
class StageReduction:
    """A reduction over the grid, in a pipeline."""

    node: Result
    made: Reduced

    def __str__(self) -> str:
        axes, count = self.made.axes, len(self.made.field.type.array_shape)
        which = "all axes" if len(axes) == count else f"axis {', '.join(map(str, axes))}"
        return f"{said(self.node.call.kernel, self.node.call.loc)}: over {which}"

    @property
    def field(self) -> Field:
        """What windows compute."""
        return self.made.field

    @property
    def before(self) -> Sequence[Node]:
        """What it is made of."""
        return [self.made.field.node]

    def taken(self, window: Place) -> FieldType:
        """The type of what a window computes."""
        return self.field.type.replace(field_shape=window)

    @cached_property
    def reducer(self) -> Reducer:
        """What windows reduce by: means are sums, of which nothing is rounded before they are divided."""
        given = self.made.reducer
        if given.places:
            return given
        name = "sum" if given.divisor else given.name
        whole = "complex64" if given.result == "complex64" else given.held  # complex numbers are held as two
        return replace(given, name=name, divisor=0, result=whole)

    def of_window(self, field: Field, firsts: Firsts, points: Place) -> list[Field]:
        """What a window gives: values, and before them where places are wanted the extreme ones."""
        axes, given = list(self.made.axes), self.reducer
        field = field if points == field.field_shape else sliced_from(field, firsts, points)
        flat = None if len(axes) == len(field.type.array_shape) else axes[0]
        found = [reduced_by(given, field, axes, flat)]
        if given.places:
            value = reducer_of(given.name.removeprefix("arg"), field.type, 1)
            found.insert(0, reduced_by(replace(value, result=value.held), field, axes, flat))
        return found

    def part(self, found: Iterator[Array], start: Place, stop: Place) -> WindowPart:
        """A window's part, of what it has given."""
        made, axes = self.made, self.made.axes
        left = [a for a in range(len(start)) if a not in axes]
        region: Region = tuple((start[a], stop[a]) for a in left)
        pieces = [next(found) for _ in range(1 + bool(self.reducer.places))]
        if self.reducer.places:
            pieces[1] = self._in_the_whole(pieces[1], start, stop)
        shape = made.field.type.array_shape
        kept = [n for a, n in enumerate(shape) if a not in axes]
        kind = FieldType(kept[: len(left)], kept[len(left) :], self.node.type.dtype)
        name = self.made.reducer.name.removeprefix("arg") if self.reducer.places else self.made.reducer.name
        own_rule = self.reducer if made.reducer.key else None
        return WindowPart(name, kind, (made.reducer.divisor, made.reducer.divided), {region: tuple(pieces)}, own_rule)

    def _in_the_whole(self, places: Array, start: Place, stop: Place) -> Array:
        """Places that are counted in a window, as they are counted in the whole."""
        shape, axes = self.made.field.type.array_shape, self.made.axes
        first = (*start, *(0,) * (len(shape) - len(start)))
        extents = [b - a for a, b in zip(start, stop, strict=True)] + list(shape[len(start) :])
        at = np.unravel_index(places, [extents[a] for a in axes])
        moved = [i + first[a] for i, a in zip(at, axes, strict=True)]
        return np.asarray(np.ravel_multi_index(moved, [shape[a] for a in axes]), np.int64)


@dataclass(frozen=True, eq=False)
class StageUpdate:
    """An output of an operator whose threads update it by atomic operations, in a pipeline."""

    node: Result

    def __str__(self) -> str:
        name = self.output.param.hint
        return f"{said(self.node.call.kernel, self.node.call.loc)}: `{name}`, by `_atomic_{self.rule}`"

    @property
    def output(self) -> Output:
        return self.node.call.kernel.outputs[self.node.index]

    @property
    def rule(self) -> str:
        """What combines parts."""
        kernel = self.node.call.kernel
        assert isinstance(kernel, Kernel)
        return combined(kernel)[self.output.param].name

    @property
    def field(self) -> Field:
        """What windows compute."""
        return Field.of(self.node, kind=self.node.type)

    @property
    def before(self) -> Sequence[Node]:
        """What it is made of."""
        return self.node.call.inputs

    def taken(self, window: Place) -> FieldType:
        """The type of what a window computes."""
        return self.node.type

    def of_window(self, field: Field, firsts: Firsts, points: Place) -> list[Field]:
        """What a window gives."""
        return [field]

    def part(self, found: Iterator[Array], start: Place, stop: Place) -> WindowPart:
        """A window's part, of what it has given."""
        return UpdatedPart(self.rule, self.node.type, (0, ""), {(): (next(found),)}, fill=self.output.fill or 0)


Joint: TypeAlias = StageReduction | StageUpdate  # what all windows make together


@dataclass(frozen=True, eq=False)
class Staged:
    """A pipeline in stages: of each what windows make together, and what computes that; then what gives results."""

    stages: tuple[tuple[tuple[Joint, ...], Traced], ...]
    last: Traced

    def joint(self, stage: int) -> tuple[Joint, ...]:
        """What windows make together in a program: of a stage, of the results alone, or `at_once` of these and the last stage."""
        count = len(self.stages)
        return () if stage == count else self.stages[min(stage, count - 1)][0]

    def reduces(self, stage: int) -> bool:
        """Whether a program knows which points of a window are wanted: what is reduced is cut out of it."""
        return any(isinstance(each, StageReduction) for each in self.joint(stage))

    def at_once(self, inside: Sequence[bool]) -> Traced | None:
        """What computes the last stage and the results on the grid, those `inside`, if these need nothing of that stage."""
        nodes = [node for node, on_grid in zip(self.last.nodes, inside, strict=True) if on_grid]
        kinds = [kind for kind, on_grid in zip(self.last.kinds, inside, strict=True) if on_grid]
        if not self.stages or not nodes:
            return None
        joint, optimize = self.stages[-1][0], self.last.optimize
        late = {each.node for each in joint}
        if not late.isdisjoint(program(nodes, set(self.known)).leaves.values()):
            return None
        fields = [each.field for each in joint]
        given = set(self.known) - late
        return traced(
            [*(own(f.node) for f in fields), *nodes], [*(f.type for f in fields), *kinds], True, optimize, given
        )

    @property
    def known(self) -> list[Result]:
        """What all stages give."""
        return [each.node for stage, _ in self.stages for each in stage]


def joint_stages(nodes: Sequence[Node], grid: Place, in_windows: Callable[[Node], bool]) -> list[list[Joint]]:
    """What windows of a grid make together, by stages; `in_windows` says which leaves come in windows."""
    levels: dict[Call, int] = {}
    found: dict[int, list[Joint]] = {}
    needed, known = calls(nodes), set[Node]()
    used = {node for call in needed for node in call.inputs}.union(nodes)
    for call in needed:
        levels[call] = max((_level(node, levels) for node in call.inputs), default=0)
        joint = [each for each in _joint(call, grid, in_windows, known) if each.node in used]
        if joint:
            known |= {each.node for each in joint}
            level = max(_level(node, levels) for each in joint for node in each.before)
            found.setdefault(level, []).extend(joint)
            levels[call] = level + 1
    return [found[level] for level in sorted(found)]


def _joint(call: Call, grid: Place, in_windows: Callable[[Node], bool], known: Collection[Node]) -> list[Joint]:
    """What of a call's results all windows make together; what they have made so before, `known`, is whole in each."""

    def inside(node: Node) -> bool:
        return isinstance(node, Result) or in_windows(node)

    kernel, reduced = call.kernel, reductions.get(call)
    if reduced is not None:
        of_grid = reduced.field.type.field_shape == grid and min(reduced.axes) < len(grid)
        parts = of_grid and inside(reduced.field.node) and reduced.field.node not in known
        return [StageReduction(Result(call, 0), reduced)] if parts else []
    if not isinstance(kernel, Kernel) or kernel.domain.shape != kernels_grid(grid) or not any(map(inside, call.inputs)):
        return []
    updates = combined(kernel)
    return [StageUpdate(Result(call, k)) for k, output in enumerate(kernel.outputs) if output.param in updates]


def staged(made: Traced, grid: Place, shared: Collection[int]) -> Staged:
    """A pipeline's stages; none where windows make nothing together."""
    stages, given = [], set[Node]()
    for found in joint_stages(made.nodes, grid, lambda node: comes_in_windows(node, grid, shared)):
        fields = [each.field for each in found]
        stages.append(
            (tuple(found), traced([own(f.node) for f in fields], [f.type for f in fields], True, made.optimize, given))
        )
        given |= {each.node for each in found}
    last = traced(made.nodes, made.kinds, made.several, made.optimize, given) if given else made
    return Staged(tuple(stages), last)


def comes_in_windows(node: Node, grid: Place, shared: Collection[int]) -> bool:
    """Whether a leaf is an array of the caller's that comes in windows."""
    source = node.source if isinstance(node, Leaf) else None
    return (
        isinstance(source, Deferred) and source.kind.field_shape == grid and source.placeholder.position not in shared
    )


def _level(node: Node, levels: Mapping[Call, int]) -> int:
    """How many stages come before a value."""
    return levels[node.call] if isinstance(node, Result) else 0
