"""Stages of a pipeline that runs in windows.

A reduction over the grid, or an output that threads update atomically, needs the parts of all windows: it ends a stage, and
the next stage begins when its value is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import Deferred
from gpuop.engine.interop import own
from gpuop.engine.jit.call import Trace, trace_of
from gpuop.fusion.program import program
from gpuop.fusion.windows.footprint import Place, kernels_grid
from gpuop.fusion.windows.kernel_halo import operator_label
from gpuop.fusion.windows.partial_updates import combining_monoids
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.monoids import MONOIDS
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Leaf, Node, Result, calls
from gpuop.ops.layout.slicing import sliced_from
from gpuop.ops.reduce.reducers import OPERATIONS, Reducer, reducer_of
from gpuop.ops.reduce.reductions import Reduced, reduced_by, reductions
from gpuop.runtime.base.backend import Array

Region = tuple[tuple[int, int], ...]
Firsts: TypeAlias = Mapping[int, Field]  # the first wanted point of a window, by axis


@dataclass(frozen=True)
class WindowPart:
    """The part of a reduction that some windows give; it can be pickled.

    Attributes:
        rule: name of the reduction.
        kind: type of the whole result.
        divisor: the divisor of a mean, 0 for other reductions; and its dtype.
        pieces: for each region of the remaining axes the values of the windows there, and for arg reductions their places.
    """

    rule: str
    kind: FieldType
    divisor: tuple[int, str]
    pieces: dict[Region, tuple[Array, ...]]
    reducer: Reducer | None = None

    def joined(self, other: WindowPart) -> WindowPart:
        """Combine two parts. The order changes the last bits of floating-point sums, and nothing else."""
        pieces = dict(self.pieces)
        for region, piece in other.pieces.items():
            pieces[region] = self._combined(pieces[region], piece) if region in pieces else piece
        return replace(self, pieces=pieces)

    def _combined(self, a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        if self.reducer is not None:
            stacked = Field(np.stack([a[0], b[0]]), len(self.kind.tensor_shape))
            return (reduced_by(self.reducer, stacked, [0], 0).numpy(),)
        if self.rule in OPERATIONS:
            return (OPERATIONS[self.rule].numpy(a[0], b[0]),)
        x, y = a[0], b[0]
        first = x < y if self.rule.endswith("min") else x > y
        if x.dtype.kind == "f":
            first |= ((y != y) if self.rule.startswith("nan") else (x != x)) & ~((x != x) & (y != y))
        if len(a) == 1:
            return (np.where(first, x, y),)
        alike = (x == y) | ((x != x) & (y != y))
        first |= alike & (a[1] <= b[1])
        return np.where(first, x, y), np.where(first, a[1], b[1])

    def result(self) -> Array:
        """The whole result, once the parts of all windows are joined."""
        grid = self.kind.field_shape
        whole = np.empty(self.kind.array_shape, self.kind.array_dtype)
        filled = 0
        for region, piece in self.pieces.items():
            place = tuple(slice(a, b) for a, b in region)
            whole[place] = self._finished(piece[-1])
            filled += math.prod(b - a for a, b in region)
        if filled != grid.points:
            raise SemanticError(f"windows have given {filled} of the {grid.points} points of `{self.rule}`")
        return whole

    def _finished(self, value: Array) -> Array:
        count, dtype = self.divisor
        if not count:
            return value
        if value.dtype.kind != "c":
            return np.asarray(value.astype(dtype) / np.dtype(dtype).type(count))
        quotient = np.empty_like(value)
        quotient.real, quotient.imag = value.real / np.float32(count), value.imag / np.float32(count)
        return quotient


@dataclass(frozen=True)
class UpdatedPart(WindowPart):
    """The part of an output that the threads of some windows update atomically; `fill` is its initial value."""

    fill: float = 0

    def _combined(self, a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        x, y = (_numbers(each[0]) for each in (a, b))
        return (MONOIDS[self.rule].joined(x, y).view(a[0].dtype),)

    def result(self) -> Array:
        """The whole output, once the parts of all windows are joined."""
        ((whole,),) = self.pieces.values()
        if not MONOIDS[self.rule].idempotent:
            (whole,) = self._combined((whole,), (np.full(whole.shape, self.fill, whole.dtype),))
        return np.asarray(whole).reshape(self.kind.array_shape)


def _numbers(array: Array) -> Array:
    """View complex numbers as pairs of their parts, which are updated independently."""
    return np.ascontiguousarray(array).view(array.real.dtype) if array.dtype.kind == "c" else np.asarray(array)


@dataclass(frozen=True, eq=False)
class StageReduction:
    """A reduction over the grid, in a pipeline."""

    node: Result
    reduction: Reduced

    def __str__(self) -> str:
        axes, count = self.reduction.axes, len(self.reduction.field.type.array_shape)
        which = "all axes" if len(axes) == count else f"axis {', '.join(map(str, axes))}"
        return f"{operator_label(self.node.call.kernel, self.node.call.loc)}: over {which}"

    @property
    def field(self) -> Field:
        """The field that windows compute and then reduce."""
        return self.reduction.field

    @property
    def before(self) -> Sequence[Node]:
        """The nodes that it reads."""
        return [self.reduction.field.node]

    def taken(self, window: Place) -> FieldType:
        """The type of the window's values."""
        return self.field.type.replace(field_shape=window)

    @cached_property
    def reducer(self) -> Reducer:
        """The reducer of a window: a mean becomes a sum, so that nothing is rounded before the division."""
        own = self.reduction.reducer
        if own.places:
            return own
        name = "sum" if own.divisor else own.name
        whole = own.result if own.result in COMPLEX_DTYPES else own.accumulator  # complex numbers are held as two
        return replace(own, name=name, divisor=0, result=whole)

    def of_window(self, field: Field, firsts: Firsts, points: Place) -> list[Field]:
        """The results of a window: the reduced values; for arg reductions the extreme values and then their places."""
        axes, reducer = list(self.reduction.axes), self.reducer
        field = field if points == field.field_shape else sliced_from(field, firsts, points)
        flat = None if len(axes) == len(field.type.array_shape) else axes[0]
        values = [reduced_by(reducer, field, axes, flat)]
        if reducer.places:
            value = reducer_of(reducer.name.removeprefix("arg"), field.type, 1)
            values.insert(0, reduced_by(replace(value, result=value.accumulator), field, axes, flat))
        return values

    def part(self, arrays: Iterator[Array], start: Place, stop: Place) -> WindowPart:
        """The part of a window, from its results."""
        reduced, axes = self.reduction, self.reduction.axes
        left = [a for a in range(len(start)) if a not in axes]
        region: Region = tuple((start[a], stop[a]) for a in left)
        pieces = [next(arrays) for _ in range(1 + bool(self.reducer.places))]
        if self.reducer.places:
            pieces[1] = self._in_the_whole(pieces[1], start, stop)
        shape = reduced.field.type.array_shape
        extents = [n for a, n in enumerate(shape) if a not in axes]
        kind = FieldType(extents[: len(left)], extents[len(left) :], self.node.type.dtype)
        name = self.reduction.reducer.name.removeprefix("arg") if self.reducer.places else self.reduction.reducer.name
        own_rule = self.reducer if reduced.reducer.key else None
        return WindowPart(
            name, kind, (reduced.reducer.divisor, reduced.reducer.divided), {region: tuple(pieces)}, own_rule
        )

    def _in_the_whole(self, places: Array, start: Place, stop: Place) -> Array:
        """Convert flat indices in a window to flat indices in the whole grid."""
        shape, axes = self.reduction.field.type.array_shape, self.reduction.axes
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
        return f"{operator_label(self.node.call.kernel, self.node.call.loc)}: `{name}`, by `_atomic_{self.rule}`"

    @property
    def output(self) -> Output:
        return self.node.call.kernel.outputs[self.node.index]

    @property
    def rule(self) -> str:
        """The name of the monoid that combines parts."""
        kernel = self.node.call.kernel
        assert isinstance(kernel, Kernel)
        return combining_monoids(kernel)[self.output.param].name

    @property
    def field(self) -> Field:
        """The output that windows update."""
        return Field.of(self.node, kind=self.node.type)

    @property
    def before(self) -> Sequence[Node]:
        """The nodes that it reads."""
        return self.node.call.inputs

    def taken(self, window: Place) -> FieldType:
        """The type of the window's values."""
        return self.node.type

    def of_window(self, field: Field, firsts: Firsts, points: Place) -> list[Field]:
        """The results of a window."""
        return [field]

    def part(self, arrays: Iterator[Array], start: Place, stop: Place) -> WindowPart:
        """The part of a window, from its results."""
        return UpdatedPart(self.rule, self.node.type, (0, ""), {(): (next(arrays),)}, fill=self.output.fill or 0)


