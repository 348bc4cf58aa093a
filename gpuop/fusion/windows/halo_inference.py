"""What a program needs around a window of its grid, from its results back to its arguments."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gpuop.fusion.iteration import Iteration
from gpuop.fusion.program import Op, Program
from gpuop.fusion.windows.index_halo import group_of
from gpuop.fusion.windows.kernel_halo import ENDLESS, PLURAL, Around, EndToEnd, Reaching, reaching, said
from gpuop.fusion.windows.partial_updates import combined, uncombined
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import Shape

INSTEAD = {
    "label": 'label slabs, and join them, as "Objects of a volume" in docs/how-to/stream.md and examples/label_volume.py do; of a '
    "batch of images, `batch=1` labels each by itself"
} | dict.fromkeys(
    ("bincount", "center_of_mass", "mean", "ravel", "sum", "sum_labels"),
    'in windows `np.histogram(f, n, (0, n))` counts numbers below n, and an operator with `_atomic_add` adds up values: "Areas '
    'and centroids" in docs/how-to/stream.md',
)  # what users call that windows have another way for
Margin: TypeAlias = tuple[tuple[int, int], ...]  # points before and after, for each axis


@dataclass
class Surroundings:
    """What the values of a program are needed of around a window.

    Attributes:
        grid: the extents of the grid, as kernels have them.
        cut: the values that come, or are computed, in windows.
        parts: the values of which windows compute parts, on grids of their own.
        margins: how far around the window a value is needed; of operators, by their number, that of their results.
        whole: the axes that cannot be cut, with reasons.
        borders: the borders that reads cross along each axis, with an operator that has it.
        groups: how many threads work-groups have along each axis, with an operator that has them.
        inner, near: what turns of iterations need, and what kernels do, by the operator's number.
    """

    grid: Shape
    cut: set[int] = field(default_factory=set)
    parts: set[int] = field(default_factory=set)
    margins: dict[int, Margin] = field(default_factory=dict)
    of_ops: dict[int, Margin] = field(default_factory=dict)
    whole: dict[int, str] = field(default_factory=dict)
    borders: list[dict[str, str]] = field(init=False)
    groups: list[dict[int, str]] = field(init=False)
    inner: dict[int, Surroundings] = field(default_factory=dict)
    near: dict[int, Reaching] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.borders, self.groups = [{} for _ in self.grid], [{} for _ in self.grid]

    @property
    def nothing(self) -> Margin:
        return ((0, 0),) * len(self.grid)

    def halo(self, values: Collection[int]) -> Margin:
        """How far around a window any of these is needed."""
        found = self.nothing
        for value in values:
            found = wider(found, self.margins.get(value, found))
        return found

    def all_whole(self, reason: str) -> None:
        for axis in range(len(self.grid)):
            self.whole.setdefault(axis, reason)

    @property
    def periodic(self) -> tuple[int, ...]:
        return tuple(a for a, borders in enumerate(self.borders) if ENDLESS in borders and a not in self.whole)


def wider(a: Margin, b: Margin) -> Margin:
    return tuple((max(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True))


def surroundings(what: Program, grid: Shape, windows: Collection[int], parts: Collection[int] = ()) -> Surroundings:
    """What a program needs; `windows` are the leaves that come in windows, `parts` wanted values that are put together of parts."""
    found = Surroundings(grid, set(windows), set(parts))
    kept = [op for op in what.ops if _takes(found, what, op)]
    for value in what.wanted:
        found.margins[value] = found.nothing
    for op in reversed(kept):
        _need(found, what, op)
    together(found)
    return found


def together(found: Surroundings, others: Sequence[Surroundings] = ()) -> None:
    """Note which axes all operators together cannot be cut along, with those of other programs.

    They are those along which some reads wrap around and others do not, and those that work-groups do not divide.
    """
    for other in others:
        for axis, reason in other.whole.items():
            found.whole.setdefault(axis, reason)
        found.borders = [{**b, **a} for a, b in zip(found.borders, other.borders, strict=True)]
        found.groups = [{**b, **a} for a, b in zip(found.groups, other.groups, strict=True)]
    for axis, groups in enumerate(found.groups):
        n, size = found.grid[axis], math.lcm(*groups)
        if size >= n > 1 and size > 1:
            reason = f"{next(iter(groups.values()))}, and the axis has {n}: make them smaller"
            found.whole.setdefault(axis, EndToEnd(reason))
        elif n % size and ENDLESS in found.borders[axis]:
            found.whole.setdefault(
                axis,
                f"{next(iter(groups.values()))}, of which {n} is no multiple, and the axis's ends meet: take another size",
            )
    for axis, borders in enumerate(found.borders):
        ends = sorted(borders.keys() - {ENDLESS})
        if ENDLESS in borders and ends and axis not in found.whole:
            found.whole[axis] = (
                f'{borders[ENDLESS]} reads across the ends of the axis under border="wrap", and '
                f'{borders[ends[0]]} under border="{ends[0]}": cut another axis, or give both one border'
            )


def _takes(found: Surroundings, what: Program, op: Op) -> bool:
    """Whether an operator computes windows; what cannot be is noted."""
    given = [v for v in op.inputs if v in found.cut]
    name = said(op.kernel, op.loc)
    shapes = [Shape(what.types[v].field_shape) for v in op.outputs]
    if isinstance(op.kernel, Kernel) and op.kernel.domain.shape == found.grid:
        parts = _parts(found, op, op.kernel)
        own = [v for v in op.outputs if v not in parts]
        if all(what.types[v].field_shape == found.grid for v in own):
            _check_parts(found, what, op, parts)
            found.cut.update(own)
            return True
    if isinstance(op.kernel, Iteration) and given and shapes == [found.grid] * len(shapes):
        found.cut.update(op.outputs)
        return True
    if given and op.kernel.unfusible:
        found.all_whole(f"{name} {op.kernel.unfusible}: call it of the whole, between pipelines in windows")
    elif given and isinstance(op.kernel, Kernel) and uncombined(op.kernel):
        found.all_whole(f"{name} {uncombined(op.kernel)}")
    elif given:
        whose = next((str(what.types[v]) for v in op.outputs if what.types[v].field_shape != found.grid), "")
        found.all_whole(f"{name} {_of_all(op, whose)}")
    elif found.grid in shapes and found.grid:
        found.all_whole(f"{name} makes a field of the whole grid by threads of another: give it as an argument")
    return False


def _of_all(op: Op, made: str) -> str:
    """Why an operator that makes a field of another grid needs all of one, and what to do instead."""
    called = op.loc.called if op.loc is not None else ""
    if called in INSTEAD:
        return f"takes the whole field: {INSTEAD[called]}"
    return f"makes of a field in windows one of another grid, {made or 'by other threads'}: have windows end before it"


def _parts(found: Surroundings, op: Op, kernel: Kernel) -> set[int]:
    """The values of which threads of a window make parts; what depends on no window is made whole, by each of them."""
    if found.parts.isdisjoint(op.outputs) and found.cut.isdisjoint(op.inputs):
        return set()
    updates = combined(kernel)
    return {v for v, output in zip(op.outputs, kernel.outputs, strict=True) if output.param in updates}


def _check_parts(found: Surroundings, what: Program, op: Op, parts: set[int]) -> None:
    """Note what is computed of parts."""
    used = {v for each in what.ops for v in each.inputs}.union(what.wanted) - found.parts
    if parts & used:
        found.all_whole(
            f"{said(op.kernel, op.loc)} updates a field that all windows make together, and more depends on it: of a pipeline, or "
            "of a graph's steps, it would be a stage, but not in turns"
        )
    found.parts |= parts


def _need(found: Surroundings, what: Program, op: Op) -> None:
    """What an operator's results need of its inputs."""
    margin = found.halo([v for v in op.outputs if v in found.margins])
    if isinstance(op.kernel, Kernel):
        sizes = (max(group_of(op.kernel, axis), 1) for axis in op.kernel.domain.axes)
        margin = tuple(Around(group=n).whole_groups(ends) for n, ends in zip(sizes, margin, strict=True))
    found.of_ops[op.number] = wider(found.of_ops.get(op.number, margin), margin)
    if isinstance(op.kernel, Iteration):
        _need_turns(found, op, op.kernel, margin)
        return
    assert isinstance(op.kernel, Kernel)
    if op.number not in found.near:
        given = zip(op.inputs, op.kernel.inputs, strict=True)
        found.near[op.number] = reaching(
            op.kernel, {param for v, param in given if v in found.cut}, said(op.kernel, op.loc)
        )
    near = found.near[op.number]
    for axis, reason in near.whole.items():
        found.whole.setdefault(axis, reason)
    for axis, size in enumerate(near.groups):
        if size > 1:
            along = PLURAL[op.kernel.domain.axes[axis]]
            found.groups[axis].setdefault(size, f"{said(op.kernel, op.loc)} has work-groups of {size} {along}")
    for value, param in zip(op.inputs, op.kernel.inputs, strict=True):
        if value in found.cut:
            _add(found, value, _around(found, margin, near.around[param]))


