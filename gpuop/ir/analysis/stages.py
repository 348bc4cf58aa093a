"""Stages: a kernel with intermediates, split into kernels without."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gpuop.ir.dead_code import restricted
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Array, Block, Comment, Expr, FieldParam, Load, Read, Ref, Var
from gpuop.ir.visit import bound_by, expressions, fields_read, walk, written_by


@lru_cache(maxsize=32)  # every schedule asks for them
def stages(kernel: Kernel) -> tuple[Kernel, ...]:
    """A kernel for each level of intermediates, which it writes, and one for the outputs; each reads only outputs of those
    before it. Run one after another, they are equivalent to the kernel. Values that two of them need and that are no
    intermediates are computed in both.
    """
    result = [stage(kernel, params) for params in levels(kernel)]
    return (*result, _restricted(kernel, kernel.outputs)) if result else (kernel,)


def levels(kernel: Kernel) -> list[list[FieldParam]]:
    """The intermediates; those of a level need only those of the levels before it."""
    if not kernel.intermediates:
        return []
    result = _Levels(kernel.intermediates)
    result.block(kernel.body)
    level = result.fields
    return [[p for p in level if level[p] == k] for k in range(1 + max(level.values()))]


class _Levels:
    """The stages of a kernel's values: each is one after the stage of the latest intermediate that it depends on.

    Attributes:
        fields: for each intermediate, the stage that computes it.
        levels: for each variable and array, the first stage that can compute it.
    """

    def __init__(self, intermediates: Iterable[FieldParam]) -> None:
        self.fields = dict.fromkeys(intermediates, 0)
        self.levels: dict[Var | Array, int] = {}

    def block(self, block: Block) -> None:
        for stmt in block:
            needed = max(map(self.expr, expressions((stmt,))), default=0)  # conditions and loops include their bodies
            for inner in walk((stmt,)):
                for symbol in (bound_by(inner), written_by(inner)):
                    table: dict[Any, int] = self.fields if isinstance(symbol, FieldParam) else self.levels
                    if symbol is not None and (table is self.levels or symbol in table):
                        table[symbol] = max(table.get(symbol, 0), needed)

    def expr(self, expr: Expr) -> int:
        match expr:
            case Ref(var=var):
                return self.levels.get(var, 0)
            case Load(memory=Array() as array):
                return self.levels.get(array, 0)
            case Read(field=field) if field in self.fields:
                return self.fields[field] + 1
        return 0  # operands are asked for themselves


def stage(kernel: Kernel, params: Iterable[FieldParam]) -> Kernel:
    """The kernel that computes some intermediates, as its outputs, and nothing else."""
    return _restricted(kernel, tuple(map(Output, params)))


def _restricted(kernel: Kernel, outputs: tuple[Output, ...]) -> Kernel:
    less = restricted(kernel, outputs)
    read = fields_read(less.body)
    inputs = tuple(p for p in (*kernel.inputs, *kernel.intermediates) if p in read)
    return replace(less, inputs=inputs, body=_titled(less.body), intermediates=())


def _titled(body: Block) -> Block:
    """The body without the names of operators whose statements are all gone."""
    behind = (*body[1:], Comment(""))
    return tuple(
        s for s, after in zip(body, behind, strict=True) if not (isinstance(s, Comment) and isinstance(after, Comment))
    )
