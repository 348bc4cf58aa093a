"""Hoisted constants: library calls of a pipeline that depend on constants alone run in its first call only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.dsl.fields.sources import Deferred
from gpuop.fusion.launch import Rate, Rates
from gpuop.fusion.program import Cycle, Program
from gpuop.ir.kernel import DeviceFunction
from gpuop.ir.values import Leaf, Node
from gpuop.runtime.base.backend import Argument, Backend, Buffer
from gpuop.runtime.base.device_sources import DeviceValue, marked
from gpuop.runtime.execute import Prepared


def by_calls(what: Program) -> Program:
    """The program with the rates of its values, if a library computes one that is the same at every call.

    Constant kernels are not hoisted, because they fuse with their consumers; nor are programs with constant results.
    """
    if not any(isinstance(op.kernel, DeviceFunction) and op.kernel.pure for op in what.ops):
        return what
    cycle = Cycle(frozenset(v for v, node in what.leaves.items() if not _is_constant(node)), frozenset(), ())
    known = replace(what, cycle=cycle, key=(*what.key, "by calls", cycle))
    rates = Rates(known)
    found = [rates.add(op.kernel, op.inputs, op.outputs) for op in what.ops]
    once = any(
        rate is Rate.ONCE and isinstance(op.kernel, DeviceFunction) for rate, op in zip(found, what.ops, strict=True)
    )
    return known if once and all(rates.of.get(v) is Rate.EVERY_STEP for v in what.wanted) else what


def _is_constant(node: Node) -> bool:
    if not isinstance(node, Leaf) or isinstance(node.source, Deferred):
        return False
    return node.source.role == "constant" and node.source.version is None and not node.source.borrowed


class HoistedConstants:
    """The values that all calls of a plan share."""

    def __init__(self) -> None:
        self.values: dict[int, DeviceValue] | None = None

    def of(self, prepared: Prepared, arguments: Callable[[], dict[int, Argument]]) -> dict[int, Buffer]:
        """Return the values for a queue of the device; the first call computes them."""
        backend: Backend = prepared.backend
        if self.values is None:
            made = prepared.constants(arguments())
            mark = marked(backend)
            self.values = {v: DeviceValue(backend, buffer, (), mark) for v, buffer in made.items()}
        return {v: value.taken(backend) for v, value in self.values.items()}
