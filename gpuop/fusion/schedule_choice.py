"""Schedules of the kernels of a plan on its target, as far as planning needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from gpuop.base.cache.disk_memo import DiskMemo
from gpuop.fusion.intermediates import staged
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.register_split import Piece
from gpuop.ir.analysis.stages import levels
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout
from gpuop.ir.target import Target
from gpuop.passes.coarsening_factor import points_per_thread
from gpuop.passes.dynamic_extents import opened
from gpuop.passes.lowering_cache import cached_on_disk, suited
from gpuop.passes.pipeline import unscheduled
from gpuop.passes.resolve_target import for_target
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu import line_buffers
from gpuop.passes.schedules.methods import choice, unpinned

RECOMPUTED = DiskMemo[float]("recomputed", float, float)


def scheduled(kernel: Kernel, target: Target) -> tuple[Method, Parameters] | None:
    """The schedule of a kernel on a target; None if each thread computes its own points."""
    return choice(unscheduled(kernel, target))


def way_of(kernel: Kernel, target: Target) -> str:
    """The name of the schedule of a kernel on a target, or else the form of its threads."""
    ready = unscheduled(for_target(kernel, target), target)
    method = choice(ready)
    return points_per_thread(ready).form if method is None else method[0].name


def recompute_ratio(kernel: Kernel, target: Target) -> float:
    """Return the ratio of computed points to needed points in the stages of a kernel: on CPUs, neighbouring blocks share halos."""

    def ratio() -> float:
        ready = unscheduled(kernel, target)
        method, parameters = choice(ready) or (None, {})
        return line_buffers.recompute_ratio(ready, parameters) if method is line_buffers.LINE_BUFFERS else 1.0

    return cached_on_disk(RECOMPUTED, kernel, target, ratio)


def pin_refusal(kernel: Kernel, target: Target) -> str:
    """The reason why the pinned schedule does not suit a kernel on a target; empty if it does, or none is pinned."""
    return unpinned(unscheduled(kernel, target)) if kernel.pin is not None else ""


def ill_staged(piece: Piece, limits: Limits, layouts: Mapping[int, Layout], dynamic: Collection[int]) -> set[int]:
    """The values that should not be intermediates of a kernel that no schedule of the target suits; none if one does.

    They are those of the level of stages with the fewest bytes; of equal levels the middle one, which takes the fewest rounds.
    """
    kernel = piece.kernel
    if limits.target is None or not isinstance(kernel, Kernel) or not kernel.intermediates:
        return set()
    pinned = kernel if limits.pin is None else replace(kernel, pin=limits.pin)
    pinned_kernel = placed(pinned, piece, layouts, dynamic)
    if (
        opened(pinned_kernel, limits.target).kernel is not None
        if pinned_kernel.dynamic
        else suited(pinned_kernel, limits.target)
    ):
        return set()
    value = dict(zip(kernel.intermediates, staged(piece.ops), strict=True))
    stages = levels(kernel)
    middle = (len(stages) - 1) / 2
    fewest = min(enumerate(stages), key=lambda at: (sum(param.type.nbytes for param in at[1]), abs(at[0] - middle)))[1]
    return {value[param] for param in fewest}


def placed(kernel: Kernel, piece: Piece, layouts: Mapping[int, Layout], dynamic: Collection[int]) -> Kernel:
    """The kernel of a piece, with its dynamic values and open extents, and the layouts of values in borrowed memory."""
    values = list(zip((*kernel.inputs, *kernel.written), (*piece.inputs, *piece.outputs), strict=True))
    elsewhere = tuple((param, layouts[value]) for param, value in values if value in layouts)
    kernels = (each.kernel for op in piece.ops for each in (op, *op.recomputed))
    extents = {n for each in kernels if isinstance(each, Kernel) for n in each.extents}
    open_ = frozenset(param for param, value in values if value in dynamic)
    return (
        replace(kernel, layouts=elsewhere, dynamic=open_, extents=tuple(sorted(extents)))
        if elsewhere or open_
        else kernel
    )
