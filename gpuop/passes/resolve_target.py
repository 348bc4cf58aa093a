"""Resolution for a target: target expressions become numbers, one branch of each `_codegenIf` stays, without the declarations of
the others, and collective operations are lowered."""

from __future__ import annotations

from dataclasses import replace

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.lru import BoundedCache
from gpuop.ir.analysis.partial_groups import check_tiles
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Break, Collective, Continue, Declare, Expr, For, If, Stmt
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import GENERIC, SYMBOLIC, Extent, TargetConst, evaluate
from gpuop.ir.visit import Copier, changed, fields_read, loaded, map_blocks, values, walk
from gpuop.passes.collectives.lower import is_spelled, spell_collectives

_resolved: BoundedCache[tuple[Kernel, Target], Kernel] = BoundedCache(64)  # the tier of a size asks, then its plan


def resolve_target(kernel: Kernel) -> Kernel:
    """The kernel, resolved for its target, or for a generic one where it has none.

    Raises:
        SemanticError: a table has no entry for the target, an extent is not positive, or tiles are not complete.
    """
    return spell_collectives(_decided(kernel) if is_open(kernel) else kernel)


def _decided(kernel: Kernel) -> Kernel:
    target = kernel.target or GENERIC
    body = _chosen(kernel.body, target)
    unused = {*loaded(kernel.body), *changed(kernel.body)} - {*loaded(body), *changed(body)}
    body = tuple(s for s in body if not isinstance(s, Declare) or s.array not in unused)
    unread = fields_read(kernel.body) - fields_read(body)
    group = kernel.group and tuple(_extent(n, "an extent of a work-group", target, kernel.loc) for n in kernel.group)
    resolved = replace(
        kernel,
        inputs=tuple(p for p in kernel.inputs if p not in unread),
        layouts=tuple((p, layout) for p, layout in kernel.layouts if p not in unread),
        body=_Resolving(body, target).copy(),
        group=group,
    )
    if target is not GENERIC:
        check_tiles(resolved)
    return resolved


def for_target(kernel: Kernel, target: Target) -> Kernel:
    """A recorded kernel, resolved for a target; the same object where nothing depends on the target."""
    return _resolved.find((kernel, target), lambda: _for_target(kernel, target))


def _for_target(kernel: Kernel, target: Target) -> Kernel:
    decides = is_open(kernel) or not is_spelled(kernel)
    return replace(resolve_target(replace(kernel, target=target)), target=None) if decides else kernel


def is_open(kernel: Kernel) -> bool:
    """Return whether anything in a kernel depends on the target."""
    extents: list[Extent] = list(kernel.group or ())
    for stmt in walk(kernel.body):
        if isinstance(stmt, Declare):
            extents += stmt.array.shape
        elif isinstance(stmt, For):
            extents.append(stmt.unroll)
        elif isinstance(stmt, Collective) and not isinstance(stmt.over, str):
            extents.append(stmt.over)
        if any(isinstance(value, TargetConst) for value in values(stmt)):
            return True
    return any(isinstance(extent, SYMBOLIC) for extent in extents)


def _chosen(block: Block, target: Target) -> Block:
    """The block with the branches that the target selects instead of the conditions."""
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, If) and isinstance(stmt.cond, TargetConst):
            out += _chosen(stmt.then if evaluate(stmt.cond.fact, target) else stmt.orelse, target)
        else:
            out.append(map_blocks(stmt, lambda inner: _chosen(inner, target)))
        if out and isinstance(out[-1], (Break, Continue)):
            break  # what follows never runs
    return tuple(out)


def _extent(extent: Extent, what: str, target: Target, loc: Loc | None) -> int:
    value = evaluate(extent, target)
    assert isinstance(value, int)
    if value < 1 and target is not GENERIC:
        at = getattr(extent, "loc", None) or loc
        raise SemanticError(f"{what} is at least 1, and for {target} `{extent!r}` is {value}", at)
    return max(value, 1)


class _Resolving(Copier):
    """Copies a body with numbers instead of target expressions."""

    def __init__(self, body: Block, target: Target) -> None:
        super().__init__(body)
        self.target = target
        for stmt in walk(body):
            if isinstance(stmt, Declare):
                what = f"a dimension of array `{stmt.array.hint}`"
                shape = tuple(_extent(n, what, target, stmt.loc) for n in stmt.array.shape)
                self.arrays[stmt.array] = replace(stmt.array, shape=shape)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, TargetConst):
            return constant(evaluate(expr.fact, self.target), expr.type.dtype)
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        if isinstance(stmt, For) and isinstance(stmt.unroll, SYMBOLIC):
            times = evaluate(stmt.unroll, self.target)
            stmt = replace(stmt, unroll=0 if times is True else max(int(times), 1))
        if isinstance(stmt, Collective) and isinstance(stmt.over, SYMBOLIC):
            stmt = replace(stmt, over=_extent(stmt.over, "`over=`", self.target, stmt.loc))
        return super().stmt(stmt)
