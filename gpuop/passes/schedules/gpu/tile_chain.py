"""The chain of stages that a group computes for a tile, one after another, each with the halo that the next ones read."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from gpuop.base.records import dataclass
from gpuop.ir.analysis.footprints import Surrounding, footprints
from gpuop.ir.analysis.stages import levels, stage, stages
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import GRID_AXES, Apply, Block, Expr, FieldParam, Index, Let, Read, Ref, Var, Write
from gpuop.ir.types import Type
from gpuop.ir.visit import Copier, blocks, expressions, operands, times, values, walk, walk_expr
from gpuop.passes.scalarize import ELEMENT

Span = tuple[int, int]  # the least and the greatest offset, the own point included
Rule = tuple[str, Expr | None]  # a border, and its fill value
NEAREST: Rule = ("clamp", None)
WRAP: Rule = ("wrap", None)
LARGE = 25  # points of a window from which on the input is first copied to local memory


@dataclass(frozen=True)
class TilePart:
    """A stage, or a copy of an input: it writes fields in local memory, or the outputs of the kernel.

    Attributes:
        near: the fields that it reads at constant distances.
        rule: the border through which later parts read it outside of the grid; None for outputs, which nobody reads.
    """

    kernel: Kernel
    near: dict[FieldParam, Surrounding]
    rule: Rule | None

    @cached_property
    def reads_in_loops(self) -> bool:
        """Return whether it reads at loop counters: such windows cannot lie in registers."""
        reads = (e for e in expressions(self.kernel.body) if isinstance(e, Read) and e.field in self.near)
        return any(read.point is not None and distance(read) is None for read in reads)

    @cached_property
    def work(self) -> int:
        """The number of operations and reads for a point."""
        return _work(self.kernel.body)

    def reach(self, axis: int) -> int:
        """The extent of its windows along an axis less one point; the last axis is -1."""
        return max((n.high[axis] - n.low[axis] for n in self.near.values() if len(n.low) >= -axis), default=0)

    def span(self, axis: int) -> Span:
        """The least and the greatest offset that it reads along an axis."""
        spans = [(n.low[axis], n.high[axis]) for n in self.near.values() if len(n.low) >= -axis]
        return min((low for low, _ in spans), default=0), max((high for _, high in spans), default=0)


class TileChain:
    """The parts of a kernel, in their order.

    Attributes:
        local_fields: the fields in local memory: intermediates and copies of inputs.
        virtual: whether points outside of the grid are computed like points inside; under "wrap" they are periodic.
        refused: the reason why the kernel has no such chain; empty where it has one.
    """

    def __init__(self, kernel: Kernel, wide: bool) -> None:
        self.source = kernel
        near = footprints(kernel)
        self.rules = {param: _rules(near.get(param)) for param in kernel.intermediates}
        self.refused = next(filter(None, (_unfit(near.get(p), self.rules[p]) for p in kernel.intermediates)), "")
        self.virtual = any(WRAP in rules for rules in self.rules.values())
        self.local_fields: list[FieldParam] = list(kernel.intermediates)
        self.parts: list[TilePart] = []
        if not self.refused:
            staged = [
                stage(kernel, [param for param in level if self.rule(param) == rule])
                for level in levels(kernel)
                for rule in dict.fromkeys(map(self.rule, level))
            ]
            parts = [self._part(each, self.rule(each.written[0])) for each in staged]
            last = self._part(stages(kernel)[-1], None)
            ends = [last] if wide or self.virtual else self._apart(last)
            self.parts = self._with_copies([*parts, *ends], wide)
            self.refused = self._unfit_outside() if self.virtual else ""

    def _apart(self, part: TilePart) -> list[TilePart]:
        """Divide the last part: one computes several columns at a time, another writes them column by column."""
        writes = [stmt for stmt in part.kernel.body if isinstance(stmt, Write)]
        alone = [stmt.field for stmt in writes if stmt.element in (None, ELEMENT)]
        is_unconditional = sorted(map(id, alone)) == sorted(map(id, part.kernel.written))
        if part.reads_in_loops or not part.reach(-1) or part.reach(-2) or not is_unconditional:
            return [part]
        copied = {param: FieldParam(param.hint, param.type) for param in part.kernel.written}
        self.local_fields += copied.values()
        body = Copier(part.kernel.body, fields=copied).copy()
        computed = replace(part.kernel, outputs=tuple(map(Output, copied.values())), body=body)
        copies = [stmt for param, own in copied.items() for stmt in self._copied(own, param)]
        written = replace(part.kernel, inputs=tuple(copied.values()), body=tuple(copies))
        return [self._part(computed, NEAREST), self._part(written, None)]

    def rule(self, param: FieldParam) -> Rule:
        return WRAP if self.virtual else next(iter(self.rules[param]), NEAREST)

    def _part(self, kernel: Kernel, rule: Rule | None) -> TilePart:
        return TilePart(kernel, {field: near for field, near in footprints(kernel).items() if near is not None}, rule)

    # --- copies of inputs ---------------------------------------------------------------------------------------

    def _with_copies(self, parts: list[TilePart], wide: bool) -> list[TilePart]:
        """The parts, preceded by copies of inputs to local memory, whose windows they read."""
        copies: dict[tuple[FieldParam, Rule], TilePart] = {}
        changed: list[TilePart] = []
        for part in parts:
            copied: dict[FieldParam, FieldParam] = {}
            for field in part.kernel.inputs:
                near = part.near.get(field)
                if field in self.local_fields or near is None or not self._is_copied(part, field, near, wide):
                    continue
                (rule,) = near.borders
                if (field, rule) not in copies:
                    copies[field, rule] = self._copy(field, rule)
                copied[field] = copies[field, rule].kernel.written[0]
            changed.append(self._part(_reading(part.kernel, copied), part.rule) if copied else part)
        self.local_fields += [part.kernel.written[0] for part in copies.values()]
        return [*copies.values(), *changed]

    def _is_copied(self, part: TilePart, field: FieldParam, near: Surrounding, wide: bool) -> bool:
        if len(near.borders) != 1 or any((*near.low[:-2], *near.high[:-2])) or (self.virtual and not _wraps(near)):
            return False
        spans = [high - low + 1 for low, high in zip(near.low[-2:], near.high[-2:], strict=True)]
        window = math.prod(spans) >= LARGE and min(spans) > 1
        beside = spans[-1] > 1 and not wide and bool(self.source.intermediates)
        return part.reads_in_loops or window or beside

    def _copy(self, field: FieldParam, rule: Rule) -> TilePart:
        """A part that copies a field to local memory."""
        own = FieldParam(field.hint, field.type)
        body = self._copied(field, own)
        copy = replace(self.source, inputs=(field,), outputs=(Output(own),), body=body, intermediates=())
        return self._part(copy, rule)

    def _copied(self, source: FieldParam, to: FieldParam) -> Block:
        each = self.source.domain.elements > 1
        kind = Type(source.type.storage, 1 if each else source.type.planes)
        element = ELEMENT if each and source.type.planes > 1 else None
        value = Var(source.hint, kind)
        return (Let(value, Read(source, kind, element=element)), Write(to, Ref(value), element=element))

    # --- points outside -----------------------------------------------------------------------------------------

    def _unfit_outside(self) -> str:
        """The reason why points outside cannot be computed like points inside; empty where they can."""
        before = [near for part in self.parts[:-1] for near in part.near.values()]
        if not all(map(_wraps, before)) or any(rules - {WRAP} for rules in self.rules.values()):
            return 'borders other than "wrap" come before one'
        for part in self.parts[:-1]:
            if _knows_positions(part):
                return "values under wrap depend on where they are"
        return ""


def distance(read: Read) -> tuple[int, ...] | None:
    """The constant distance of a read from the own point along each axis; None where it changes between iterations of a loop."""
    if read.point is None:
        return (0,) * len(read.field.type.field_shape)
    away = tuple(at.offset for at in read.point if isinstance(at, Index))
    return away if len(away) == len(read.point) else None


def loaded(near: Surrounding, lanes: int) -> tuple[Span, Span]:
    """The offsets along rows and columns that a window of some columns loads; those of columns are rounded to whole accesses."""
    spans = [(min(low, 0), max(high, 0)) for low, high in zip(near.low, near.high, strict=True)]
    low, high = (-(-abs(end) // lanes) * lanes for end in spans[-1])
    return spans[-2] if len(spans) > 1 else (0, 0), (-low, high)


def _rules(near: Surrounding | None) -> frozenset[Rule]:
    borders = near.borders if near is not None else frozenset()
    return frozenset(NEAREST if name == "unchecked" else (name, fill) for name, fill in borders)


def _unfit(near: Surrounding | None, rules: frozenset[Rule]) -> str:
    if near is None:
        return "it reads a stage at computed distances"
    if any((*near.low[:-2], *near.high[:-2])):
        return "it reads a stage in other layers"
    return "it reads a stage through several borders" if len(rules) > 1 else ""


def _wraps(near: Surrounding) -> bool:
    return near.borders <= {WRAP}


def _reading(kernel: Kernel, fields: dict[FieldParam, FieldParam]) -> Kernel:
    """The kernel with other fields as inputs."""
    inputs = tuple(fields.get(param, param) for param in kernel.inputs)
    return replace(kernel, inputs=inputs, body=Copier(kernel.body, fields=fields).copy())


def _knows_positions(part: TilePart) -> bool:
    """Return whether values depend on positions otherwise than through reads at constant distances, as values of slices do."""
    for stmt in walk(part.kernel.body):
        for e in (each for value in values(stmt) for each in walk_expr(value)):
            used = operands(e) if not isinstance(e, Read) else () if e.field in part.near else (e.point or ())
            if any(isinstance(at, Index) and at.axis in GRID_AXES for at in (*used, *values(stmt))):
                return True
    return False


def _work(block: Block) -> int:
    """The number of operations and reads of a thread; loops count as often as they iterate, where that is known."""
    count = 0
    for stmt in block:
        computed = (e for value in values(stmt) for e in walk_expr(value) if isinstance(e, (Apply, Read)))
        count += sum(e.type.lanes for e in computed)
        count += sum(map(_work, blocks(stmt))) * (1 if (iterations := times(stmt)) is None else iterations)
    return count
