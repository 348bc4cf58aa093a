"""Which operators of a kernel are predicted to take less time in kernels of their own.

Whoever is fused with a stencil runs as it does, and it as they do: one that computes with doubles, or reads places that no
vector loads, may cost the others a schedule that they have alone; so may a reader that computes their values where it needs
them. Then operators are put together again one by one, as far as that pays, and the kernel is left in these parts where they
are faster by far. It goes by a typical device of the target's kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, product

from gpuop.fusion.groups import Groups
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.other_threads import access_of
from gpuop.fusion.program import Op, Program
from gpuop.fusion.refusals import refuse
from gpuop.fusion.split import Piece, Splitting
from gpuop.fusion.typical import least, predicted
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.passes.made_before import suited

Severed = dict[tuple[int, int], str]  # why, by the numbers of two operators that are not to be in one kernel

SLOWER = 1.3  # times as long as in parts, from which on a kernel is left in these
MOST_OPERATORS = 32  # of a kernel that is looked at: each is lowered, and most of what they are together on the way


class Parting:
    """Looks for kernels to leave in parts."""

    def __init__(self, program: Program, limits: Limits) -> None:
        self.program, self.limits = program, limits

    def severed(self, pieces: Iterable[Piece]) -> Severed:
        """Who is not to be in one kernel, of those that are in one of these."""
        target = self.limits.target
        if target is None or not self.limits.has_stages or self.limits.pin is not None:
            return {}
        return {pair: reason for piece in pieces for pair, reason in self._of(piece, target).items()}

    def _of(self, piece: Piece, target: Target) -> Severed:
        kernel, numbers = piece.kernel, {each.number for op in piece.ops for each in (op, *op.recomputed)}
        if not isinstance(kernel, Kernel) or not 2 <= len(numbers) <= MOST_OPERATORS or not self._lost(piece, target):
            return {}
        ops, taken = [self._recorded[n] for n in sorted(numbers)], predicted(kernel, target)
        if taken <= SLOWER * sum(least(op.fusible, target) for op in ops):  # which is known at once
            return {}
        parts = self._parts(ops, target)
        ratio = taken / sum(self._time(part, target) for part in parts)
        if len(parts) == 1 or ratio <= SLOWER:
            return {}
        reason = f"together they would have no schedule, which is predicted to take {ratio:.2g} times as long as apart"
        pairs = (pair for a, b in combinations(parts, 2) for pair in product(a, b))
        return {(a.number, b.number): reason for a, b in map(_ordered, pairs)}

    def _lost(self, piece: Piece, target: Target) -> bool:
        """Whether no schedule suits a kernel that reads what others' threads do, but may suit parts of it."""
        kernel, ops = piece.kernel, piece.ops
        if not isinstance(kernel, Kernel) or kernel.intermediates or not self.program.dynamic.isdisjoint(piece.inputs):
            return False
        if target.device == "gpu" and kernel.group is not None:
            return False  # work-groups of reductions have schedules of their own on CPUs alone
        reading = [op for op in ops if access_of(op).gathers]
        if not reading or not kernel.domain.threads or suited(kernel, target):
            return False
        return any(op.recomputed for op in ops) or any(suited(op.fusible, target) for op in reading)

    @cached_property
    def _recorded(self) -> dict[int, Op]:
        """The operators as they were before any computed for itself what it reads."""
        return {op.number: op for op in self.program.ops}

    @cached_property
    def _apart(self) -> Splitting:
        return Splitting(Groups(self.program, self.limits), self.program.types)

    def _time(self, ops: Sequence[Op], target: Target) -> float:
        kernel = self._apart.whole(ops).kernel
        assert isinstance(kernel, Kernel)
        return predicted(kernel, target)

    def _parts(self, ops: Sequence[Op], target: Target) -> list[list[Op]]:
        """Operators put together as long as one kernel is predicted to take less than two, those first that feed one another."""
        groups = self._apart.groups
        for pair in _pairs(ops):
            a, b = (groups.of[op.number] for op in pair)
            if a == b or refuse(groups, a, b) is not None:
                continue
            one, other = groups.members[a], groups.members[b]
            if self._time([*one, *other], target) <= self._time(one, target) + self._time(other, target):
                groups.merge(a, b)
        return [groups.members[n] for n in sorted({groups.of[op.number] for op in ops})]


def _ordered(pair: tuple[Op, Op]) -> tuple[Op, Op]:
    a, b = sorted(pair, key=lambda op: op.number)
    return a, b


def _pairs(ops: Sequence[Op]) -> Iterator[tuple[Op, Op]]:
    """Operators of which one needs the other, then those that read the same."""
    pairs = list(combinations(ops, 2))
    yield from ((a, b) for a, b in pairs if not set(a.outputs).isdisjoint(b.inputs))
    yield from ((a, b) for a, b in pairs if not set(a.inputs).isdisjoint(b.inputs))
