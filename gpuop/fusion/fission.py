"""Which values go through memory although two operators could be one kernel: where the one would lose its vectors to the other.

An operator whose threads have arrays, or loops whose turns differ, runs point by point on a CPU, and so does whatever is fused
with it. Where that includes reads of neighbours, which vectors share, the kernel's predicted time is compared with those of its
two parts. It goes by what CPUs have in common, not by what was measured on one, so that plans are the same on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpuop.base.finalizers import WeakKeys
from gpuop.fusion.cost import work
from gpuop.fusion.cross_thread import access_of
from gpuop.fusion.intermediates import footprints_of, is_plain
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.program import Op, Program, network_of
from gpuop.fusion.recompute import CHEAP
from gpuop.fusion.register_split import Piece
from gpuop.fusion.typical_devices import predicted
from gpuop.fusion.unfuse import Severed
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.target import Target
from gpuop.passes.coarsening_factor import is_small
from gpuop.passes.vectorization_legality import obstacle

SLOWER = 1.05  # times as long as apart, from which on a kernel is cut
_obstacles: WeakKeys[Op, str] = WeakKeys()


def obstacle_of(op: Op) -> str:
    """Why an operator's points are not put in vectors; empty where they may be."""
    if op not in _obstacles:
        _obstacles[op] = obstacle(op.fusible.body) if is_plain(op) else ""
    return _obstacles[op]


@dataclass(frozen=True)
class Severing:
    """Looks for values to sever.

    Attributes:
        whole: the kernel of some operators.
    """

    program: Program
    limits: Limits
    whole: Callable[[Sequence[Op]], Piece]

    def severed(self, pieces: Iterable[Piece]) -> Severed:
        """Who is to be in another kernel than what it reads, of those that are in one of these."""
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
        apart = sum(_predicted(self.whole(part).kernel, target) for part in (before, after))
        ratio = _predicted(kernel, target) / apart
        if ratio < SLOWER:
            return {}
        reason = (
            f"together they would run point by point, as `{odd[0].kernel.name}` does ({obstacle_of(odd[0])}), which is "
            f"predicted to take {ratio:.2g} times as long as apart"
        )
        maker = {value: op.number for op in before for value in op.outputs}
        return {(maker[value], op.number): reason for op, value in _crossing(before, after)}

    def _parts(self, ops: Sequence[Op], odd: Sequence[Op]) -> tuple[list[Op], list[Op]]:
        """What comes before the operators that have no vectors, and the rest; cut where less goes through memory."""
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
        return sum(self.program.types[v].nbytes for v in values.difference(self.program.wanted))


def _crossing(before: Iterable[Op], after: Iterable[Op]) -> Iterator[tuple[Op, int]]:
    """The operators that read what is made before, and these values."""
    made = {value for op in before for value in op.outputs}
    return ((op, value) for op in after for value in dict.fromkeys(op.inputs) if value in made)


def _reads_neighbours(op: Op) -> bool:
    gathers = access_of(op).gathers
    near = footprints_of(op) if gathers else {}
    return any((footprint := near.get(field)) is not None and not footprint.is_own for field in gathers)


def _predicted(kernel: Launchable, target: Target) -> float:
    """Operations that a CPU does in the time of a kernel."""
    assert isinstance(kernel, Kernel)
    return predicted(kernel, target)
