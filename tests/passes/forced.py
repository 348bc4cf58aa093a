"""Every schedule of GPUs, forced on grids however small, on the interpreter that checks memory: programs, and NumPy's values.

A case is a program of fields and the same of arrays. What it reads lies behind slices, transposes and reversed or strided parts of
larger arrays, in turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.kernel import Kernel
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.common import privatize, transpose
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.privatize import PRIVATIZE
from gpuop.passes.schedules.common.transpose import TRANSPOSE
from gpuop.passes.schedules.gpu import tile, unaligned_words
from gpuop.passes.schedules.gpu.layers import LAYER_BLOCKING
from gpuop.passes.schedules.gpu.roll import DEEP, ROLL
from gpuop.passes.schedules.gpu.shifted_rows import SHIFTED_ROWS
from gpuop.passes.schedules.gpu.tile import TILE
from gpuop.passes.schedules.gpu.unaligned_words import UNALIGNED_WORDS
from tests.as_gpus import used
from tests.borders import CHECKED, away

Function = Callable[..., Any]
GPU = "reference:sm_90 as a gpu"
PACK = import_module("gpuop.passes.pack")  # whose name is that of its pass in the package
PAYS = (
    "times",
    "its rows have",
    "its windows take",
    "its values are",
    "its stages compute",
)  # reasons that are about speed


@gp.operator(dynamic=False)
def taps(f, offsets, border):
    """A weighted sum of what lies at some offsets."""
    at = [(_layer, _row, _column)[3 - len(o) :] for o in offsets]
    read = [
        _readTensor(f, *(i + k for i, k in zip(place, o, strict=True)), border=border) * (n + 1)
        for n, (place, o) in enumerate(zip(at, offsets, strict=True))
    ]
    return sum(read[1:], read[0])


def summed(x: np.ndarray, offsets: tuple[tuple[int, ...], ...], border: str) -> np.ndarray:
    return sum(away(x, *o, border=border) * x.dtype.type(n + 1) for n, o in enumerate(offsets)).astype(x.dtype)


def stencils(*windows: tuple[tuple[int, ...], ...], dtype: str = "int32") -> Case:
    """A stencil of a stencil …, which all read under one border."""

    def fields(f: Any, border: str) -> Any:
        for window in windows:
            f = taps(f, window, border)
        return f

    def arrays(x: np.ndarray, border: str) -> np.ndarray:
        for window in windows:
            x = summed(x, window, border)
        return x

    return Case(fields, arrays, dtype)


@gp.operator(outputs=lambda f, border: f.type.replace(field_shape=f.type.field_shape[::-1]), dynamic=False)
def turned(f, border):
    return _readTensor(f, _column, _row, border=border)


@gp.operator(outputs=gp.FieldType(11, dtype="int32"), default=5, dynamic=False)
def counted(f):
    _globalThreads(f)
    _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(f))))


def counts(x: np.ndarray) -> np.ndarray:
    inside = x[(x >= 0) & (x < 11)]
    return (5 + np.bincount(inside.astype(int), minlength=11)).astype(np.int32)


@gp.operator(dynamic=False)
def brightest(f, border):
    """In bytes."""
    return _max(
        _max(
            _readTensor(f, _row - 1, _column - 2, border=border), _readTensor(f, _row + 1, _column + 3, border=border)
        ),
        _readTensor(f),
    )


def brightened(x: np.ndarray, border: str) -> np.ndarray:
    return np.maximum(np.maximum(away(x, -1, -2, border=border), away(x, 1, 3, border=border)), x)


@gp.operator(dynamic=False)
def differing(f, border):
    """In bytes, whose bits no lane takes from another."""
    return _readTensor(f, _row, _column - 2, border=border) ^ _readTensor(f, _row + 1, _column + 3, border=border)


def different(x: np.ndarray, border: str) -> np.ndarray:
    return away(x, 0, -2, border=border) ^ away(x, 1, 3, border=border)


@gp.operator(dynamic=False)
def shifted(f, border):
    """A row of which the second half is another one."""
    return _where(
        _column < 7,
        _readTensor(f, _row, _column + 3, border=border),
        _readTensor(f, _row - 1, _column - 6, border=border),
    )


def shifting(x: np.ndarray, border: str) -> np.ndarray:
    return np.where(np.arange(x.shape[1]) < 7, away(x, 0, 3, border=border), away(x, -1, -6, border=border))


@gp.operator(outputs=lambda f: (f.type, f.type), dynamic=False)
def together(f):
    _localThreads(2, 16)
    value = _readTensor(f)
    _writeTensor(_out0, _reduceGroup(value, "add"))
    _writeTensor(_out1, _scanGroup(value, "add", over="column"))


@gp.operator(dynamic=False)
def upside_down(f, border):
    """Values before and behind a point of the row that is as far from the last one."""
    there = _rows - 1 - _row
    return _readTensor(f, there, _column + 3, border=border) + 2 * _readTensor(f, there, _column - 6, border=border)


def turning(x: np.ndarray, border: str) -> np.ndarray:
    return away(x[::-1], 0, 3, border=border) + 2 * away(x[::-1], 0, -6, border=border)


@gp.operator(dynamic=False)
def of_its_row(f, border):
    """A point's value, and numbers of its row and its column from tables of as many."""
    rows = _constantArray(WEIGHTS[: f.type.field_shape[0]])
    columns = _constantArray(WEIGHTS[-f.type.field_shape[1] :])
    return _readTensor(f) + rows[_row] * columns[_column]


