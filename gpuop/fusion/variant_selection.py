"""Selection by measurements on a device: variants of operators before planning, schedules after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.records import dataclass
from gpuop.fusion.program import Op, Program, needed_ops
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.target import Target
from gpuop.ir.values import Node
from gpuop.ir.variants import Variant, Variants, shown


class Choices(ABC):
    """The source of choices that were measured on a device, or on devices of a target."""

    target: Target

    @abstractmethod
    def variant(self, call: Variants, inputs: Sequence[Node | None]) -> Variant:
        """Return the variant that runs.

        Args:
            inputs: the inputs of the call, where they come from outside of the program.
        """

    @abstractmethod
    def pin(self, kernel: Kernel) -> Pin | None:
        """Return the schedule that was measured to be the fastest for a kernel of a plan; None if none was measured."""


@dataclass(frozen=True)
class First(Choices):
    """The choices without measurements: the first variant that fits the target."""

    target: Target

    def variant(self, call: Variants, inputs: Sequence[Node | None]) -> Variant:
        return call.fitting(self.target)[0]

    def pin(self, kernel: Kernel) -> Pin | None:
        return None


def settled(program: Program, choices: Choices) -> Program:
    """The program with one selected variant for each operator."""
    if not any(isinstance(op.kernel, Variants) for op in program.ops):
        return program
    return replace(program, ops=needed_ops([_settled(op, program, choices) for op in program.ops], program.results))


def _settled(op: Op, program: Program, choices: Choices) -> Op:
    if not isinstance(op.kernel, Variants):
        return op
    variant = choices.variant(op.kernel, [program.leaves.get(v) for v in op.inputs])
    inputs = tuple(op.inputs[k] for k in variant.inputs)
    text = shown(variant.parameters)
    return replace(op, kernel=variant.kernel, identity=variant.identity, inputs=inputs, variant=text)
