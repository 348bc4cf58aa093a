"""Numbers of kernels that may follow from extents, and these kernels with arguments in their places.

A kernel whose extents are arguments may have numbers that Python has computed from extents: strides, products, counts of chunks,
centres. Whatever they are used for, an argument gives the same bits; what passes prove by numbers they do not prove by arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.types import INT, SMALL_TENSOR, DType, FieldType, Type
from gpuop.ir.visit import COMPOSED, NESTING, map_blocks, map_values, with_operands

MOST = 2**30  # of a positive integer that is an argument, for range analysis


@dataclass(frozen=True, slots=True)
class OpenNumbers:
    """The numbers of a recorded kernel that may follow from extents, in order, then the extents of its grids that are not 1.

    Attributes:
        form: equal for kernels that are likely to differ in these alone.
        axes: the axes of the extents.
        threads: how many of the extents are of the grid of threads, the first ones.
    """

    kernel: Kernel
    form: tuple[Any, ...]
    numbers: tuple[ir.Const, ...]
    extents: tuple[int, ...]
    axes: tuple[str, ...]
    threads: int

    @classmethod
    def of(cls, kernel: Kernel) -> OpenNumbers:
        numbers: list[ir.Const] = []
        roles: list[str] = []

        def note(number: ir.Const, role: str) -> ir.Expr:
            numbers.append(number)
            roles.append(role)
            return number

        _Walk(note).block(kernel.body)
        shapes = (kernel.domain.shape, *(param.type.field_shape for param in (*kernel.inputs, *kernel.written)))
        each = [_extents(shape) for shape in shapes]
        extents = tuple(n for extents in each for _, n in extents)
        axes = tuple(axis for extents in each for axis, _ in extents)
        form = kernel.name, len(kernel.body), *map(len, each), *roles
        return cls(kernel, form, tuple(numbers), extents, axes, len(each[0]))

    @property
    def values(self) -> tuple[Any, ...]:
        """A key of each number, and the extents."""
        return (*(number.text for number in self.numbers), *self.extents)

    @property
    def field_extents(self) -> range:
        """The positions of extents of fields among the values."""
        return range(len(self.numbers) + self.threads, len(self.numbers) + len(self.extents))

    def less(self, number: int, extent: int) -> int | None:
        """By how much a number is less than an extent, both by position; None for numbers that are no ints."""
        const = self.numbers[number]
        return int(self.extents[extent - len(self.numbers)] - const.value) if const.type.dtype is INT else None

    def opened(self, groups: Sequence[Sequence[int]], follows: Mapping[int, tuple[int, int]]) -> OpenKernel:
        """The kernel with arguments.

        Args:
            groups: positions of numbers with one argument each; or of extents that change.
            follows: the extent of a field that a number is less than for all sizes, by position, and by how much.
        """
        count = len(self.numbers)
        firsts = [group[0] for group in groups if group[0] < count]
        by_type: dict[DType, list[int]] = {}
        for n in firsts:
            by_type.setdefault(self.numbers[n].type.dtype, []).append(n)
        params: list[ir.FieldParam] = []
        values: list[tuple[bool | int | float, ...]] = []
        before: list[ir.Stmt] = []
        filled: dict[int, ir.Expr] = {}
        for dtype, those in by_type.items():
            for start in range(0, len(those), SMALL_TENSOR):
                piece = those[start : start + SMALL_TENSOR]
                kind = FieldType((), (len(piece),) if len(piece) > 1 else (), dtype.name)
                params.append(ir.FieldParam("numbers", kind, by_value=True))
                values.append(tuple(self.numbers[n].value for n in piece))
                for plane, n in enumerate(piece):
                    filled[n] = self._argument(ir.Argument(params[-1], plane, Type(dtype)), n, follows.get(n), before)
        filled |= {n: filled[group[0]] for group in groups if group[0] < count for n in group}
        extents = {self.extents[at - count] for group in groups for at in group if at >= count}
        body = (*before, *_filled(self.kernel.body, filled))
        kernel = replace(self.kernel, inputs=(*self.kernel.inputs, *params), body=body, extents=tuple(sorted(extents)))
        return OpenKernel(kernel, tuple(params), tuple(values))

    def _argument(
        self, argument: ir.Argument, n: int, follow: tuple[int, int] | None, before: list[ir.Stmt]
    ) -> ir.Expr:
        """The argument for a number, clamped to bounds for range analysis if it is a positive int."""
        value = self.numbers[n].value
        if follow is not None:
            at, less = follow
            return replace(argument, follows=(int(value) + less, less, self.axes[at - len(self.numbers)]))
        if argument.type.dtype is not INT or not 0 < value <= MOST:
            return argument
        b = collector(before)
        return b.apply("max", b.apply("min", argument, MOST), 1)


@dataclass(frozen=True, slots=True)
class OpenKernel:
    """A kernel with numbers as arguments, the parameters for these, and their values."""

    kernel: Kernel
    params: tuple[ir.FieldParam, ...]
    values: tuple[tuple[bool | int | float, ...], ...]


def _extents(shape: Sequence[int]) -> list[tuple[str, int]]:
    """The extents of a grid that are not 1, with their axes."""
    return [(axis, n) for axis, n in zip(ir.GRID_AXES[3 - len(shape) :], shape, strict=True) if n > 1]


def _filled(body: ir.Block, filled: Mapping[int, ir.Expr]) -> ir.Block:
    count = 0

    def fill(number: ir.Const, role: str) -> ir.Expr:
        nonlocal count
        count += 1
        return filled.get(count - 1, number)

    return _Walk(fill).block(body)


class _Walk:
    """Maps all integers of a body, offsets of the own point too, and other numbers that may be arguments with equal bits.

    These are values, and operands of correctly rounded operations.
    """

    def __init__(self, f: Callable[[ir.Const, str], ir.Expr]) -> None:
        self.f = f
        self.role, self.exact = "", True
        self.before: list[ir.Stmt] = []

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(each for stmt in block for each in self.stmt(stmt))

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        self.role = type(stmt).__name__
        before = self.before = list[ir.Stmt]()
        own = map_values(stmt, self.expr)
        return (*before, map_blocks(own, self.block) if type(own) in NESTING else own)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        kind = type(expr)
        if kind not in COMPOSED:
            self.exact = True
            return self.atom(expr)
        if isinstance(expr, ir.Apply):
            self.role, self.exact = expr.op, OPS[expr.op].exact
        else:
            spread = isinstance(expr, ir.Cast) and expr.arg.type == expr.type.scalar
            self.role, self.exact = kind.__name__, kind is ir.Pack or kind is ir.Read or spread
        return with_operands(expr, self.atom)

    def atom(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Const):
            number = expr.type.integer or (self.exact and expr.type.kind == "f")
            return self.f(expr, self.role) if number else expr
        if not isinstance(expr, ir.Index) or not expr.offset:
            return expr
        offset = ir.Const(expr.offset, Type(INT))
        new = self.f(offset, expr.kind)
        return expr if new is offset else collector(self.before).apply("add", replace(expr, offset=0), new)
