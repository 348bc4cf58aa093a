"""Recorder to kernel: every output gets one write at the own point at the end, and a missing one is an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpuop.base.errors import SemanticError
from gpuop.dsl.operators.body_checks import (
    check_barriers,
    check_cover,
    check_nesting,
    check_races,
    check_uniform,
    target,
)
from gpuop.dsl.operators.definite_assignment import covers
from gpuop.dsl.operators.write_coverage import writes_all
from gpuop.dsl.recorder.fill_values import Fill, element_of_fill, uniform
from gpuop.dsl.recorder.kernel_warnings import warn_of_wrapped_floats
from gpuop.dsl.recorder.outputs import OutputSlot
from gpuop.dsl.recorder.recorder import Recorder
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.partial_groups import check_tiles
from gpuop.ir.build import collector, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.early_exits import EarlyExits
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Assign, Block, Break, For, If, Let, Ref, Stmt, Var, While
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, SMALL_TENSOR, Type
from gpuop.ir.verify import Form, verify
from gpuop.ir.visit import Copier, expressions, map_blocks, walk
from gpuop.passes.relax_precision import relaxed
from gpuop.passes.resolve_target import is_open


def finish(recorder: Recorder, precision: str) -> Kernel:
    """Kernel of a recording, in a precision mode.

    Raises:
        SemanticError: an output is not written, or not on every path; threads do not reach barriers together, or read
            local memory that only tail threads would have written.
    """
    recorder.check_pending()
    warn_of_wrapped_floats(recorder)
    before = (stmt for updated in recorder.updated.values() for stmt in updated.prologue())
    after = (stmt for updated in recorder.updated.values() for stmt in updated.epilogue())
    body, domain = _element_axis(recorder, (*recorder.shared, *before, *without_returns(recorder), *after))
    check_nesting(body)
    check_uniform(body, domain, recorder.work_group, recorder.uniform)
    body = _Elements(body, recorder.volatile).copy()
    group = recorder.work_group if recorder.group or _knows_groups(body) else None
    kernel = Kernel(
        recorder.name,
        tuple(recorder.inputs.values()),
        (),
        domain,
        body,
        group,
        loc=recorder.loc,
        whole=recorder.runs_tail_threads,
        resident=recorder.resident,
        precision=precision,
        looked=recorder.looked,
    )
    check_barriers(kernel)
    if not is_open(kernel):  # otherwise once the target is known
        check_tiles(kernel)
    outputs = []
    for slot in recorder.outputs:
        body, output = _settle(recorder, slot, replace(kernel, body=body))
        outputs.append(output)
    kernel = replace(kernel, body=body, outputs=tuple(outputs))
    return verify(relaxed(without_dead_code(kernel) if recorder.idle else kernel), Form.RECORDED)


def _knows_groups(body: ir.Block) -> bool:
    """True if the result may depend on the shape of the work-groups."""
    waits = any(isinstance(s, (ir.Barrier, ir.Collective)) for s in walk(body))
    shared = any(isinstance(s, ir.Declare) and s.array.space == "local" for s in walk(body))
    positions = (isinstance(e, ir.Index) and e.kind not in ("global", "global_size") for e in expressions(body))
    return waits or shared or any(positions)


def _element_axis(recorder: Recorder, body: ir.Block) -> tuple[ir.Block, Domain]:
    """A body that is one loop over the elements of a big tensor becomes one thread per element."""
    domain = recorder.domain
    loop = recorder.element_loop
    if loop is None or body != (loop,) or recorder.tensor or recorder.group or _knows_groups(body):
        return body, domain
    assert isinstance(loop.stop, ir.Const)
    if any(isinstance(stmt, ir.Write) and stmt.element != ir.Ref(loop.var) for stmt in walk(loop.body)):
        return body, domain  # two iterations may write one place, and the last one wins
    inner = Copier(loop.body, {loop.var: ir.Index("global", "element")}).copy()
    return inner, Domain(domain.shape, int(loop.stop.value))


class _Elements(Copier):
    """Copier that makes element 0 of a scalar tensor the whole tensor, and memory volatile on request."""

    def __init__(self, body: ir.Block, volatile: set[ir.Var | ir.Array]) -> None:
        super().__init__(body)
        for array, copied in self.arrays.items():
            if array in volatile:
                self.arrays[array] = replace(copied, volatile=True)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        copied = super().expr(expr)
        if isinstance(copied, ir.Read) and _only(copied.field, copied.element):
            return replace(copied, element=None)
        return copied

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        (copied,) = super().stmt(stmt)
        if isinstance(copied, ir.Write) and _only(copied.field, copied.element):
            return (replace(copied, element=None),)
        return (copied,)


def _only(field: ir.FieldParam, element: ir.Expr | None) -> bool:
    return field.type.planes == 1 and isinstance(element, ir.Const)


# --- writes -----------------------------------------------------------------------------------------------------------


def _settle(recorder: Recorder, slot: OutputSlot, kernel: Kernel) -> tuple[ir.Block, Output]:
    """Check an output's writes and bring them into canonical form."""
    field, body, domain = slot.param, kernel.body, kernel.domain
    writes = [stmt for stmt in walk(body) if target(stmt) is field]
    if not writes:
        otherwise = "declare fewer outputs" if slot.declared else "return a value"
        raise SemanticError(
            f"operator `{recorder.name}` never writes its output {slot.shown}; add `_writeTensor({slot.shown}, …)`, or {otherwise}",
            recorder.loc,
        )
    covered = covers(body, field, domain)
    check_races(kernel, slot, covered)
    if slot.initial is not None:
        return body, Output(field, initial=slot.initial, unordered=slot.unordered)
    if slot.default is None:
        check_cover(kernel, slot, covered)
    first = next((n for n, stmt in enumerate(body) if _is_read(stmt, field)), len(body))
    written_before = covers(body[:first], field, domain)  # reads see written values
    if not all(_is_own(w, domain) for w in writes):
        if written_before or writes_all(replace(kernel, body=body[:first]), field):
            return body, Output(field)
        counts = any(isinstance(write, ir.Atomic) for write in writes)
        return body, Output(field, _filled(slot), complete=slot.default is None and not counts)
    if first < len(body):
        return body, Output(field, None if written_before else _filled(slot))
    if len(writes) == 1 and writes[0] in body and covered:
        return body, Output(field)
    return _one_write(body, slot, domain), Output(field)


