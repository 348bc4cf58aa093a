"""How kernels of a plan run on its target, as far as planning needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.split import Piece
from gpuop.fusion.staging import staged
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout
from gpuop.ir.stages import levels
from gpuop.ir.target import Target
from gpuop.passes import unscheduled
from gpuop.passes.schedules import choice, unpinned
from gpuop.passes.schedules.method import Method, Parameters


def scheduled(kernel: Kernel, target: Target) -> tuple[Method, Parameters] | None:
    """How a kernel runs there; None where each thread computes its own points."""
    return choice(unscheduled(kernel, target))


def pin_refusal(kernel: Kernel, target: Target) -> str:
    """Why the schedule that is pinned does not suit a kernel there; empty where it does, or none is pinned."""
    return unpinned(unscheduled(kernel, target)) if kernel.pin is not None else ""


def ill_staged(piece: Piece, limits: Limits, layouts: Mapping[int, Layout]) -> set[int]:
    """The values that should not be intermediates of a kernel that no schedule of the target suits; none where one does.

    They are those of one level of its stages, which are the fewest bytes; of equal ones the middle, so that it takes few rounds.
    """
    kernel = piece.kernel
    if limits.target is None or not isinstance(kernel, Kernel) or not kernel.intermediates:
        return set()
    pinned = kernel if limits.pin is None else replace(kernel, pin=limits.pin)
    if scheduled(laid_out(pinned, piece, layouts), limits.target) is not None:
        return set()
    value = dict(zip(kernel.intermediates, staged(piece.ops), strict=True))
    found = levels(kernel)
    middle = (len(found) - 1) / 2
    fewest = min(enumerate(found), key=lambda at: (sum(param.type.nbytes for param in at[1]), abs(at[0] - middle)))[1]
    return {value[param] for param in fewest}


def laid_out(kernel: Kernel, piece: Piece, layouts: Mapping[int, Layout]) -> Kernel:
    """The kernel of a piece, with the layouts of the values that do not lie in memory as gpuop's own do."""
    values = zip((*kernel.inputs, *kernel.written), (*piece.inputs, *piece.outputs), strict=True)
    elsewhere = tuple((param, layouts[value]) for param, value in values if value in layouts)
    return replace(kernel, layouts=elsewhere) if elsewhere else kernel
