"""Stages in the vectors of CPUs: of each intermediate a thread keeps as many rows as are read, in memory that caches hold.

A thread has a strip of columns and a block of rows. Row by row, each stage runs as far ahead as those that read it need, over
the columns of the strip and a halo beside it, which neighbouring strips compute too. Only rows and columns that there are count:
rows outside are looked up where the border says, columns outside are filled in when a row is complete.
"""

from __future__ import annotations

from gpuop.ir.footprints import footprints
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Assign, Let, Read
from gpuop.ir.stages import stages
from gpuop.ir.types import BOOL
from gpuop.ir.visit import expressions, walk
from gpuop.passes.obstacles import doubles, obstacle
from gpuop.passes.points_per_thread import MOST_VALUES
from gpuop.passes.schedules.column_strips import ColumnStrips
from gpuop.passes.schedules.lane_places import LanePlaces
from gpuop.passes.schedules.leads import Leads, leads
from gpuop.passes.schedules.method import Method, Parameters
from gpuop.passes.schedules.vector_rows import unjoined, without_tables

WIDTHS = (1024, 512, 256, 128)  # columns of a strip
HEIGHTS = (32, 64, 128, 256)  # rows of a block
MOST_BYTES = 1 << 18  # of rows that a thread keeps: a part of the second cache
ENOUGH = 32  # times as many rows as are computed anew above each block
THREADS = 16  # that keep the cores of a CPU busy


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.vector_length == 1:
        return "the device has no vectors"
    if not kernel.intermediates:
        return "it has no stages"
    if len(kernel.domain.shape) < 2:
        return "its grid has no rows"
    wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    found = wrong or unjoined(kernel) or obstacle(without_tables(kernel)) or _reads(kernel)
    return found or ("" if candidates(kernel) else "what it keeps of rows is too much for a thread")


def _reads(kernel: Kernel) -> str:
    borders: dict[object, object] = {}
    for stage in stages(kernel):
        near = {param: f for param, f in footprints(stage).items() if param in kernel.intermediates}
        if any(f is None or any((*f.low[:-2], *f.high[:-2])) for f in near.values()):
            return "its stages read others along layers, or at computed distances"
        for param, footprint in near.items():
            for border in footprint.borders if footprint is not None else ():
                if borders.setdefault(param, border) != border:
                    return "an intermediate is read through several borders"
        if (found := LanePlaces(stage).obstacle()) or (found := _tensors(stage)):
            return found
    return ""


def _tensors(stage: Kernel) -> str:
    if any(param.type.storage is BOOL for param in stage.written):
        return "an intermediate has no numbers"
    parts = (e.element is not None for e in expressions(stage.body) if isinstance(e, Read))
    return "it reads elements of tensors" if any(parts) or stage.domain.elements > 1 else ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    found = leads(kernel)
    stages, _ = found
    above = max(lead.ahead - lead.start for lead in stages)
    rows, columns = kernel.domain.extent("row"), kernel.domain.extent("column")
    values = sum(stmt.var.type.lanes for stmt in walk(kernel.body) if isinstance(stmt, (Let, Assign)))
    together = [n for n in (4, 2, 1) if n <= min(rows, max(MOST_VALUES // values, 1))]
    if not any(_shares_rows(lead.kernel) for lead in stages):
        together.sort()
    heights = (*(h for h in HEIGHTS if h >= ENOUGH * above), *HEIGHTS[::-1], 1)
    tried = (_parameters(kernel, c, h, n) for n in together for c in WIDTHS for h in heights)
    good = [p for p in tried if _suit(kernel, found, p)]
    busy = [p for p in good if -(-rows // p["rows"]) * -(-columns // p["columns"]) >= THREADS]
    return tuple({tuple(p.items()): p for p in (busy or good)}.values())


def _parameters(kernel: Kernel, columns: int, rows: int, together: int) -> Parameters:
    """Blocks of whole steps, no larger than the grid."""
    extent = kernel.domain.extent("row")
    together = min(together, extent)
    return {"columns": columns, "rows": min(max(rows, together), extent) // together * together, "together": together}


def _strips(kernel: Kernel, found: Leads, parameters: Parameters) -> ColumnStrips:
    return ColumnStrips(kernel, found, parameters["columns"], parameters["rows"], parameters["together"])


def _suit(kernel: Kernel, found: Leads, parameters: Parameters) -> bool:
    """Whether rows and columns that stand for those outside are kept when they are read, and all that is kept is not too much."""
    strips = _strips(kernel, found, parameters)
    if not strips.fits or strips.nbytes > MOST_BYTES:
        return False
    for one in found[1].values():
        rows, columns = one.reach
        if one.border[0] == "wrap" and (rows or strips.width < kernel.domain.extent("column")):
            return False
        if rows >= kernel.domain.extent("row") or columns >= strips.width:
            return False
    return True


def _shares_rows(stage: Kernel) -> bool:
    return any(f is not None and f.high[-2] > f.low[-2] for f in footprints(stage).values())


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    """As the parameters say, as far as they suit."""
    found = leads(kernel)
    wanted = _parameters(kernel, *(parameters[name] for name in ("columns", "rows", "together")))
    return _strips(kernel, found, wanted if _suit(kernel, found, wanted) else candidates(kernel)[0]).kernel()


LINE_BUFFERS = Method("line buffers", refuse, candidates, apply)
