"""Register sliding windows for stencils on GPUs: a thread walks down a few columns and keeps the rows of its window in registers.

A thread loads each value once, 16 bytes in one access where rows are aligned. For a window of 3 by 3 points and 4 columns:

                 c-1   c  c+1 c+2 c+3  c+4
    row r-1       w    w   w   w   w    w        in registers
    row r         w    x   x   x   x    w        x: the points that the thread computes
    row r+1       w    w   w   w   w    w
    row r+2       n    n   n   n   n    n        the one row to load before row r+1 is computed; then all rows move up

    columns       0 .. 3   | 4 .. 7   | 8 .. 11  |
    rows  0..63   thread 0 | thread 1 | thread 2 |     `rows` is 64, `columns` 4; `turn` rows are computed in an iteration
    rows 64..127  thread 0 | thread 1 | thread 2 |     (of other work-groups)

Rows stand for layers too, where a thread walks along layers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Assign, Let, While
from gpuop.ir.types import Shape
from gpuop.ir.visit import expressions
from gpuop.ir.visit import walk as statements
from gpuop.passes.coarsening_factor import ACCESS, tells_groups, unrepeatable
from gpuop.passes.schedules.common.grid_walk import Walk, power_of_two
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.register_windows import OWN, View, Window, Windows, refused_reads, windows_of
from gpuop.passes.schedules.gpu.ghost_points import refused_stages
from gpuop.passes.schedules.gpu.roll_kernel import roll_kernel

ROWS = (64, 32, 16, 8)  # rows that a thread walks
GROUP = 128  # threads of a work-group
MOST_WIDE = 256  # threads of a work-group along columns
MOST_TURN = 16  # rows of an iteration, whose statements are repeated
MOST_COLUMNS = 16  # bytes of one access, so columns of bytes
MOST_HELD = 112  # registers for windows: beyond these a thread has fewer columns
MOST_STAGED = 144  # the same for kernels with intermediates, of which threads of fewer columns recompute more
MOST_AGAIN = 1.6  # computed values for each needed one, with halos of columns: beyond this tiles are faster
MOST_VALUES = 2048  # values that the copies of a body compute
MOST_AT_ONCE = 8  # rows of an iteration, where rows are not aligned
AHEAD = 4  # rows of an iteration elsewhere, so that their loads overlap
MOST_IN_TURN = 1000  # values that an iteration of several rows computes
WORDS = 2  # factor of the rows of an iteration in kernels on words of bytes, which wait longer for memory
FEW_COLUMNS = 4  # up to these, the cost of a row does not grow much with each column
NARROW = 8  # least threads of a row whose threads begin at aligned places: those at the ends have fewer columns
MOST_IN_CYCLE = 1400  # values that the iterations of a cycle compute
MOST_UNROLLED = 2400  # values that an iteration of the loop of the interior computes, whose rows have no conditions
SHARED = 64  # values of a point from which on threads have two columns where rows are not aligned
REGISTERS = 1 << 16  # registers of a multiprocessor
SPARE = 28  # registers of a thread besides those of its windows
AGAIN, STAGED_AGAIN = (
    0.2,
    0.6,
)  # cost of a row that another thread loads, or computes, too, in rows; for bytes twice that
DEEP = "its stages build on one another"


@lru_cache(maxsize=64)  # several methods ask for it in turn
def unfit(kernel: Kernel) -> str:
    """Return the reason why threads cannot walk over the grid; empty where they can."""
    if kernel.machine.widening != "unrolled":
        return "only GPUs have the registers for rows"
    if len(kernel.domain.shape) < 2:
        return "its grid has no rows"
    if tells_groups(kernel) or kernel.whole:
        return "it uses indices of its work-groups"
    for stmt in statements(kernel.body):
        if reason := unrepeatable(stmt, kernel):
            return reason
    if reason := refused_reads(kernel):
        return reason
    shared = {output.over for output in kernel.outputs}
    if any(view.field in shared and window != OWN for view, window in windows_of(kernel).by_view.items()):
        return "it updates values that neighbours read"
    return ""


def refuse(kernel: Kernel) -> str:
    windows = None if (reason := unfit(kernel)) else windows_of(kernel)
    if windows is None or (reason := refused_stages(kernel, windows)):
        return reason
    if len(windows.stages) > 2:  # tiles are faster then
        return DEEP
    if registers(windows.by_view, 1, 1) > MOST_HELD:
        return f"its windows take {registers(windows.by_view, 1, 1)} registers"
    if (again := computed_values(windows, piece(kernel, windows)[0]) / computed_values(windows, 0)) > MOST_AGAIN:
        return f"its threads would compute {again:.1f} times the values that are needed"
    return "" if candidates(kernel) else "walking would leave too few threads"


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    windows, domain, least = windows_of(kernel), kernel.domain, kernel.machine.least_threads
    columns, turn = piece(kernel, windows)
    while columns > 1 and domain.threads < least * columns * ROWS[-1]:
        columns //= 2
    extent = domain.extent(windows.axis)
    threads = {rows: domain.threads // columns // extent * -(-extent // rows) for rows in ROWS}
    halo = max(window.height - 1 for window in windows.by_view.values()) + max(windows.early)
    again = halo * (STAGED_AGAIN if kernel.intermediates else AGAIN * (1 + (columns > 4)))
    fit = [rows for rows in ROWS if threads[rows] >= least and rows >= max(windows.early)]
    # few threads leave cores idle
    best = sorted(fit, key=lambda rows: (1 + again / rows) * (1 + least / threads[rows]))
    turns = dict.fromkeys((turn, 1, 2))
    return tuple({"columns": columns, "rows": rows, "turn": n, "width": GROUP} for rows in best for n in turns)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    windows, extent = windows_of(kernel), kernel.domain.extent("column")
    columns = min(1 << parameters["columns"].bit_length() - 1, MOST_COLUMNS)
    access = access_of(kernel, columns)
    cycle = cycle_of(kernel, access)
    turn = min(parameters["turn"], MOST_TURN) if access > 1 else 1
    if cycle > 1:
        turn = min(1 << turn.bit_length() - 1, cycle)
    unit = math.lcm(turn, cycle) * unrolled(windows, columns, math.lcm(turn, cycle))
    rows = min(parameters["rows"] // unit, -(-kernel.domain.extent(windows.axis) // unit))
    rows = max(rows, -(-max(windows.early) // unit), 1) * unit
    most = GROUP // 2 if windows.axis == "layer" else MOST_WIDE  # neighbouring rows of a group share loads
    width = min(1 << parameters["width"].bit_length() - 1, power_of_two(-(-extent // columns)), most)
    return {"columns": columns, "rows": rows, "turn": turn, "width": width}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    windows, (columns, rows, turn, width) = windows_of(kernel), (parameters[name] for name in ROLL.parameters)
    access = access_of(kernel, columns)
    cycle, (slack, shift) = cycle_of(kernel, access), shifts(kernel, access)
    step = math.lcm(turn, cycle)
    turns = unrolled(windows, columns, step)
    threads = GROUP if windows.axis == "row" else 2 * GROUP
    group = Shape(1, max(threads // width, 1), width)
    walk = Walk(windows.axis, rows, turn, columns, access, cycle, shift, slack, group, step // turn)
    inner = replace(walk, unrolled=walk.unrolled * turns, interior=True)
    if not is_split(kernel, walk):
        return roll_kernel(kernel, walk, None)
    most = registers(windows_of(kernel, slack, shift).by_view, columns, turn) + SPARE
    resident = REGISTERS // (group.points * most) if kernel.intermediates and shift else 0
    return replace(roll_kernel(kernel, walk, inner), resident=resident)


def is_split(kernel: Kernel, walk: Walk) -> bool:
    """Return whether warps in the interior have code of their own: where warps are many, and borders cost more than a test."""
    has_many = kernel.domain.extent(walk.axis) > 2 * walk.rows
    has_many &= kernel.domain.extent("column") > 2 * walk.warp * walk.columns
    return has_many and (bool(kernel.intermediates) or walk.shift > 0 or walk.columns > FEW_COLUMNS)


def unrolled(windows: Windows, columns: int, step: int) -> int:
    """The unroll factor of the interior loop, with which rows that move up cost nothing: registers change their names."""
    times = math.lcm(step, *(window.height for window in windows.by_view.values())) // step
    values = computed_values(windows, columns) * columns * step * times
    return times if len(windows.stages) > 1 and values <= MOST_UNROLLED else 1


def piece(kernel: Kernel, windows: Windows) -> tuple[int, int]:
    """The columns of a thread, those of one wide access unless registers are scarce, and the rows of an iteration.

    Where the alignment of rows is not known, a thread has one column, or as many as divide a row, and more rows in an iteration.
    """
    by_view, most = windows.by_view, MOST_STAGED if kernel.intermediates else MOST_HELD
    widest = max(f.type.storage.bits // 8 for f in (*kernel.written, *(view.field for view in windows.inputs())))
    values, count = computed_values(windows, 0), max(ACCESS // widest, 1)
    while count > 1 and (registers(by_view, count, 1) > most or values * count > MOST_VALUES):
        count //= 2
    extent = kernel.domain.extent("column")
    if any(shifts(kernel, access_of(kernel, count))):
        columns, narrow = count, extent // NARROW
        while columns > 1 and (
            columns > narrow or values * columns * cycle_of(kernel, access_of(kernel, columns)) > MOST_IN_CYCLE
        ):
            columns //= 2
        shifted = windows_of(kernel, *shifts(kernel, access_of(kernel, columns))).by_view
        alike = not kernel.intermediates or cycle_of(kernel, access_of(kernel, columns)) == 1
        turn = AHEAD if windows.axis == "row" and alike else 1
        while turn > 1 and (registers(shifted, columns, turn) > most or values * columns * turn > MOST_IN_TURN):
            turn //= 2
        if columns > 1 and registers(shifted, columns, 1) <= most:
            return columns, turn
    columns = math.gcd(count, extent)
    columns = columns if kernel.aligned(columns) else 1
    turn = MOST_AT_ONCE if columns == 1 else count // columns
    longer = WORDS if any(isinstance(e, Apply) and e.op == "bytes_of" for e in expressions(kernel.body)) else 1
    if columns == count > 1 and windows.axis == "row":
        turn = AHEAD * longer
    if columns == 1 and values > SHARED:
        columns = min(2, count)
    while turn > 1 and (
        registers(by_view, columns, turn) > most or values * max(columns, 2) * turn > MOST_IN_TURN * longer
    ):
        turn //= 2
    return columns, turn


def access_of(kernel: Kernel, columns: int) -> int:
    """The columns of one access, of so many of a thread: 1 where the alignment of rows is not known."""
    domain = kernel.domain
    if domain.extent("column") % columns == 0 and kernel.aligned(columns):
        return columns
    layouts = (layout for field, layout in kernel.layouts if field in kernel.written)
    is_aligned = all(domain.extent("column") % columns == 0 and layout.aligned(columns) for layout in layouts)
    is_aligned &= all(n.in_rows() and n.behind is not None and n.row is None for _, n in kernel.layouts)
    planes = max(field.type.planes for field in kernel.written)
    loops = any(isinstance(stmt, While) for stmt in statements(kernel.body))
    return columns if is_aligned and len(domain.shape) == 2 and domain.elements == planes == 1 and not loops else 1


def cycle_of(kernel: Kernel, access: int) -> int:
    """The number of rows after which accesses of so many columns are aligned alike."""
    rows = [layout.point[-2] for _, layout in kernel.layouts if len(layout.point) > 1]
    return access // math.gcd(access, kernel.domain.extent("column"), *rows)


def shifts(kernel: Kernel, access: int) -> tuple[int, int]:
    """The greatest shifts of the columns of outputs and of inputs that begin where accesses of so many columns are aligned.

    Stages compute all columns of the outputs; in a kernel with stages, outputs are stored in halves if need be.
    """
    if kernel.domain.extent("column") % access == 0:
        return 0, 0 if kernel.aligned(access) else access - 1
    return (access // 2 if kernel.intermediates and access > 2 else access) - 1, access - 1


def registers(windows: dict[View, Window], columns: int, turn: int) -> int:
    """The registers for the windows of a thread with so many columns and rows of an iteration."""
    words = ((window, max(view.field.type.storage.bits // 32, 1)) for view, window in windows.items())
    return sum((window.height + turn - 1) * (columns + window.halo) * each for window, each in words)


def computed_values(windows: Windows, columns: int) -> float:
    """The values that a thread with so many columns computes for each; for 0 columns, the values that are needed."""
    total = 0.0
    for stage, (low, high) in zip(windows.stages, windows.beyond, strict=True):
        values = sum(stmt.var.type.lanes for stmt in statements(stage.body) if isinstance(stmt, (Let, Assign)))
        total += values * (1 + (high - low) / columns if columns else 1)
    return max(total, 1.0)


ROLL = Method("roll", ("columns", "rows", "turn", "width"), refuse, candidates, legalize, apply)
