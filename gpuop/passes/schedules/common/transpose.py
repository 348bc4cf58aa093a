"""Transposes through square tiles: rows of the input become rows of a tile, and columns of the tile become rows of the output.

A work-group of a GPU fills a tile in local memory, and waits at a barrier; a thread of a CPU has a tile of its own.

        input                tile                               output
      | a b c d |          | a b c d .|                       | a e i m |
      | e f g h |  rows    | e f g h .|  barrier, columns     | b f j n |
      | i j k l |  ----->  | i j k l .|  ------------------>  | c g k o |
      | m n o p |          | m n o p .|                       | d h l p |

      thread (y, x) fills row y, y + rows, y + 2 rows, ... of the tile, `lanes` columns from lanes * x on,
      then computes the same rows and columns of the output from columns of the tile.
      Neighbours access neighbouring memory both times. One word of padding (.) moves each row to another bank.
"""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.types import HALF
from gpuop.ir.visit import walk
from gpuop.passes.coarsening_factor import ACCESS, SMALL, refused_layouts, tells_groups, unrepeatable
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.transpose_kernel import Tiling, TransposeKernel, TransposeWords, suits_words
from gpuop.passes.schedules.common.transposed_reads import involved, is_mirrored, transposed, transposed_axis

GROUP = 256  # threads of a work-group
LINE = 64  # bytes of a cache line of CPUs
CACHED = 1 << 14  # bytes of tiles that the first-level cache of a CPU keeps
SIZES = (64, 32, 16)  # extents of tiles on GPUs, the best guess first
MOST_ALIGNED = 4  # least ratio of the extent of a tile to the alignment of its rows
WORD = 4  # bytes of an access to smaller elements, where rows are not aligned
SECTOR = 32  # bytes of an aligned access to the memory of a GPU


def refuse(kernel: Kernel) -> str:
    if kernel.intermediates:
        return "it has stages"
    if tells_groups(kernel) or kernel.whole:
        return "it uses indices of its work-groups"
    if reason := refused_layouts(kernel):
        return reason
    if kernel.machine.device != "cpu" and not kernel.aligned(ACCESS // max(_sizes(kernel))):
        return "an array of the user is not aligned"
    if reason := next(filter(None, (unrepeatable(stmt, kernel) for stmt in walk(kernel.body))), ""):
        return reason
    axis = transposed_axis(kernel)
    if not axis:
        return "it reads nothing transposed"
    if axis == "layer" and kernel.domain.elements > 1:
        return "a thread handles one element of a tensor"
    few = kernel.machine.least_threads // (SMALL if kernel.machine.device == "cpu" else 1)
    return "it is small" if kernel.domain.threads < few or not candidates(kernel) else ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    """Tiles that fit the grid and the memory. The last ones overlap others, unless outputs are read too."""
    axis = transposed_axis(kernel)
    extents = kernel.domain.extent(axis), kernel.domain.extent("column")
    tiles = _on_gpus(kernel)
    if kernel.machine.device == "cpu":  # rows of tiles are at least a cache line
        sizes = dict.fromkeys((max(LINE // min(_sizes(kernel)), 16), 16))
        tiles = [_tile(size, kernel.machine.vector_length, 1, 1) for size in sizes]
    fit = (each for each in tiles if each["size"] <= min(extents) and _kernel_of(kernel, each).nbytes <= _room(kernel))
    return tuple(each for each in fit if not (kernel.shared_memory and any(n % each["size"] for n in extents)))


def _tile(size: int, lanes: int, rows: int, columns: int, align: int = 1) -> Parameters:
    return {"size": size, "lanes": lanes, "rows": rows, "columns": columns, "align": align}


def _on_gpus(kernel: Kernel) -> list[Parameters]:
    """Tiles with accesses of 16 bytes; of single elements where rows are not aligned for that.

    Writes are aligned even then, unless this would need many more reads.
    """
    lanes, align = ACCESS // max(_sizes(kernel)), 1
    if any(kernel.domain.extent(axis) % lanes for axis in (transposed_axis(kernel), "column")):
        if suits_words(kernel):  # a thread moves a word, and rows of tiles are written from the start of a sector
            lanes = WORD * 8 // next(iter(kernel.written)).type.storage.bits
            sector = lanes * SECTOR // WORD
            align = sector if kernel.domain.extent("column") % sector else lanes
            return [_shared(size, lanes, align) for size in SIZES if size >= align]
        lanes, align = 1, 1 if is_mirrored(kernel) else SECTOR // max(_sizes(kernel))
    sizes = (128, *SIZES) if lanes == ACCESS else SIZES[1:] if lanes == 2 else SIZES
    moved = kernel.domain.extent("column") % align > 0
    tiles = [(size, align if moved and align * MOST_ALIGNED <= size else 1) for size in sizes if size >= lanes]
    return [_shared(size, lanes, align) for size, align in tiles]


def _shared(size: int, lanes: int, align: int) -> Parameters:
    return _tile(size, lanes, min(GROUP * lanes // size, size), size // lanes, align)


def _sizes(kernel: Kernel) -> list[int]:
    """The bytes of an element of each field that tiles are filled from or written to."""
    return [4 if f.type.storage is HALF else f.type.storage.bits // 8 for f in involved(kernel)]


def _kernel_of(kernel: Kernel, parameters: Parameters) -> TransposeKernel:
    tiling = Tiling(transposed_axis(kernel), **parameters)
    return (TransposeWords if tiling.words else TransposeKernel)(kernel, tiling, transposed(kernel))


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    """Powers of two, not greater than those of the next smaller candidate."""
    valid = candidates(kernel)
    best = next((each for each in valid if each["size"] <= parameters["size"]), valid[-1])
    result = {name: min(1 << parameters[name].bit_length() - 1, best[name]) for name in best} | {"size": best["size"]}
    result["columns"] = min(result["columns"], result["size"] // result["lanes"])
    if best["align"] > 1:  # rows are not aligned, but writes of `lanes` elements are
        result["align"] = max(result["align"], result["lanes"])
    return result if _kernel_of(kernel, result).nbytes <= _room(kernel) else best


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _kernel_of(kernel, parameters).kernel()


def _room(kernel: Kernel) -> int:
    """The bytes that tiles may take."""
    return CACHED if kernel.machine.device == "cpu" else kernel.machine.local_memory_bytes


TRANSPOSE = Method("transpose", ("size", "lanes", "rows", "columns", "align"), refuse, candidates, legalize, apply)
