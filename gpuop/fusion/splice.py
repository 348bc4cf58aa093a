"""Splicing: one kernel from many bodies in sequence, in which a consumer's read of a producer's value becomes that value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuop.fusion.intermediates import staged
from gpuop.fusion.program import Op
from gpuop.ir.kernel import PRECISIONS, Kernel, Launchable, Output
from gpuop.ir.nodes import Barrier, Block, Comment, Const, Expr, FieldParam, Lane, Let, Read, Ref, Stmt, Write
from gpuop.ir.visit import Copier, updated

MAX_NAMES = 3


class _Splicer(Copier):
    """Copies an operator's body: `captured` are values that are in registers, `outputs` those that go to memory, and
    `intermediates` those that other threads of the kernel read.
    """

    def __init__(
        self,
        op: Op,
        fields: dict[FieldParam, FieldParam],
        captured: dict[FieldParam, Expr],
        outputs: dict[FieldParam, FieldParam],
        intermediates: dict[FieldParam, FieldParam],
    ) -> None:
        super().__init__(op.fusible.body, fields={**fields, **outputs})
        self.intermediates = intermediates
        self.written = set(op.kernel.written)
        self.captured = captured
        self.outputs = outputs
        self.results: dict[FieldParam, Expr] = {}

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Read) and expr.field in self.captured:
            value = self.captured[expr.field]
            if isinstance(expr.element, Const) and value.type.lanes > 1:
                return Lane(value, int(expr.element.value), expr.type)
            return value
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        (copied,) = super().stmt(stmt)
        if not isinstance(stmt, Write) or stmt.field not in self.written:
            return (copied,)
        assert isinstance(copied, Write)
        value = copied.value
        before: Block = ()
        if isinstance(value, Ref) and value.var.mutable:  # the variable may change after the write
            variable = replace(value.var, mutable=False)
            before, value = (Let(variable, value, stmt.loc),), Ref(variable)
        self.results[stmt.field] = value
        places = (variable[stmt.field] for variable in (self.outputs, self.intermediates) if stmt.field in variable)
        return (*before, *(replace(copied, field=place, value=value) for place in places))


class _BarrierRegions:
    """The statements of all operators by barrier regions. Independent operators share barriers side by side: a read of the
    same point is one value then, which does not live across a barrier.
    """

    def __init__(self) -> None:
        self.regions: list[list[tuple[Op, Stmt | None]]] = [[]]
        self.barriers: list[dict[str, Barrier]] = []  # the barriers after each region but the last, by fence

    def add(self, op: Op, body: Block, first: int) -> int:
        """Add an operator's statements to regions, from number `first` on; return the number of the last one."""
        self.regions[first].append((op, None))
        for stmt in body:
            if not isinstance(stmt, Barrier):
                self.regions[first].append((op, stmt))
                continue
            if first == len(self.barriers):
                self.barriers.append({})
                self.regions.append([])
            self.barriers[first].setdefault(stmt.fence, stmt)
            first += 1
        return first

    def body(self) -> Block:
        """All statements, with the name of an operator before its own."""
        out: list[Stmt] = []
        current: Op | None = None
        for region, barriers in zip(self.regions, [*self.barriers, {}], strict=True):
            for op, stmt in region:
                if op is not current:
                    out.append(Comment(op.label, op.loc))
                    current = op
                if stmt is not None:
                    out.append(stmt)
            out += barriers.values()
        return tuple(out)


def splice(ops: Sequence[Op], needed: set[int]) -> tuple[Launchable, tuple[int, ...], tuple[int, ...]]:
    """Fuse operators in the order of their arguments, producers first.

    Args:
        needed: the values that must be written to memory.

    Returns:
        The kernel, and the values that its inputs and outputs stand for.
    """
    if ops[0].kernel.unfusible:
        return ops[0].kernel, ops[0].inputs, ops[0].outputs
    inputs: dict[int, FieldParam] = {}
    outputs: dict[int, Output] = {}
    intermediates, registers = _intermediates(ops), dict[int, Expr]()
    ready: dict[int, int] = {}  # the region after which a value is in registers
    regions = _BarrierRegions()
    for op in ops:
        fields: dict[FieldParam, FieldParam] = {}
        captured: dict[FieldParam, Expr] = {}
        for param, value in zip(op.kernel.inputs, op.inputs, strict=True):
            if value in intermediates:
                fields[param] = intermediates[value]
            elif value in registers:
                captured[param] = registers[value]
            else:
                if value not in inputs:  # a new one: equal operators share their kernel and its parameters
                    inputs[value] = FieldParam(param.hint, param.type, param.by_value, param.table)
                fields[param] = inputs[value]
        produced = list(zip(op.kernel.written, op.outputs, strict=True))
        own = {param: intermediates[value] for param, value in produced if value in intermediates}
        splicer = _Splicer(op, fields, captured, _renamed_outputs(op, needed, outputs, fields), own)
        last = regions.add(op, splicer.copy(), max((ready.get(value, 0) for value in op.inputs), default=0))
        ready.update(dict.fromkeys(op.outputs, last))
        registers.update({value: splicer.results[param] for param, value in produced if param in splicer.results})
    params, written, stages = tuple(inputs.values()), tuple(outputs.values()), tuple(intermediates.values())
    domain, group = ops[0].fusible.domain, next((op.fusible.group for op in ops if op.fusible.group), None)
    whole, resident = any(op.fusible.whole for op in ops), max(op.fusible.resident for op in ops)
    kernel = Kernel(_name(ops), params, written, domain, regions.body(), group, whole=whole, precision=_loosest(ops))
    kernel = replace(kernel, loc=ops[0].fusible.loc, intermediates=stages, resident=resident)
    return kernel, tuple(inputs), tuple(outputs)


def _intermediates(ops: Sequence[Op]) -> dict[int, FieldParam]:
    """The values that other threads of the kernel read, named after the operators that make them."""
    outputs = {v: (op, out.param) for op in ops for v, out in zip(op.outputs, op.kernel.outputs, strict=True)}
    return {value: FieldParam(outputs[value][0].kernel.name, outputs[value][1].type) for value in staged(ops)}


def _renamed_outputs(
    op: Op, needed: set[int], outputs: dict[int, Output], fields: dict[FieldParam, FieldParam]
) -> dict[FieldParam, FieldParam]:
    """The outputs of an operator that go to memory, which are added to those of the kernel."""
    params: dict[FieldParam, FieldParam] = {}
    computed = updated(op.fusible.body)
    for output, value in zip(op.kernel.outputs, op.outputs, strict=True):
        if value in needed or output.param in computed:
            params[output.param] = FieldParam(f"out{len(outputs)}", output.param.type)
            outputs[value] = replace(
                output, param=params[output.param], initial=output.initial and fields[output.initial]
            )
    return params


def _name(ops: Sequence[Op]) -> str:
    names = list(dict.fromkeys(each.kernel.name for op in ops for each in (*op.recomputed, op)))
    more = [f"and_{len(names) - MAX_NAMES}_more"] if len(names) > MAX_NAMES else []
    return "_".join(names[:MAX_NAMES] + more)


def _loosest(ops: Sequence[Op]) -> str:
    return max((each.precision for op in ops for each in (*op.recomputed, op)), key=PRECISIONS.index)