GridCollective: TypeAlias = StageReduction | StageUpdate  # a value that needs the parts of all windows


@dataclass(frozen=True, eq=False)
class PipelineStages:
    """A pipeline in stages.

    Attributes:
        stages: the collective values of each stage, and the program that computes them.
        last: the program of the results.
    """

    stages: tuple[tuple[tuple[GridCollective, ...], Trace], ...]
    last: Trace

    def collectives(self, stage: int) -> tuple[GridCollective, ...]:
        """The collective values of a program: that of a stage, that of the results (none), or that of both `at_once`."""
        count = len(self.stages)
        return () if stage == count else self.stages[min(stage, count - 1)][0]

    def reduces(self, stage: int) -> bool:
        """Return whether a program depends on the wanted points of a window: reductions are of these alone."""
        return any(isinstance(each, StageReduction) for each in self.collectives(stage))

    def at_once(self, inside: Sequence[bool]) -> Trace | None:
        """The program of the last stage and of the results on the grid, those `inside`; None if these need the stage's values."""
        nodes = [node for node, on_grid in zip(self.last.nodes, inside, strict=True) if on_grid]
        kinds = [kind for kind, on_grid in zip(self.last.kinds, inside, strict=True) if on_grid]
        if not self.stages or not nodes:
            return None
        collectives, optimize = self.stages[-1][0], self.last.optimize
        late = {each.node for each in collectives}
        if not late.isdisjoint(program(nodes, set(self.known)).leaves.values()):
            return None
        fields = [each.field for each in collectives]
        inputs = set(self.known) - late
        return trace_of(
            [*(own(f.node) for f in fields), *nodes], [*(f.type for f in fields), *kinds], True, optimize, inputs
        )

    @property
    def known(self) -> list[Result]:
        """The collective values of all stages."""
        return [each.node for stage, _ in self.stages for each in stage]


