"""Splitting by register pressure: kernels that need too many registers are cut where the fewest bytes go through memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from gpuop.base.records import dataclass
from gpuop.fusion.groups import Groups
from gpuop.fusion.kernel_statistics import registers, values_kept
from gpuop.fusion.program import Op, network_of
from gpuop.fusion.splice import splice
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.types import FieldType

Range = tuple[int, int, int]  # first and last position to cut at, and the amount there


@dataclass(frozen=True, eq=False)
class Piece:
    """The operators of one kernel, the kernel, and the values of its parameters."""

    ops: tuple[Op, ...]
    kernel: Launchable
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


Spliced = dict[tuple[tuple[Op, ...], frozenset[int]], Piece]


class Splitting:
    """Splits kernels; `apart` has the separated operators: (one, other, shared value, reason).

    Args:
        spliced: the pieces so far. The rounds of a plan share them, so that a kernel is lowered once.
    """

    def __init__(self, groups: Groups, types: Mapping[int, FieldType], spliced: Spliced) -> None:
        self.groups, self.types, self.spliced = groups, types, spliced
        self.most = groups.limits.registers
        self.apart: list[tuple[Op, Op, int, str]] = []

    def whole(self, ops: Sequence[Op]) -> Piece:
        """The kernel of a whole group, before it is split."""
        part = tuple(sorted(ops, key=lambda op: op.number))
        key = part, frozenset(self.groups.needed(part))
        if key not in self.spliced:
            self.spliced[key] = Piece(part, *splice(part, set(key[1])))
        return self.spliced[key]

    def pieces(self, whole: Piece) -> list[Piece]:
        """Split a kernel; return the parts in the order of their launches."""
        pending, done = [whole], list[Piece]()
        while pending:
            piece = pending.pop()
            need = self._excess(piece)
            cut = self._cut(piece.ops) if need else None
            if cut is None:
                done.append(piece)
            else:
                pending += map(self.whole, reversed(cut))
                self._note(*cut, f"together they would keep about {need} registers, more than {self.most}")
        return done

    def _excess(self, piece: Piece) -> int:
        """The registers of a kernel if they are too many and it can be split, else 0."""
        if self.most is None or len(piece.ops) < 2 or not isinstance(piece.kernel, Kernel):
            return 0
        few = values_kept(piece.kernel) <= self.most // 2  # far from the limit: skip the exact count
        need = 0 if few else registers(piece.kernel)
        return need if need > self.most else 0

    def _note(self, first: Sequence[Op], second: Sequence[Op], reason: str) -> None:
        makers = {value: op for op in first for value in op.outputs}
        read = {value: op for op in reversed(first) for value in op.inputs}
        noted: set[int] = set()
        for op in second:
            for value in op.inputs:
                one = makers.get(value) or read.get(value)
                if one is not None and value not in noted and self.types[value].field_shape:
                    noted.add(value)
                    self.apart.append((one, op, value, reason if value in makers else f"both read it, but {reason}"))

    def _cut(self, ops: Sequence[Op]) -> tuple[list[Op], list[Op]] | None:
        """Two parts, the first of which needs nothing of the second; None if either would have too many arguments."""
        order = _ordered(ops)
        moved, first, second = self._sides(order)
        most, middle = self.groups.limits.arguments, len(order) / 2
        possible = [at for at in range(1, len(order)) if max(first[at], second[at]) <= most]
        near = [at for at in possible if abs(at - middle) <= max(middle / 2, 1)]
        if not possible:
            return None
        least = min(near or possible, key=lambda at: (moved[at] if near else 0, abs(at - middle)))
        return order[:least], order[least:]

    def _sides(self, order: Sequence[Op]) -> tuple[list[int], list[int], list[int]]:
        """For each position of a cut the bytes that it moves, and the arguments of both sides."""
        moved: list[Range] = []
        first: list[Range] = []
        second: list[Range] = []
        needed, end = self.groups.needed(order), len(order)
        starts = {value: at for at, op in enumerate(order) for value in op.outputs}
        last = {value: at for at, op in enumerate(order) for value in op.inputs}
        begin = {value: at for at, op in reversed(list(enumerate(order))) for value in op.inputs} | starts
        for value, start in begin.items():
            stop, words = last.get(value, start), self.groups.words.get(value, 1)
            passes = 2 if value in starts and value not in needed else 1  # written and read, or only read
            moved.append((start + 1, stop, self.types[value].nbytes * passes))
            first.append((start + 1, end if value not in starts or value in needed else stop, words))
            second.append((start + 1 if value in starts else 0, stop, words))
            second.append((0, start if value in starts and value in needed else -1, words))
        return _sums(end, moved), _sums(end, first), _sums(end, second)


def _sums(end: int, ranges: Sequence[Range]) -> list[int]:
    """For each position up to the end, the sum of the amounts whose ranges contain it."""
    changes = [0] * (end + 2)
    for first, last, amount in ranges:
        changes[first] += amount
        changes[last + 1] -= amount
    return list(accumulate(changes))


def _ordered(ops: Sequence[Op]) -> list[Op]:
    """Operators, producers first, each as late as possible, one connected part after another.

    Parts share only values that they read from memory.
    """
    import networkx as nx

    network, backwards = network_of(ops), nx.DiGraph()
    for part in sorted(nx.weakly_connected_components(network), key=min):
        backwards.add_nodes_from(number for number in sorted(part) if not network.succ[number])
    backwards.add_edges_from((reader, maker) for reader in network for maker in network.predecessors(reader))
    return [network.nodes[number]["operator"] for number in nx.dfs_postorder_nodes(backwards)]
