"""Linear interpolation of a plane on CPUs at coordinates that repeat from one block of columns to the next: rational zooms.

A thread has a row: it blends the two rows that are read, and moves along them in vectors whose lanes are shuffled in the same way
in each block. Columns at the ends, where borders change the pattern, look up their coordinates, as all columns do on GPUs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType

LANES = 16  # lanes of a vector of floats
PERIODS = range(1, 9)  # tried periods of the pattern, in columns
FARTHEST = 40  # limit of a vector's span of reads; a wider one takes more loads than it saves
MOST_COLUMNS = 1 << 13  # limit: a thread keeps two rows
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class EvenBlocks:
    """Blocks of columns that read in the same pattern.

    Attributes:
        width: columns of a block.
        advance: distance between the reads of neighbouring blocks.
        first, last: first block, and the one behind the last.
        ahead: first knot of each column in block 0; block n reads `n * advance` further.
    """

    width: int
    advance: int
    first: int
    last: int
    ahead: tuple[int, ...]


def blocks_of(taps: Numbers, n: int) -> EvenBlocks | None:
    """Return the blocks of columns that read a point of n and the next one; None where they do not repeat."""
    for period in PERIODS:
        width = math.lcm(period, LANES)
        count = len(taps) // width
        if count < 4:
            return None
        middle = count // 2 * width
        ahead = taps[middle : middle + width] - taps[middle]
        advance = int(taps[middle + width] - taps[middle]) if middle + width < len(taps) else 0
        expected = int(taps[middle]) + ahead + advance * (np.arange(count)[:, None] - count // 2)
        good = (taps[: count * width].reshape(count, width) == expected) & (expected >= 0) & (expected < n - 1)
        bad = np.flatnonzero(~good.all(1))
        first = int(max(bad[bad < count // 2], default=-1)) + 1
        last = int(min(bad[bad >= count // 2], default=count))
        parts = ahead.reshape(-1, LANES)
        if last - first >= count // 2 and np.ptp(parts, axis=1).max() < FARTHEST:
            begin = int(taps[middle]) - advance * (count // 2)
            return EvenBlocks(width, advance, first, last, tuple(int(at) + begin for at in ahead))
    return None


def evenly(
    field: Field, rows: tuple[Field, Field], columns: tuple[Field, Field], blocks: EvenBlocks, out: FieldType
) -> Field:
    """Interpolate the field.

    Args:
        rows, columns: places of the reads, and two weights of each.
    """
    (high, count), (_, wide) = field.field_shape, out.field_shape

    def body() -> None:
        k._globalThreads(out.field_shape[0])
        k._localThreads(1)
        own = [[k._readTensor(f, n, k._column, border="unchecked") for f in rows] for n in range(2)]
        lines = [k._floatArray(count) for _ in own]
        with k._for(count) as c:
            for line, (at, weight) in zip(lines, own, strict=True):  # bounded places are loaded as vectors
                line[c] = k._readTensor(field, k._min(k._max(at, 0), high - 1), c, border="unchecked") * weight

        def write(column: Any, places: Any) -> None:
            weights = [k._readTensor(columns[1], n, column, border="unchecked") for n in range(2)]
            terms = [line[at] * weight for line in lines for at, weight in zip(places, weights, strict=True)]
            k._writeTensor(k._out0, terms[0] + terms[1] + terms[2] + terms[3], k._column, column)

        with k._for(blocks.first, blocks.last) as block:
            begin, column = block * blocks.advance, block * blocks.width
            for part in range(0, blocks.width, LANES):
                ahead = k._constantArray(np.array(blocks.ahead[part : part + LANES], np.int32))
                with k._for(LANES) as lane:
                    at = ahead[lane] + begin
                    write(column + part + lane, (at, at + 1))
        start, end = blocks.first * blocks.width, blocks.last * blocks.width
        with k._for(wide - (end - start)) as other:
            column = k._where(other < start, other, other + (end - start))
            write(column, [k._readTensor(columns[0], n, column, border="unchecked") for n in range(2)])

    return library_call("zoom", (out,), [field, *rows, *columns], body, blocks, whole=True)[0]