def collective_stages(
    nodes: Sequence[Node], grid: Place, in_windows: Callable[[Node], bool]
) -> list[list[GridCollective]]:
    """The collective values of a program, by stages; `in_windows` is True for leaves that come in windows."""
    levels: dict[Call, int] = {}
    stages: dict[int, list[GridCollective]] = {}
    needed, results = calls(nodes), set[Node]()
    used = {node for call in needed for node in call.inputs}.union(nodes)
    for call in needed:
        levels[call] = max((_level(node, levels) for node in call.inputs), default=0)
        collectives = [each for each in _collectives(call, grid, in_windows, results) if each.node in used]
        if collectives:
            results |= {each.node for each in collectives}
            level = max(_level(node, levels) for each in collectives for node in each.before)
            stages.setdefault(level, []).extend(collectives)
            levels[call] = level + 1
    return [stages[level] for level in sorted(stages)]


def _collectives(
    call: Call, grid: Place, in_windows: Callable[[Node], bool], results: Collection[Node]
) -> list[GridCollective]:
    """The collective values among the results of a call; the values in `results`, of earlier stages, are whole in each window."""

    def inside(node: Node) -> bool:
        return isinstance(node, Result) or in_windows(node)

    kernel, reduced = call.kernel, reductions.get(call)
    if reduced is not None:
        of_grid = reduced.field.type.field_shape == grid and min(reduced.axes) < len(grid)
        parts = of_grid and inside(reduced.field.node) and reduced.field.node not in results
        return [StageReduction(Result(call, 0), reduced)] if parts else []
    if not isinstance(kernel, Kernel) or kernel.domain.shape != kernels_grid(grid) or not any(map(inside, call.inputs)):
        return []
    updates = combining_monoids(kernel)
    return [StageUpdate(Result(call, k)) for k, output in enumerate(kernel.outputs) if output.param in updates]


def pipeline_stages(trace: Trace, grid: Place, shared: Collection[int]) -> PipelineStages:
    """The stages of a pipeline; none if it has no collective values."""
    stages, results = [], set[Node]()
    for collectives in collective_stages(trace.nodes, grid, lambda node: comes_in_windows(node, grid, shared)):
        fields = [each.field for each in collectives]
        stages.append(
            (
                tuple(collectives),
                trace_of([own(f.node) for f in fields], [f.type for f in fields], True, trace.optimize, results),
            )
        )
        results |= {each.node for each in collectives}
    last = trace_of(trace.nodes, trace.kinds, trace.several, trace.optimize, results) if results else trace
    return PipelineStages(tuple(stages), last)


def comes_in_windows(node: Node, grid: Place, shared: Collection[int]) -> bool:
    """Return whether a leaf is an array of the caller that comes in windows."""
    source = node.source if isinstance(node, Leaf) else None
    return (
        isinstance(source, Deferred) and source.kind.field_shape == grid and source.placeholder.position not in shared
    )


def _level(node: Node, levels: Mapping[Call, int]) -> int:
    """The number of stages before a value."""
    return levels[node.call] if isinstance(node, Result) else 0
