"""Transposed reads: their axes are permuted, so that neighbouring threads read elements far apart in memory.

Axes may be mirrored too, as in rotations by 90 degrees.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuop.ir.analysis.affine import Affine, affine, position
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, FieldParam, Index, Let, Read, Ref, Var
from gpuop.ir.visit import expressions, walk
from gpuop.passes.coarsening_factor import is_own, is_plain

Axes = tuple[tuple[str, bool], ...]  # for each coordinate of a read the axis of the grid, and whether it is mirrored


def transposed_axis(kernel: Kernel) -> str:
    """The axis of the grid along which columns of transposed inputs lie; the first one of several, "" if there is none."""
    return next((axes[-1][0] for axes in _permuted(kernel).values()), "")


def transposed(kernel: Kernel) -> dict[Read, Axes]:
    """The transposed reads whose columns lie along that axis."""
    axis = transposed_axis(kernel)
    return {read: axes for read, axes in _permuted(kernel).items() if axes[-1][0] == axis}


def is_mirrored(kernel: Kernel) -> bool:
    """Return whether an axis of a transposed read is mirrored."""
    return any(mirrored for axes in transposed(kernel).values() for _, mirrored in axes)


def is_own_point(read: Read) -> bool:
    """Return whether a field is read at the thread's own point."""
    return read.point is None and is_own(read.field)


def involved(kernel: Kernel) -> set[FieldParam]:
    """The fields that transposed reads, or accesses at own points, use."""
    own = {e.field for e in expressions(kernel.body) if isinstance(e, Read) and is_own_point(e)}
    return {*kernel.written, *own, *(read.field for read in transposed(kernel))}


def _permuted(kernel: Kernel) -> dict[Read, Axes]:
    """The reads at permuted own coordinates, mirrored or not, of fields with permuted extents, whose last axis is not `column`."""
    lets = {stmt.var: stmt.value for stmt in walk(kernel.body) if isinstance(stmt, Let) and not stmt.var.mutable}
    result: dict[Read, Axes] = {}
    for read in expressions(kernel.body):
        if isinstance(read, Read) and read.point is not None and is_own(read.field):
            axes = tuple(axis for at in read.point if (axis := _axis(at, lets, kernel)) is not None)
            names = [name for name, _ in axes]
            fits = names and sorted(names) == sorted(kernel.domain.axes) and names[-1] != "column"
            extents = tuple(map(kernel.domain.extent, names))
            if fits and extents == tuple(read.field.type.field_shape) and is_plain(read.field, read.element, kernel):
                result[read] = axes
    return result


def _axis(at: Expr, lets: Mapping[Var, Expr], kernel: Kernel) -> tuple[str, bool] | None:
    """The axis whose own coordinate an expression is, and whether it is mirrored; None where it is none."""
    line = _line(at, lets)
    if line is None or len(line.parts) != 1:
        return None
    ((axis, factor),) = line.parts.items()
    ends = {1: 0, -1: kernel.domain.extent(axis) - 1}
    return (axis, factor < 0) if ends.get(factor) == line.number else None


def _line(expr: Expr, lets: Mapping[Var, Expr]) -> Affine | None:
    def leaf(expr: Expr) -> Affine | None:
        match expr:
            case Index(kind="global", axis=axis, offset=offset):
                return position(axis, offset)
            case Ref(var=var) if var in lets:
                return _line(lets[var], lets)
        return None

    return affine(expr, leaf)
