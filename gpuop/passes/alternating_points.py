"""Wide accesses to points whose elements alternate in memory, as the colours of photos do: one for each element of a point.

Four points of three elements, in accesses of four:

    memory      r0 g0 b0 r1 | g1 b1 r2 g2 | b2 r3 g3 b3
    elements    r0 r1 r2 r3   g0 g1 g2 g3   b0 b1 b2 b3
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector
from gpuop.ir.types import Type
from gpuop.passes.loops import counted, counter

Key = tuple[ir.FieldParam, ir.Expr, int]  # a field, the offset of the first point, and the number of points


@dataclass
class AlternatingPoints:
    """The accesses of a block, in the order of its statements.

    Attributes:
        loaded: the arrays of points that have been loaded, as they lie in memory.
        stored: the arrays of elements of points that are to be stored, until there are all.
    """

    loaded: dict[Key, ir.Array] = field(default_factory=dict)
    stored: dict[Key, dict[int, ir.Array]] = field(default_factory=dict)

    def load(self, key: Key, lanes: ir.Array, element: int, period: int) -> Iterator[ir.Stmt]:
        """Load an element of points into an array."""
        of, at, count = key
        if key not in self.loaded:
            self.loaded[key] = points = array_of(of, count, period)
            yield ir.Declare(points)
            yield ir.Wide(of, points, True, (at,), parts=period)
        yield _moved(self.loaded[key], (period, element), lanes, (1, 0), count)

    def store(self, key: Key, lanes: ir.Array, element: int, period: int) -> Iterator[ir.Stmt]:
        """Store an element of points from an array, with the last of the elements."""
        of, at, count = key
        parts = self.stored.setdefault(key, {})
        parts[element] = lanes
        if len(parts) < period:
            return
        points = array_of(of, count, period)
        yield ir.Declare(points)
        for e in range(period):
            yield _moved(parts[e], (1, 0), points, (period, e), count)
        yield ir.Wide(of, points, False, (at,), parts=period)
        del self.stored[key]


def array_of(of: ir.FieldParam, count: int, period: int) -> ir.Array:
    return ir.Array(f"{of.hint}_mixed", Type(of.type.storage), (count * period,))


def _moved(source: ir.Array, start: tuple[int, int], target: ir.Array, end: tuple[int, int], count: int) -> ir.Stmt:
    """The loop that copies so many elements, with strides and offsets in both arrays."""
    lane, out = counter("lane"), list[ir.Stmt]()
    b = collector(out)
    here, there = (b.apply("add", b.apply("mul", ir.Ref(lane), step), first) for step, first in (start, end))
    out.append(ir.Store(target, (there,), b.bind(ir.Load(source, (here,), source.type))))
    return counted(lane, 0, count, out, unroll=count)
