"""Programs on windows that reduce what they compute, of the points that are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.errors import blaming
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.window_stages import Joint
from gpuop.fusion.program import Program, program
from gpuop.fusion.windows.footprint import Place, kernels_grid
from gpuop.fusion.windows.kernel import NUMBER, Name
from gpuop.fusion.windows.program import WindowedProgram
from gpuop.ir.values import Leaf, Node


def reducing(on: WindowedProgram, of: Sequence[Joint], points: Place, window: Place) -> WindowedProgram:
    """A program on windows with the reductions of what it gives first, of the points that are wanted; then what it gives else.

    Where these lie are numbers of the window, so that windows of the same extents have the same kernels.

    Args:
        of: what is reduced.
        points, window: how many points are wanted along each axis of the grid, and how many a window has.
    """
    what, firsts = on.program, _firsts(points, window)
    fields, wanted = list[Node](), list[Field]()
    for each in of:
        kind = each.taken(window)
        field = Field.of(Leaf(kind.folded), kind=kind)
        fields.append(field.node)
        with blaming(each.node.call.loc):  # not who calls this, as Dask may
            wanted += each.of_window(field, firsts, points)
    given = {first.node: ("first", axis - len(window) + len(kernels_grid(window))) for axis, first in firsts.items()}
    more = program([f.node for f in wanted], [*fields, *given])
    last = max(what.types) + 1
    numbers: dict[Name, int] = {}
    leaves = dict[int, int]()
    for v, node in more.leaves.items():
        if node in given:
            numbers[given[node]] = leaves[v] = on.numbers.get(given[node], v + last)
        else:
            leaves[v] = what.wanted[fields.index(node)]
    return WindowedProgram(_behind(what, more, leaves, len(of)), {**on.numbers, **numbers})


def _firsts(points: Place, window: Place) -> dict[int, Field]:
    """The numbers of windows that say where the points begin, along axes where these are not all."""
    axes = [axis for axis, (count, extent) in enumerate(zip(points, window, strict=True)) if count != extent]
    return {axis: Field.of(Leaf(NUMBER, by_value=True, name=f"first{axis}")) for axis in axes}


def _behind(what: Program, more: Program, leaves: dict[int, int], count: int) -> Program:
    """A program, and behind it one of which it gives the `leaves`; what that wants replaces the first results, so many."""
    last, first = max(what.types) + 1, max((op.number for op in what.ops), default=-1) + 1
    moved = {v: leaves.get(v, v + last) for v in more.types}
    ops = tuple(
        replace(
            op,
            number=op.number + first,
            inputs=tuple(moved[v] for v in op.inputs),
            outputs=tuple(moved[v] for v in op.outputs),
        )
        for op in more.ops
    )
    numbers: dict[int, Node] = {
        leaves[v]: node for v, node in more.leaves.items() if isinstance(node, Leaf) and node.by_value
    }
    return replace(
        what,
        leaves=numbers | what.leaves,
        ops=(*what.ops, *ops),
        wanted=(*(moved[v] for v in more.wanted), *what.wanted[count:]),
        types=what.types | {moved[v]: kind for v, kind in more.types.items() if moved[v] not in what.types},
        key=(*what.key, more.key, tuple(leaves.items())),
        names={},
    )
