"""Recomputation: a value is computed at each read instead of going through memory, if the operations cost less than the bytes.

This answers `needs_other_threads` alone: a consumer that recomputes its producer's value needs no other thread for it.
Refusals stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from gpuop.base.records import dataclass
from gpuop.fusion.cost import saving, taps, work
from gpuop.fusion.cross_thread import access_of, access_pattern, needs_other_threads
from gpuop.fusion.groups import MOST_COMPARED, Groups
from gpuop.fusion.intermediates import unstaged
from gpuop.fusion.launch import Invariant
from gpuop.fusion.legality import refuse
from gpuop.fusion.program import Op, Program
from gpuop.fusion.splice import splice
from gpuop.ir.analysis.size import MOST_NEIGHBOURS, MOST_NESTED, MOST_STATEMENTS, deepest, neighbours, size
from gpuop.ir.device_model import BALANCE, BUSY_THREADS, CHEAP, LAUNCH, ONE_THREAD, REPEATED_READ, SHARED_BY_THREADS
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam, Read
from gpuop.ir.text import identity
from gpuop.ir.visit import expressions, times, walk
from gpuop.passes.inline import fits, inline, is_pure, needs_extents
from gpuop.passes.scalarize import by_element, element_reads
from gpuop.passes.simplify import simplify

MAX_CHAIN = 64  # operators that one read computes; more would make the text unreadable
MOST_RECOMPUTED = MOST_STATEMENTS // 2  # statements of a kernel that recomputes its inputs


@dataclass(frozen=True)
class Chain:
    """The computation of a value: one kernel, the values that it reads, and its operators."""

    kernel: Kernel
    inputs: tuple[int, ...]
    ops: tuple[Op, ...]


class Recomputing:
    """Decides, once for every value that a reader needs from other threads, whether readers recompute it."""

    def __init__(self, program: Program, groups: Groups, steady: Invariant) -> None:
        self.types, self.dynamic, self.steady = program.types, program.dynamic, steady
        self.groups = groups
        self.level = _levels(program)
        # by value: its chain, or the reason against recomputing it
        self.chains: dict[int, Chain | str] = {}
        # by value: the reason why a reader cannot recompute it: its size, or a rule
        self.large: dict[int, str] = {}
        self.refused: dict[int, str] = {}
        # by value: some readers on another grid, and the operators that read it from memory because of those
        self.gathered: dict[int, tuple[Op, ...]] = {}
        self.waiting: dict[int, set[int]] = {}

    def apply(self, op: Op) -> Op:
        """The operator, with inputs recomputed that are cheap enough."""
        tried: set[int] = set()
        while True:
            value = next((v for v in op.inputs if v not in tried and self.is_apart(op, v)), None)
            if value is None:
                return op
            tried.add(value)
            chain = self.chain(value)
            if (
                isinstance(chain, Chain)
                and not self._is_large(op, value, chain)
                and not self._is_refused(op, value, chain)
            ):
                new = composed(op, value, chain, value in self.dynamic)
                if self.groups.arguments((*new.inputs, *new.outputs)) <= self.groups.limits.arguments:
                    self.groups.replace(op, new)
                    op = new

    def _is_large(self, op: Op, value: int, chain: Chain) -> bool:
        """Return whether the text of a chain at all reads of a value would be too long."""
        params = set(_params(op, value))
        reads = sum(isinstance(e, Read) and e.field in params for e in expressions(op.fusible.body))
        whole = self.groups.size[op.number] + reads * size(chain.kernel.body)
        deep = deepest(op.fusible.body)[0] + deepest(chain.kernel.body)[0]
        near = neighbours(op.fusible.body, lambda read: read.field in params) * neighbours(chain.kernel.body)
        if whole > MOST_RECOMPUTED or deep > MOST_NESTED or near > MOST_NEIGHBOURS:
            self.large[value] = (
                f"with `{chain.kernel.name}` at each of its {reads} reads `{op.kernel.name}` would be too large"
            )
        return value in self.large

    def _is_refused(self, op: Op, value: int, chain: Chain) -> bool:
        of = self.groups.of
        reason = refuse(self.groups, of[self.groups.maker[value].number], of[op.number], recomputed=True)
        if reason is None and value in self.dynamic and _fixes_extents(op, value, chain):
            reason = f"`{op.kernel.name}` has another grid, and would contain extents, which are arguments"
        if reason is not None:
            self.refused[value] = reason
        return reason is not None

    def is_apart(self, op: Op, value: int) -> bool:
        """Return whether an operator would read a value from memory, though its producer has it in registers."""
        maker = self.groups.maker.get(value)
        if maker is None or maker.kernel.unfusible or op.kernel.unfusible:
            return False
        return needs_other_threads(maker, op, value) is not None or self._late(op, value)

    def _late(self, op: Op, value: int) -> bool:
        """Return whether an operator also needs, through another grid, a result of the same value, which then goes through
        memory anyway, even if both are fused with its producer.
        """
        if value not in self.gathered:
            maker, users = self.groups.maker[value], self.groups.using[value].values()
            elsewhere = (user for user in users if maker.kernel.grid != user.kernel.grid)
            self.gathered[value] = tuple(islice(elsewhere, MOST_COMPARED))
        waiting, of = self.waiting.setdefault(value, set()), self.groups.of
        makers = {self.groups.maker[v].number for v in op.inputs if v in self.groups.maker}
        if makers & waiting or any(
            self.level[user.number] < self.level[op.number] and self.groups.order.leads(of[user.number], of[op.number])
            for user in self.gathered[value]
        ):
            waiting.add(op.number)
        return op.number in waiting

    def is_late(self, op: Op) -> bool:
        """Return whether an operator should be computed with its readers: all need values of other threads, and its own inputs
        go through memory to such threads anyway.
        """
        uses = [(user, value) for value in op.outputs for user in self.groups.using.get(value, {}).values()]
        inputs = [value for value in dict.fromkeys(op.inputs) if value in self.groups.maker]
        if op.kernel.unfusible or not inputs or not uses or not self.groups.results.isdisjoint(op.outputs):
            return False
        if any(self.level[user.number] <= self.level[op.number] or _is_between(op, user, (v,)) for user, v in uses):
            return False
        read, written = (sum(self.types[v].nbytes for v in values) for values in (dict.fromkeys(op.inputs), op.outputs))
        return read <= 2 * written and all(map(self._in_memory, inputs))

    def _in_memory(self, value: int) -> bool:
        """Return whether a reader takes a value from memory; all do if its producer cannot pass it in registers."""
        maker, users = self.groups.maker[value], self.groups.using[value].values()
        if maker.kernel.unfusible:
            return True
        apart = [user for user in users if _is_between(maker, user, (value,))]
        is_stored = any(unstaged(self.groups, maker, user, value) is not None for user in apart)
        return is_stored and not isinstance(self.chain(value), Chain)

    def reason(self, value: int) -> str:
        """The reason why a value is not recomputed, if cost, size or a rule forbids it; else empty."""
        chain = self.chains.get(value, "")
        return chain if isinstance(chain, str) else self.large.get(value) or self.refused.get(value, "")

    def chain(self, value: int) -> Chain | str:
        if value not in self.chains:
            self.chains[value] = self._decide(value)
        return self.chains[value]

    def _decide(self, value: int) -> Chain | str:
        if value in self.groups.results:
            return ""
        ops = self._slice(value)
        if sum(1 + len(op.recomputed) for op in ops) > MAX_CHAIN:
            return f"a chain of more than {MAX_CHAIN} operators is not computed at every read"
        apart = [op for op in self.groups.using[value].values() if self.is_apart(op, value)]
        staged = all(unstaged(self.groups, self.groups.maker[value], op, value) is None for op in apart)
        if staged and _gathers(ops):
            return ""
        kernel, inputs, outputs = splice(ops, {value})
        if outputs != (value,) or not isinstance(kernel, Kernel) or not is_pure(kernel):
            return ""
        if not all(fits(reader, param, kernel) for reader, param in _reading(apart, value)):
            return ""
        if staged and (access_pattern(kernel).gathers or work(kernel) > CHEAP):
            return ""  # better an intermediate of one kernel with its readers, which each thread computes once
        by_points = kernel
        if any(any(element_reads(reader, param)) for reader, param in _reading(apart, value)):
            by_points = by_element(kernel) or kernel
        cost = work(simplify(by_points))
        if crowded := _crowded(by_points, cost, value, apart) or _endless(by_points, apart):
            return crowded
        alone = len(apart) == len(self.groups.using[value])
        spared = by_points.domain.threads * (alone and not self.steady.differ(self.groups.maker[value], apart))
        readers = self._together(apart)
        reads = sum(taps(_reading(ops, value)) * ops[0].kernel.grid.threads for ops in readers)
        operations = cost * max(reads - spared, 0) + self._unshared(kernel, apart)
        operations /= 1 if self.types[value].field_shape else SHARED_BY_THREADS
        bytes_of = {v: self._bytes_read(v, by_points) for v in inputs}
        more = sum(bytes_of[v] for ops in readers for v in inputs if not self._is_read_beside(v, ops))
        saved = self.types[value].nbytes * (1 + len(readers)) + sum(bytes_of.values()) * alone - more
        saved += LAUNCH if not self.types[value].field_shape else 0
        if operations / BALANCE > saved:
            return (
                f"computing `{kernel.name}` at every read takes {operations:.3g} operations more, and {saving(saved)}"
            )
        return Chain(kernel, inputs, tuple(ops))

    def _unshared(self, kernel: Kernel, readers: list[Op]) -> float:
        """The extra cost of neighbour reads in work-groups that share work, against a kernel whose schedule shares these reads."""
        if all(op.fusible.group is None for op in readers):
            return 0.0
        return REPEATED_READ * kernel.domain.threads * sum(taps([(kernel, f)]) for f in access_pattern(kernel).gathers)

    def _bytes_read(self, value: int, kernel: Kernel) -> int:
        """The bytes that a kernel reads of an input; threads of the elements of a point share an input without elements."""
        kind = self.types[value]
        return kind.nbytes * (kernel.domain.elements if kind.planes == 1 else 1)

    def _together(self, readers: Sequence[Op]) -> list[list[Op]]:
        """The readers of a value, grouped by the kernels that they can join, in which each point is read once."""
        kernels: dict[object, list[Op]] = {}
        for op in readers:
            kernels.setdefault(self._place(op), []).append(op)
        return list(kernels.values())

    def _is_read_beside(self, value: int, ops: Sequence[Op]) -> bool:
        """Return whether an operator that these can join reads a value already."""
        users = self.groups.using.get(value, {}).values()
        others = (user for user in users if not user.kernel.unfusible and user not in ops)
        return any(self._place(user) == self._place(ops[0]) for user in others)

    def _place(self, op: Op) -> object:
        """The key of operators that one kernel can run side by side."""
        return op.kernel.grid, op.fusible.group, self.level[op.number]

    def _slice(self, value: int) -> list[Op]:
        """The operators of the producer's group that the value needs, producers first; part of a chain that is too long."""
        import networkx as nx

        network, of, last = self.groups.network, self.groups.of, self.groups.maker[value].number

        def inside(number: int) -> Iterator[int]:
            return (n for n in network.predecessors(number) if of[n] == of[last])

        before = (n for _, n in nx.generic_bfs_edges(network, last, inside))
        return [network.nodes[n]["operator"] for n in sorted((last, *islice(before, MAX_CHAIN)))]