def _filled(slot: OutputSlot) -> float:
    """Initial value of all memory of an output."""
    fill = _default(slot)
    if not uniform(fill):
        raise SemanticError(
            f"{slot.shown} is written at computed places, so all of its memory starts from one number: the real and the "
            "imaginary part of its `default=` are equal, as in default=0"
        )
    return fill[0].value


def _default(slot: OutputSlot) -> Fill:
    return slot.default or (constant(0, slot.param.type.storage),)


def _is_read(stmt: ir.Stmt, field: ir.FieldParam) -> bool:
    """True if a statement reads an output, in which threads see the writes of others."""
    return any(isinstance(s, ir.Atomic) and s.op == "read" and s.memory is field for s in walk((stmt,)))


def _is_own(write: ir.Stmt, domain: Domain) -> bool:
    if not isinstance(write, ir.Write) or write.point is not None:
        return False
    if domain.elements > 1:
        return write.element == ir.Index("global", "element") and write.field.type.planes == domain.elements
    return write.element is None or (isinstance(write.element, ir.Const) and write.field.type.planes <= SMALL_TENSOR)


def _one_write(body: ir.Block, slot: OutputSlot, domain: Domain) -> ir.Block:
    """Writes become assignments to a variable, which is written once at the end."""
    field = slot.param
    axis = domain.elements > 1 and field.type.planes > 1
    lanes = 1 if domain.elements > 1 else field.type.planes
    var = ir.Var(field.hint, Type(field.type.storage, lanes), mutable=True)
    out: list[ir.Stmt] = []

    def assigned(write: ir.Write) -> list[ir.Stmt]:
        into: list[ir.Stmt] = []
        value = write.value
        if lanes > 1 and isinstance(write.element, ir.Const):
            build = collector(into)
            parts = build.lanes(ir.Ref(var))
            parts[int(write.element.value)] = value
            value = build.pack(parts)
        return [*into, ir.Assign(var, value, write.loc)]

    def rewrite(block: ir.Block) -> ir.Block:
        done: list[ir.Stmt] = []
        for stmt in block:
            done += (
                assigned(stmt) if isinstance(stmt, ir.Write) and stmt.field is field else [map_blocks(stmt, rewrite)]
            )
        return tuple(done)

    element = ir.Index("global", "element") if axis else None
    build, fill = collector(out), _default(slot)
    several = lanes > 1 and not uniform(fill)
    initial = (
        build.pack([fill[n % len(fill)] for n in range(lanes)])
        if several
        else build.cast(element_of_fill(build, fill if axis and not uniform(fill) else fill[:1], element), var.type)
    )
    out.append(ir.Let(var, initial))
    return (*out, *rewrite(body), ir.Write(field, ir.Ref(var), None, element))


