"""When a producer may be fused into its consumer: a refusal carries its reason, which is also what `explain` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gpuop.errors import Loc
from gpuop.fusion.program import Op
from gpuop.ir.kernel import Domain, Kernel
from gpuop.ir.nodes import Atomic, Const, FieldParam, Index, Read, Write
from gpuop.ir.visit import expressions, values, walk

MOST_COMPARED = 8  # kernels that read one value and are tried with each other
MAX_OPERATORS = 2048  # compilers take longer than they save beyond that


@dataclass(frozen=True)
class FieldAccess:
    """How a kernel touches its fields: the line of the first access that is not local, for each field that has one."""

    gathers: dict[FieldParam, Loc | None]
    scatters: dict[FieldParam, Loc | None]


_accesses: WeakKeyDictionary[Op, FieldAccess] = WeakKeyDictionary()


def is_local(domain: Domain, access: Read | Write) -> bool:
    """Whether a thread touches only what belongs to its own point (and its own element)."""
    if access.point is not None:
        return False
    if domain.elements > 1:
        own = access.element == Index("global", "element") and access.field.type.planes == domain.elements
        return own or access.field.type.planes == 1
    return access.element is None or (isinstance(access, Read) and isinstance(access.element, Const))


def accesses(op: Op) -> FieldAccess:
    if op not in _accesses:
        _accesses[op] = scan(op.fusible)
    return _accesses[op]


def scan(kernel: Kernel) -> FieldAccess:
    """How a kernel touches its fields."""
    access = FieldAccess({}, {})
    for stmt in walk(kernel.body):
        if isinstance(stmt, Write) and not is_local(kernel.domain, stmt):
            access.scatters.setdefault(stmt.field, stmt.loc)
        if isinstance(stmt, Atomic) and isinstance(stmt.memory, FieldParam):
            access.scatters.setdefault(stmt.memory, stmt.loc)
        for value in values(stmt):
            if isinstance(value, Read) and not is_local(kernel.domain, value):
                access.gathers.setdefault(value.field, getattr(stmt, "loc", None))
    return access


def why_not(producer: Op, consumer: Op, value: int) -> str | None:
    """Why the consumer of a value cannot take it from the producer's registers; None when it can."""
    for kernel in (producer.kernel, consumer.kernel):
        if kernel.apart:
            return f"`{kernel.name}` {kernel.apart}"
    made, used = producer.fusible, consumer.fusible
    if made.domain != used.domain:
        return f"`{made.name}` runs on {made.domain} threads, `{used.name}` on {used.domain}"
    out = made.outputs[producer.outputs.index(value)].param
    if out in accesses(producer).scatters:
        line = _line(accesses(producer).scatters[out])
        return f"`{made.name}` writes {out.hint} at computed places ({line}), so other threads' values are needed"
    for position, given in enumerate(consumer.inputs):
        param = used.inputs[position]
        if given == value and param in accesses(consumer).gathers:
            line = _line(accesses(consumer).gathers[param])
            if used.whole and _reads_own(used, param):
                return f"`{used.name}` reads `{param.hint}` in surplus threads too ({line}), for which `{made.name}` has no values"
            return f"`{used.name}` reads `{param.hint}` at other points ({line}), so other threads' values are needed"
    return None


def _reads_own(kernel: Kernel, param: FieldParam) -> bool:
    """Whether a kernel reads a field only where its threads are, outside the grid as they may be."""
    own = tuple(Index("global", axis) for axis in kernel.domain.axes)
    return all(e.point == own for e in expressions(kernel.body) if isinstance(e, Read) and e.field is param)


def conflict(kernels: Sequence[Kernel], local_bytes: int) -> str | None:
    """Why kernels that depend on their work-groups cannot run in one launch."""
    for kernel in kernels[1:]:
        if kernel.group != kernels[0].group:
            shapes = " and ".join("×".join(map(str, k.group or ())) for k in (kernels[0], kernel))
            return f"`{kernels[0].name}` and `{kernel.name}` run in different work-groups, {shapes}"
    arrays = [[stmt.array for stmt in kernel.shared("local")] for kernel in kernels]
    for kernel, mine in zip(kernels, arrays, strict=True):
        if sum(map(bool, arrays)) > 1 and any(not isinstance(n, int) for array in mine for n in array.shape):
            return f"how much local memory `{kernel.name}` uses depends on the target"
    needs = [sum(array.nbytes for array in mine) for mine in arrays]
    if sum(needs) > local_bytes and sum(map(bool, needs)) > 1:
        return f"together they would use {sum(needs)} bytes of local memory, more than {local_bytes}"
    return None


def _line(loc: Loc | None) -> str:
    return str(loc) if loc is not None else "the library"
