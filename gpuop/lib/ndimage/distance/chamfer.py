"""Numbers of steps to the nearest point outside of a mask, by sweeps over the rows of a plane, for CPUs.

A way of least steps goes from row to row first, straight or, where corners are neighbours, also aslant, and then along a row. So
one thread sweeps from the first row down and another from the last one up, a vector of columns at a time (A. Rosenfeld, J. Pfaltz,
Sequential operations in digital picture processing, 1966). Along a row the least within 1, 3, 7 … columns is found of all columns
at once; what is further away comes from columns that are a vector apart, from one end and then from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType

MOST_COLUMNS = 1 << 13  # of which a thread keeps two rows
APART = 32  # columns: a vector of int16
FAR = (1 << 15) - 1 - APART  # further than anything else: APART steps more are no overflow of int16


def sweeps(shape: Sequence[int]) -> bool:
    """Whether distances in a grid are found so."""
    return len(shape) == 2 and shape[1] <= MOST_COLUMNS and sum(shape) < FAR


def swept(mask: Field, aslant: bool) -> Field:
    """How many steps each point is from the nearest one that is 0: int32, -1 if there is none.

    Args:
        aslant: whether corners are neighbours.
    """
    return _along_rows(_from_ends(mask, aslant))


def _short(value: Any) -> Any:
    return k._convert(value, "int16")


def _from_ends(mask: Field, aslant: bool) -> Field:
    """The steps of ways that come down from the rows before, and of those that come up from the rows behind."""
    rows, columns = mask.field_shape

    def body() -> None:
        k._globalThreads(2)
        k._localThreads(1)
        line, last = k._shortArray(columns + 2), k._shortArray(columns + 2)
        with k._for(columns + 2) as c:
            last[c] = FAR
        with k._for(rows) as done:
            row = k._where(k._column == 0, done, rows - 1 - done)
            with k._for(columns) as c:
                near = k._min(k._min(last[c], last[c + 1]), last[c + 2]) if aslant else last[c + 1]
                inside = k._readTensor(mask, row, c, border="unchecked") != 0
                line[c + 1] = k._where(inside, _short(k._min(_short(near + 1), FAR)), _short(0))
            with k._for(columns) as c:
                last[c + 1] = line[c + 1]
                k._writeTensor(k._out0, line[c + 1], k._column, row, c)

    kept = FieldType((2, rows, columns), (), "int16")
    return library_call("swept_rows", (kept,), [mask], body, aslant, whole=True)[0]


def _along_rows(both: Field) -> Field:
    """The least steps, of which the last ones are along a row."""
    _, rows, columns = both.field_shape
    blocks = -(-columns // APART)

    def body() -> None:
        k._globalThreads(rows)
        k._localThreads(1)
        line, near = (k._shortArray((blocks + 2) * APART) for _ in range(2))
        with k._for((blocks + 2) * APART) as c:
            line[c] = FAR
            near[c] = FAR
        with k._for(columns) as c:
            down, up = (k._readTensor(both, n, k._column, c, border="unchecked") for n in range(2))
            line[c + APART] = k._min(down, up)
        step = 1
        while step < APART:
            with k._for(columns) as c:
                aside = k._min(line[c + (APART - step)], line[c + (APART + step)])
                near[c + APART] = k._min(line[c + APART], _short(aside + step))
            line, near, step = near, line, 2 * step
        for behind in (-1, 1):
            with k._for(blocks) as n:
                begin = (n if behind < 0 else blocks - 1 - n) * APART + APART
                with k._for(APART) as c:
                    line[begin + c] = k._min(line[begin + c], _short(line[begin + c + behind * APART] + APART))
        with k._for(columns) as c:
            k._writeTensor(k._out0, k._where(line[c + APART] == FAR, -1, line[c + APART]), k._column, c)

    out = FieldType((rows, columns), (), "int32")
    return library_call("swept_columns", (out,), [both], body, rows, whole=True)[0]
