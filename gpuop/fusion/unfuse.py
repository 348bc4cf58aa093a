"""Unprofitable fusions: operators that are predicted to take less time in kernels of their own.

Fused operators share one schedule. An operator with doubles, or with reads that no vector loads, may deprive the others of
the schedule that they have alone. A consumer that recomputes its inputs may do the same, and it computes values again that are
in memory anyway. Stages of one kernel recompute halos for each strip, and cheap values at each read; the cost is high for
blocks of few rows and for large windows. Such a kernel's operators are fused again one by one, as far as that pays, and the
kernel is left in these parts if they are much faster. Times are predicted for a typical device of the target's kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations, product

from gpuop.base.finalizers import WeakKeys
from gpuop.base.records import dataclass
from gpuop.fusion.cost import work
from gpuop.fusion.cross_thread import access_of, needs_other_threads
from gpuop.fusion.groups import Groups
from gpuop.fusion.intermediates import footprints_of, is_plain
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.legality import refuse
from gpuop.fusion.program import Op, Program, network_of
from gpuop.fusion.register_split import Piece, Spliced, Splitting
from gpuop.fusion.schedule_choice import recompute_ratio
from gpuop.fusion.typical_devices import apart, least, predicted, recorded
from gpuop.ir.device_model import CHEAP, POSSIBLY_SLOWER, SLOWER_THAN_CUT, SLOWER_THAN_PARTS
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.ir.text import content
from gpuop.passes.coarsening_factor import is_small
from gpuop.passes.lowering_cache import suited
from gpuop.passes.resolve_target import resolve_target
from gpuop.passes.vectorization_legality import obstacle

Time = Callable[[Kernel, Target], float]
Severed = dict[tuple[int, int], str]  # a reason, by the numbers of two operators to keep in separate kernels

MOST_OPERATORS = 32  # most operators of a kernel that is examined: each, and most unions of them, are lowered


class Parting:
    """A search for kernels to leave in parts."""

    def __init__(self, program: Program, limits: Limits, spliced: Spliced) -> None:
        self.program, self.limits, self.spliced = program, limits, spliced
        self._equal: dict[str, Kernel] = {}

    def severed(self, pieces: Iterable[Piece]) -> Severed:
        """Pairs of operators of one piece to keep in separate kernels, with reasons."""
        target = self.limits.target
        if target is None or not self.limits.has_stages or self.limits.pin is not None:
            return {}
        all_pieces = list(pieces)
        return {pair: reason for piece in all_pieces for pair, reason in self._of(piece, target, all_pieces).items()}

    def _of(self, piece: Piece, target: Target, pieces: Sequence[Piece]) -> Severed:
        kernel, numbers, others = piece.kernel, _computed(piece), [each for each in pieces if each is not piece]
        if not isinstance(kernel, Kernel) or not self.program.dynamic.isdisjoint(piece.inputs):
            return {}
        why = self._why(piece, kernel, target, others) if 2 <= len(numbers) <= MOST_OPERATORS else ""
        if not why:
            return {}
        seconds = predicted(kernel, target)
        if seconds <= SLOWER_THAN_PARTS * self._moving(kernel, numbers, target):
            return {}
        if self._lower_bound(numbers, others, seconds / POSSIBLY_SLOWER, target) >= seconds / POSSIBLY_SLOWER:
            return {}
        parts = self._parts(piece, others, target)
        ratio = seconds / sum(self._more(part, piece, others, target) for part in parts)
        if len(parts) == 1 or ratio <= SLOWER_THAN_PARTS:
            return {}
        reason = f"{why}, which is predicted to take {ratio:.2g} times as long as apart"
        pairs = (pair for a, b in combinations(parts, 2) for pair in product(a, b))
        return {(min(a.number, b.number), max(a.number, b.number)): reason for a, b in pairs}

    def _moving(self, kernel: Kernel, numbers: Iterable[int], target: Target) -> float:
        """The least time to move the bytes of a kernel's parts; staged kernels may have as few as two."""
        if kernel.intermediates:
            return 2 * least(kernel, target)
        return sum(least(self._recorded[n].fusible, target) for n in numbers)

    def _lower_bound(self, numbers: Set[int], others: Iterable[Piece], enough: float, target: Target) -> float:
        """A lower bound of the time of operators in any kernels, from what they compute; 0 where other kernels do so too.

        They are lowered one by one, or as registers join them, only if the recorded kernel of all does not show enough.
        """
        if not all(numbers.isdisjoint(_computed(each)) for each in others):
            return 0.0
        ops = [self._recorded[n] for n in sorted(numbers)]
        kernel = self._kernel(ops)  # in which nothing is recomputed
        bound = recorded(kernel, target)
        return bound if bound >= enough else max(bound, self._of_operators(kernel, ops, enough, target))

    def _of_operators(self, kernel: Kernel, ops: Sequence[Op], enough: float, target: Target) -> float:
        groups = Groups(self.program, self.limits)
        parts = _merged(groups, ops, (pair for pair in _pairs(ops) if _in_registers(*pair)))
        lowered = {part[0].number: self._kernel(part) for part in parts}
        if any(part.intermediates for part in lowered.values()):
            return 0.0
        readers = ((a, b) for a, b in _pairs(ops) if set(a.outputs).isdisjoint(b.inputs))
        clusters = [
            [self._kernel(each), *(lowered[op.number] for op in each if op.number in lowered)]
            for each in _merged(groups, ops, readers)
        ]
        return apart(kernel, clusters, enough, target)

    def _kernel(self, ops: Sequence[Op]) -> Kernel:
        """The kernel of fused operators, the same one for equal ones, as steps of an iteration are."""
        kernel = self._apart.whole(ops).kernel
        assert isinstance(kernel, Kernel)
        return self._equal.setdefault(content(kernel), kernel)

    def _why(self, piece: Piece, kernel: Kernel, target: Target, others: Sequence[Piece]) -> str:
        """The possible cause of a slow fusion, as the start of a reason; empty if there is none."""
        recomputed = [each for op in piece.ops for each in op.recomputed]
        if kernel.intermediates:
            again = target.device == "cpu" and (recomputed or recompute_ratio(kernel, target) >= SLOWER_THAN_PARTS)
            return "as stages of one kernel they would compute values again" if again else ""
        if self._lost(kernel, piece.ops, target):
            return "together they would have no schedule"
        theirs = {op.number for each in others for op in each.ops}
        again = any(each.number in theirs for each in recomputed)
        return "what another kernel computes would be computed again" if again else ""

    def _lost(self, kernel: Kernel, ops: Sequence[Op], target: Target) -> bool:
        """Return whether a kernel with neighbourhood reads has no schedule, but parts of it may have one."""
        if target.device == "gpu" and kernel.group is not None:
            return False  # work-groups of reductions have schedules of their own on CPUs alone
        reading = [op for op in ops if access_of(op).gathers]
        if not reading or not kernel.domain.threads or suited(kernel, target):
            return False
        return any(op.recomputed for op in ops) or any(suited(op.fusible, target) for op in reading)

    @cached_property
    def _recorded(self) -> dict[int, Op]:
        """The operators before recomputation was fused into them."""
        return {op.number: op for op in self.program.ops}

    @cached_property
    def _apart(self) -> Splitting:
        return Splitting(Groups(self.program, self.limits), self.program.types, self.spliced)

    def _time(self, ops: Sequence[Op], piece: Piece, target: Target, time: Time) -> float:
        """The time of operators in one kernel; for a piece with intermediates also with the recomputation that it has."""
        numbers, parts = {op.number for op in ops}, [ops]
        again = [op for op in piece.ops if op.recomputed and numbers.issuperset(_numbers(op))]
        if again and isinstance(piece.kernel, Kernel) and piece.kernel.intermediates:
            done = {number for op in again for number in _numbers(op)}
            parts.append([*again, *(op for op in ops if op.number not in done)])
        kernels = [self._apart.whole(each).kernel for each in parts]
        return min(time(kernel, target) for kernel in kernels if isinstance(kernel, Kernel))

    def _more(
        self, ops: Sequence[Op], piece: Piece, others: Iterable[Piece], target: Target, time: Time = predicted
    ) -> float:
        """The time of a part, or its share if other kernels compute its values too; values that are theirs are only written."""
        numbers = {op.number for op in ops}
        sharing = [each for each in others if numbers <= _computed(each)]
        if not sharing:
            return self._time(ops, piece, target, time)
        moving = sum(least(op.fusible, target) for op in ops)
        if any(numbers <= {op.number for op in each.ops} for each in sharing):
            return moving
        return max(moving, self._time(ops, piece, target, time) / (1 + len(sharing)))

    def _parts(self, piece: Piece, others: Sequence[Piece], target: Target) -> list[list[Op]]:
        """The parts: operators fused pair by pair, producers with consumers first, while one kernel is faster than two."""
        groups, more = self._apart.groups, partial(self._more, piece=piece, others=others, target=target)
        ops = [self._recorded[n] for n in sorted(_computed(piece))]
        staged = isinstance(piece.kernel, Kernel) and bool(piece.kernel.intermediates)
        for pair in _pairs(ops):
            a, b = (groups.of[op.number] for op in pair)
            if a == b or refuse(groups, a, b) is not None:
                continue
            one, other = groups.members[a], groups.members[b]
            if (staged and _in_registers(*pair)) or _pays(more, one, other):
                groups.merge(a, b)
        return [groups.members[n] for n in sorted({groups.of[op.number] for op in ops})]