def _around(found: Surroundings, margin: Margin, around: list[Around]) -> Margin:
    for axis, one in enumerate(around):
        for border, who in one.borders.items():
            found.borders[axis].setdefault(border, who)
    return tuple(one.of(ends) for ends, one in zip(margin, around, strict=True))


def _add(found: Surroundings, value: int, margin: Margin) -> None:
    found.margins[value] = wider(found.margins.get(value, margin), margin)


def _need_turns(found: Surroundings, op: Op, kernel: Iteration, margin: Margin) -> None:
    """What the turns of an iteration need of what they start from, and of what they take besides."""
    if kernel.until is not None or kernel.times is None:
        found.all_whole(f"{said(kernel)} ends when a condition on the whole grid holds: say `times=`")
        return
    part, states = kernel.turn, len(kernel.outputs)
    cut = {leaf for leaf, position in part.given.items() if op.inputs[position] in found.cut}
    if any(op.inputs[k] not in found.cut for k in range(states)):
        found.all_whole(f"{said(kernel)} starts from a field that does not come in windows: give it as an argument")
        return
    turn = surroundings(part.program, found.grid, cut)
    found.inner[op.number] = turn
    needs = turned(turn, part.program, part.given, [margin] * states, kernel.times)
    for axis, reason in turn.whole.items():
        found.whole.setdefault(axis, f"{said(kernel)}: {reason}")
    for axis, borders in enumerate(turn.borders):
        found.borders[axis] = {**borders, **found.borders[axis]}
        found.groups[axis] = {**turn.groups[axis], **found.groups[axis]}
    for position, need in needs.items():
        if op.inputs[position] in found.cut:
            _add(found, op.inputs[position], need)
    _add(found, op.outputs[0], turn.halo(turn.margins))  # what turns compute of constants alone is in windows too


