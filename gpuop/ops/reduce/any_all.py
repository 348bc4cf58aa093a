"""Reductions `any` and `all` of stored values, on CPUs: a thread reads a row, and stops when the result is known.

Computed values use `kernels.py`: threads compute them in vectors, side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.operators.variants import either
from gpuop.ir.types import Shape
from gpuop.ir.values import Leaf
from gpuop.ops.layout.gather import own_place
from gpuop.ops.reduce.kernels import Partial, a_step, by_groups, chunks_of
from gpuop.ops.reduce.reducers import Item, Reducer, Split
from gpuop.ops.sort.tiles import single

BLOCK = 128  # values that a thread counts, in a byte, between two checks: compilers make vectors of them
LEAST, MANY = 4 * BLOCK, 1 << 16  # values of a row, and in all
HIGHEST, GROUPS = 32, 256  # rows of a thread at most, and threads at least if they have several rows


def are_stored(reducer: Reducer, given: Partial) -> bool:
    """Return whether the values are truths in memory; then one may decide for many."""
    kind, node = given.type, given.values.node
    stored = isinstance(node, Leaf) and not node.by_value and not given.open
    many = kind.field_shape.points >= MANY and kind.field_shape[-1] >= LEAST
    return stored and kind.dtype == reducer.result == "bool" and kind.planes == 1 and many


def by_rows(reducer: Reducer, given: Partial, last: bool) -> Partial:
    """Return the result of `by_groups` for the last axis."""
    *kept, count = given.type.field_shape
    parts = chunks_of(count, Shape(kept).points)
    chunked = parts.chunks > 1
    out = Shape((*kept, parts.chunks) if chunked else kept)
    high = 1 if chunked else max(min(out.points // GROUPS, HIGHEST), 1)

    def body(write: Callable[..., None]) -> None:
        k._globalThreads((*out[:-1], -(-out[-1] // high)))
        k._localThreads(1)
        *point, own = own_place(len(out))
        if chunked:
            write(_until_known(reducer, given, parts, point, own), *point, own, 0)
        else:
            with k._for(own * high, k._min(own * high + high, out[-1])) as row:
                write(_until_known(reducer, given, parts, [*point, row], 0), *point, row, 0)

    done = last and not chunked
    alone = a_step(reducer, given, given.type.replace(field_shape=out), done, ("rows", parts), body)
    return Partial(either(single(), alone.values, by_groups(reducer, given, 1, last, parts).values))


def _until_known(reducer: Reducer, given: Partial, parts: Split, point: list[Any], chunk: Any) -> Item:
    """Return whether all or any values of a chunk are true: block after block until one decides; blocks may exceed the chunk."""
    every, first = reducer.name == "min", chunk * parts.size
    found = k._var(k._convert(every, reducer.held))
    with k._for(first, k._min(first + parts.size, parts.count), BLOCK) as begin:
        start, count = k._min(begin, parts.count - BLOCK), k._var(k._convert(0, reducer.held))
        with k._for(BLOCK) as j:
            count.assign(count + given.load(reducer, (*point, start + j), 0, start + j)[0])
        with k._if(count < BLOCK if every else count > 0):
            found.assign(k._convert(not every, reducer.held))
            k._break()
    return (found,)
