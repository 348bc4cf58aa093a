"""Choose the work-group and mask the threads that rounding up to whole groups adds; they never return early."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import collector
from gpuop.ir.nodes import Domain, Expr, If, Index, Kernel, Stmt
from gpuop.ir.types import Shape

WIDTHS = (256, 128, 64)  # of a group, widest first: neighbours in memory are neighbours in the group
GROUP = 256  # threads of a group whose grid is narrower than that
SURPLUS = 8  # at most one thread in so many is added by rounding a row up, if a width allows it


def work_group(domain: Domain) -> Shape:
    """(layers × elements, rows, columns) of a group: a piece of a row, or several rows where they are short."""
    columns = domain.extent("column")
    if columns > WIDTHS[-1]:
        fitting = (width for width in WIDTHS if -columns % width * SURPLUS <= columns)
        return Shape(1, 1, next(fitting, WIDTHS[-1]))
    width = _power(columns)
    return Shape(1, min(GROUP // width, _power(domain.extent("row"))), width)


def _power(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def guard_domain(kernel: Kernel) -> Kernel:
    group = kernel.group or work_group(kernel.domain)
    rounded = [
        axis for axis, size in zip(("layer", "row", "column"), group, strict=True) if kernel.domain.extent(axis) % size
    ]
    if not rounded:
        return replace(kernel, group=group)
    head: list[Stmt] = []
    b = collector(head, hint="inside")
    test: Expr | None = None
    for axis in rounded:
        one = b.apply("lt", Index("global", axis), Index("global_size", axis))
        test = one if test is None else b.apply("and", test, one)
    assert test is not None
    return replace(kernel, group=group, body=(*head, If(test, kernel.body)))
