"""Elimination of dead outputs: an operator without unread outputs, their statements, and inputs that it then does not read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuop.base.lru import BoundedCache
from gpuop.ir.dead_code import restricted
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.ir.text import identity
from gpuop.ir.visit import fields_read, updated

KEPT = 4096


@dataclass(frozen=True)
class Pruned:
    """A pruned kernel, its identity, and the positions of the inputs and outputs that it still has."""

    kernel: Kernel
    identity: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


_known: BoundedCache[tuple[str, frozenset[int]], Pruned | None] = BoundedCache(KEPT)


def pruned(kernel: Kernel, name: str, needed: frozenset[int]) -> Pruned | None:
    """A kernel without outputs that are not needed and inputs that are not used; None if there are none.

    Args:
        name: identity of the kernel.
        needed: positions of the needed outputs.
    """
    return _known.find((name, needed), lambda: _prune(kernel, needed))


def _prune(kernel: Kernel, needed: frozenset[int]) -> Pruned | None:
    computed = updated(kernel.body)
    outputs = tuple(k for k, o in enumerate(kernel.outputs) if k in needed or o.param in computed)
    if len(outputs) == len(kernel.outputs) and _taken(kernel).issuperset(kernel.inputs):
        return None
    less = restricted(kernel, tuple(kernel.outputs[k] for k in outputs))
    read = _taken(less)
    inputs = tuple(k for k, p in enumerate(kernel.inputs) if p in read)
    less = replace(less, inputs=tuple(kernel.inputs[k] for k in inputs))
    return Pruned(less, identity(less), inputs, outputs)


def _taken(kernel: Kernel) -> set[FieldParam]:
    """The inputs that a kernel needs."""
    return fields_read(kernel.body) | {output.initial for output in kernel.outputs if output.initial is not None}
