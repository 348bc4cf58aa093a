"""Transposes: what lies across the columns of a grid is read along its own rows, a square tile at a time.

The threads of a work-group of a GPU fill a tile in local memory and wait for one another; a thread of a CPU has one of its own.
"""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.types import HALF
from gpuop.ir.visit import walk
from gpuop.passes.coarsening_factor import ACCESS, SMALL, refused_layouts, tells_groups, unrepeatable
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.square_tiles import Tiling
from gpuop.passes.schedules.common.transpose_kernel import Transposing
from gpuop.passes.schedules.common.transpose_words import TransposingWords, suits_words
from gpuop.passes.schedules.common.transposed_reads import involved, is_mirrored, turned, turned_axis

GROUP = 256  # threads of a work-group
LINE = 64  # bytes of a CPU's cache line
CACHED = 1 << 14  # bytes of tiles that a CPU's nearest cache keeps
SIZES = (64, 32, 16)  # of tiles on GPUs, the best guess first
MOST_ALIGNED = 4  # times as large as what rows are aligned to is a tile at least
WORD = 4  # bytes that elements smaller than that are moved in where rows begin anywhere
SECTOR = 32  # bytes that a GPU's memory reads and writes at once, and aligned


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.intermediates:
        return "it has stages"
    if tells_groups(kernel) or kernel.whole:
        return "it can tell its work-groups"
    if refused := refused_layouts(kernel):
        return refused
    if kernel.target.device != "cpu" and not kernel.aligned(ACCESS // max(_sizes(kernel))):
        return "an array of the user's is not aligned"
    found = next(filter(None, (unrepeatable(stmt, kernel) for stmt in walk(kernel.body))), "")
    if found:
        return found
    axis = turned_axis(kernel)
    if not axis:
        return "it reads nothing transposed"
    if axis == "layer" and kernel.domain.elements > 1:
        return "a thread handles one element of a tensor"
    few = kernel.target.least_threads // (SMALL if kernel.target.device == "cpu" else 1)
    if kernel.domain.threads < few or not candidates(kernel):
        return "it is small"
    return ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    """Tiles that fit the grid and the memory. Those at its edges begin earlier, where what is written is not read too."""
    target, axis = kernel.target, turned_axis(kernel)
    assert target is not None
    extents = kernel.domain.extent(axis), kernel.domain.extent("column")
    sizes = _on_cpus(kernel) if target.device == "cpu" else _on_gpus(kernel)
    return tuple(
        parameters
        for parameters in sizes
        if parameters["size"] <= min(extents)
        and _transposing(kernel, parameters).nbytes <= _room(kernel)
        and not (kernel.shared_memory and any(n % parameters["size"] for n in extents))
    )


def _on_cpus(kernel: Kernel) -> list[Parameters]:
    """A row of a tile is a cache line at least."""
    assert kernel.target is not None
    lanes = kernel.target.vector_length
    sizes = dict.fromkeys((max(LINE // min(_sizes(kernel)), 16), 16))
    return [{"size": size, "lanes": lanes, "rows": 1, "columns": 1, "align": 1} for size in sizes]


def _on_gpus(kernel: Kernel) -> list[Parameters]:
    """Accesses of 16 bytes in tiles of large rows; element by element where rows are not aligned for that.

    Writes are aligned then all the same, unless so much more would be read for them.
    """
    lanes, align = ACCESS // max(_sizes(kernel)), 1
    if any(kernel.domain.extent(axis) % lanes for axis in (turned_axis(kernel), "column")):
        if suits_words(kernel):
            return _of_words(kernel)
        lanes, align = 1, 1 if is_mirrored(kernel) else SECTOR // max(_sizes(kernel))
    sizes = (128, *SIZES) if lanes == ACCESS else SIZES[1:] if lanes == 2 else SIZES
    return [
        {
            "size": size,
            "lanes": lanes,
            "rows": min(GROUP * lanes // size, size),
            "columns": size // lanes,
            "align": align if kernel.domain.extent("column") % align and align * MOST_ALIGNED <= size else 1,
        }
        for size in sizes
        if size >= lanes
    ]


def _of_words(kernel: Kernel) -> list[Parameters]:
    """A thread moves a word; rows of tiles are written where sectors begin."""
    lanes = WORD * 8 // next(iter(kernel.written)).type.storage.bits
    sector = lanes * SECTOR // WORD
    common = {"lanes": lanes, "align": sector if kernel.domain.extent("column") % sector else lanes}
    sizes = [size for size in SIZES if size >= common["align"]]
    return [
        {"size": size, "rows": min(GROUP * lanes // size, size), "columns": size // lanes, **common} for size in sizes
    ]


def _sizes(kernel: Kernel) -> list[int]:
    """The bytes of an element of each field that tiles are read from and written to."""
    return [4 if f.type.storage is HALF else f.type.storage.bits // 8 for f in involved(kernel)]


def _transposing(kernel: Kernel, parameters: Parameters) -> Transposing:
    tiling = Tiling(turned_axis(kernel), **parameters)
    return (TransposingWords if tiling.words else Transposing)(kernel, tiling, turned(kernel))


def taken(kernel: Kernel, parameters: Parameters) -> Parameters:
    """Powers of two, and no more than the next candidate has."""
    tried = candidates(kernel)
    best = next((each for each in tried if each["size"] <= parameters["size"]), tried[-1])
    given = {name: min(1 << parameters[name].bit_length() - 1, best[name]) for name in best} | {"size": best["size"]}
    given["columns"] = min(given["columns"], given["size"] // given["lanes"])
    if best["align"] > 1:  # rows begin anywhere, and words of lanes are written where these are aligned
        given["align"] = max(given["align"], given["lanes"])
    return given if _transposing(kernel, given).nbytes <= _room(kernel) else best


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _transposing(kernel, parameters).kernel()


def _room(kernel: Kernel) -> int:
    assert kernel.target is not None
    return CACHED if kernel.target.device == "cpu" else kernel.target.local_memory_bytes


TRANSPOSE = Method("transpose", ("size", "lanes", "rows", "columns", "align"), refuse, candidates, taken, apply)
