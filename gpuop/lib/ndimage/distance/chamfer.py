"""Chamfer distances on CPUs: steps to the nearest point outside of a mask, by sweeps over the rows of a plane.

A shortest path goes first from row to row, straight or, where corners are neighbours, diagonally, and then along a row. So one
thread sweeps down from the first row and another up from the last one, a vector of columns at a time (A. Rosenfeld, J. Pfaltz,
Sequential operations in digital picture processing, 1966). Along a row, minima within 1, 3, 7 … columns are computed for all
columns at once; minima of farther columns come from columns one vector apart, in a forward and a backward sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType

MOST_COLUMNS = 1 << 13  # limit: a thread keeps two rows
APART = 32  # columns: a vector of int16
FAR = (1 << 15) - 1 - APART  # greater than any distance; APART steps more do not overflow int16


def sweeps(shape: Sequence[int]) -> bool:
    """Return whether distances in a grid of this shape are computed by sweeps."""
    return len(shape) == 2 and shape[1] <= MOST_COLUMNS and sum(shape) < FAR


def swept(mask: Field, aslant: bool) -> Field:
    """Return the number of steps from each point to the nearest 0: int32, -1 if there is none.

    Args:
        aslant: whether corners are neighbours.
    """
    return _along_rows(_from_ends(mask, aslant))


def _short(value: Any) -> Any:
    return k._convert(value, "int16")


def _from_ends(mask: Field, aslant: bool) -> Field:
    """Return the steps of paths down from the rows above, and of paths up from the rows below."""
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
    """Return the least steps of paths that end along a row."""
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
