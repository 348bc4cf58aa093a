"""Schedules: which thread of a target computes which points, in which order, and where intermediates lie.

A method is a file of this folder and a line of `METHODS`. It decides where and when a value is computed, never how.

    CPUs    vector rows · resample · interchange      a vector of columns in a thread
            line buffers                              stages, with rows of intermediates in the cache
            group lanes                               a row of a work-group as lanes of vectors
    GPUs    ragged words · shifted rows               a thread has aligned neighbours
            roll · layers                             a thread walks, with windows in registers
            tile                                      a work-group has a tile, in local memory
    both    transpose · privatize                     tiles, and copies of outputs
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.base.config import config
from gpuop.ir.kernel import Kernel, Pin
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.plain import without_intermediates
from gpuop.passes.schedules.common.privatize import PRIVATIZE
from gpuop.passes.schedules.common.transpose import TRANSPOSE
from gpuop.passes.schedules.common.whole_points import writes_parts
from gpuop.passes.schedules.cpu.interchange import INTERCHANGE
from gpuop.passes.schedules.cpu.line_buffers import LINE_BUFFERS
from gpuop.passes.schedules.cpu.resample import RESAMPLE
from gpuop.passes.schedules.cpu.vector_rows import VECTOR_ROWS
from gpuop.passes.schedules.cpu.work_item_vectors import WORK_ITEM_VECTORS
from gpuop.passes.schedules.gpu.layers import LAYER_BLOCKING
from gpuop.passes.schedules.gpu.roll import ROLL
from gpuop.passes.schedules.gpu.shifted_rows import SHIFTED_ROWS
from gpuop.passes.schedules.gpu.tile import TILE
from gpuop.passes.schedules.gpu.unaligned_words import UNALIGNED_WORDS

NOTHING: Parameters = {}
PLAIN = "plain"  # each thread computes its own point
METHODS: tuple[Method, ...] = (
    UNALIGNED_WORDS,
    ROLL,
    LAYER_BLOCKING,
    TRANSPOSE,
    TILE,
    LINE_BUFFERS,
    INTERCHANGE,
    WORK_ITEM_VECTORS,
    RESAMPLE,
    VECTOR_ROWS,
    PRIVATIZE,
    SHIFTED_ROWS,
)  # the first one that suits a kernel is applied


def schedule(kernel: Kernel) -> Kernel:
    """The recorded kernel with its schedule."""
    method = choice(kernel)
    if method is not None:
        return replace(method[0].apply(_few_will_do(kernel), method[1]), target=kernel.target)
    return without_intermediates(kernel) if kernel.intermediates else kernel


def choice(kernel: Kernel) -> tuple[Method, Parameters] | None:
    """The method and the parameters that suit a kernel on its target; None where each thread computes its own point."""
    pin = kernel.pin
    plain = PLAIN in (config.schedule, pin and pin.method)
    if kernel.target is None or plain or not kernel.domain.threads or writes_parts(kernel):
        return None
    if pin is not None and not unpinned(kernel):
        return _named(pin), parameters_of(_named(pin), _few_will_do(kernel), dict(pin.parameters))
    methods = (method for method in METHODS if method.open or not kernel.named)
    return next(((method, parameters_of(method, kernel)) for method in methods if not method.refuse(kernel)), None)


def parameters_of(method: Method, kernel: Kernel, requested: Parameters = NOTHING) -> Parameters:
    """Valid parameters of a method that suits a kernel: the best guess, changed by requested ones as far as these are valid."""
    best = method.candidates(kernel)[0]
    return method.legalize(kernel, {**best, **{name: n for name, n in requested.items() if name in best}})


def unpinned(kernel: Kernel) -> str:
    """Return why the pinned method does not suit a kernel, as the end of a sentence; empty where it does, or none is pinned."""
    if kernel.pin is None or kernel.pin.method == PLAIN:
        return ""
    if config.schedule == PLAIN:
        return "GPUOP_SCHEDULE is plain"
    if not kernel.domain.threads:
        return "its grid has no points"
    return _named(kernel.pin).refuse(_few_will_do(kernel))


def _named(pin: Pin) -> Method:
    return next(method for method in METHODS if method.name == pin.method)


def _few_will_do(kernel: Kernel) -> Kernel:
    """The kernel, if a schedule is pinned on a target that a single thread keeps busy: users who pin schedules know their grids."""
    return kernel if kernel.pin is None else replace(kernel, target=replace(kernel.machine, least_threads=1))
