"""Corrections of the points of a tile outside of the grid: each gets the value of the inner point that the border names.

Strips with windows compute these points like inner ones, but a border means the value of another point. Fill values need no
correction, as they are stored at once; nor does "wrap", under which the grid is periodic.
"""

from __future__ import annotations

from gpuop.ir.build import collector, constant
from gpuop.ir.nodes import Barrier, Block, Comment, Expr, If, Index, Load, Stmt, Store
from gpuop.ir.types import INT
from gpuop.passes.schedules.common.grid_walk import numbered
from gpuop.passes.schedules.gpu.tile_chain import TilePart
from gpuop.passes.schedules.gpu.tile_frame import Coordinates, Frame
from gpuop.passes.schedules.gpu.tile_regions import THREADS, Region
from gpuop.passes.schedules.gpu.tile_windows import StripWindows


def outside(frame: Frame, part: TilePart, region: Region) -> Block:
    """Statements that correct the local memory of a part for a group at an edge, once all of its threads have stored to it."""
    needs_copies = part.rule is not None and part.rule[1] is None and not frame.tiles.chain.virtual
    around = any((*region.needed.rows, *region.needed.columns))
    if not needs_copies or not around or not StripWindows(frame, part, region, False).by_element:
        return ()
    rows, columns = region.shape

    def iteration(k: Expr, out: list[Stmt]) -> None:
        b = collector(out, hint="n")
        n = b.apply("add", b.apply("mul", k, THREADS), Index("local", "column"))
        at = {"row": b.apply("div", n, columns), "column": b.apply("mod", n, columns)}
        body: list[Stmt] = []
        _correct(frame, part, region, {axis: at[axis] for axis in frame.axes}, body)
        more = rows * columns % THREADS
        out += [If(collector(out).apply("lt", n, rows * columns), tuple(body))] if more else body

    return (Barrier("local"), *numbered("turn", 0, -(-rows * columns // THREADS), iteration))


def _correct(frame: Frame, part: TilePart, region: Region, at: Coordinates, out: list[Stmt]) -> None:
    """Correct a point of the region if it is outside of the grid."""
    point, copies = frame.place(part, region, at, False, collector(out, hint="at")), list[Stmt]()
    b = collector(out)
    beyond = [b.apply("ne", point.grid[axis], point.real[axis]) for axis in frame.axes]
    test = beyond[0] if len(beyond) == 1 else b.apply("or", *beyond)
    b = collector(copies, hint="at")
    before = {"row": region.computed.rows[0], "column": region.computed.columns[0]}
    there = {axis: b.apply("add", point.tile[axis], before[axis]) for axis in frame.axes}
    for param in part.kernel.written:
        array = frame.tiles.arrays[param]
        value = b.bind(Load(array, _index(there), array.type))
        copies.append(Store(array, _index(at), value))
    out.append(If(test, (Comment("outside"), *copies)))


def _index(at: Coordinates) -> tuple[Expr, Expr]:
    return at.get("row", constant(0, INT)), at["column"]