def of_rows(x: np.ndarray, border: str) -> np.ndarray:
    return x + np.outer(WEIGHTS[: x.shape[0]], WEIGHTS[-x.shape[1] :])


def in_groups(x: np.ndarray) -> np.ndarray:
    """The sum of each group, and of those before each point in its row, itself too."""
    sums = np.zeros_like(x)
    for r, c in itertools.product(range(0, x.shape[0], 2), range(0, x.shape[1], 16)):
        part = x[r : r + 2, c : c + 16]
        sums[r : r + 2, c : c + 16] = part.sum() + part.cumsum(1)
    return sums


@dataclass(frozen=True)
class Case:
    """A program of a field and a border, and the same of an array."""

    fields: Function
    arrays: Function
    dtype: str = "int32"


@dataclass(frozen=True)
class Forced:
    """A schedule, the programs that it is for, and the grids.

    Attributes:
        parameters: what is pinned.
        patches: limits that are about speed, and what they are instead.
        views: of what the fields are, by turns; schedules of stages refuse kernels that begin with a view.
    """

    method: Method | None
    cases: tuple[Case, ...]
    grids: tuple[tuple[int, ...], ...]
    parameters: Parameters = field(default_factory=dict)
    patches: tuple[tuple[Any, str, Any], ...] = ()
    views: tuple[str, ...] = ("whole", "a slice", "reversed", "strided", "transposed")


WEIGHTS = np.arange(3, 99, dtype=np.int32)
SMALL = ((1, 1), (1, 2), (2, 1), (3, 2), (1, 9), (7, 1), (5, 12), (9, 33))
LONG = ((1, 129), (2, 131), (3, 134), (9, 145), (4, 7))  # rows that are long enough for words, and one that is not
VOLUMES = ((1, 1, 1), (1, 2, 4), (3, 1, 8), (2, 3, 12), (5, 7, 5), (6, 3, 16), (1, 9, 20))
LAYERS = (((-1, 0, 0), (0, 1, -1), (1, -1, 1)), ((0, -1, 0), (1, 0, 0), (0, 0, 1)))
RIGHT = ((0, 0), (1, 1))
AROUND, DOWN, ACROSS = ((-1, 2), (0, 0), (2, -1), (1, 1)), ((-2, 0), (0, 0), (3, 0)), ((0, -2), (0, 3), (0, 0))
FAR = ((-9, 0), (0, 13), (4, -11))  # farther than small grids are large
BYTES = (Case(brightest, brightened, "uint8"), Case(differing, different, "uint8"))
TINY_TILES = {"rows": 2, "columns": 4, "tall": 2, "lanes": 4}
FORCED: dict[str, Forced] = {
    "roll": Forced(
        ROLL, (stencils(AROUND), stencils(FAR), stencils(AROUND, dtype="uint8"), stencils(DOWN, dtype="float64")), SMALL,
        {"columns": 4, "rows": 3, "turn": 2, "width": 32},
    ),
    "roll of stages": Forced(
        ROLL, (stencils(DOWN, AROUND), stencils(AROUND, AROUND, dtype="float32")), SMALL, {"rows": 3}, views=("whole",)
    ),
    "roll of stages in columns": Forced(
        ROLL, (stencils(DOWN, AROUND), stencils(AROUND, RIGHT), stencils(AROUND, AROUND, dtype="float32")),
        ((5, 12), (9, 33)), {"rows": 3, "columns": 4}, views=("whole",),
    ),
    "tile": Forced(
        TILE, (stencils(AROUND, DOWN), stencils(DOWN, ACROSS), stencils(ACROSS, AROUND, DOWN), stencils(FAR)), (*SMALL, (21, 70)),
        TINY_TILES, ((tile, "STORED", 1e9),),
    ),
    "tile of bytes": Forced(TILE, (stencils(AROUND, ACROSS, dtype="uint8"),), SMALL, TINY_TILES, ((tile, "STORED", 1e9),)),
    "layers": Forced(
        LAYER_BLOCKING, (stencils(*LAYERS), stencils(LAYERS[1], LAYERS[0], dtype="float32")), VOLUMES,
        {"layers": 2, "columns": 4, "width": 2},
    ),
    "transpose": Forced(
        TRANSPOSE,
        tuple(Case(lambda f, border: turned(f * 3 + 1, border), lambda x, border: (x * 3 + 1).astype(x.dtype).T, dtype)
              for dtype in ("int32", "uint8", "float64")),
        (*SMALL, (4, 4), (17, 19), (33, 16)), {"size": 4}, ((transpose, "SIZES", (64, 32, 16, 8, 4, 2, 1)),),
    ),
    "ragged words": Forced(UNALIGNED_WORDS, BYTES, LONG, {}, ((unaligned_words, "GAIN", 9),)),
    "shifted rows": Forced(SHIFTED_ROWS, tuple(Case(shifted, shifting, dtype) for dtype in ("int32", "uint8")), SMALL),
    "shifted rows at ends": Forced(
        SHIFTED_ROWS, tuple(Case(upside_down, turning, dtype) for dtype in ("int32", "uint8")), ((3, 5), (5, 16), (3, 64)),
        views=("whole",),
    ),
    "privatize": Forced(
        PRIVATIZE, (Case(lambda f, border: counted(f), lambda x, border: counts(x)),), (*SMALL, (40, 31)), {},
        ((privatize, "WORTH", 0), (privatize, "LEAST", 1), (privatize, "POINTS", (5, 1))),
    ),
    "words of bytes": Forced(
        ROLL, BYTES, ((1, 64), (2, 64), (5, 68), (3, 132), (9, 36), (3, 2)), {}, ((PACK, "NARROW", 4),)
    ),
    "points of a thread": Forced(
        None,
        tuple(Case(lambda f, border: f * 2 + 1, lambda x, border: (x * 2 + 1).astype(x.dtype), dtype)
              for dtype in ("int32", "uint8", "float64")),
        (*SMALL, (4, 4), (1, 64), (16, 17)),
    ),
    "points of a thread by tables": Forced(
        None, (Case(of_its_row, of_rows),), ((5, 12), (1, 65), (7, 37), (35, 51)), views=("whole",)
    ),
    "group sums": Forced(
        None,
        (Case(lambda f, border: np.add(*together(f)), lambda x, border: in_groups(x)),
         Case(lambda f, border: f.sum(), lambda x, border: x.sum(dtype=np.int64)),
         Case(lambda f, border: f.sum(0) + f.max(), lambda x, border: x.sum(0, dtype=np.int64) + x.max())),
        (*SMALL, (3, 17), (40, 31)),
    ),
    "plain": Forced(None, (stencils(AROUND), stencils(FAR), stencils(DOWN, ACROSS)), SMALL),
}  # fmt: skip