def _pays(more: Callable[..., float], one: list[Op], other: list[Op]) -> bool:
    """Return whether one kernel takes no longer than two; these are lowered only if lower bounds do not decide it."""
    together = more([*one, *other])
    return any(together <= more(one, time=time) + more(other, time=time) for time in (_least, predicted))


def _least(kernel: Kernel, target: Target) -> float:
    return least(resolve_target(kernel), target)  # which may read less


def _numbers(op: Op) -> Iterator[int]:
    """The numbers of an operator and of those that it recomputes."""
    return (each.number for each in (op, *op.recomputed))


def _in_registers(producer: Op, consumer: Op) -> bool:
    """Return whether a consumer reads only its own thread's values of a producer, so that two kernels save nothing."""
    passed = set(producer.outputs) & set(consumer.inputs)
    return bool(passed) and all(needs_other_threads(producer, consumer, value) is None for value in passed)


def _computed(piece: Piece) -> set[int]:
    """The numbers of the operators that a kernel runs, including recomputed ones."""
    return {number for op in piece.ops for number in _numbers(op)}


def _pairs(ops: Sequence[Op]) -> Iterator[tuple[Op, Op]]:
    """Pairs of a producer and a consumer, then pairs that share an input."""
    pairs = list(combinations(ops, 2))
    yield from ((a, b) for a, b in pairs if not set(a.outputs).isdisjoint(b.inputs))
    yield from ((a, b) for a, b in pairs if not set(a.inputs).isdisjoint(b.inputs))


