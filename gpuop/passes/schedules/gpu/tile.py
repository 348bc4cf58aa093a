"""Tiling of stages on GPUs: a work-group computes a tile of points, and its intermediates lie in local memory.

All threads of the group compute a stage for the tile and the halo that later stages read; then they wait at a barrier.

      grid of tiles            intermediate `a`, in local memory        output `b`, from `a`
    +------+------+------+     +-----------------+
    |      |      |      |     | h h h h h h h h |                      +-------------+
    +------+------+------+     | h +---------+ h |                      |             |
    |      | this |      |     | h |  rows   | h |   --- barrier -->    |    rows     |
    +------+------+------+     | h |    x    | h |                      |      x      |
    |      |      |      |     | h | columns | h |                      |   columns   |
    +------+------+------+     | h +---------+ h |                      +-------------+
                               | h h h h h h h h |
                               +-----------------+
    h: the halo, which neighbouring tiles compute too
    A region is divided into strips of `tall` rows or of `lanes` columns, numbered row by row;
    of 256 threads, thread t computes the strips t, t + 256, t + 512, ...
"""

from __future__ import annotations

import itertools
from functools import lru_cache

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Declare, Write
from gpuop.ir.visit import effects, walk
from gpuop.passes.coarsening_factor import tells_groups
from gpuop.passes.scalarize import by_element
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.gpu.tile_chain import TileChain
from gpuop.passes.schedules.gpu.tile_kernel import TileKernel
from gpuop.passes.schedules.gpu.tile_regions import THREADS, Tiles

ROWS = (8, 16, 32, 64)
COLUMNS = (32, 64, 128, 256)
BETWEEN = (192, 384)  # columns besides, where a tile has all elements of points and is smaller
WITH_HALO = (28, 56)  # with its halo a tile of about 32 by 64 points, an even share for each thread
TALL, LANES = 8, 4  # rows, or columns, of a strip
LONG = 8  # extent of a window from which on strips of more rows pay
HELD = 40  # window values that a thread should hold in registers
MOST_TALL = 32
MOST_LOCAL = 49152  # bytes of local memory of a group
FREE_LOCAL = 22528  # bytes of local memory up to which occupancy and cache do not suffer
FREE_OF_POINTS = 2 * FREE_LOCAL  # the same where elements alternate in memory: small tiles read more lines
CACHED = 5.0  # cost of a byte from the cache, in operations; each 16 KiB of local memory above these add as much
FAR = 12.0  # cost of a byte from a layer that no other thread of the group reads, in operations
TYPICAL = 1 << 21  # points of a grid with extents as arguments
STORED = 16.0  # cost of a byte from memory, in operations


