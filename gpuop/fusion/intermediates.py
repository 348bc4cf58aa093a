"""Which values become intermediates of a kernel: those that neighbours need and a schedule keeps near, instead of in memory.

`needs_other_threads` tells that a consumer reads a producer's value at other points. Where these are at constant distances, the
two may be stages of one kernel (`ir/analysis/stages.py`), if the device has methods for such kernels.
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

MOST_REACH = 32  # points along an axis; what is read farther away is mostly computed anew for other groups of points

_footprints: WeakKeys[Op, dict[FieldParam, Surrounding | None]] = WeakKeys()
_plain: WeakKeys[Op, bool] = WeakKeys()  # each merge asks all operators of both groups


def footprints_of(op: Op) -> dict[FieldParam, Surrounding | None]:
    if op not in _footprints:
        _footprints[op] = footprints(op.fusible)
    return _footprints[op]


def unstaged(groups: Groups, producer: Op, consumer: Op, value: int) -> str | None:
    """Why a value that a consumer reads at other points cannot be an intermediate, empty where none can; None where it can."""
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
    """Whether threads of an operator compute their own points, and nothing else that anybody notices."""
    if op in _plain:
        return _plain[op]
    kernel = op.fusible
    alone = kernel.group is None and kernel.domain.elements == 1 and not kernel.shared("constant")
    _plain[op] = bool(alone and kernel.domain.shape and not effects(kernel.body) and not access_of(op).scatters)
    return _plain[op]


def staged(ops: Sequence[Op]) -> list[int]:
    """Of the operators of one kernel, the values that others read at other points, in the order in which they are made."""
    maker = {value: op for op in ops for value in op.outputs}
    read = {
        value
        for op in ops
        for value in op.inputs
        if value in maker and needs_other_threads(maker[value], op, value) is not None
    }
    return [value for value in maker if value in read]


def reach(ops: Iterable[Op]) -> int:
    """How many points away the values of one kernel's operators lie that one of its results is computed from."""
    far: dict[int, int] = {}
    for op in sorted(ops, key=lambda each: each.number):
        known = [v for v in op.inputs if v in far]
        near = footprints_of(op) if known else {}
        each = (far[v] + _radius(near.get(p)) for p, v in zip(op.kernel.inputs, op.inputs, strict=True) if v in far)
        far.update(dict.fromkeys(op.outputs, max(each, default=0)))
    return max(far.values(), default=0)


def _radius(footprint: Surrounding | None) -> int:
    return max(map(abs, (*footprint.low, *footprint.high)), default=0) if footprint is not None else 0