def _merged(groups: Groups, ops: Sequence[Op], pairs: Iterable[tuple[Op, Op]]) -> list[list[Op]]:
    """The operators in groups, after those of pairs have been merged where rules allow it."""
    for pair in pairs:
        a, b = (groups.of[op.number] for op in pair)
        if a != b and refuse(groups, a, b) is None:
            groups.merge(a, b)
    return [list(groups.members[n]) for n in sorted({groups.of[op.number] for op in ops})]


_obstacles: WeakKeys[Op, str] = WeakKeys()


def obstacle_of(op: Op) -> str:
    """The reason why an operator's points are not put in vectors; empty if they are."""
    if op not in _obstacles:
        _obstacles[op] = obstacle(op.fusible.body) if is_plain(op) else ""
    return _obstacles[op]


@dataclass(frozen=True)
class Severing:
    """Kernel fission: a kernel is cut if one operator would keep the others from vectors.

    An operator whose threads have arrays, or loops of different lengths, runs point by point on a CPU, and so do operators that
    are fused with it. If these read neighbours, which vectors share, the predicted time of the kernel is compared with those of
    its two parts.

    Attributes:
        whole: returns the kernel of some operators.
    """

    program: Program
    limits: Limits
    whole: Callable[[Sequence[Op]], Piece]

    def severed(self, pieces: Iterable[Piece]) -> Severed:
        """The pairs of operators of these pieces, producer and reader, to be in different kernels, with reasons."""
        target = self.limits.target
        if target is None or target.vector_length == 1 or not self.limits.has_stages or self.limits.pin is not None:
            return {}
        return {key: reason for piece in pieces for key, reason in self._of(piece, target).items()}

    def _of(self, piece: Piece, target: Target) -> Severed:
        kernel = piece.kernel
        if len(piece.ops) < 2 or not isinstance(kernel, Kernel) or not self.program.dynamic.isdisjoint(piece.inputs):
            return {}
        odd = [op for op in piece.ops if obstacle_of(op)]
        if not odd or is_small(replace(kernel, target=target)):
            return {}
        before, after = self._parts(piece.ops, odd)
        if not any(map(_reads_neighbours, before)):
            return {}
        parts = [part for ops in (before, after) if isinstance(part := self.whole(ops).kernel, Kernel)]
        ratio = predicted(kernel, target) / sum(predicted(part, target) for part in parts)
        if ratio < SLOWER_THAN_CUT:
            return {}
        reason = (
            f"together they would run point by point, as `{odd[0].kernel.name}` does ({obstacle_of(odd[0])}), which is "
            f"predicted to take {ratio:.2g} times as long as apart"
        )
        maker = {value: op.number for op in before for value in op.outputs}
        return {(maker[value], op.number): reason for op, value in _crossing(before, after)}

    def _parts(self, ops: Sequence[Op], odd: Sequence[Op]) -> tuple[list[Op], list[Op]]:
        """The operators before those without vectors, and the rest; cut where fewer bytes go through memory."""
        import networkx as nx

        behind = {number for layer in nx.bfs_layers(network_of(ops), [op.number for op in odd]) for number in layer}
        after = {op.number: op for op in ops if op.number in behind}
        before = {op.number: op for op in ops if op.number not in behind}
        for op in reversed(list(before.values())):
            fewer = {n: each for n, each in before.items() if n != op.number}
            if _reads_neighbours(op) or any(set(op.outputs) & set(each.inputs) for each in fewer.values()):
                continue
            more = {op.number: op, **after}
            saved = self._moved(before, after) - self._moved(fewer, more)
            if saved > 0 or (saved == 0 and work(op.fusible) <= CHEAP):
                before, after = fewer, more
        return list(before.values()), [op for op in ops if op.number in after]

    def _moved(self, before: dict[int, Op], after: dict[int, Op]) -> int:
        values = {value for _, value in _crossing(before.values(), after.values())}
        return sum(self.program.types[v].nbytes for v in values.difference(self.program.results))


def _crossing(before: Iterable[Op], after: Iterable[Op]) -> Iterator[tuple[Op, int]]:
    """Pairs of an operator of the second part and a value of the first that it reads."""
    outputs = {value for op in before for value in op.outputs}
    return ((op, value) for op in after for value in dict.fromkeys(op.inputs) if value in outputs)


def _reads_neighbours(op: Op) -> bool:
    gathers = access_of(op).gathers
    near = footprints_of(op) if gathers else {}
    return any((footprint := near.get(field)) is not None and not footprint.is_own for field in gathers)