VIEWS: dict[str, tuple[Function, Function]] = {  # of a larger array, of these extents; and how that is made
    "whole": (lambda x: x, lambda n: n),
    "a slice": (lambda x: x[..., 1:-2], lambda n: (*n[:-1], n[-1] + 3)),
    "reversed": (lambda x: x[..., ::-1, ::-1], lambda n: n),
    "strided": (lambda x: x[..., ::2, 1::3], lambda n: (*n[:-2], 2 * n[-2], 3 * n[-1])),
    "transposed": (lambda x: x.swapaxes(-1, -2), lambda n: (*n[:-2], n[-1], n[-2])),
}


def given(forced: Forced, case: Case, view: str, grid: tuple[int, ...]) -> np.ndarray:
    shape = VIEWS[view][1](grid)
    values = np.random.default_rng([*shape, len(view)]).integers(0, 12, shape)
    return values.astype(case.dtype)


def drawn(name: str, border: str) -> Iterator[tuple[Case, str, tuple[int, ...]]]:
    """For each grid a program and a view, by turns, so that all pairs come together over the borders."""
    forced, turn = FORCED[name], CHECKED.index(border)
    for k, grid in enumerate(forced.grids, turn):
        yield forced.cases[k % len(forced.cases)], forced.views[k % len(forced.views)], grid


@contextmanager
def forcing(forced: Forced) -> Iterator[list[str]]:
    """The device, with no other schedule; a list that gains the name of each kernel that has it."""
    applied: list[str] = []
    method = forced.method

    def refuse(kernel: Kernel) -> str:
        assert method is not None
        why = method.refuse(kernel)
        pays = why == DEEP or any(reason in why for reason in PAYS)
        return "" if pays and method.candidates(kernel) else why

    def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
        assert method is not None
        applied.append(kernel.name)
        return method.apply(kernel, parameters)

    with ExitStack() as stack:
        for owner, name, value in forced.patches:
            stack.enter_context(mock.patch.object(owner, name, value))
        stack.enter_context(used(GPU))
        if method is None:
            stack.enter_context(mock.patch.object(schedules, "METHODS", ()))
        else:
            methods = (replace(method, refuse=refuse, apply=apply),)
            stack.enter_context(mock.patch.object(schedules, "METHODS", methods))
            stack.enter_context(gp.schedule(method.name, **forced.parameters))
        yield applied


def compared(name: str, borders: tuple[str, ...] = CHECKED) -> int:
    """Compare all programs that are drawn with NumPy; how many kernels had the schedule."""
    forced = FORCED[name]
    with forcing(forced) as applied:
        for border, (case, view, grid) in itertools.chain.from_iterable(
            zip(itertools.repeat(border), drawn(name, border)) for border in borders
        ):
            whole, of = given(forced, case, view, grid), VIEWS[view][0]
            actual = case.fields(of(gp.Field(whole, 0)), border).numpy()
            np.testing.assert_array_equal(actual, case.arrays(of(whole), border), f"{name}, {border}, {view}, {grid}")
    return len(applied)
