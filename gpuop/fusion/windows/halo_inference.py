"""Halo inference: the halo of a window of the grid for each value of a program, from results back to arguments.

argument ─ blur (2 before, 2 after) ─ gradient (0 before, 1 after) ─ result
  halo     2, 3                       0, 1                           0, 0
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from gpuop.base.records import dataclass
from gpuop.fusion.iteration import Iteration, Part, Repeating, Reversal
from gpuop.fusion.program import Op, Program
from gpuop.fusion.windows.index_halo import group_of
from gpuop.fusion.windows.kernel_halo import (
    ENDLESS,
    PLURAL,
    AxisHalo,
    EndToEnd,
    KernelHalo,
    infer_kernel_halo,
    operator_label,
)
from gpuop.fusion.windows.partial_updates import combining_monoids, combining_refusal
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import Shape

INSTEAD = {
    "label": 'label slabs, and join them, as "Objects of a volume" in docs/how-to/stream.md and examples/label_volume.py do; of a '
    "batch of images, `batch=1` labels each by itself"
} | dict.fromkeys(
    ("bincount", "center_of_mass", "mean", "ravel", "sum", "sum_labels"),
    'in windows `np.histogram(f, n, (0, n))` counts numbers below n, and an operator with `_atomic_add` adds up values: "Areas '
    'and centroids" in docs/how-to/stream.md',
)  # functions that have no windows, with another way to do the same
Margin: TypeAlias = tuple[tuple[int, int], ...]  # points before and after, for each axis


@dataclass
class ProgramHalo:
    """The halos of a program's values around a window.

    Attributes:
        grid: the extents of the grid, as kernels have them.
        cut: values that come, or are computed, in windows.
        parts: values of which windows compute parts, on other grids.
        margins: for each value the halo in which it is needed.
        of_ops: for each operator, by number, the halo of its results.
        whole: axes that cannot be cut, with reasons.
        borders: for each axis the borders that reads cross, each with an operator that has it.
        groups: for each axis the extents of work-groups, each with an operator that has it.
        inner, near: the halos of what iterations repeat (a turn, and the way back), and of kernels, by the number of the operator.
    """

    grid: Shape
    cut: set[int] = field(default_factory=set)
    parts: set[int] = field(default_factory=set)
    margins: dict[int, Margin] = field(default_factory=dict)
    of_ops: dict[int, Margin] = field(default_factory=dict)
    whole: dict[int, str] = field(default_factory=dict)
    borders: list[dict[str, str]] = field(init=False)
    groups: list[dict[int, str]] = field(init=False)
    inner: dict[int, tuple[ProgramHalo, ...]] = field(default_factory=dict)
    near: dict[int, KernelHalo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.borders, self.groups = [{} for _ in self.grid], [{} for _ in self.grid]

    @property
    def nothing(self) -> Margin:
        return ((0, 0),) * len(self.grid)

    def halo(self, values: Collection[int]) -> Margin:
        """The widest halo of some values."""
        halos = self.nothing
        for value in values:
            halos = wider(halos, self.margins.get(value, halos))
        return halos

    def all_whole(self, reason: str) -> None:
        for axis in range(len(self.grid)):
            self.whole.setdefault(axis, reason)

    @property
    def periodic(self) -> tuple[int, ...]:
        return tuple(a for a, borders in enumerate(self.borders) if ENDLESS in borders and a not in self.whole)


def wider(a: Margin, b: Margin) -> Margin:
    return tuple((max(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True))


def infer_halo(what: Program, grid: Shape, windows: Collection[int], parts: Collection[int] = ()) -> ProgramHalo:
    """Infer the halos of a program; `windows` are leaves that come in windows, `parts` results that windows give parts of."""
    halos = ProgramHalo(grid, set(windows), set(parts))
    ops = [op for op in what.ops if _comes_in_windows(halos, what, op)]
    for value in what.results:
        halos.margins[value] = halos.nothing
    for op in reversed(ops):
        _propagate(halos, what, op)
    merge_axes(halos)
    return halos


def merge_axes(halos: ProgramHalo, others: Sequence[ProgramHalo] = ()) -> None:
    """Add the axes of other programs, and find the axes that no operator alone, but all of them together, keep whole.

    They are axes along which some reads wrap around and others do not, and axes that work-groups do not divide.
    """
    for other in others:
        for axis, reason in other.whole.items():
            halos.whole.setdefault(axis, reason)
        halos.borders = [{**b, **a} for a, b in zip(halos.borders, other.borders, strict=True)]
        halos.groups = [{**b, **a} for a, b in zip(halos.groups, other.groups, strict=True)]
    for axis, groups in enumerate(halos.groups):
        n, size = halos.grid[axis], math.lcm(*groups)
        if size >= n > 1 and size > 1:
            reason = f"{next(iter(groups.values()))}, and the axis has {n}: make them smaller"
            halos.whole.setdefault(axis, EndToEnd(reason))
        elif n % size and ENDLESS in halos.borders[axis]:
            halos.whole.setdefault(
                axis,
                f"{next(iter(groups.values()))}, of which {n} is no multiple, and the axis's ends meet: take another size",
            )
    for axis, borders in enumerate(halos.borders):
        ends = sorted(borders.keys() - {ENDLESS})
        if ENDLESS in borders and ends and axis not in halos.whole:
            halos.whole[axis] = (
                f'{borders[ENDLESS]} reads across the ends of the axis under border="wrap", and '
                f'{borders[ends[0]]} under border="{ends[0]}": cut another axis, or give both one border'
            )


def _comes_in_windows(halos: ProgramHalo, what: Program, op: Op) -> bool:
    """Return whether an operator computes windows; note the reason if it must compute the whole."""
    windows = [v for v in op.inputs if v in halos.cut]
    name = operator_label(op.kernel, op.loc)
    shapes = [Shape(what.types[v].field_shape) for v in op.outputs]
    if isinstance(op.kernel, Kernel) and op.kernel.domain.shape == halos.grid:
        parts = _parts(halos, op, op.kernel)
        own = [v for v in op.outputs if v not in parts]
        if all(what.types[v].field_shape == halos.grid for v in own):
            _check_parts(halos, what, op, parts)
            halos.cut.update(own)
            return True
    if isinstance(op.kernel, Repeating) and windows and shapes == [halos.grid] * len(shapes):
        halos.cut.update(op.outputs)
        return True
    if windows and op.kernel.unfusible:
        halos.all_whole(f"{name} {op.kernel.unfusible}: call it of the whole, between pipelines in windows")
    elif windows and isinstance(op.kernel, Kernel) and combining_refusal(op.kernel):
        halos.all_whole(f"{name} {combining_refusal(op.kernel)}")
    elif windows:
        whose = next((str(what.types[v]) for v in op.outputs if what.types[v].field_shape != halos.grid), "")
        halos.all_whole(f"{name} {_whole_field_reason(op, whose)}")
    elif halos.grid in shapes and halos.grid:
        halos.all_whole(f"{name} makes a field of the whole grid by threads of another: give it as an argument")
    return False


def _whole_field_reason(op: Op, cause: str) -> str:
    """The reason why an operator on another grid needs a whole field, and a remedy."""
    called = op.loc.called if op.loc is not None else ""
    if called in INSTEAD:
        return f"takes the whole field: {INSTEAD[called]}"
    return f"makes of a field in windows one of another grid, {cause or 'by other threads'}: have windows end before it"


def _parts(halos: ProgramHalo, op: Op, kernel: Kernel) -> set[int]:
    """The values of which windows give parts; a value that depends on no window is computed whole in each."""
    if halos.parts.isdisjoint(op.outputs) and halos.cut.isdisjoint(op.inputs):
        return set()
    updates = combining_monoids(kernel)
    return {v for v, output in zip(op.outputs, kernel.outputs, strict=True) if output.param in updates}


def _check_parts(halos: ProgramHalo, what: Program, op: Op, parts: set[int]) -> None:
    """Note parts; all axes are whole if another operator reads one of them."""
    used = {v for each in what.ops for v in each.inputs}.union(what.results) - halos.parts
    if parts & used:
        halos.all_whole(
            f"{operator_label(op.kernel, op.loc)} updates a field that all windows make together, and more depends on it: of a "
            "pipeline, or of a graph's steps, it would be a stage, but not in an iteration"
        )
    halos.parts |= parts


def _propagate(halos: ProgramHalo, what: Program, op: Op) -> None:
    """Propagate the halo of an operator's results to its inputs."""
    margin = halos.halo([v for v in op.outputs if v in halos.margins])
    if isinstance(op.kernel, Kernel):
        sizes = (max(group_of(op.kernel, axis), 1) for axis in op.kernel.domain.axes)
        margin = tuple(AxisHalo(group=n).whole_groups(ends) for n, ends in zip(sizes, margin, strict=True))
    halos.of_ops[op.number] = wider(halos.of_ops.get(op.number, margin), margin)
    if isinstance(op.kernel, Repeating):
        _propagate_iteration(halos, op, op.kernel, margin)
        return
    assert isinstance(op.kernel, Kernel)
    if op.number not in halos.near:
        inputs = zip(op.inputs, op.kernel.inputs, strict=True)
        halos.near[op.number] = infer_kernel_halo(
            op.kernel, {param for v, param in inputs if v in halos.cut}, operator_label(op.kernel, op.loc)
        )
    near = halos.near[op.number]
    for axis, reason in near.whole.items():
        halos.whole.setdefault(axis, reason)
    for axis, size in enumerate(near.groups):
        if size > 1:
            along = PLURAL[op.kernel.domain.axes[axis]]
            halos.groups[axis].setdefault(
                size, f"{operator_label(op.kernel, op.loc)} has work-groups of {size} {along}"
            )
    for value, param in zip(op.inputs, op.kernel.inputs, strict=True):
        if value in halos.cut:
            _add(halos, value, _around(halos, margin, near.around[param]))


