"""Values that live across barriers, and places read and written in another order than the threads' own.

A row of the table is a kernel: a few values, computed before threads wait for one another, and used behind; where another
thread's are read; what threads wait by; a guard; a loop; a grid, whose groups it may cut. A value is text, which Python
evaluates twice: in the kernel, and on NumPy's arrays, which say what is right. Numbers are multiples of a quarter, of which all
is exact.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *

from .shapes import OUTS, _saturated

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NEGATIONS = (
    "-x", "x * -1", "x / -1", "-0.0 - x", "0.0 - x", "-fabs(x)", "floor(-x)", "fabs(-x)", "where(x < y, -x, x)",
    "x * where(x < y, -1.0, 1.0)", "copysign(x, -1.0)", "-x * -y", "-x - -y", "-(x - y)", "y - x", "fma(-x, y, 1.0)",
    "fma(-x, -y, -x)", "fma(x, -1.0, 0.0)", "-(x * y)", "-x * 0.5", "x - 3 * y", "-x + y", "flip(x)", "-where(c < 20, x, y)",
)  # fmt: skip
MULTIPLES = (
    "c", "3 * c", "c * -3", "c + c + c", "(c << 2) - c", "5 * c + 7", "6 * (c + 1)", "7 * c % 11", "9 * c >> 1", "10 * c & 127",
    "100 - 3 * c", "c * c", "3 * c * c + c", "minimum(3 * c, 50)", "where(c > 20, 3 * c, 5 * c)", "3 * c ^ 1", "12 * c", "0 - c",
)  # fmt: skip
MIXED = ("x + 3 * c", "x + 7 * c", "where(3 * c < 60, x, y)", "x * (3 * c)")
PLACES = {  # of the other thread, of n in a row
    "own": "c", "next": "minimum(c + 1, n - 1)", "before": "maximum(c - 1, 0)", "turned": "(c + 1) % n", "reversed": "n - 1 - c",
    "exchanged": "c ^ 1", "first": "c * 0",
}  # fmt: skip
BARRIERS = ("none", "local", "global", "shuffle", "broadcast", "scan", "reduce")
GUARDS = ("none", "first row", "below")
TURNS = (0, 1, 2, 3)  # of a loop around what waits; 0 where there is none
GRIDS = {  # the grid, and columns of a work-group
    "one group": ((64,), 64), "pairs": ((40,), 2), "eights": ((64,), 8), "sixteens": ((96,), 16), "thirty-twos": ((256,), 32),
    "sixty-fours": ((256,), 64), "many": ((512,), 256), "cut": ((61,), 32), "cut more": ((200,), 64), "rows": ((4, 64), 32),
    "cut rows": ((3, 61), 32), "cut volume": ((2, 3, 70), 64),
}  # fmt: skip
VALUES = 5  # of a kernel


@dataclass(frozen=True)
class Row:
    """A kernel of the table."""

    values: tuple[str, ...]
    place: str
    barrier: str
    guard: str
    turns: int
    grid: str
    backwards: bool  # whether threads write to the other end of their row
    dtype: str

    @property
    def columns(self) -> int:
        return GRIDS[self.grid][1]


def rows(dtype: str) -> Iterator[Row]:
    """All of a dtype, where a row of the table of values has five."""
    texts = [*(NEGATIONS if dtype in FLOATS else ()), *MULTIPLES, *MIXED]
    chunks = [tuple(texts[k : k + VALUES]) for k in range(0, len(texts), VALUES)]
    for case in itertools.product(chunks, PLACES, BARRIERS, GUARDS, TURNS, GRIDS, (False, True)):
        _, place, barrier, guard, turns, grid, _ = case
        if barrier in ("none", "broadcast", "scan", "reduce") and place != "own":
            continue
        if barrier == "shuffle" and grid.startswith("cut") and place not in ("own", "before", "first"):
            continue  # threads that the grid has not give nothing
        if (barrier == "none" and turns) or (guard == "first row" and len(GRIDS[grid][0]) < 2):
            continue
        yield Row(*case, dtype)


def drawn(dtype: str, count: int, seed: int) -> list[Row]:
    """So many rows of a dtype."""
    return random.Random(f"{seed} {dtype}").sample(list(rows(dtype)), count)


# --- what is right ----------------------------------------------------------------------------------------------------


def expected(row: Row, x: Any, y: Any) -> list[Any]:
    """The result of NumPy for a row: its values, then those of other threads."""
    grid, n = GRIDS[row.grid]
    whole = [np.pad(a, [(0, 0)] * (len(grid) - 1) + [(0, -grid[-1] % n)], "edge") for a in (x, y)]
    x, y = (a.reshape(-1, n) for a in whole)
    c = np.broadcast_to(np.arange(n), x.shape)
    names = {"n": n, "c": c, "x": x, "y": y, "where": np.where, "minimum": np.minimum, "maximum": np.maximum, "fabs": np.abs,
             "floor": np.floor, "copysign": np.copysign, "fma": lambda a, b, c: a * b + c, "flip": np.negative}  # fmt: skip
    results = []
    with np.errstate(all="ignore"):
        place = np.asarray(eval(PLACES[row.place], names))
        own = [np.broadcast_to(_typed(eval(text, names), row.dtype), x.shape) for text in row.values]
    for v in own:
        match row.barrier:
            case "scan":
                other = np.maximum.accumulate(v, -1)
            case "reduce":
                there = np.arange(x.size).reshape(x.shape) % (-(-grid[-1] // n) * n) < grid[-1]
                other = np.repeat(np.where(there, v, v[:, :1]).max(-1, keepdims=True), n, -1)
            case "broadcast":
                other = np.repeat(v[:, 1:2], n, -1)
            case _:
                other = np.take_along_axis(v, place, -1)
        results.append(other)
    guard = np.ones(grid, bool)
    if row.guard == "first row":
        guard[..., 1:, :] = False
    elif row.guard == "below":
        guard = (np.arange(grid[-1]) < 45) & guard
    values = []
    for v in (*own, *results):
        v = np.where(guard, v.reshape(*grid[:-1], -1)[..., : grid[-1]], 0)
        values.append(v[..., ::-1] if row.backwards else v)
    return values


def _typed(value: Any, dtype: str) -> Any:
    value = np.asarray(value)
    return (
        value.astype(dtype) if dtype in FLOATS or value.dtype.kind == "f" else _saturated(value.astype(np.int64), dtype)
    )


# --- what gpuop computes ----------------------------------------------------------------------------------------------


def _values(row: Row, x: Any, y: Any, c: Any) -> list[Any]:
    names = {"n": row.columns, "c": c, "x": x, "y": y, "where": _where, "minimum": _min, "maximum": _max, "fabs": abs,
             "floor": _floor, "copysign": _copysign, "fma": _fma, "flip": _flipped}  # fmt: skip
    return [_convert(eval(text, names), row.dtype) for text in row.values]


def _flipped(x: Any) -> Any:
    """-x, by the bits."""
    kind = str(x.type)
    if kind == "half":
        return -x
    return _as_float(_as_int(x) ^ -(2**31)) if kind == "float" else _as_double(_as_long(x) ^ -(2**63))


def _other(row: Row, v: Any, memory: Any, at: Any) -> Any:
    """The value of another thread that a thread sees."""
    match row.barrier:
        case "none":
            return v
        case "shuffle":
            return _shuffleGroup(v, at)
        case "broadcast":
            return _broadcastGroup(v, 1)
        case "scan":
            return _scanGroup(v, "max")
        case "reduce":
            return _reduceGroup(v, "max")
    wait = _syncThreadsLocal if row.barrier == "local" else _syncThreadsGlobal
    memory[_localColumn] = v
    wait()
    other = _var(memory[at])
    wait()
    return other


@gp.operator(outputs=lambda row, f, g: (f.type,) * (2 * len(row.values)), default=0)
def waited(row, f, g):
    """Its values, and those of other threads."""
    _localThreads(row.columns, whole_groups=True)
    x, y, c = _readTensor(f), _readTensor(g), _localColumn
    own = [_var(v) for v in _values(row, x, y, c)]
    memory = _local(globals()[f"_{own[0].type}Array"](row.columns)) if row.barrier in ("local", "global") else None
    at = eval(PLACES[row.place], {"c": c, "n": row.columns, "minimum": _min, "maximum": _max})
    others = [_var(v) for v in own]
    if row.turns:
        with _for(row.turns):
            for other, v in zip(others, own, strict=True):
                other @= _other(row, v, memory, at)
    else:
        for other, v in zip(others, own, strict=True):
            other @= _other(row, v, memory, at)
    if row.guard == "none":
        _write(row, own, others)
    else:
        with _if(_row == 0 if row.guard == "first row" else _column < 45):
            _write(row, own, others)


def _write(row: Row, own: list[Any], others: list[Any]) -> None:
    column = _columns - 1 - _column if row.backwards else _column
    point = {1: (column,), 2: (_row, column), 3: (_layer, _row, column)}[len(GRIDS[row.grid][0])]
    for out, v in zip(OUTS, (*own, *others), strict=False):
        _writeTensor(out, v, *point)


def wrong(row: Row) -> dict[str, str]:
    """The faults of the device in use in a row."""
    grid = GRIDS[row.grid][0]
    rng = np.random.default_rng(3)
    low = -32 if row.dtype in FLOATS or row.dtype[0] == "i" else 0
    x, y = (rng.integers(low, 33, grid) for _ in range(2))
    if row.dtype in FLOATS:
        x, y = x / 4, y / 4
        x.flat[:2] = 0.0, -0.0
        if row.barrier not in ("scan", "reduce"):
            x.flat[2:4] = np.inf, np.nan
    x, y = x.astype(row.dtype), y.astype(row.dtype)
    results = gp.evaluate(*waited(row, gp.ScalarField(x), gp.ScalarField(y)))
    cases = {}
    for k, (field, want) in enumerate(zip(results, expected(row, x, y), strict=True)):
        actual = field.numpy()
        same = (actual == want) | ((actual != actual) & (want != want))
        if row.dtype in FLOATS and row.barrier not in ("scan", "reduce"):
            same &= (np.signbit(actual) == np.signbit(want)) | (actual != actual)
        if not same.all():
            bad = np.flatnonzero(~same)
            text = f"{row.values[k % len(row.values)]}{' of another thread' if k >= len(row.values) else ''}"
            cases[text] = f"{actual.flat[bad[0]]} for {want.flat[bad[0]]} at {bad[0]} ({bad.size} of {actual.size})"
    return cases
