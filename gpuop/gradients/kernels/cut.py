"""The cut of an adjoint: values that are computed once per point and kept, in the place of once for each reader.

The share of a thread is a slice of the body. Neighbours that add up shares compute these slices again, each at its own
displacement, which costs operations times readers; a value that is kept costs its way through memory, and a read for each. The
search starts from all values at which slices part that have common ones, and gives up those that do not pay: nothing is kept of a
diffusion step, whose slices have two reads and one function; one value of a function of a correlation, two of a bilateral filter.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuop.base.records import dataclass
from gpuop.fusion.cost import weight
from gpuop.gradients.kernels.transpose import Transposed
from gpuop.ir import nodes as ir
from gpuop.ir.device_model import READ
from gpuop.ir.visit import changed, used_by, walk, walk_expr
from gpuop.ir.visit import values as values_of

KEEPING = 100.0  # operations in the time of a value that goes through memory, or a row that stays in the cache
LEAST = 3  # readers of a slice, from which on a cut is looked for
MOST = 1500  # statements


@dataclass(frozen=True)
class _Node:
    """A statement of the body: what it costs, and the statements whose values it needs."""

    var: ir.Var | None
    cost: float
    needs: frozenset[int]

    @property
    def can_keep(self) -> bool:
        return self.var is not None and self.var.type.kind == "f"


def kept_values(adjoint: Transposed, roots: Sequence[ir.Expr]) -> list[ir.Var]:
    """The values to keep, for shares that are each computed at another displacement, in the order of the text."""
    if len(roots) < LEAST or len(adjoint.body) > MOST:
        return []
    nodes = _nodes(adjoint.body)
    makers = {node.var: n for n, node in enumerate(nodes) if node.var is not None}
    ends = [makers[root.var] for root in roots if isinstance(root, ir.Ref) and root.var in makers]
    nothing, search = _Search(nodes, ends, set()), _Search(nodes, ends, _partings(nodes, ends))
    while search.gives_up():
        pass
    stored = search.stored if search.cost() < nothing.cost() else set[int]()
    return [var for n in sorted(stored) if (var := nodes[n].var) is not None]


def _partings(nodes: Sequence[_Node], ends: Sequence[int]) -> set[int]:
    """The values that several slices need, and that have a user that fewer need."""
    counts: dict[int, int] = {}
    for end in ends:
        for n in _slice_of(nodes, end, set())[0]:
            counts[n] = counts.get(n, 0) + 1
    users = ((need, n) for n in counts for need in nodes[n].needs)
    parting = {need for need, n in users if counts.get(need, 0) > max(counts[n], 1)} | {
        n for n in ends if counts[n] > 1
    }
    return {n for n in parting if nodes[n].can_keep}


def _slice_of(nodes: Sequence[_Node], end: int, stored: set[int]) -> tuple[set[int], set[int]]:
    """The statements that a slice computes, and the values among the kept ones that it reads."""
    computed, read, pending = set[int](), set[int](), [end]
    while pending:
        n = pending.pop()
        if n in stored:
            read.add(n)
        elif n not in computed:
            computed.add(n)
            pending += nodes[n].needs
    return computed, read


class _Search:
    """Slices with some values kept."""

    def __init__(self, nodes: Sequence[_Node], ends: Sequence[int], stored: set[int]) -> None:
        self.nodes, self.ends, self.stored = nodes, ends, stored
        self.slices = [_slice_of(nodes, end, stored) for end in ends]

    def cost(self) -> float:
        again = sum(self.nodes[n].cost for computed, _ in self.slices for n in computed)
        used = set[int]().union(*(read for _, read in self.slices))
        return again + KEEPING * len(used) + READ * sum(len(read) for _, read in self.slices)

    def gives_up(self) -> bool:
        """Give up values that cost more than what they save; return whether there were any."""
        before = len(self.stored)
        for n in sorted(self.stored, reverse=True):
            others = self.stored - {n}
            changed_ones = {
                k: _slice_of(self.nodes, self.ends[k], others) for k, (_, r) in enumerate(self.slices) if n in r
            }
            more = sum(self.work(new) - self.work(self.slices[k]) for k, new in changed_ones.items())
            if more <= KEEPING:
                self.stored = others
                for k, new in changed_ones.items():
                    self.slices[k] = new
        return len(self.stored) < before

    def work(self, part: tuple[set[int], set[int]]) -> float:
        return sum(self.nodes[n].cost for n in part[0]) + READ * len(part[1])


def _nodes(body: ir.Block) -> list[_Node]:
    """The statements of a body; reads count for those that use them."""
    makers: dict[ir.Var, frozenset[int]] = {}
    reads: set[ir.Var] = set()
    result: list[_Node] = []
    for n, stmt in enumerate(body):
        inside = [*walk((stmt,))]
        used = set().union(*(used_by(each) for each in inside))
        needs = frozenset[int]().union(*(makers.get(var, frozenset()) for var in used))
        cost = sum(weight(e) for each in inside for value in values_of(each) for e in walk_expr(value))
        cost += READ * len(used & reads)
        var = stmt.var if isinstance(stmt, ir.Let) and not stmt.var.mutable else None
        if var is not None and isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Read):
            reads.add(var)
            result.append(_Node(None, 0.0, needs))
            makers[var] = needs
            continue
        result.append(_Node(var, cost, needs))
        for each in {*changed((stmt,)), *([stmt.var] if isinstance(stmt, ir.Let) else [])}:
            if isinstance(each, ir.Var):
                makers[each] = makers.get(each, frozenset()) | {n} if var is None else frozenset({n})
    return result
