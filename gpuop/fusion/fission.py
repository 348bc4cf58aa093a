"""Kernel fission: a kernel is cut if one operator would keep the others from vectors.

An operator whose threads have arrays, or loops of different lengths, runs point by point on a CPU, and so do operators that
are fused with it. If these read neighbours, which vectors share, the predicted time of the kernel is compared with those of its
two parts. Predictions are for a typical CPU, not for a measured one, so that plans are the same on all CPUs.
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
from gpuop.fusion.register_split import Piece
from gpuop.fusion.typical_devices import predicted
from gpuop.fusion.unfuse import Severed
from gpuop.ir.device_model import CHEAP, SLOWER_THAN_CUT
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.target import Target
from gpuop.passes.coarsening_factor import is_small
from gpuop.passes.vectorization_legality import obstacle

_obstacles: WeakKeys[Op, str] = WeakKeys()


def obstacle_of(op: Op) -> str:
    """The reason why an operator's points are not put in vectors; empty if they are."""
    if op not in _obstacles:
        _obstacles[op] = obstacle(op.fusible.body) if is_plain(op) else ""
    return _obstacles[op]


@dataclass(frozen=True)
class Severing:
    """Finds the values to cut kernels at.

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
        apart = sum(_predicted(self.whole(part).kernel, target) for part in (before, after))
        ratio = _predicted(kernel, target) / apart
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
        return sum(self.program.types[v].nbytes for v in values.difference(self.program.wanted))


def _crossing(before: Iterable[Op], after: Iterable[Op]) -> Iterator[tuple[Op, int]]:
    """Pairs of an operator of the second part and a value of the first that it reads."""
    made = {value for op in before for value in op.outputs}
    return ((op, value) for op in after for value in dict.fromkeys(op.inputs) if value in made)


def _reads_neighbours(op: Op) -> bool:
    gathers = access_of(op).gathers
    near = footprints_of(op) if gathers else {}
    return any((footprint := near.get(field)) is not None and not footprint.is_own for field in gathers)


def _predicted(kernel: Launchable, target: Target) -> float:
    """The predicted time of a kernel, in operations of a CPU."""
    assert isinstance(kernel, Kernel)
    return predicted(kernel, target)