def _around(halos: ProgramHalo, margin: Margin, around: list[AxisHalo]) -> Margin:
    for axis, one in enumerate(around):
        for border, who in one.borders.items():
            halos.borders[axis].setdefault(border, who)
    return tuple(one.of(ends) for ends, one in zip(margin, around, strict=True))


def _add(halos: ProgramHalo, value: int, margin: Margin) -> None:
    halos.margins[value] = wider(halos.margins.get(value, margin), margin)


def _propagate_iteration(halos: ProgramHalo, op: Op, kernel: Iteration | Reversal, margin: Margin) -> None:
    """Propagate the halo of an iteration's results to its states and its other inputs."""
    forward = kernel.forward if isinstance(kernel, Reversal) else kernel
    if forward.until is not None or forward.times is None:
        halos.all_whole(f"{operator_label(kernel)} ends when a condition on the whole grid holds: say `times=`")
        return
    states, back = len(forward.outputs), len(kernel.outputs)
    begin = {*range(states), *(range(len(op.inputs) - back, len(op.inputs)) if kernel is not forward else ())}
    if any(op.inputs[k] not in halos.cut for k in begin):
        halos.all_whole(
            f"{operator_label(kernel)} starts from a field that does not come in windows: give it as an argument"
        )
        return
    margins, needs, inner = [margin] * states, dict[int, Margin](), []
    if isinstance(kernel, Reversal):
        way = _inferred(halos, op, kernel.back)
        needs = _margins_back(way, kernel, margin)
        margins = [needs.get(k, halos.nothing) for k in range(states)]
        inner.append(way)
    turn = _inferred(halos, op, forward.turn)
    for position, need in iterate_halo(
        turn, forward.turn.program, forward.turn.positions, margins, forward.times
    ).items():
        needs[position] = wider(needs.get(position, need), need)
    halos.inner[op.number] = (turn, *inner)
    _add_inner(halos, op, kernel, needs)


