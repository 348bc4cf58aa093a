"""Kernels with the extents of their grids as arguments, lowered once for a range of extents.

Passes compare extents with thresholds in many places. A lowered kernel is valid for all extents of a range if lowering gives the
same result at the ends of the range, for all extents together and for each by itself. Otherwise it is compiled for each size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpuop.base.cache.disk_memo import DiskMemo
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.ir.extents import MOST_GROUPS, Extents, extents_of, is_regular, resized
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.nodes import GRID_AXES, Index
from gpuop.ir.target import Target
from gpuop.ir.text import content, identity
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import Shape
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import is_large, others_points
from gpuop.passes.flat_grid import flat
from gpuop.passes.lowering_cache import cached_on_disk
from gpuop.passes.pipeline import lower, lowering, unscheduled
from gpuop.passes.schedules import methods as schedules

LEAST = (2, 17, 33, 65, 129, 257)  # least extents of ranges: passes decide otherwise for smaller ones
TILES = 4  # the number of these that are too few for tiles; two points are for coarsened threads
# of the extents that may be: mirrored rows lie up to twice as far as the last one, and an int is to hold that
PARTS = (1, 2, 8)
PARTS_ANYWHERE = (2, 1, 8)  # of integers with the bounds of the whole range: fewer products wrap in a half
IN_ACCESS = 4  # columns that GPUs access at once, where rows are so many times as long: such kernels are others
KEPT = 256
NOWHERE = Domain(Shape())
PINNED, WHOLE = "its schedule is pinned", "its tail threads run too"  # whatever its extents


@dataclass(frozen=True, slots=True)
class Opened:
    """A kernel with extents as arguments.

    Attributes:
        key: equal for kernels that differ in their extents alone.
        kernel: the recorded kernel with the greatest extents of its range; None where it needs constant extents.
        lowered: that kernel in printable form; None where another process has lowered it.
        values: the extents, in the order of the arguments.
        grid: the grid of its points, with these extents.
        per_thread, together: the points of a thread along each axis, and the threads that share them, as of `Kernel`.
        least, most: the ends of the range of each of `values`.
        reason: the reason why it is compiled for each size, as the end of a sentence.
        outside: True if that is so for these extents, and not for others.
    """

    key: str = ""
    kernel: Kernel | None = None
    lowered: Kernel | None = None
    values: tuple[int, ...] = ()
    grid: Domain = NOWHERE
    per_thread: Shape | None = None
    together: Shape | None = None
    least: tuple[int, ...] = ()
    most: tuple[int, ...] = ()
    reason: str = ""
    outside: bool = False

    @property
    def threads(self) -> Domain:
        """The threads that are launched for `grid`."""
        if self.per_thread is None:
            return self.grid
        together = self.together or (1,) * len(self.grid.shape)
        each = zip(self.grid.shape, self.per_thread, together, strict=True)
        return Domain(Shape(*(-(-n // points) * threads for n, points, threads in each)), self.grid.elements)


@dataclass(frozen=True, slots=True)
class _OpenRange:
    """The kernel for all extents of a range; an empty range where there is none.

    Attributes:
        elements: the elements of a tensor that threads compute one by one, as a schedule may have it.
    """

    least: tuple[int, ...] = ()
    most: tuple[int, ...] = ()
    per_thread: Shape | None = None
    together: Shape | None = None
    elements: int = 1
    kernel: Kernel | None = None
    lowered: Kernel | None = None


def _written(of: _OpenRange) -> list[Any]:
    return [of.least, of.most, of.per_thread, of.together, of.elements]


def _read(facts: list[Any]) -> _OpenRange:
    least, most, per_thread, together, elements = facts
    shared = None if together is None else Shape(together)
    return _OpenRange(tuple(least), tuple(most), None if per_thread is None else Shape(per_thread), shared, elements)


RANGES = DiskMemo("range", _written, _read)
_ranges: BoundedCache[object, _OpenRange] = BoundedCache(KEPT)
_openings: BoundedCache[object, Opened] = BoundedCache(64)  # by the kernel itself: planning and generating ask for it


def opened(kernel: Kernel, target: Target, streamed: bool = True) -> Opened:
    """The kernel with extents as arguments for a recorded one, on a target.

    Not all sizes have one text: CPUs stream large outputs past their caches, and grids too small for a schedule run plain.

    Args:
        streamed: whether large outputs are streamed on CPUs, and tiles are used on GPUs; if not, these sizes have the text of
            smaller ones.
    """
    return _openings.find((kernel, target, streamed, lowering()), lambda: _opened(kernel, target, streamed))


def _opened(kernel: Kernel, target: Target, streamed: bool) -> Opened:
    refusal = _refusal(kernel)
    if refusal:
        return Opened(reason=refusal, outside=refusal not in (PINNED, WHOLE))
    kernel = _flattened(kernel)
    large = streamed and target.vector_length > 1 and all(map(is_large, kernel.written))
    extents, reason, outside = extents_of(kernel), "", ""
    values = tuple(extents.values.values())
    for pin, unit in _variants(kernel, target, extents, streamed):
        open_ = replace(kernel, pin=pin, large=large)
        greatest = resized(open_, extents, _most(extents, unit), aligned=unit > 1)
        key = content(greatest)
        open_range = _ranges.find((key, target, lowering()), partial(_range, open_, target, extents, greatest, unit))
        if open_range.kernel is None:
            reason = reason or "what its threads do depends on its extents"
        elif outside := _outside(open_range, values):
            reason = outside
        else:
            lowered = open_range.kernel, open_range.lowered
            return Opened(
                key,
                *lowered,
                values,
                replace(kernel.domain, elements=open_range.elements),
                open_range.per_thread,
                open_range.together,
                open_range.least,
                open_range.most,
            )
    return Opened(reason=reason, outside=bool(outside))


def _variants(kernel: Kernel, target: Target, extents: Extents, streamed: bool) -> Iterator[tuple[Pin | None, int]]:
    """The schedules to try, with numbers that the lengths of rows are multiples of."""
    plain = Pin(schedules.PLAIN), 1
    has_vectors = target.vector_length > 1
    if not streamed and not has_vectors:
        yield plain
        return
    rows = [extents.values[name] for name in extents.of_rows]
    begins = all(layout.behind == 0 for _, layout in kernel.layouts)
    if target.widening == "unrolled" and begins and not any(n % IN_ACCESS for n in rows):
        whole = resized(kernel, extents, _most(extents, IN_ACCESS), aligned=True)
        if schedules.choice(unscheduled(whole, target)) is not None:
            yield None, IN_ACCESS
    yield None, 1
    if not (kernel.intermediates and has_vectors):  # there no thread computes them anew wherever it reads
        yield plain


def key_of(kernel: Kernel) -> str:
    """Return a digest that is equal for kernels which differ in their extents alone."""
    extents = extents_of(kernel)
    if not extents.values:
        return content(kernel)
    kernel = _flattened(kernel)
    extents = extents_of(kernel)
    return content(resized(kernel, extents, _most(extents)))


def _flattened(kernel: Kernel) -> Kernel:
    """The kernel on a grid of one axis if it is pointwise and uses no positions: grids of as many points share it."""
    placed = any(isinstance(e, Index) and e.axis in GRID_AXES for e in expressions(kernel.body))
    is_pointwise = kernel.domain.shape and not placed and not kernel.layouts and not others_points(kernel)
    return flat(kernel) if is_pointwise else kernel


def _refusal(kernel: Kernel) -> str:
    if not kernel.domain.threads:
        return "its grid has no points"
    if kernel.pin is not None:
        return PINNED
    if kernel.whole:
        return WHOLE
    strided = next((param for param, _ in kernel.layouts if not is_regular(kernel, param)), None)
    if strided is not None:
        return f"`{strided.hint}` lies in strides of its own"
    extents = extents_of(kernel)
    if not extents.values:
        return "its extents are 1"
    most, grid = extents.most, zip(extents.grids[None], kernel.domain.shape, strict=True)
    *others, _ = [1, 1, 1, *(most[name] if name else n for name, n in grid)][-3:]
    if max(others[0] * kernel.domain.elements, others[1]) > MOST_GROUPS:
        return "its grid has more layers, elements or rows than launches have groups"
    return ""


def _outside(open_range: _OpenRange, values: Iterable[int]) -> str:
    """Return the reason why extents are outside of a range; empty where they are inside."""
    ranges = zip(values, open_range.least, open_range.most, strict=True)
    n, least, most = next((each for each in ranges if not each[1] <= each[0] <= each[2]), (0, 0, 0))
    return f"an extent is {n}, not within {least} to {most}" if most else ""


def _range(kernel: Kernel, target: Target, extents: Extents, greatest: Kernel, unit: int) -> _OpenRange:
    """The range of a kernel; `greatest` is its key on disk, as it contains all that the range depends on."""
    open_range = cached_on_disk(RANGES, greatest, target, partial(_widest, kernel, target, extents, unit))
    if not open_range.most:
        return open_range
    most = dict(zip(extents.values, open_range.most, strict=True))
    return replace(open_range, kernel=resized(kernel, extents, most, aligned=unit > 1))


def _widest(kernel: Kernel, target: Target, extents: Extents, unit: int) -> _OpenRange:
    """The widest range for which lowering gives the same kernel, of extents whose rows are multiples of `unit`.

    Where no range does, integers may have other bounds at its ends than in between, as products that wrap at the greatest extents
    alone: lowering then takes those of the whole range everywhere. Text of bounds that are the same anyway is better.
    """
    ranges = (*((part, False) for part in PARTS), *((part, True) for part in PARTS_ANYWHERE))
    return next(filter(None, (_of_part(kernel, target, extents, unit, *each) for each in ranges)), _OpenRange())


def _of_part(
    kernel: Kernel, target: Target, extents: Extents, unit: int, part: int, anywhere: bool
) -> _OpenRange | None:
    """The range up to a part of the extents that may be; None where lowering gives other kernels at its ends.

    Args:
        anywhere: whether integers have the bounds of the whole range at each of its ends.
    """
    most = _most(extents, unit, part)
    largest = _lowered(resized(kernel, extents, most, aligned=unit > 1), target)
    if largest is None:
        return None
    result = identity(largest)

    def is_same(least: Mapping[str, int]) -> bool:
        of_all = most if anywhere else {}
        ends = (resized(kernel, extents, end, of_all, unit > 1) for end in _ends(most, least))
        return all(other is not None and identity(other) == result for other in (_lowered(end, target) for end in ends))

    few = 0 if largest.per_thread is None else 1 if largest.together is None else TILES
    for number in LEAST[few:]:
        least = _least(extents, unit, number)
        if is_same(least):
            both = number == LEAST[0] and len(most) == 2 and is_same({n: 2 * number + 1 - k for n, k in least.items()})
            ends = [number] * 2 if both else least.values()  # each of two may have the least, as two chunks of a row
            threads = largest.per_thread, largest.together, largest.domain.elements
            return _OpenRange(tuple(ends), tuple(most.values()), *threads, lowered=largest)
    return None


def _lowered(kernel: Kernel, target: Target) -> Kernel | None:
    """The kernel after all passes; None where no schedule stores its intermediates, which would be recomputed at each read."""
    is_stored = not kernel.intermediates or schedules.choice(unscheduled(kernel, target)) is not None
    return lower(kernel, target) if is_stored else None


def _most(extents: Extents, unit: int = 1, part: int = 1) -> dict[str, int]:
    """The upper end of the range: a different extent for each name, since equal extents have a meaning."""
    units = {name: unit if name in extents.of_rows else 1 for name in extents.values}
    return {name: (n // part // units[name] - k) * units[name] for k, (name, n) in enumerate(extents.most.items())}


def _least(extents: Extents, unit: int, number: int) -> dict[str, int]:
    """The lower end, likewise: about a number."""
    rows = extents.of_rows if unit > 1 else frozenset[str]()
    count = len(extents.values)
    return {
        name: (-(-number // unit) + count + k) * unit if name in rows else number + k
        for k, name in enumerate(extents.values)
    }


def _ends(most: Mapping[str, int], least: Mapping[str, int]) -> list[Mapping[str, int]]:
    """The other corners of a range: all extents are least, or one is, or all but one, each combination once."""
    ends: list[Mapping[str, int]] = [least]
    for name in most:
        ends += [{**most, name: least[name]}, {**least, name: most[name]}]
    return [end for n, end in enumerate(ends) if end != most and end not in ends[:n]]