def refuse(kernel: Kernel) -> str:
    if kernel.machine.widening != "unrolled":
        return "only GPUs have local memory of their own"
    if not kernel.domain.shape or kernel.domain.elements > 1:
        return "its threads are not the points of a grid"
    if tells_groups(kernel) or kernel.whole:
        return "it uses indices of its work-groups"
    elsewhere = any(isinstance(stmt, Write) and stmt.point is not None for stmt in walk(kernel.body))
    has_local = any(isinstance(stmt, Declare) and stmt.array.space == "local" for stmt in walk(kernel.body))
    if effects(kernel.body) or elsewhere or has_local:
        return "it does more than compute its own points"
    chain = _chain(kernel)
    if chain.refused or not chain.local_fields:
        return chain.refused or "its threads share no values or reads"
    if any(output.over is not None for output in kernel.outputs):
        return "it updates values that neighbours read"
    best = next(iter(candidates(kernel)), None)
    if best is None:
        return "a tile of its stages does not fit in local memory"
    tiles = Tiles(chain, **best, wide=_is_wide(kernel, LANES))
    again = tiles.computed - sum(part.work for part in chain.parts) + FAR * tiles.bytes_beside
    stored = sum(param.type.storage.bits // 8 * param.type.planes for param in kernel.intermediates)
    if kernel.intermediates and again > 2 * STORED * stored:
        return "computing its stages around tiles again would take longer than reading them from memory"
    return ""


@lru_cache(maxsize=16)
def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    chain, wide, domain = _chain(kernel), _is_wide(kernel, LANES), kernel.domain
    most, busy = min(kernel.machine.local_memory_bytes, MOST_LOCAL), kernel.machine.least_threads / THREADS
    costs: dict[tuple[int, int], float] = {}
    tall = _tall(chain) if wide else TALL
    plain = kernel.layouts_in_rows or kernel.packed
    columns_of, free = (COLUMNS, FREE_LOCAL) if plain else ((*COLUMNS, *BETWEEN), FREE_OF_POINTS)
    shapes = [*itertools.product([n for n in ROWS if n >= tall], columns_of), WITH_HALO]
    for rows, columns in shapes if len(domain.shape) > 1 else [(1, n) for n in COLUMNS]:
        tiles = Tiles(chain, rows, columns, tall, LANES, wide)
        if tiles.nbytes <= most and (rows, columns) == _large_enough(tiles, kernel):
            groups = (TYPICAL if kernel.named else domain.threads) / (rows * columns)
            read = CACHED * tiles.bytes_read * (1 + max(0, tiles.nbytes - free) / 16384)
            costs[rows, columns] = (tiles.cost + read) * max(1.0, busy / groups)
    best = sorted(costs, key=lambda shape: (costs[shape], shape))
    return tuple({"rows": rows, "columns": columns, "tall": tall, "lanes": LANES} for rows, columns in best)


def _tall(chain: TileChain) -> int:
    """The rows of a strip: doubled where long windows of few values share more loads."""
    down = [(part.reach(-2), _values(part.kernel)) for part in chain.parts if part.reach(-2)]
    few = all(reach >= LONG and (2 * TALL + reach) * written <= HELD for reach, written in down)
    return 2 * TALL if down and few else TALL


def _values(kernel: Kernel) -> int:
    """The values of a point that a thread computes."""
    return sum(param.type.planes if kernel.domain.elements == 1 else 1 for param in kernel.written)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    lanes = next(n for n in (8, 4, 2, 1) if n <= parameters["lanes"])
    tall = min(parameters["tall"], MOST_TALL)
    rows = parameters["rows"] if len(kernel.domain.shape) > 1 else 1
    columns = -(-parameters["columns"] // lanes) * lanes
    while (larger := _large_enough(_tiles(kernel, rows, columns, tall, lanes), kernel)) != (rows, columns):
        rows, columns = larger
    if _tiles(kernel, rows, columns, tall, lanes).nbytes > kernel.machine.local_memory_bytes:
        return candidates(kernel)[0]
    return {"rows": rows, "columns": columns, "tall": tall, "lanes": lanes}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    tiles = _tiles(kernel, *(parameters[name] for name in TILE.parameters))
    return TileKernel(tiles.chain.source, tiles).kernel()


def _tiles(kernel: Kernel, rows: int, columns: int, tall: int, lanes: int) -> Tiles:
    return Tiles(_chain(kernel), rows, columns, tall, lanes, _is_wide(kernel, lanes))


@lru_cache(maxsize=16)
def _chain(kernel: Kernel) -> TileChain:
    """The parts of a kernel; of a tensor in planes that is computed element by element, a group computes one element."""
    planes = {param.type.planes for param in (*kernel.written, *kernel.intermediates)}
    each = by_element(kernel) if len(planes) == 1 and kernel.layouts_in_rows else None
    return TileChain(each or kernel, _is_wide(kernel, LANES))


def _is_wide(kernel: Kernel, lanes: int) -> bool:
    """Return whether groups of so many columns are aligned in memory."""
    return kernel.aligned(lanes) and kernel.domain.extent("column") % lanes == 0


def _large_enough(tiles: Tiles, kernel: Kernel) -> tuple[int, int]:
    """The extents of tiles that hold the points outside of the grid: at least those of halos, unless there is one tile only."""
    far = [max(region.computed.far[k] for region in tiles.regions) for k in (0, 1)]
    extents = []
    for axis, size, reach in zip(("row", "column"), (tiles.rows, tiles.columns), far, strict=True):
        step = tiles.tall if axis == "row" else tiles.lanes
        is_one = kernel.domain.extent(axis) <= size and not kernel.is_open(axis)
        extents.append(size if is_one else max(size, -(-reach // step) * step))
    return extents[0], extents[1]


TILE = Method("tile", ("rows", "columns", "tall", "lanes"), refuse, candidates, legalize, apply, open=True)
