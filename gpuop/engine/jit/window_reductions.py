"""Programs on windows that reduce the wanted points of the values that they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.errors import blaming
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.window_stages import GridCollective
from gpuop.fusion.program import Program, program
from gpuop.fusion.windows.footprint import Place, kernels_grid
from gpuop.fusion.windows.kernel import NUMBER, Name
from gpuop.fusion.windows.program import WindowedProgram
from gpuop.ir.values import Leaf, Node


def reducing(on: WindowedProgram, of: Sequence[GridCollective], points: Place, window: Place) -> WindowedProgram:
    """Append reductions to a program on windows: they replace its first results, and the others stay.

    The offset of the wanted points is a number of the window, so that windows of equal extents have the same kernels.

    Args:
        of: the reductions.
        points, window: the points that are wanted along each axis of the grid, and those that a window has.
    """
    what, firsts = on.program, _firsts(points, window)
    fields, wanted = list[Node](), list[Field]()
    for each in of:
        kind = each.taken(window)
        field = Field.of(Leaf(kind.folded), kind=kind)
        fields.append(field.node)
        with blaming(each.node.call.loc):  # the user's line; the caller may be Dask
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
    """Leaves for the first wanted point of a window, along axes where the window has more points than are wanted."""
    axes = [axis for axis, (count, extent) in enumerate(zip(points, window, strict=True)) if count != extent]
    return {axis: Field.of(Leaf(NUMBER, by_value=True, name=f"first{axis}")) for axis in axes}


def _behind(what: Program, more: Program, leaves: dict[int, int], count: int) -> Program:
    """Append the program `more`, whose `leaves` are values of `what`; its results replace the first `count` of `what`."""
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
