"""Reads of fields whose axes are permuted so that neighbouring threads read what is far apart in memory.

Axes may be counted from their ends, too, as in turns by a quarter.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuop.ir.analysis.affine import Affine, affine, position
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, FieldParam, Index, Let, Read, Ref, Var
from gpuop.ir.visit import expressions, walk
from gpuop.passes.coarsening_factor import is_own, is_plain

Axes = tuple[
    tuple[str, bool], ...
]  # the grid's, of each coordinate of a read, and whether they are counted from their ends


def turned_axis(kernel: Kernel) -> str:
    """The axis of the grid along which the columns of what is read transposed lie; of several the first, "" if there is none."""
    return next((axes[-1][0] for axes in _permuted(kernel).values()), "")


def turned(kernel: Kernel) -> dict[Read, Axes]:
    """The reads whose columns lie along that axis."""
    axis = turned_axis(kernel)
    return {read: axes for read, axes in _permuted(kernel).items() if axes[-1][0] == axis}


def is_mirrored(kernel: Kernel) -> bool:
    """Whether any of them is counted from an end."""
    return any(mirrored for axes in turned(kernel).values() for _, mirrored in axes)


def is_own_point(read: Read) -> bool:
    """Whether a field is read at the thread's own point."""
    return read.point is None and is_own(read.field)


def involved(kernel: Kernel) -> set[FieldParam]:
    """The fields that are read transposed, or accessed at own points."""
    own = {e.field for e in expressions(kernel.body) if isinstance(e, Read) and is_own_point(e)}
    return {*kernel.written, *own, *(read.field for read in turned(kernel))}


def _permuted(kernel: Kernel) -> dict[Read, Axes]:
    """Reads at the own coordinates in another order, from their ends or not, of fields with these extents, where the last
    coordinate is not the last.
    """
    known = {stmt.var: stmt.value for stmt in walk(kernel.body) if isinstance(stmt, Let) and not stmt.var.mutable}
    found: dict[Read, Axes] = {}
    for read in expressions(kernel.body):
        if isinstance(read, Read) and read.point is not None and is_own(read.field):
            axes = tuple(axis for at in read.point if (axis := _axis(at, known, kernel)) is not None)
            names = [name for name, _ in axes]
            fits = names and sorted(names) == sorted(kernel.domain.axes) and names[-1] != "column"
            extents = tuple(map(kernel.domain.extent, names))
            if fits and extents == tuple(read.field.type.field_shape) and is_plain(read.field, read.element, kernel):
                found[read] = axes
    return found


def _axis(at: Expr, known: Mapping[Var, Expr], kernel: Kernel) -> tuple[str, bool] | None:
    """The axis whose own coordinate this is, and whether it is counted from the end."""
    found = _line(at, known)
    if found is None or len(found.parts) != 1:
        return None
    ((axis, factor),) = found.parts.items()
    ends = {1: 0, -1: kernel.domain.extent(axis) - 1}
    return (axis, factor < 0) if ends.get(factor) == found.number else None


def _line(expr: Expr, known: Mapping[Var, Expr]) -> Affine | None:
    def leaf(expr: Expr) -> Affine | None:
        match expr:
            case Index(kind="global", axis=axis, offset=offset):
                return position(axis, offset)
            case Ref(var=var) if var in known:
                return _line(known[var], known)
        return None

    return affine(expr, leaf)
