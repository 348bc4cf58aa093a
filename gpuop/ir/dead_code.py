"""Dead code elimination: statements that neither the outputs of a kernel nor its other effects need."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.visit import COMPOSED, blocks, leaving, map_blocks, operands, read_by, used_by, values, walk


def restricted(kernel: Kernel, outputs: tuple[Output, ...]) -> Kernel:
    """The kernel with only some of its outputs, and the code that these need."""
    params = {output.param for output in outputs}
    return without_dead_code(replace(kernel, outputs=outputs, body=_writing(kernel.body, params)))


def _writing(block: ir.Block, params: set[ir.FieldParam]) -> ir.Block:
    """The block without writes of other fields."""
    left = (stmt for stmt in block if not isinstance(stmt, ir.Write) or stmt.field in params)
    return tuple(map_blocks(stmt, lambda inner: _writing(inner, params)) for stmt in left)


def without_dead_code(kernel: Kernel) -> Kernel:
    """The kernel with only the code, and the intermediates, that its outputs and other effects need.

    An array or an intermediate is needed if something that is needed reads it, so one that only its own values are made of is not.
    """
    stages = frozenset(kernel.intermediates).difference(kernel.written)  # the outputs of a single stage stay
    live = _Live(stages)
    body = _live(kernel.body, live)
    while not live.skipped.isdisjoint(live.memories):
        live = _Live(stages, memories=live.memories)
        body = _live(kernel.body, live)
    dead = stages - live.memories
    return replace(kernel, body=body, intermediates=tuple(p for p in kernel.intermediates if p not in dead))


@dataclass(slots=True)
class _Live:
    """The variables that are used after a statement, and the arrays and intermediates that are read anywhere.

    Attributes:
        stages: the intermediates of the kernel that are not its outputs.
        skipped: memories whose stores, writes or declarations were taken for dead; if one of them turns out to be read, the walk
            starts again with what it knows.
    """

    stages: frozenset[ir.FieldParam]
    vars: set[ir.Var] = field(default_factory=set)
    memories: set[ir.Array | ir.FieldParam] = field(default_factory=set)
    skipped: set[ir.Array | ir.FieldParam] = field(default_factory=set)

    def lacks(self, memory: ir.Array | ir.FieldParam) -> bool:
        if memory in self.memories:
            return False
        self.skipped.add(memory)
        return True

    def is_dead(self, stmt: ir.Stmt) -> bool:
        """True for a statement that only puts values into a memory that is not read."""
        match stmt:
            case ir.Declare(array=array) | ir.Store(memory=ir.Array() as array) | ir.Wide(loads=True, array=array):
                return self.lacks(array)
            case ir.Write(field=param) if param in self.stages:
                return self.lacks(param)
        return False

    def use(self, stmt: ir.Stmt) -> None:
        """Add the operands of a live statement."""
        pending = list(values(stmt))
        while pending:
            expr = pending.pop()
            if isinstance(expr, ir.Ref):
                self.vars.add(expr.var)
            elif type(expr) in COMPOSED:
                if isinstance(expr, ir.Load) and isinstance(expr.memory, ir.Array):
                    self.memories.add(expr.memory)
                if isinstance(expr, ir.Read) and expr.field in self.stages:
                    self.memories.add(expr.field)
                pending += operands(expr)
        if isinstance(memory := read_by(stmt), ir.Array):
            self.memories.add(memory)


def _live(block: ir.Block, live: _Live, looping: bool = False) -> ir.Block:
    """The live statements, given what is live after the block; `live` grows by their operands.

    A statement stays unless all of its effects are known to be dead.

    Args:
        looping: whether the block is in a loop, so that `live` has all that is needed in it.
    """
    out: list[ir.Stmt] = []
    for stmt in reversed(block):
        match stmt:
            case ir.Let(var=var) | ir.Assign(var=var) if var not in live.vars:
                continue
            case _ if live.is_dead(stmt):
                continue
            case ir.Atomic(var=ir.Var() as var) if var not in live.vars:
                stmt = replace(stmt, var=None)
        loop = isinstance(stmt, (ir.For, ir.While))
        if loop and not _is_needed(stmt, live):
            continue  # it ends, as languages have it
        if loop and not looping:
            live.vars |= _needed(stmt, live)
        stmt = map_blocks(stmt, partial(_live, live=live, looping=looping or loop))
        if isinstance(stmt, ir.If) and not any(blocks(stmt)):
            continue
        live.use(stmt)
        out.append(stmt)
    return tuple(reversed(out))


def _is_needed(loop: ir.Stmt, live: _Live) -> bool:
    """Return whether a loop is needed, given the symbols used after it or anywhere in the enclosing loop."""
    for stmt in walk((loop,)):
        match stmt:
            case ir.Let(var=var) | ir.Assign(var=var):
                if var in live.vars:
                    return True
            case _ if live.is_dead(stmt):
                pass
            case ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue() | ir.Comment():
                pass
            case _:
                return True
    return False


def _leaving_by(block: ir.Block) -> set[ir.Var]:
    """The variables that decide which iterations of a loop with this block are left early."""
    tests = [stmt for stmt in block if isinstance(stmt, ir.If) and any(leaving((stmt,)))]
    return {var for test in tests for var in used_by(test).union(*map(_leaving_by, blocks(test)))}


def _needed(loop: ir.Stmt, live: _Live) -> set[ir.Var]:
    """The live variables at the start of a loop, from those after it: an iteration may use values that any other assigned."""
    makers: dict[ir.Var, set[ir.Var]] = {}
    needed = set(live.vars)

    def gather(block: ir.Block, around: set[ir.Var]) -> None:
        for stmt in block:
            used = used_by(stmt) | around  # the effect depends on the conditions around it
            if isinstance(stmt, (ir.For, ir.While)):
                used |= _leaving_by(stmt.body)
            match stmt:
                case ir.Let(var=var) | ir.Assign(var=var):
                    makers.setdefault(var, set()).update(used)
                case ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue() | ir.Declare() | ir.Comment():
                    pass
                case _ if live.is_dead(stmt):
                    pass
                case _:
                    needed.update(used)
            for inner in blocks(stmt):
                gather(inner, used)

    gather((loop,), set())
    waiting = list(needed)
    while waiting:
        more = makers.pop(waiting.pop(), set()) - needed
        needed |= more
        waiting += more
    return needed
