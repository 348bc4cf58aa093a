"""Kernels lowered without knowing the extents of their grids, which they get as arguments.

Passes ask how large things are in many places. What they make is taken for all extents of a range if it comes out the same at
the ends of the range, for all extents together and for each by itself: what is decided by extents is decided by thresholds, as
they grow. Where it does not, a kernel is compiled for each size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpuop.bounded import BoundedCache
from gpuop.ir.extents import MOST_GROUPS, Extents, extents_of, is_regular, resized
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Barrier, Collective, Index
from gpuop.ir.target import Target
from gpuop.ir.text import content, identity
from gpuop.ir.visit import expressions, walk
from gpuop.passes import lower, lowering

LEAST = (2, 16, 64, 256)  # extents that ranges begin with: where borders are near one another, other things are decided
KEPT = 256
OWN = ("global", "global_size")
GROUPS = ((1, 1, 1), (1, 1, 256), (1, 4, 64), (1, 4, 64))  # by the dimensions of a grid


@dataclass(frozen=True, slots=True)
class Opened:
    """A kernel without its extents.

    Attributes:
        key: equal for kernels that differ in their extents alone.
        kernel: as it is printed; None where it cannot do without them.
        values: the extents that it gets, in the order of its arguments.
        reason: why it is compiled for each size, as the end of a sentence.
    """

    key: str = ""
    kernel: Kernel | None = None
    values: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    kernel: Kernel | None
    least: int
    most: int


_found: BoundedCache[object, _Found] = BoundedCache(KEPT)


def opened(kernel: Kernel, target: Target) -> Opened:
    """A recorded kernel as it runs on a target with its extents as arguments."""
    refused = _refusal(kernel)
    if refused:
        return Opened(reason=refused)
    extents = extents_of(kernel)
    key = content(resized(kernel, extents, _most(extents)))
    found = _found.find((key, target, lowering()), lambda: _searched(kernel, target, extents))
    if found.kernel is None:
        return Opened(reason="what its threads do depends on its extents")
    values = tuple(extents.values.values())
    if not all(found.least <= n <= found.most for n in values):
        return Opened(reason=f"an extent is not within {found.least} to {found.most}")
    return Opened(key, found.kernel, values)


def _refusal(kernel: Kernel) -> str:
    if not kernel.domain.threads:
        return "its grid has no points"
    if kernel.pin is not None:
        return "its schedule is pinned"
    together = any(isinstance(stmt, (Barrier, Collective)) for stmt in walk(kernel.body))
    placed = any(isinstance(e, Index) and e.kind not in OWN for e in expressions(kernel.body))
    if kernel.group is not None or kernel.whole or together or placed:
        return "its threads work in groups"
    strided = next((param for param, _ in kernel.layouts if not is_regular(kernel, param)), None)
    if strided is not None:
        return f"`{strided.hint}` lies in strides of its own"
    extents = extents_of(kernel)
    if not extents.values:
        return "its extents are 1"
    grid = zip(extents.grids[None], kernel.domain.shape, strict=True)
    *others, _ = [1, 1, 1, *(extents.most if name else n for name, n in grid)][-3:]
    if max(others[0] * kernel.domain.elements, others[1]) > MOST_GROUPS:
        return "its grid has more layers, elements or rows than launches have groups"
    return ""


def _searched(kernel: Kernel, target: Target, extents: Extents) -> _Found:
    """The widest range for which the kernel is lowered alike."""
    kernel = replace(kernel, group=GROUPS[len(kernel.domain.shape)])
    most, count = _most(extents), len(extents.values)
    largest = lower(resized(kernel, extents, most), target)
    known = identity(largest)
    for least in LEAST:
        ends = _ends(most, {name: least + k for k, name in enumerate(most)})
        if all(identity(lower(resized(kernel, extents, values), target)) == known for values in ends):
            return _Found(largest, least + count - 1, min(most.values()))
    return _Found(None, 0, 0)


def _most(extents: Extents) -> dict[str, int]:
    """The end of the range: another extent for each name, as equal ones mean something."""
    return {name: extents.most - k for k, name in enumerate(extents.values)}


def _ends(most: Mapping[str, int], least: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    yield least
    for name in most:
        yield {**most, name: least[name]}
        yield {**least, name: most[name]}
