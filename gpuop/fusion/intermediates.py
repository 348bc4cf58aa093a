"""Intermediates of a kernel: values that neighbours need and a schedule keeps in local memory or caches.

`needs_other_threads` says that a consumer reads a producer's value at other points. If these are at constant distances, the
two may be stages of one kernel (`ir/analysis/stages.py`), if the device has schedules for such kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuop.base.finalizers import WeakKeys
from gpuop.fusion.cross_thread import access_of, needs_other_threads
from gpuop.fusion.groups import Groups
from gpuop.fusion.program import Op
from gpuop.ir.analysis.footprints import Surrounding, footprints
from gpuop.ir.nodes import FieldParam, Write
from gpuop.ir.visit import effects

MOST_REACH = 32  # points along an axis; values farther away are mostly recomputed for other groups of points

_footprints: WeakKeys[Op, dict[FieldParam, Surrounding | None]] = WeakKeys()
_plain: WeakKeys[Op, bool] = WeakKeys()  # each merge asks all operators of both groups


def footprints_of(op: Op) -> dict[FieldParam, Surrounding | None]:
    if op not in _footprints:
        _footprints[op] = footprints(op.fusible)
    return _footprints[op]


def unstaged(groups: Groups, producer: Op, consumer: Op, value: int) -> str | None:
    """The reason why a value that a consumer reads at other points cannot be an intermediate, "" if none can; None if it can."""
    if not groups.limits.has_stages:
        return ""
    if value in groups.unstaged:
        return "no schedule keeps it for them"
    if producer.kernel.unfusible or consumer.kernel.unfusible or producer.kernel.grid != consumer.kernel.grid:
        return "they run on different grids"
    for op in (producer, consumer):
        if not is_plain(op):
            return f"`{op.kernel.name}` does more than to compute its own points"
    out = producer.kernel.written[producer.outputs.index(value)]
    writes = [stmt for stmt in producer.fusible.body if isinstance(stmt, Write) and stmt.field is out]
    if out in access_of(producer).scatters or len(writes) != 1:
        return f"`{producer.kernel.name}` does not write it at own points only"
    params = (p for p, v in zip(consumer.kernel.inputs, consumer.inputs, strict=True) if v == value)
    for param in params:
        near = footprints_of(consumer)[param]
        if near is None:
            return f"`{consumer.kernel.name}` reads it at computed distances"
    return None


def is_plain(op: Op) -> bool:
    """Return whether threads of an operator only compute their own points, without effects."""
    if op in _plain:
        return _plain[op]
    kernel = op.fusible
    alone = kernel.group is None and kernel.domain.elements == 1 and not kernel.shared("constant")
    _plain[op] = bool(alone and kernel.domain.shape and not effects(kernel.body) and not access_of(op).scatters)
    return _plain[op]


def staged(ops: Sequence[Op]) -> list[int]:
    """The values of a kernel's operators that others of them read at other points, in the order of computation."""
    maker = {value: op for op in ops for value in op.outputs}
    read = {
        value
        for op in ops
        for value in op.inputs
        if value in maker and needs_other_threads(maker[value], op, value) is not None
    }
    return [value for value in maker if value in read]


def reach(ops: Iterable[Op]) -> int:
    """The greatest distance in points from a result of a kernel to a value of its operators that it depends on."""
    far: dict[int, int] = {}
    for op in sorted(ops, key=lambda each: each.number):
        values = [v for v in op.inputs if v in far]
        near = footprints_of(op) if values else {}
        each = (far[v] + _radius(near.get(p)) for p, v in zip(op.kernel.inputs, op.inputs, strict=True) if v in far)
        far.update(dict.fromkeys(op.outputs, max(each, default=0)))
    return max(far.values(), default=0)


def _radius(footprint: Surrounding | None) -> int:
    return max(map(abs, (*footprint.low, *footprint.high)), default=0) if footprint is not None else 0