def _crowded(kernel: Kernel, cost: float, value: int, readers: list[Op]) -> str:
    """The reason against giving few threads the work of many; empty if there is none."""
    for op in readers:
        operations = cost * taps(_reading([op], value))
        threads = op.kernel.grid.threads
        if operations > ONE_THREAD and threads < min(kernel.domain.threads, BUSY_THREADS):
            return (
                f"each of the {threads} threads of `{op.kernel.name}` would do {operations:.3g} operations "
                f"of `{kernel.name}`, which many threads do at once"
            )
    return ""


def _endless(kernel: Kernel, readers: list[Op]) -> str:
    """The reason against repeating a loop of unknown length in many threads; empty if there is none."""
    threads = max((op.kernel.grid.threads for op in readers), default=kernel.domain.threads)
    if kernel.domain.threads == threads or all(times(stmt) is not None for stmt in walk(kernel.body)):
        return ""
    return f"each of {threads} threads would run the loop of `{kernel.name}`, whose iterations are not known"


def _levels(program: Program) -> dict[int, int]:
    """The level of each operator: the number of cross-thread reads before it. Operators of one level can be one kernel."""
    level: dict[int, int] = {}
    for op in program.ops:
        predecessors = program.network.pred[op.number].items()
        apart = (
            level[n] + _is_between(program.network.nodes[n]["operator"], op, edge["values"]) for n, edge in predecessors
        )
        level[op.number] = max(apart, default=0)
    return level


