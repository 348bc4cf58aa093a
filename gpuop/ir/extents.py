"""Symbolic extents: names in the place of numbers, and the kernel on grids of other extents.

A kernel records which extents are equal: those along one axis share a name, and so do those along another axis, as in transposes.
The sizes are not part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from gpuop.base.records import dataclass
from gpuop.ir.axis_limit import LONGEST_AXIS
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel, Names
from gpuop.ir.layout import Layout, interleaved, planar
from gpuop.ir.nodes import GRID_AXES, Apply, Argument, Block, Expr, FieldParam, Stmt, Stride
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import Copier, map_blocks, map_values

REACH = 2**31 - 2  # elements that an int counts
MOST_GROUPS = 65535  # groups of a CUDA launch along rows and along layers; beyond that they are numbered along columns


@dataclass(frozen=True, slots=True)
class Extents:
    """The extents of a kernel's grids that have names, by these, and the names of each grid's; None is the threads' own."""

    values: Mapping[str, int]
    grids: Mapping[FieldParam | None, Names]

    @property
    def of_rows(self) -> frozenset[str]:
        """Those that rows of fields are long."""
        return frozenset(names[-1] for param, names in self.grids.items() if param is not None and names and names[-1])

    @property
    def most(self) -> Mapping[str, int]:
        """The extents that all of them may have at once: each field is within the reach of an int, and launches have three axes."""
        *others, _ = self.grids[None] or ("",)
        result = {name: MOST_GROUPS if name in others else REACH for name in self.values}
        result |= {name: LONGEST_AXIS for name in self.grids[None][-1:] if name}
        for param, names in self.grids.items():
            if param is not None:
                result |= {name: min(result[name], _most(param, names)) for name in filter(None, names)}
        return result


def _most(param: FieldParam, names: Names) -> int:
    """The extent of each axis that has a name, in a field that is just within reach."""
    fixed = (n for name, n in zip(names, param.type.field_shape, strict=True) if not name)
    reach, axes = REACH // (param.type.planes * max(math.prod(fixed), 1)), sum(map(bool, names))
    near = int(reach ** (1 / axes)) + 1
    return near if near**axes <= reach else near - 1


def extents_of(kernel: Kernel) -> Extents:
    """The extents of the dynamic fields, or those of `kernel.extents`, wherever they occur; those of 1 are numbers."""
    dynamic = {*kernel.extents} or {n for param in kernel.dynamic for n in param.type.field_shape if n > 1}
    names: dict[tuple[str, int], str] = {}

    def name(axis: str, extent: int, others: bool) -> str:
        if extent not in dynamic:
            return ""
        like = next((extent_name for (_, n), extent_name in names.items() if n == extent), "") if others else ""
        count = sum(each.startswith(axis) for each in values)
        extent_name = names.setdefault((axis, extent), like or f"{axis}s{count or ''}")
        values[extent_name] = extent
        return extent_name

    values: dict[str, int] = {}
    axes, shape = kernel.domain.axes, kernel.domain.shape
    grids: dict[FieldParam | None, Names] = {
        None: tuple(name(axis, n, others=False) for axis, n in zip(axes, shape, strict=True))
    }
    for param in (*kernel.inputs, *kernel.written, *kernel.intermediates):
        shape = param.type.field_shape
        grids[param] = tuple(name(a, n, others=True) for a, n in zip(GRID_AXES[3 - len(shape) :], shape, strict=True))
    return Extents(values, grids)


def resized(
    kernel: Kernel,
    extents: Extents,
    values: Mapping[str, int],
    most: Mapping[str, int] = MappingProxyType({}),
    aligned: bool = False,
) -> Kernel:
    """The kernel with other values of the extents that have names, which it then has as `named`.

    Args:
        most: the greatest values that the kernel is for; none are greater than these if left out.
        aligned: whether all arrays of users begin where any access is aligned.
    """

    def shape(names: Names, old: Shape) -> Shape:
        return Shape(values[name] if name else n for name, n in zip(names, old, strict=True))

    fields = {
        param: replace(param, type=param.type.replace(field_shape=shape(names, param.type.field_shape)))
        for param, names in extents.grids.items()
        if param is not None
    }
    return replace(
        kernel,
        inputs=tuple(fields[param] for param in kernel.inputs),
        intermediates=tuple(fields[param] for param in kernel.intermediates),
        outputs=tuple(
            replace(o, param=fields[o.param], over=o.over and fields[o.over], initial=o.initial and fields[o.initial])
            for o in kernel.outputs
        ),
        body=_Resizing(kernel, extents, fields).copy(),
        domain=replace(kernel.domain, shape=shape(extents.grids[None], kernel.domain.shape)),
        layouts=tuple((fields[param], _like(kernel, param, fields[param], aligned)) for param, _ in kernel.layouts),
        dynamic=frozenset(),
        extents=(),
        named=tuple((param and fields[param], names) for param, names in extents.grids.items()),
        most=tuple((most or values).items()),
    )


