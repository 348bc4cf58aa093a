"""Points of a tile that lie outside of the grid: they get the values of those inside that a border names.

Strips with windows have computed them as if the grid went on, which is not what a border means: that is the value of another point.
Where a number stands outside, it does so already, and under "wrap" the grid goes on.
"""

from __future__ import annotations

from gpuop.ir.build import collector, constant
from gpuop.ir.nodes import Barrier, Block, Comment, Expr, If, Index, Load, Stmt, Store
from gpuop.ir.types import INT
from gpuop.passes.schedules.common.grid_walk import numbered
from gpuop.passes.schedules.gpu.tile_chain import TilePart
from gpuop.passes.schedules.gpu.tile_frame import Along, Frame
from gpuop.passes.schedules.gpu.tile_regions import THREADS, Region
from gpuop.passes.schedules.gpu.tile_windows import StripWindows


def outside(frame: Frame, part: TilePart, region: Region) -> Block:
    """What puts right what a group at an edge keeps of a part, once all of its threads have computed theirs."""
    copied = part.rule is not None and part.rule[1] is None and not frame.tiles.chain.virtual
    around = any((*region.needed.rows, *region.needed.columns))
    if not copied or not around or not StripWindows(frame, part, region, False).found:
        return ()
    rows, columns = region.shape

    def turn(k: Expr, out: list[Stmt]) -> None:
        b = collector(out, hint="n")
        n = b.apply("add", b.apply("mul", k, THREADS), Index("local", "column"))
        at = {"row": b.apply("div", n, columns), "column": b.apply("mod", n, columns)}
        body: list[Stmt] = []
        _copied(frame, part, region, {axis: at[axis] for axis in frame.axes}, body)
        more = rows * columns % THREADS
        out += [If(collector(out).apply("lt", n, rows * columns), tuple(body))] if more else body

    return (Barrier("local"), *numbered("turn", 0, -(-rows * columns // THREADS), turn))


def _copied(frame: Frame, part: TilePart, region: Region, at: Along, out: list[Stmt]) -> None:
    """A point of the region, if it is outside."""
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


def _index(at: Along) -> tuple[Expr, Expr]:
    return at.get("row", constant(0, INT)), at["column"]
