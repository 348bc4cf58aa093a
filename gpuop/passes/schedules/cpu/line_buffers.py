"""Line buffers for stages in the vectors of CPUs: a thread keeps the rows of each intermediate that are still read, in its cache.

A thread has a strip of columns and a block of rows. Row by row, each stage runs as far ahead as its readers need, over the strip
and a halo, which neighbouring strips compute too. Two stages `a` and `b` before the output, each of which reads three rows:

                a     b     out               iteration for row r of the output:
    row r+2     new                             1. a computes row r+2, from the input
    row r+1     x     new                       2. b computes row r+1, from rows r to r+2 of a
    row r       x     x     new                 3. the output computes row r, from rows r-1 to r+1 of b
    row r-1           x
                3 rows each, in circular buffers: row y in slot y mod 3

    columns    | halo of 2 |      strip      | halo of 2 |     a
                 | halo of 1 |    strip    | halo of 1 |       b
                             |    strip    |                   output

Rows outside of the field are looked up at the row that the border names; columns outside are filled in when a row is complete.
Stages that read others along layers go from layer to layer, with a block of rows in each; in one dimension a stage has one row.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from gpuop.ir.analysis.footprints import footprints
from gpuop.ir.analysis.stages import stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Assign, Block, FieldParam, Let, Read
from gpuop.ir.types import BOOL
from gpuop.ir.visit import blocks, expressions, times, walk
from gpuop.passes.coarsening_factor import MOST_VALUES
from gpuop.passes.instantiate import without_tables
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.circular_buffers import Border, Leads, leads
from gpuop.passes.schedules.cpu.column_strips import ColumnStrips, even_width, shares_rows
from gpuop.passes.schedules.cpu.vector_rows import MOST_ROWS, refused_joining
from gpuop.passes.vectorization_legality import obstacle, refused_doubles

WIDTHS = (4096, 2048, 1024, 512)  # bytes of a row of a strip; prefetchers stop at pages of 4096
WIDEST = 4  # greatest bytes of an element for these widths
LONG = (8192, 4096, 2048)  # columns of a strip in one dimension, where buffers are single rows
HEIGHTS = (8, 16, 32, 64, 128, 256)  # rows or layers of a block
ROWS = (32, 16, 8, 4)  # rows of a block that is walked along layers
MOST_BYTES = 1 << 18  # bytes of the buffers of a thread: a part of the second-level cache
LOWEST = 32  # least rows of a block, even if it recomputes none: its windows read rows above and below
FEWER = 4  # least ratio of the rows of a block to those recomputed above it, where extents are arguments
ENOUGH = 32  # the same ratio, where extents are known
THREADS = 16  # threads that keep the cores of a CPU busy
WORTH = 1 << 18  # values of a thread that are worth waking another core for
TURNS = 16  # assumed iterations of a loop with unknown bounds
MOST_LAYERS = 9  # layers that a stage reads for a row: beyond these other schedules read them less often
FEW = 1.15  # computed points for each needed one, up to which more do not matter


def refuse(kernel: Kernel) -> str:
    if kernel.machine.vector_length == 1:
        return "the device has no vectors"
    if not kernel.intermediates:
        return "it has no stages"
    reason = refused_doubles(kernel) or refused_joining(kernel) or obstacle(without_tables(kernel)) or _reads(kernel)
    return reason or ("" if candidates(kernel) else "its buffers of rows are too large for a thread")


def _reads(kernel: Kernel) -> str:
    borders: dict[FieldParam, Border] = {}
    for stage in stages(kernel):
        near = {param: f for param, f in footprints(stage).items() if param in kernel.intermediates}
        if any(f is None for f in near.values()):
            return "its stages read others at computed distances"
        for param, footprint in near.items():
            for border in footprint.borders if footprint is not None else ():
                if borders.setdefault(param, border) != border:
                    return "an intermediate is read through several borders"
        if (reason := LanePositions(stage).obstacle()) or (reason := _tensors(stage)):
            return reason
    if leads(kernel).walk == "row" and max(map(_layers, stages(kernel))) > MOST_LAYERS:
        return "its stages read many layers, which are far from one another in memory"
    wrapped = {border == "wrap" for border, _ in borders.values()}
    return "some of its intermediates wrap around, others do not" if len(wrapped) > 1 else ""


def _layers(stage: Kernel) -> int:
    """The number of layers of its fields that a stage reads for one."""
    near = (f for f in footprints(stage).values() if f is not None and len(f.low) > 2)
    return max((f.high[-3] - f.low[-3] + 1 for f in near), default=1)


def _tensors(stage: Kernel) -> str:
    if any(param.type.storage is BOOL for param in stage.written):
        return "an intermediate is bool"
    parts = (e.element is not None for e in expressions(stage.body) if isinstance(e, Read))
    return "it reads elements of tensors" if any(parts) or stage.domain.elements > 1 else ""


@lru_cache(maxsize=16)
def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    plan = leads(kernel)
    along = plan.walk
    above = max(lead.ahead - lead.start for lead in plan.stages)
    values = sum(stmt.var.type.lanes for stmt in walk(kernel.body) if isinstance(stmt, (Let, Assign)))
    together = [n for n in (4, 2, 1) if n <= min(kernel.domain.extent("row"), max(MOST_VALUES // max(values, 1), 1))]
    if not any(shares_rows(lead.kernel) for lead in plan.stages):
        together.sort()
    heights = (*(h for h in HEIGHTS if h >= max(ENOUGH * above, LOWEST)), *HEIGHTS[::-1], 1)
    widths = [nbytes // _element(kernel) for nbytes in WIDTHS]
    if kernel.named:  # blocks that suit most grids
        heights = (*(h for h in HEIGHTS if h >= max(FEWER * above, LOWEST)), HEIGHTS[-1])[:1]
    parameters: Iterable[Parameters]
    if along == "layer":
        axes = product(together, widths, ROWS, heights)
        parameters = ({"columns": c, "rows": r, "layers": h, "together": n} for n, c, r, h in axes)
    elif along == "row":
        parameters = ({"columns": c, "rows": h, "together": n} for n, c, h in product(together, widths, heights))
    else:
        parameters = ({"columns": c} for c in (*LONG, *widths))
    if kernel.named:
        return tuple(p for p in parameters if _suit(kernel, plan, _strips(kernel, plan, p)))[:1]
    suited = (_limited(kernel, _even(kernel, plan.lanes, p)) for p in parameters)
    different = {tuple(p.items()): p for p in suited}  # few on small grids
    pairs = [(_strips(kernel, plan, p), p) for p in different.values()]
    good = [(strips, p) for strips, p in pairs if _suit(kernel, plan, strips)]
    threads = min(max(_values(kernel.body) * kernel.domain.threads // WORTH, 1), THREADS)
    busy = [(strips, p) for strips, p in good if strips.domain.points >= threads]
    cheap = sorted(busy or good, key=lambda each: max(each[0].computed, FEW))
    return tuple(p for _, p in cheap)


def _values(block: Block) -> int:
    """The number of values that are computed for a point."""
    own = sum(stmt.var.type.lanes for stmt in block if isinstance(stmt, (Let, Assign)))
    return own + sum(sum(map(_values, blocks(stmt))) * (times(stmt) or TURNS) for stmt in block)


def _element(kernel: Kernel) -> int:
    """The bytes of the largest element of a field, at most WIDEST."""
    fields = [param.type for param in (*kernel.inputs, *kernel.written) if param.type.field_shape.points > 1]
    return min(max((kind.storage.bits // 8 for kind in fields), default=WIDEST), WIDEST)


def _even(kernel: Kernel, lanes: int, requested: Parameters) -> Parameters:
    """The parameters with the same number of blocks, but equal ones; strips do not become narrower."""
    result, columns = dict(requested), kernel.domain.extent("column")
    result["columns"] = even_width(columns, max(columns // result["columns"], 1), lanes)
    for name in result.keys() & {"rows", "layers"}:
        extent = kernel.domain.extent(name[:-1])
        step = 1 if "layers" in result else result["together"]
        blocks = -(-extent // result[name])
        result[name] = -(-extent // (blocks * step)) * step
    return result


def _limited(kernel: Kernel, requested: Parameters) -> Parameters:
    """The parameters with blocks not larger than the grid; where rows are walked, in whole steps."""
    together = min(requested.get("together", 1), MOST_ROWS, kernel.domain.extent("row"))
    result = {**requested, "together": together} if "together" in requested else dict(requested)
    for name in ("rows", "layers"):
        if name in result:
            result[name] = min(result[name], kernel.domain.extent(name[:-1]))
    if "rows" in result:
        rows = max(result["rows"], together)
        result["rows"] = rows if "layers" in result else rows // together * together
    return result


def _strips(kernel: Kernel, plan: Leads, parameters: Parameters) -> ColumnStrips:
    sizes = {axis: parameters[f"{axis}s"] for axis in ("layer", "row", "column") if f"{axis}s" in parameters}
    return ColumnStrips(kernel, plan, sizes, parameters.get("together", 1))


def recompute_ratio(kernel: Kernel, parameters: Parameters) -> float:
    """The number of points that the stages compute for each point that is needed."""
    return _strips(kernel, leads(kernel), parameters).computed


def _suit(kernel: Kernel, plan: Leads, strips: ColumnStrips) -> bool:
    """Return whether the buffers hold the rows and columns that borders name when they are read, and do not exceed the limit."""
    if not strips.fits or strips.nbytes > MOST_BYTES:
        return False
    sizes = {**strips.sizes, plan.walk: kernel.domain.extent(plan.walk)} if plan.walk else strips.sizes
    if strips.open:
        sizes = {**sizes, "column": min(strips.width, strips.columns)}
    axes = ("column",) if strips.buffers.wraps else sizes
    return all(one.beyond(axis) < sizes[axis] for one in plan.live.values() for axis in axes)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    """The parameters if they suit, else the best candidate; strips have equal widths."""
    plan, suited = leads(kernel), _limited(kernel, parameters)
    valid = suited if _suit(kernel, plan, _strips(kernel, plan, suited)) else candidates(kernel)[0]
    return {**valid, "columns": _strips(kernel, plan, valid).width}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _strips(kernel, leads(kernel), parameters).kernel()


LINE_BUFFERS = Method(
    "line buffers", ("columns", "rows", "layers", "together"), refuse, candidates, legalize, apply, open=True
)