def _like(kernel: Kernel, param: FieldParam, new: FieldParam, aligned: bool) -> Layout:
    """The layout of a field with other extents: in planes, or interleaved."""
    make = planar if in_planes(kernel, param) else interleaved
    return replace(make(new.type), behind=0 if aligned else None)


class _Resizing(Copier):
    """Copies a body for other extents; arguments that follow from extents of fields become these, if the fields are in memory."""

    def __init__(self, kernel: Kernel, extents: Extents, fields: Mapping[FieldParam, FieldParam]) -> None:
        super().__init__(kernel.body, fields=dict(fields))
        self.before: list[Stmt] = []
        self.places: dict[tuple[int, str], Stride] = {}  # by extent, and by extent and axis
        for param, names in extents.grids.items():
            new = fields.get(param) if param is not None else None
            if new is not None:
                for axis, name, n in zip(GRID_AXES[3 - len(names) :], names, new.type.field_shape, strict=True):
                    if name:
                        stride = Stride(new, f"{axis}s", n, Type(INT))
                        self.places.setdefault((extents.values[name], axis), stride)
                        self.places.setdefault((extents.values[name], ""), stride)

    def stmt(self, stmt: Stmt) -> Block:
        before = self.before = list[Stmt]()
        own = map_values(stmt, self.expr)
        return (*before, self.renamed(map_blocks(own, self.block)))

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Stride):
            return self.stride(expr)
        if not isinstance(expr, Argument) or expr.follows is None:
            return super().expr(expr)
        (extent, less, axis), b = expr.follows, collector(self.before)
        place = self.places.get((extent, axis)) or self.places.get((extent, ""))
        if place is not None:
            return b.apply("sub", place, less) if less else place
        return b.apply("max", b.apply("min", super().expr(replace(expr, follows=None)), REACH), 2 - less)

    def stride(self, expr: Stride) -> Stride:
        """An extent of a field that another copy has put there."""
        field = self.fields.get(expr.field, expr.field)
        axis = GRID_AXES[3 - len(field.type.field_shape) :].index(expr.what.removesuffix("s"))
        return replace(expr, field=field, value=field.type.field_shape[axis])


def extent(kernel: Kernel, axis: str, less: int = 0) -> Expr:
    """The extent of a kernel's grid along an axis, or so much less: a number, or what an output of the grid calls it.

    A thread may have several points: what asks for `_columns` then is told the number of threads.
    """
    n, names = kernel.domain.extent(axis), dict(zip(kernel.domain.axes, dict(kernel.named).get(None, ()), strict=False))
    if not names.get(axis):
        return constant(n - less, INT)
    like = next(param for param in kernel.written if param.type.field_shape == kernel.domain.shape)
    extent = Stride(like, f"{axis}s", n, Type(INT))
    return Apply("sub", (extent, constant(less, INT)), Type(INT)) if less else extent


def shown_extents(kernel: Kernel) -> list[str]:
    """The extents of a kernel's grid as comments tell them: numbers, or their names."""
    names = dict(kernel.named).get(None, ("",) * len(kernel.domain.shape))
    return [name or str(n) for name, n in zip(names, kernel.domain.shape, strict=True)]


def in_planes(kernel: Kernel, param: FieldParam) -> bool:
    return replace(kernel.layout(param), behind=None) == planar(param.type)


def is_regular(kernel: Kernel, param: FieldParam) -> bool:
    """True if the extents of a field determine the positions of its elements."""
    return in_planes(kernel, param) or replace(kernel.layout(param), behind=None) == interleaved(param.type)
