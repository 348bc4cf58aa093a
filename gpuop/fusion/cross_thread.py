"""Cross-thread dependences: reads and writes of a kernel at other points than each thread's own.

They keep two operators in separate kernels, but are no refusals: a value of other threads can be recomputed where it is read
(`recompute.py`).
"""

from __future__ import annotations

from functools import lru_cache

from gpuop.base.errors import Loc
from gpuop.base.finalizers import WeakKeys
from gpuop.base.records import dataclass
from gpuop.fusion.program import Op
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Const, FieldParam, Index, Read, Write
from gpuop.ir.thread_grid import Domain
from gpuop.ir.visit import expressions, values, walk, written_by


@dataclass(frozen=True)
class AccessPattern:
    """The fields that a kernel reads (`gathers`) or writes (`scatters`) at other points than its threads' own.

    Each has the line of the first such access.
    """

    gathers: dict[FieldParam, Loc | None]
    scatters: dict[FieldParam, Loc | None]


_patterns: WeakKeys[Op, AccessPattern] = WeakKeys()


def is_local(domain: Domain, access: Read | Write) -> bool:
    """Return whether an access is to the thread's own point (and its own element)."""
    if access.point is not None:
        return False
    if domain.elements > 1:
        own = access.element == Index("global", "element") and access.field.type.planes == domain.elements
        return own or access.field.type.planes == 1
    return access.element is None or (isinstance(access, Read) and isinstance(access.element, Const))


def access_of(op: Op) -> AccessPattern:
    if op not in _patterns:
        _patterns[op] = access_pattern(op.fusible)
    return _patterns[op]


@lru_cache(maxsize=256)
def access_pattern(kernel: Kernel) -> AccessPattern:
    """The access pattern of a kernel."""
    access, written = AccessPattern({}, {}), set[FieldParam]()
    for stmt in walk(kernel.body):
        memory = written_by(stmt)
        if isinstance(memory, FieldParam):
            written.add(memory)
            if not (isinstance(stmt, Write) and is_local(kernel.domain, stmt)):
                access.scatters.setdefault(memory, stmt.loc)
        for value in values(stmt):
            if isinstance(value, Read) and not is_local(kernel.domain, value):
                access.gathers.setdefault(value.field, getattr(stmt, "loc", None))
    for output in kernel.outputs:
        if output.param not in written:  # it is in memory alone, which starts from a number
            access.scatters[output.param] = kernel.loc
        if output.initial is not None:  # it is read where the output is
            access.gathers.setdefault(output.initial, access.scatters.get(output.param))
    return access


def needs_other_threads(producer: Op, consumer: Op, value: int) -> str | None:
    """Return the reason why a thread of the consumer needs values of other producer threads; None if its own value is all it reads.

    Kernels without a body have no threads.
    """
    if producer.kernel.unfusible or consumer.kernel.unfusible:
        return None
    source, used = producer.fusible, consumer.fusible
    if source.domain != used.domain:
        return f"`{source.name}` runs on {source.domain} threads, `{used.name}` on {used.domain}"
    out = source.outputs[producer.outputs.index(value)].param
    if out in access_of(producer).scatters:
        line = _line(producer, access_of(producer).scatters[out])
        return f"`{source.name}` writes {out.hint} at computed places ({line}), so other threads' values are needed"
    for position, each in enumerate(consumer.inputs):
        param = used.inputs[position]
        if each == value and param in access_of(consumer).gathers:
            line = _line(consumer, access_of(consumer).gathers[param])
            own = tuple(Index("global", axis) for axis in used.domain.axes)  # even if it is outside the grid
            points = (e.point for e in expressions(used.body) if isinstance(e, Read) and e.field is param)
            if used.whole and all(point == own for point in points):
                return f"`{used.name}` reads `{param.hint}` in tail threads too ({line}), for which `{source.name}` has no values"
            return f"`{used.name}` reads `{param.hint}` at other points ({line}), so other threads' values are needed"
    return None


def _line(op: Op, loc: Loc | None) -> str:
    return str(op.line(loc) or "the library")
