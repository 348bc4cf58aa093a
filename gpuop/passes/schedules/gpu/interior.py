"""The kernel of walking threads; where borders cost much, with code of its own for warps in the interior."""

from __future__ import annotations

from functools import reduce

from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Comment, Expr, If, Index, Let, Ref, Stmt
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, Shape
from gpuop.passes.instantiate import of_threads
from gpuop.passes.schedules.common.grid_walk import FIRST, TOP, Walk
from gpuop.passes.schedules.common.register_windows import Span
from gpuop.passes.schedules.gpu.halo_exchange import positioned
from gpuop.passes.schedules.gpu.roll_kernel import RollKernel


def roll_kernel(kernel: Kernel, walk: Walk, interior: Walk | None) -> Kernel:
    """The kernel of threads that walk so; warps in the interior have another walk, if there is one."""
    rolling = RollKernel(kernel, walk)
    domain, head = positioned(kernel, walk, rolling.windows) if walk.around is not None else _positioned(kernel, walk)
    head.insert(0, Comment(_title(kernel, walk)))
    body = rolling.body()
    if interior is not None:
        inner = RollKernel(kernel, interior)
        test = _is_interior(inner, collector(head))
        body = (If(test, (Comment("interior"), *inner.body()), body),)
    return of_threads(kernel, domain.shape, (*head, *body), group=walk.group, intermediates=())


def _positioned(kernel: Kernel, walk: Walk) -> tuple[Domain, list[Stmt]]:
    """The grid of threads, and the first column and row of a thread."""
    domain, firsts = kernel.domain, {FIRST: ("column", walk.columns), TOP: (walk.axis, walk.rows)}
    counts, head = dict(firsts.values()), list[Stmt]()
    reached = {axis: domain.extent(axis) + walk.slack * (axis == "column") for axis in domain.axes}
    for var, (axis, count) in firsts.items():
        if count > 1 or var is TOP:
            head.append(Let(var, Apply("mul", (Index("global", axis), constant(count, INT)), var.type)))
    return Domain(Shape(-(-n // counts.get(axis, 1)) for axis, n in reached.items()), domain.elements), head


def _title(kernel: Kernel, walk: Walk) -> str:
    points = "x".join(map(str, kernel.domain.shape)) + " words" * kernel.packed
    turn = f", {walk.turn} at a time" if walk.turn > 1 else ""
    return f"{walk.columns} column{'s' * (walk.columns > 1)} and {walk.rows} {walk.axis}s of {points}{turn}"


def _is_interior(rolling: RollKernel, b: Builder) -> Expr:
    """The test whether all that the threads of a warp read and write is inside; the same for all of them, against divergence."""
    walk, by_view, domain = rolling.walk, rolling.windows.by_view, rolling.source.domain
    rows = _joined([(w.rows[0] - rolling.warm, w.rows[1] + walk.rows - 1) for w in by_view.values()])
    tests: list[tuple[Expr, Span, str]] = [(Ref(TOP), rows, walk.axis)]
    lane = b.apply("and", Index("local", "column"), walk.warp - 1)
    first = b.apply("sub", rolling.loads.column(b, 0), b.apply("mul", lane, walk.columns))
    left, right = zip(*(walk.reach(window.columns) for window in by_view.values()), strict=True)
    tests.append((first, (-max(left) - walk.shift, walk.warp * walk.columns - 1 + max(right)), "column"))
    for n, axis in enumerate(domain.axes[:-1]):
        if axis != walk.axis:
            tests.append((Index("global", axis), _joined([(view.across[n],) * 2 for view in by_view]), axis))
    inside = [b.apply("ge", at, -low) for at, (low, _), _ in tests if low]
    inside += [b.apply("le", at, domain.extent(axis) - 1 - high) for at, (_, high), axis in tests if high]
    return reduce(lambda one, other: b.apply("and", one, other), inside)


def _joined(spans: list[Span]) -> Span:
    """The least span that contains all of them, and 0."""
    return min(0, *(low for low, _ in spans)), max(0, *(high for _, high in spans))
