"""2.5D blocking of two stages in three dimensions on GPUs: a work-group walks along layers and exchanges halos in local memory.

A thread has a few columns of a row and keeps layers of them in registers. Neighbours read its intermediates in local memory, so
only the halo of a tile is computed more than once, and memory is read and written once.

     a layer of the group's tile             an iteration, for layer z of the outputs
    +-----------------------------+          1. load the next layer of the inputs into registers
    | h  h  h  h  h  h  h  h  h   |          2. compute the next layer of the first stage, own columns only
    | h  +-------------------+ h  |          3. store it in local memory
    | h  | threads that      | h  |          4. barrier
    | h  | write outputs     | h  |          5. load the neighbours' values from local memory
    | h  +-------------------+ h  |          6. the inner threads compute and write layer z
    | h  h  h  h  h  h  h  h  h   |          7. layers in registers move up
    +-----------------------------+
    h: threads that load and compute, but write nothing

    local memory   [layer & (layers - 1)] [lane] [row of threads] [thread along columns]
                   a circular buffer; the threads of a warp read neighbouring words
"""

from __future__ import annotations

import math
from dataclasses import replace

from gpuop.ir.kernel import Kernel
from gpuop.ir.types import Shape
from gpuop.passes.coarsening_factor import ACCESS
from gpuop.passes.schedules.common.grid_walk import Walk, power_of_two
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.register_windows import reads_beside, windows_of
from gpuop.passes.schedules.gpu.ghost_points import refused_stages
from gpuop.passes.schedules.gpu.halo_exchange import around, group_of, nbytes
from gpuop.passes.schedules.gpu.roll import computed_values, registers, unfit
from gpuop.passes.schedules.gpu.roll_kernel import roll_kernel

LAYERS = (128, 64)  # layers that a thread walks
WRITING, WIDTH = 256, 32  # threads of a work-group that write, and their number along columns
RESIDENT = 2  # work-groups of a multiprocessor: one computes while the other waits
MOST_THREADS = 1024  # threads of a work-group
MOST_LAYERS = 64  # threads of a work-group along layers, on NVIDIA GPUs
MOST_HELD = 72  # registers for windows that leave room for so many work-groups
MOST_VALUES = 64  # values of a point: beyond these the kernel is bound by computation
WORD = 32  # bits: kernels of narrower values are bound by computation
MOST_COLUMNS = 16  # bytes of one access, so columns of bytes


def refuse(kernel: Kernel) -> str:
    if reason := unfit(kernel):
        return reason
    if not reads_beside(kernel):
        return "its stages do not read one another along layers and rows"
    windows, columns = windows_of(kernel, exchanged=True), _columns(kernel)
    if reason := refused_stages(kernel, windows):
        return reason
    if columns < _widest(kernel) or columns == 1:
        return "its rows have no aligned places"
    if any(view.field.type.storage.bits < WORD for view in windows.by_view):
        return "its values are narrow"
    if registers(windows.by_view, columns, 1) > MOST_HELD:
        return f"its windows take {registers(windows.by_view, columns, 1)} registers"
    if computed_values(windows, 0) > MOST_VALUES:
        return f"its stages compute {computed_values(windows, 0):.0f} values"
    if _group(kernel, columns, WIDTH) is None:
        return "its threads read too many values of one another"
    return "" if candidates(kernel) else "walking would leave too few threads"


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    windows, columns, least = windows_of(kernel, exchanged=True), _columns(kernel), kernel.machine.least_threads
    extent = kernel.domain.extent(windows.axis)
    threads = {n: kernel.domain.threads // columns // extent * -(-extent // n) for n in LAYERS}
    fit = [n for n in LAYERS if threads[n] >= 2 * least]
    best = sorted(fit, key=lambda n: (1 + windows.before / n) * (1 + least / (2 * threads[n])))
    return tuple({"columns": columns, "layers": n, "width": WIDTH} for n in best)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    extent = kernel.domain.extent("column")
    columns = math.gcd(min(1 << parameters["columns"].bit_length() - 1, MOST_COLUMNS), extent)
    layers = min(parameters["layers"], kernel.domain.extent(windows_of(kernel, exchanged=True).axis))
    width = min(1 << parameters["width"].bit_length() - 1, power_of_two(extent // columns), WIDTH)
    return {"columns": columns, "layers": layers, "width": width if _group(kernel, columns, width) else WIDTH}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    windows, columns = windows_of(kernel, exchanged=True), parameters["columns"]
    group = _group(kernel, columns, parameters["width"])
    assert group is not None
    access, beside = columns if kernel.aligned(columns) else 1, around(windows, columns)
    walk = Walk(windows.axis, parameters["layers"], 1, columns, access, 1, 0, 0, group, around=beside)
    return replace(roll_kernel(kernel, walk, None), resident=RESIDENT)


def _group(kernel: Kernel, columns: int, width: int) -> Shape | None:
    """The work-group with as many rows as fit; None where not even one fits."""
    windows, rows = windows_of(kernel, exchanged=True), WRITING // width
    while rows:
        group = group_of(windows, columns, rows, width)
        fits = group.points <= MOST_THREADS and group[0] <= MOST_LAYERS
        if fits and nbytes(windows, columns, group) <= kernel.machine.local_memory_bytes:
            return group
        rows //= 2
    return None


def _columns(kernel: Kernel) -> int:
    """The columns of a thread: those of one access, where they divide rows."""
    columns = math.gcd(_widest(kernel), kernel.domain.extent("column"))
    return columns if kernel.aligned(columns) else 1


def _widest(kernel: Kernel) -> int:
    fields = {*kernel.written, *(view.field for view in windows_of(kernel, exchanged=True).inputs())}
    return max(ACCESS // max(field.type.storage.bits // 8 for field in fields), 1)


LAYER_BLOCKING = Method("layers", ("columns", "layers", "width"), refuse, candidates, legalize, apply)
