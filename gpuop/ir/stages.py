"""Stages: a kernel with intermediates, taken apart into kernels without."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuop.ir.dead_code import restricted
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Block, Comment, FieldParam
from gpuop.ir.visit import fields_read


def stages(kernel: Kernel) -> tuple[Kernel, ...]:
    """A kernel for each level of intermediates, which it writes, and one for the outputs; each reads only what those before
    it write. Run one after another, they are what the kernel means. What two of them need, and is no intermediate, both compute.
    """
    made = [stage(kernel, params) for params in levels(kernel)]
    return (*made, _restricted(kernel, kernel.outputs)) if made else (kernel,)


def levels(kernel: Kernel) -> list[list[FieldParam]]:
    """The intermediates; those of a level need only those of the levels before it."""
    level: dict[FieldParam, int] = {}
    for param in kernel.intermediates:
        level[param] = 1 + max((level[p] for p in stage(kernel, [param]).inputs if p in level), default=-1)
    return [[p for p in level if level[p] == k] for k in range(1 + max(level.values(), default=-1))]


def stage(kernel: Kernel, made: Iterable[FieldParam]) -> Kernel:
    """The kernel of only what some intermediates need, which are its outputs."""
    return _restricted(kernel, tuple(map(Output, made)))


def _restricted(kernel: Kernel, outputs: tuple[Output, ...]) -> Kernel:
    less = restricted(kernel, outputs)
    read = fields_read(less.body)
    inputs = tuple(p for p in (*kernel.inputs, *kernel.intermediates) if p in read)
    return replace(less, inputs=inputs, body=_titled(less.body), intermediates=())


def _titled(body: Block) -> Block:
    """The body without the names of operators that nothing is left of."""
    behind = (*body[1:], Comment(""))
    return tuple(
        s for s, after in zip(body, behind, strict=True) if not (isinstance(s, Comment) and isinstance(after, Comment))
    )