# --- `_return()` ------------------------------------------------------------------------------------------------------
# The rest of the body becomes conditional, because all threads stay to the end of a kernel.


def without_returns(recorder: Recorder) -> Block:
    """Statements of a recorded body, with returns replaced by conditions."""
    body = tuple(recorder.scopes[0].statements)
    if recorder.returned is None:
        return body
    done = _Returns(recorder.returned).block(body)
    if any(e == Ref(recorder.returned) for e in expressions(done)):
        return (Let(recorder.returned, constant(False, BOOL)), *done)
    return _without(done, recorder.returned)


def _without(block: Iterable[Stmt], var: Var) -> Block:
    """Statements without assignments to a variable that is never read, and without branches left empty by that."""
    out: list[Stmt] = []
    for stmt in block:
        stmt = map_blocks(stmt, lambda inner: _without(inner, var))
        if isinstance(stmt, If) and not stmt.then and not isinstance(stmt.cond, TargetConst):
            if stmt.orelse:
                fails = collector(out, stmt.loc).apply("not", stmt.cond)
                out.append(If(fails, stmt.orelse, (), stmt.loc))
        elif not (isinstance(stmt, Assign) and stmt.var is var):
            out.append(stmt)
    return tuple(out)


class _Returns(EarlyExits):
    """Rewriter of returns: assignments of the flag; `_return()` in a loop leaves it, too."""

    def exits(self, block: Block) -> Iterator[Stmt]:
        return (stmt for stmt in walk(block) if isinstance(stmt, Assign) and stmt.var is self.over)

    def ending(self, exit: Stmt) -> Block:
        return (exit,)

    def inner(self, stmt: Stmt) -> Stmt:
        return map_blocks(stmt, self.loop_body if isinstance(stmt, (For, While)) else self.block)

    def partial(self, stmt: Stmt, rest: Block, exit: Stmt) -> Block:
        if isinstance(stmt, If) and (self.ends_by_return(stmt.then) or self.ends_by_return(stmt.orelse)):
            return (self.split(stmt, rest),)
        return super().partial(stmt, rest, exit)

    def split(self, stmt: If, rest: Block) -> If:
        """A conditional of which one branch ends by a return: the rest moves into the other branch."""
        if self.ends_by_return(stmt.then):
            return replace(stmt, orelse=self.block((*stmt.orelse, *rest)))
        return replace(stmt, then=self.block((*stmt.then, *rest)))

    def loop_body(self, block: Block) -> Block:
        """Statements of a loop. A return leaves it, and the loops around it."""
        out: list[Stmt] = []
        for stmt in block:
            out.append(map_blocks(stmt, self.loop_body))
            exit = next(self.exits((stmt,)), None)
            if isinstance(stmt, (For, While)) and exit is not None:
                out.append(If(Ref(self.over), (Break(exit.loc),), (), exit.loc))
        return tuple(out)

    def ends_by_return(self, block: Block) -> bool:
        """True if a block ends by a return, and has no other."""
        return bool(block) and [*self.exits(block)] == [block[-1]]
