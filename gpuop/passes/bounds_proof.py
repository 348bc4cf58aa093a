"""Proof that each access of a lowered kernel is inside of its array, from ranges and enclosing conditions.

Reads at indices that are data have borders or tests, so ranges prove them too; `unchecked` reads, and indices of the user's own
arrays, are promises of the user. Products of two variables, and choices nested deeper than `symbolic_bounds.DEEPEST`, cannot be
proved; no schedule that the tests force has any.
"""

from __future__ import annotations

from gpuop.base.records import dataclass
from gpuop.ir.analysis.intervals import Range
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout
from gpuop.ir.nodes import Array, Atomic, Block, Expr, FieldParam, For, If, Let, Load, Store, While, Wide
from gpuop.ir.types import FieldType
from gpuop.ir.visit import COMPOSED, operands, values
from gpuop.passes.symbolic_bounds import SymbolicBounds


@dataclass(frozen=True)
class Unproved:
    """An access that is not proved to be inside.

    Attributes:
        does: "reads" or "writes".
        range: the known range of an index of an array, or of the flat index of a field.
        extent: the range that is inside.
    """

    does: str
    memory: FieldParam | Array
    range: Range
    extent: Range

    def __str__(self) -> str:
        return (
            f"it {self.does} `{self.memory.hint}` at places {self.range[0]} … {self.range[1]} as far as ranges show, "
            f"of {self.extent[0]} … {self.extent[1]}"
        )


def unproved(kernel: Kernel) -> list[Unproved]:
    """The accesses of a lowered kernel without vectors that are not proved to be inside; none where extents are arguments."""
    if not kernel.domain.threads or kernel.named:
        return []
    proof = _Proof(kernel)
    proof.block(kernel.body)
    return proof.unproved


class _Proof:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.bounds = kernel, SymbolicBounds(kernel)
        self.unproved: list[Unproved] = []
        self.inside: dict[FieldParam | Array, list[Range]] = {}  # the indices that are inside, along each axis

    def block(self, block: Block) -> None:
        for stmt in block:
            for value in () if isinstance(stmt, While) else values(stmt):
                self.loads(value)
            match stmt:
                case Let():  # most statements are
                    pass
                case Store(memory=memory, index=index) | Atomic(memory=memory, index=index):
                    self.access("writes", memory, index)
                case Wide(field=field, array=array, loads=loads, index=index, left=None):
                    size = array.type.dtype.bits // field.type.storage.bits
                    self.access("reads" if loads else "writes", field, index, array.elements * size)
                case If(cond=cond, then=then, orelse=orelse):
                    for branch, holds in ((then, True), (orelse, False)):
                        with self.bounds.under(cond, holds):
                            self.block(branch)
                case For(body=body):
                    with self.bounds.turning(stmt):
                        self.block(body)
                case While(head=head, cond=cond, body=body):
                    self.block(head)
                    self.loads(cond)
                    with self.bounds.under(cond, True):
                        self.block(body)

    def loads(self, expr: Expr) -> None:
        if isinstance(expr, Load):
            self.access("reads", expr.memory, expr.index)
        for part in operands(expr):
            if type(part) in COMPOSED:  # most operands are atoms
                self.loads(part)

    def access(self, does: str, memory: FieldParam | Array, index: tuple[Expr, ...], count: int = 1) -> None:
        if memory not in self.inside:
            self.inside[memory] = (
                [places(self.kernel.layout(memory), memory.type)]
                if isinstance(memory, FieldParam)
                else [(0, n - 1) for n in memory.extents]
            )
        for place, (low, high) in zip(index, self.inside[memory], strict=True):
            if not self.is_inside(place, low, high - count + 1):
                least, most = self.bounds.bounds(place)
                if least <= most:  # else nothing comes there
                    self.unproved.append(Unproved(does, memory, (least, most + count - 1), (low, high)))

    def is_inside(self, place: Expr, low: int, high: int) -> bool:
        """Return whether an index is inside, also where it is so under each of conditions, of which at least one holds."""
        if self.bounds.is_within(place, low, high):
            return True
        for conditions, holds in self.bounds.either:
            for cond in conditions:
                with self.bounds.under(cond, holds):
                    if not self.bounds.is_within(place, low, high):
                        break
            else:
                return True
        return False


def places(layout: Layout, kind: FieldType) -> Range:
    """The range of the flat indices of a field's elements, relative to its first one."""
    if layout.row is None:
        along = [(layout.element, kind.planes)]
    else:
        along = [*zip((layout.row, layout.element), kind.tensor_shape, strict=True)]
    along += zip(layout.point, kind.field_shape, strict=True)
    far = [step * (n - 1) for step, n in along]
    return sum(min(n, 0) for n in far), sum(max(n, 0) for n in far)
