"""Dead code elimination: statements that neither the outputs of a kernel nor its other effects need."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.visit import blocks, leaving, loaded, map_blocks, values, walk, walk_expr


def restricted(kernel: Kernel, outputs: tuple[Output, ...]) -> Kernel:
    """The kernel with only some of its outputs, and the code that these need."""
    kept = {output.param for output in outputs}
    return without_dead_code(replace(kernel, outputs=outputs, body=_writing(kernel.body, kept)))


def _writing(block: ir.Block, kept: set[ir.FieldParam]) -> ir.Block:
    """The block without writes of other fields."""
    left = (stmt for stmt in block if not isinstance(stmt, ir.Write) or stmt.field in kept)
    return tuple(map_blocks(stmt, lambda inner: _writing(inner, kept)) for stmt in left)


def without_dead_code(kernel: Kernel) -> Kernel:
    """The kernel with only the code that its outputs and other effects need.

    An array is needed if something that is needed loads of it, so one that only its own values are made of is not.
    """
    arrays: set[ir.Array] = set()
    body = _live(kernel.body, set(), arrays)
    while not (more := loaded(body)) <= arrays:
        arrays |= more
        body = _live(kernel.body, set(), arrays)
    return replace(kernel, body=body)


def _live(block: ir.Block, live: set[ir.Var], arrays: set[ir.Array], looping: bool = False) -> ir.Block:
    """The live statements, given the variables live after the block; `live` grows by their operands.

    A statement stays unless all of its effects are known to be dead.

    Args:
        looping: whether the block is in a loop, so that `live` has all that is needed in it.
    """
    out: list[ir.Stmt] = []
    for stmt in reversed(block):
        match stmt:
            case ir.Let(var=var) | ir.Assign(var=var) if var not in live:
                continue
            case ir.Declare(array=array) | ir.Store(memory=ir.Array() as array) | ir.Wide(loads=True, array=array) if (
                array not in arrays
            ):
                continue
            case ir.Atomic(var=ir.Var() as var) if var not in live:
                stmt = replace(stmt, var=None)
        loop = isinstance(stmt, (ir.For, ir.While))
        if loop and not _is_needed(stmt, live, arrays):
            continue  # it ends, as languages have it
        if loop and not looping:
            live.update(_needed(stmt, live, arrays))
        stmt = map_blocks(stmt, partial(_live, live=live, arrays=arrays, looping=looping or loop))
        if isinstance(stmt, ir.If) and not any(blocks(stmt)):
            continue
        live.update(_used(stmt))
        out.append(stmt)
    return tuple(reversed(out))


def _used(stmt: ir.Stmt) -> set[ir.Var]:
    return {e.var for value in values(stmt) for e in walk_expr(value) if isinstance(e, ir.Ref)}


def _is_needed(loop: ir.Stmt, live: set[ir.Var], arrays: set[ir.Array]) -> bool:
    """Return whether a loop is needed, given the symbols used after it or anywhere in the enclosing loop."""
    for stmt in walk((loop,)):
        match stmt:
            case ir.Let(var=var) | ir.Assign(var=var):
                if var in live:
                    return True
            case ir.Declare(array=array) | ir.Store(memory=ir.Array() as array) | ir.Wide(loads=True, array=array):
                if array in arrays:
                    return True
            case ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue() | ir.Comment():
                pass
            case _:
                return True
    return False


def _leaving_by(block: ir.Block) -> set[ir.Var]:
    """The variables that decide which iterations of a loop with this block are left early."""
    tests = [stmt for stmt in block if isinstance(stmt, ir.If) and any(leaving((stmt,)))]
    return {var for test in tests for var in _used(test).union(*map(_leaving_by, blocks(test)))}


def _needed(loop: ir.Stmt, live: set[ir.Var], arrays: set[ir.Array]) -> set[ir.Var]:
    """The live variables at the start of a loop, from those after it: an iteration may use values that any other assigned."""
    makers: dict[ir.Var, set[ir.Var]] = {}
    needed = set(live)

    def gather(block: ir.Block, around: set[ir.Var]) -> None:
        for stmt in block:
            used = _used(stmt) | around  # the effect depends on the conditions around it
            if isinstance(stmt, (ir.For, ir.While)):
                used |= _leaving_by(stmt.body)
            match stmt:
                case ir.Let(var=var) | ir.Assign(var=var):
                    makers.setdefault(var, set()).update(used)
                case ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue() | ir.Declare() | ir.Comment():
                    pass
                case ir.Store(memory=ir.Array() as array) | ir.Wide(loads=True, array=array) if array not in arrays:
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