def _inferred(halos: ProgramHalo, op: Op, part: Part) -> ProgramHalo:
    """The halo of a program that an operator repeats."""
    cut = {leaf for leaf, position in part.positions.items() if op.inputs[position] in halos.cut}
    return infer_halo(part.program, halos.grid, cut)


def _margins_back(way: ProgramHalo, kernel: Reversal, margin: Margin) -> dict[int, Margin]:
    """The halos of all inputs of a reversal on its way back: those of states are the widest of any iteration."""
    back, last = len(kernel.outputs), len(kernel.inputs) - len(kernel.outputs)
    order = [*range(last, last + back), *range(last)]  # what goes back comes first, as states do
    place = {position: n for n, position in enumerate(order)}
    leaves = {leaf: place[position] for leaf, position in kernel.back.positions.items()}
    needs = iterate_halo(way, kernel.back.program, leaves, [margin] * back, kernel.forward.times or 1)
    return {order[n]: need for n, need in needs.items()}


def _add_inner(halos: ProgramHalo, op: Op, kernel: Iteration | Reversal, needs: Mapping[int, Margin]) -> None:
    """Add the halos of an iteration, and the axes that its programs keep whole."""
    for part in halos.inner[op.number]:
        for axis, reason in part.whole.items():
            halos.whole.setdefault(axis, f"{operator_label(kernel)}: {reason}")
        for axis, borders in enumerate(part.borders):
            halos.borders[axis] = {**borders, **halos.borders[axis]}
            halos.groups[axis] = {**part.groups[axis], **halos.groups[axis]}
        _add(halos, op.outputs[0], part.halo(part.margins))  # fields of constants alone are in windows too
    for position, need in needs.items():
        if op.inputs[position] in halos.cut:
            _add(halos, op.inputs[position], need)


