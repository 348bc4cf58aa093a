"""Load hoisting on GPUs: an unrolled loop loads the values of all iterations before it computes the first.

Division, square roots and other functions branch for rare operands, and compilers leave loads behind the branches, where each
iteration would wait for its own.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import collector
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Block, Declare, FieldParam, For, Let, Load, Ref, Stmt, Store, Var
from gpuop.ir.ops import OPS
from gpuop.ir.visit import (
    Copier,
    bound,
    changed,
    effects,
    expressions,
    leaving,
    loop_values,
    walk,
    written_by,
)
from gpuop.passes.coarsening_factor import MOST_HELD
from gpuop.passes.rewrite import rewrite_statements

BRANCHING = ("div", "sqrt")  # correctly rounded operations that branch


def load_ahead(kernel: Kernel) -> Kernel:
    if kernel.target is None or kernel.target.widening != "unrolled":
        return kernel
    body = rewrite_statements(kernel.body, _ahead)
    return kernel if body == kernel.body else without_dead_code(replace(kernel, body=body))


def _ahead(stmt: Stmt) -> Block:
    return _in_two(stmt) if isinstance(stmt, For) and _waits(stmt) else (stmt,)


def _waits(loop: For) -> bool:
    """Return whether the iterations of an unrolled loop branch, and none writes memory that another one loads."""
    iterations = loop_values(loop)
    if (
        iterations is None
        or iterations != range(len(iterations))
        or len(iterations) == 1
        or loop.unroll != len(iterations)
    ):
        return False
    stores = any(isinstance(written_by(stmt), FieldParam) for stmt in walk(loop.body))
    operations = (e for e in expressions(loop.body) if isinstance(e, Apply) and e.type.kind == "f")
    branches = any(e.op in BRANCHING or OPS[e.op].ulp for e in operations)
    return not stores and not effects(loop.body) and not any(leaving(loop.body)) and branches


def _in_two(loop: For) -> Block:
    """Split a loop into one that loads and one that computes."""
    iterations = loop_values(loop)
    assert iterations is not None
    needed, loads = _loads(loop)
    arrays = {let.var: Array(f"{let.var.hint}_ahead", let.var.type, (len(iterations),)) for let in loads}
    if not arrays or sum(array.nbytes for array in arrays.values()) > MOST_HELD:
        return (loop,)
    counter = Var(loop.var.hint, loop.var.type, temporary=loop.var.temporary)
    copier = Copier(needed, {loop.var: Ref(counter)})
    first = [*copier.copy()]
    for var, array in arrays.items():
        value = collector(first).bind(Apply("loaded", (copier.expr(Ref(var)),), var.type))
        first.append(Store(array, (Ref(counter),), value))
    values = {var: Load(array, (Ref(loop.var),), var.type) for var, array in arrays.items()}
    body = (
        replace(stmt, value=values[stmt.var]) if isinstance(stmt, Let) and stmt.var in values else stmt
        for stmt in loop.body
    )
    loads_first = replace(loop, var=counter, body=tuple(first))
    return (*map(Declare, arrays.values()), loads_first, replace(loop, body=tuple(body)))


def _loads(loop: For) -> tuple[Block, list[Let]]:
    """The loads of fields that depend on the loop counter alone, and the statements that they need, in order.

    Loads that are the same in all iterations stay: what is computed of them is computed once, as a key's part of random numbers.
    """
    varying = changed(loop.body) | bound(loop.body)
    dependent = {loop.var}
    needs: dict[Var, set[Let]] = {loop.var: set()}
    needed, loads = set[Let](), list[Let]()
    for stmt in loop.body:
        if not isinstance(stmt, Let) or stmt.var.mutable or stmt.var in changed(loop.body):
            continue
        parts = list(expressions((stmt,)))
        if any(isinstance(e, Load) and isinstance(e.memory, Array) and e.memory.written for e in parts):
            continue
        used = {e.var for e in parts if isinstance(e, Ref)}
        needed_vars = used & varying
        if not all(var in needs for var in needed_vars):
            continue
        needs[stmt.var] = {stmt}.union(*(needs[var] for var in needed_vars))
        if not used & dependent:
            continue
        dependent.add(stmt.var)
        if isinstance(stmt.value, Load) and isinstance(stmt.value.memory, FieldParam):
            loads.append(stmt)
            needed |= needs[stmt.var]
    return tuple(stmt for stmt in loop.body if stmt in needed), loads
