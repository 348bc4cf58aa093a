"""Reads of fields whose axes are permuted so that neighbouring threads read what is far apart in memory."""

from __future__ import annotations

from collections.abc import Iterator

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam, Index, Read
from gpuop.ir.visit import expressions
from gpuop.passes.points_per_thread import is_own, is_plain


def turned_axis(kernel: Kernel) -> str:
    """The axis of the grid along which the columns of what is read transposed lie; of several the first, "" if there is none."""
    return next((_last(read) for read in _permuted(kernel)), "")


def turned(kernel: Kernel) -> Iterator[Read]:
    """The reads whose columns lie along that axis."""
    axis = turned_axis(kernel)
    return (read for read in _permuted(kernel) if _last(read) == axis)


def is_own_point(read: Read) -> bool:
    """Whether a field is read at the thread's own point."""
    return read.point is None and is_own(read.field)


def involved(kernel: Kernel) -> set[FieldParam]:
    """The fields that are read transposed, or accessed at own points."""
    own = {e.field for e in expressions(kernel.body) if isinstance(e, Read) and is_own_point(e)}
    return {*kernel.written, *own, *(read.field for read in turned(kernel))}


def _permuted(kernel: Kernel) -> Iterator[Read]:
    """Reads at the own coordinates in another order, of fields with these extents, where the last coordinate is not the last."""
    for read in expressions(kernel.body):
        if isinstance(read, Read) and read.point is not None and is_own(read.field):
            axes = [at.axis for at in read.point if isinstance(at, Index) and (at.kind, at.offset) == ("global", 0)]
            fits = axes and sorted(axes) == sorted(kernel.domain.axes) and axes[-1] != "column"
            extents = tuple(map(kernel.domain.extent, axes))
            if fits and extents == tuple(read.field.type.field_shape) and is_plain(read.field, read.element, kernel):
                yield read


def _last(read: Read) -> str:
    assert read.point is not None and isinstance(read.point[-1], Index)
    return read.point[-1].axis