def iterate_halo(
    turn: ProgramHalo, what: Program, leaves: Mapping[int, int], margins: Sequence[Margin], times: int
) -> dict[int, Margin]:
    """Propagate halos through iterations of a program, whose first inputs are the states and whose results are their next values.

    Args:
        leaves: the leaves, each with its position among the inputs.
        margins: the halos of the states after the last iteration.

    Returns:
        The halo of each position before the first iteration.
    """
    stayed = [turn.cut.issuperset((v, leaf)) or turn.cut.isdisjoint((v, leaf)) for v, leaf in _pairs(what, leaves)]
    if not all(stayed):
        turn.all_whole("a state of the grid takes a value that does not come in windows: add it to one that does")
    needs = dict(enumerate(margins))
    for _ in range(times):
        before, needs = needs, _iteration_before(turn, what, leaves, needs)
        if _inside(turn.grid, needs) == _inside(turn.grid, before):
            break
    for axis in turn.periodic:
        if any(max(need[axis]) >= turn.grid[axis] for need in needs.values()):
            turn.whole[axis] = f"{times} iterations reach around the axis, of {turn.grid[axis]}: take fewer at once"
    return needs


def _inside(grid: Shape, needs: Mapping[int, Margin]) -> list[list[tuple[int, int]]]:
    """Clip halos to the extents of the grid."""
    return [[(min(a, n), min(b, n)) for (a, b), n in zip(need, grid, strict=True)] for need in needs.values()]


def _pairs(what: Program, positions: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of a next value and the leaf of its state."""
    leaves = {position: leaf for leaf, position in positions.items()}
    return [(v, leaves[position]) for position, v in enumerate(what.results) if position in leaves]


def _iteration_before(
    turn: ProgramHalo, what: Program, leaves: Mapping[int, int], needs: dict[int, Margin]
) -> dict[int, Margin]:
    """The halos before an iteration, from those after it; inputs that are no states keep those of later iterations."""
    turn.margins = {}
    for position, value in enumerate(what.results):
        _add(turn, value, needs[position])
    for op in reversed(what.ops):
        if not turn.cut.union(turn.parts).isdisjoint(op.outputs):
            _propagate(turn, what, op)
    halos = {position: turn.nothing if position < len(what.results) else need for position, need in needs.items()}
    for leaf, position in leaves.items():
        if leaf in turn.cut and leaf in turn.margins:
            halos[position] = wider(halos.get(position, turn.nothing), turn.margins[leaf])
    return halos