def _is_between(maker: Op, op: Op, values: Sequence[int]) -> bool:
    """Return whether one of the values goes from one kernel to another, if it is not recomputed."""
    return bool(maker.kernel.unfusible or op.kernel.unfusible or any(needs_other_threads(maker, op, v) for v in values))


def _params(op: Op, value: int) -> list[FieldParam]:
    return [param for param, input in zip(op.kernel.inputs, op.inputs, strict=True) if input == value]


def _gathers(ops: Sequence[Op]) -> bool:
    """Return whether operators of one kernel read, at other points, values that none of them computes."""
    outputs = {value for op in ops for value in op.outputs}
    read = ((op, p, v) for op in ops for p, v in zip(op.fusible.inputs, op.inputs, strict=True))
    return any(v not in outputs and p in access_of(op).gathers for op, p, v in read)


def _fixes_extents(op: Op, value: int, chain: Chain) -> bool:
    """Return whether a reader on another grid would have extents of a chain as numbers."""
    elsewhere = chain.kernel.domain != op.fusible.domain
    return elsewhere and needs_extents(op.fusible, set(_params(op, value)), chain.kernel)


def _reading(ops: Sequence[Op], value: int) -> list[tuple[Kernel, FieldParam]]:
    return [(op.fusible, param) for op in ops for param in _params(op, value)]


def composed(op: Op, value: int, chain: Chain, dynamic: bool) -> Op:
    """An operator that recomputes a value, which may be dynamic, at each read."""
    kernel = op.fusible
    for param in _params(op, value):
        kernel = inline(kernel, param, chain.kernel, dynamic)
    values = dict(zip((*op.kernel.inputs, *chain.kernel.inputs), (*op.inputs, *chain.inputs), strict=True))
    inputs = tuple(values[param] for param in kernel.inputs)
    recomputed = (*op.recomputed, *(done for each in chain.ops for done in (*each.recomputed, each)))
    return replace(
        op, kernel=kernel, identity=identity(kernel), inputs=inputs, recomputed=tuple(dict.fromkeys(recomputed))
    )
