"""Stages in the vectors of CPUs: of each intermediate a thread keeps as many rows as are read, in memory that caches hold.

A thread has a strip of columns and a block of rows. Row by row, each stage runs as far ahead as those that read it need, over
the columns of the strip and a halo beside it, which neighbouring strips compute too. Only rows and columns that there are count:
rows outside are looked up where the border says, columns outside are filled in when a row is complete. Stages that read others
along layers go from layer to layer, with a block of rows in each; those in one dimension have a row each.
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
from gpuop.passes.schedules.common.instantiate import without_tables
from gpuop.passes.schedules.common.lane_positions import LanePlaces
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.column_strips import ColumnStrips, even_width
from gpuop.passes.schedules.cpu.stage_leads import Border, Leads, leads
from gpuop.passes.schedules.cpu.stage_row import shares_rows
from gpuop.passes.schedules.cpu.vector_rows import MOST_ROWS, unjoined
from gpuop.passes.vectorization_legality import doubles, obstacle

WIDTHS = (4096, 2048, 1024, 512)  # bytes of a strip's rows in memory, of which processors fetch a page ahead
WIDEST = 4  # bytes of an element that counts
LONG = (8192, 4096, 2048)  # of one whose rings are single rows
HEIGHTS = (8, 16, 32, 64, 128, 256)  # rows of a block, or layers
ROWS = (32, 16, 8, 4)  # rows of a block that is walked along layers
MOST_BYTES = 1 << 18  # of rows that a thread keeps: a part of the second cache
LOWEST = 32  # rows of a block that computes none anew: its windows read more than it has
FEWER = 4  # times as many rows as are computed anew above each block, at least, where nobody knows how many there are
ENOUGH = 32  # times as many rows as are computed anew above each block
THREADS = 16  # that keep the cores of a CPU busy,
WORTH = 1 << 18  # if each has so many values to compute at least: to wake another core takes as long
TURNS = 16  # that a loop whose bounds are not known is taken to make
MOST_LAYERS = 9  # that are read for one of rows: threads with rows of several layers read them less often
FEW = 1.15  # times as many points as are needed, at which it matters little how many are computed


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.vector_length == 1:
        return "the device has no vectors"
    if not kernel.intermediates:
        return "it has no stages"
    wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    found = wrong or unjoined(kernel) or obstacle(without_tables(kernel)) or _reads(kernel)
    return found or ("" if candidates(kernel) else "what it keeps of rows is too much for a thread")


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
        if (found := LanePlaces(stage).obstacle()) or (found := _tensors(stage)):
            return found
    if leads(kernel).walk == "row" and max(map(_layers, stages(kernel))) > MOST_LAYERS:
        return "its stages read many layers, which are far from one another in memory"
    wrapped = {border == "wrap" for border, _ in borders.values()}
    return "some of its intermediates wrap around, others do not" if len(wrapped) > 1 else ""


def _layers(stage: Kernel) -> int:
    """How many layers of its fields a stage reads for one."""
    near = (f for f in footprints(stage).values() if f is not None and len(f.low) > 2)
    return max((f.high[-3] - f.low[-3] + 1 for f in near), default=1)


def _tensors(stage: Kernel) -> str:
    if any(param.type.storage is BOOL for param in stage.written):
        return "an intermediate has no numbers"
    parts = (e.element is not None for e in expressions(stage.body) if isinstance(e, Read))
    return "it reads elements of tensors" if any(parts) or stage.domain.elements > 1 else ""


@lru_cache(maxsize=16)
def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    found = leads(kernel)
    along = found.walk
    above = max(lead.ahead - lead.start for lead in found.stages)
    values = sum(stmt.var.type.lanes for stmt in walk(kernel.body) if isinstance(stmt, (Let, Assign)))
    together = [n for n in (4, 2, 1) if n <= min(kernel.domain.extent("row"), max(MOST_VALUES // values, 1))]
    if not any(shares_rows(lead.kernel) for lead in found.stages):
        together.sort()
    heights = (*(h for h in HEIGHTS if h >= max(ENOUGH * above, LOWEST)), *HEIGHTS[::-1], 1)
    widths = [nbytes // _element(kernel) for nbytes in WIDTHS]
    if kernel.named:  # blocks that suit most grids
        heights = (*(h for h in HEIGHTS if h >= max(FEWER * above, LOWEST)), HEIGHTS[-1])[:1]
    tried: Iterable[Parameters]
    if along == "layer":
        axes = product(together, widths, ROWS, heights)
        tried = ({"columns": c, "rows": r, "layers": h, "together": n} for n, c, r, h in axes)
    elif along == "row":
        tried = ({"columns": c, "rows": h, "together": n} for n, c, h in product(together, widths, heights))
    else:
        tried = ({"columns": c} for c in (*LONG, *widths))
    if kernel.named:
        return tuple(p for p in tried if _suit(kernel, found, _strips(kernel, found, p)))[:1]
    suited = (_suited(kernel, _even(kernel, found.lanes, p)) for p in tried)
    different = {tuple(p.items()): p for p in suited}  # few on small grids
    made = [(_strips(kernel, found, p), p) for p in different.values()]
    good = [(strips, p) for strips, p in made if _suit(kernel, found, strips)]
    threads = min(max(_values(kernel.body) * kernel.domain.threads // WORTH, 1), THREADS)
    busy = [(strips, p) for strips, p in good if strips.domain.points >= threads]
    cheap = sorted(busy or good, key=lambda each: max(each[0].computed, FEW))
    return tuple(p for _, p in cheap)


def _values(block: Block) -> int:
    """The values that are computed for a point."""
    own = sum(stmt.var.type.lanes for stmt in block if isinstance(stmt, (Let, Assign)))
    return own + sum(sum(map(_values, blocks(stmt))) * (times(stmt) or TURNS) for stmt in block)


def _element(kernel: Kernel) -> int:
    """The bytes of the largest elements in memory."""
    fields = [param.type for param in (*kernel.inputs, *kernel.written) if param.type.field_shape.points > 1]
    return min(max((kind.storage.bits // 8 for kind in fields), default=WIDEST), WIDEST)


def _even(kernel: Kernel, lanes: int, wanted: Parameters) -> Parameters:
    """As many blocks, which are as large as one another; strips are no narrower."""
    given, columns = dict(wanted), kernel.domain.extent("column")
    given["columns"] = even_width(columns, max(columns // given["columns"], 1), lanes)
    for name in given.keys() & {"rows", "layers"}:
        extent = kernel.domain.extent(name[:-1])
        step = 1 if "layers" in given else given["together"]
        blocks = -(-extent // given[name])
        given[name] = -(-extent // (blocks * step)) * step
    return given


def _suited(kernel: Kernel, wanted: Parameters) -> Parameters:
    """Blocks no larger than the grid; where rows are walked, of whole steps."""
    together = min(wanted.get("together", 1), MOST_ROWS, kernel.domain.extent("row"))
    given = {**wanted, "together": together} if "together" in wanted else dict(wanted)
    for name in ("rows", "layers"):
        if name in given:
            given[name] = min(given[name], kernel.domain.extent(name[:-1]))
    if "rows" in given:
        rows = max(given["rows"], together)
        given["rows"] = rows if "layers" in given else rows // together * together
    return given


def _strips(kernel: Kernel, found: Leads, parameters: Parameters) -> ColumnStrips:
    sizes = {axis: parameters[f"{axis}s"] for axis in ("layer", "row", "column") if f"{axis}s" in parameters}
    return ColumnStrips(kernel, found, sizes, parameters.get("together", 1))


def _suit(kernel: Kernel, found: Leads, strips: ColumnStrips) -> bool:
    """Whether rows and columns that stand for those outside are kept when they are read, and all that is kept is not too much."""
    if not strips.fits or strips.nbytes > MOST_BYTES:
        return False
    sizes = {**strips.sizes, found.walk: kernel.domain.extent(found.walk)} if found.walk else strips.sizes
    if strips.open:
        sizes = {**sizes, "column": min(strips.width, strips.columns)}
    axes = ("column",) if strips.rings.wraps else sizes
    return all(one.beyond(axis) < sizes[axis] for one in found.kept.values() for axis in axes)


def taken(kernel: Kernel, parameters: Parameters) -> Parameters:
    """As the parameters say, as far as they suit; strips are as wide as one another."""
    found, wanted = leads(kernel), _suited(kernel, parameters)
    given = wanted if _suit(kernel, found, _strips(kernel, found, wanted)) else candidates(kernel)[0]
    return {**given, "columns": _strips(kernel, found, given).width}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _strips(kernel, leads(kernel), parameters).kernel()


LINE_BUFFERS = Method(
    "line buffers", ("columns", "rows", "layers", "together"), refuse, candidates, taken, apply, open=True
)