def turned(
    turn: Surroundings, what: Program, given: Mapping[int, int], margins: Sequence[Margin], times: int
) -> dict[int, Margin]:
    """What turns of a program need of what they are given: the first are the states, the next values of which it wants.

    Args:
        given: the leaves, with the position of each among what is given.
        margins: what is needed of the states after the last turn.

    Returns:
        What is needed of each position before the first one.
    """
    stayed = [turn.cut.issuperset((v, leaf)) or turn.cut.isdisjoint((v, leaf)) for v, leaf in _pairs(what, given)]
    if not all(stayed):
        turn.all_whole("a state of the grid takes a value that does not come in windows: add it to one that does")
    needs = dict(enumerate(margins))
    for _ in range(times):
        before, needs = needs, _turn_before(turn, what, given, needs)
        if _inside(turn.grid, needs) == _inside(turn.grid, before):
            break
    for axis in turn.periodic:
        if any(max(need[axis]) >= turn.grid[axis] for need in needs.values()):
            turn.whole[axis] = f"{times} turns reach around the axis, of {turn.grid[axis]}: take fewer at once"
    return needs


def _inside(grid: Shape, needs: Mapping[int, Margin]) -> list[list[tuple[int, int]]]:
    """What is needed of a grid that has ends."""
    return [[(min(a, n), min(b, n)) for (a, b), n in zip(need, grid, strict=True)] for need in needs.values()]


def _pairs(what: Program, given: Mapping[int, int]) -> list[tuple[int, int]]:
    """Next values, each with the leaf that is the state."""
    leaves = {position: leaf for leaf, position in given.items()}
    return [(v, leaves[position]) for position, v in enumerate(what.wanted) if position in leaves]


def _turn_before(
    turn: Surroundings, what: Program, given: Mapping[int, int], needs: dict[int, Margin]
) -> dict[int, Margin]:
    """What a turn needs, given what is needed after it; of what is no state also what later turns need."""
    turn.margins = {}
    for position, value in enumerate(what.wanted):
        _add(turn, value, needs[position])
    for op in reversed(what.ops):
        if not turn.cut.union(turn.parts).isdisjoint(op.outputs):
            _need(turn, what, op)
    found = {position: turn.nothing if position < len(what.wanted) else need for position, need in needs.items()}
    for leaf, position in given.items():
        if leaf in turn.cut and leaf in turn.margins:
            found[position] = wider(found.get(position, turn.nothing), turn.margins[leaf])
    return found
