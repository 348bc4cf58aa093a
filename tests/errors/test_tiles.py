"""Tiles that the last work-groups of a grid do not complete: the message, and which programs are none of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.operators import finish
from gpuop.ir.analysis.partial_groups import check_tiles
from tests.nightly import seeds

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()
LINE = gp.ScalarField(np.arange(37, dtype="f"))
LEVELS = gp.ScalarField(np.arange(37) % 32)


def lacks(what: str, group: str, grid: str = "37") -> str:
    return (
        f"{what}: a grid of {grid} is not a multiple of work-groups of {group.replace(', ', '×')}; let such threads run too "
        f"by `_localThreads({group}, whole_groups=True)`, or leave out with `_if` what they would write"
    )


@WRONGS.add(lacks("`tile[6]` is read, and only threads beyond the grid would write it", "16"))
def halo():
    @gp.operator
    def mean(f):
        _localThreads(16)
        tile = _local(_floatArray(18))
        tile[_localColumn + 1] = _readTensor(f)
        with _if(_localColumn == 0):
            tile[0] = _readTensor(f, _column - 1)
        with _if(_localColumn == 15):
            tile[17] = _readTensor(f, _column + 1)
        _syncThreadsLocal()
        left, right = tile[_localColumn], tile[_localColumn + 2]  # here
        return (left + right) / 2

    mean(LINE)


@WRONGS.add(lacks("`tile[0, 4]` is read, and only threads beyond the grid would write it", "16, 16", "5×4"))
def transpose():
    @gp.operator(outputs=gp.FieldType((5, 4)))
    def turned(f):
        _localThreads(16, 16)
        tile = _local(_tensorArray(f, 16, 17))
        tile[_localRow, _localColumn] = _readTensor(f, _groupColumn * 16 + _localRow, _groupRow * 16 + _localColumn)
        _syncThreadsLocal()
        _writeTensor(_out0, tile[_localColumn, _localRow])  # here

    turned(SCALAR)


@WRONGS.add("only threads beyond the grid would write it: a grid of 4×5 is not a multiple of work-groups of 4×8;")
def groups_by_default():
    @gp.operator
    def next_one(f):
        tile = _local(_floatArray(_localRows, _localColumns))
        tile[_localRow, _localColumn] = _readTensor(f)
        _syncThreadsLocal()
        return tile[_localRow, (_localColumn + 1) % _localColumns]  # here

    next_one(SCALAR)


@WRONGS.add(lacks("`sums[5]` is read, and only threads beyond the grid would write it", "8"))
def tree():
    @gp.operator(outputs=gp.FieldType(5))
    def totals(f):
        _globalThreads(f)
        _localThreads(8)
        sums = _local(_floatArray(8))
        reach = _intVar(4)
        sums[_localColumn] = _readTensor(f)
        with _while(reach > 0):
            _syncThreadsLocal()
            with _if(_localColumn < reach):
                sums[_localColumn] += sums[_localColumn + reach]  # here
            reach /= 2
        with _if(_localColumn == 0):
            _writeTensor(_out0, sums[0], _groupColumn)

    totals(LINE)


@WRONGS.add(
    lacks(
        "`table` is read at computed places, and parts of it, such as `table[5]`, only threads beyond the grid would write",
        "16",
    )
)
def table_loaded_together():
    @gp.operator
    def looked_up(levels):
        _localThreads(16)
        table = _local(_floatArray(32))
        with _for(_localColumn, 32, _localColumns) as k:
            table[k] = _sqrt(_convert_float(k))
        _syncThreadsLocal()
        return table[_readTensor(levels)]  # here

    looked_up(LEVELS)


@WRONGS.add(
    lacks(
        "`bins` is read at computed places, and parts of it, such as `bins[5]`, only threads beyond the grid would write",
        "16",
    )
)
def histogram():
    @gp.operator(outputs=gp.FieldType(32, dtype="int32"))
    def counted(levels):
        _globalThreads(levels)
        _localThreads(16)
        bins = _local(_intArray(32))
        with _for(_localColumn, 32, _localColumns) as k:
            bins[k] = 0
        _syncThreadsLocal()
        _atomic_inc(_pointerTo(bins[_readTensor(levels)]))  # here
        _syncThreadsLocal()
        with _for(_localColumn, 32, _localColumns) as k:
            _atomic_add(_pointerTo(_out0, k), bins[k])

    counted(LEVELS)


@WRONGS.add(
    "`tile[0, 0, 3]` is read, and only threads beyond the grid would write it: a grid of 3×4×11 is not a multiple of"
)
def three_dimensions_in_a_vector():
    @gp.operator
    def next_one(f):
        _localThreads(1, 4, 8)
        tile = _local(_floatArray(1, 4, 9))
        at = _int2(_localRow, _localColumn)
        with _if(_readTensor(f) > 0):
            tile[0, at.x, at.y] = _readTensor(f)
        with _elseif(_localColumn > 100):
            tile[0, at.x, 3] = 0
        _syncThreadsLocal()
        return tile[0, at.x, at.yx.x + 1]  # here

    next_one(gp.ScalarField(np.ones((3, 4, 11), "f")))


@WRONGS.add(lacks("`tile[5]` is read, and only threads beyond the grid would write it", "16"))
def groups_that_the_target_decides():
    @gp.operator
    def next_one(f):
        size = _target.choose({"opencl": 8, "cuda": 8, "reference": 16})
        _localThreads(size)
        tile = _local(_floatArray(size))
        tile[_localColumn] = _readTensor(f)
        _syncThreadsLocal()
        return tile[(_localColumn + 1) % _localColumns]  # here

    next_one(LINE).numpy()


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_messages(wrong):
    wrong.check()


# --- what is legal ------------------------------------------------------------------------------------------------------


def guarded_tree(f):
    _localThreads(8)
    sums = _local(_floatArray(8))
    sums[_localColumn] = _readTensor(f)
    left = _min(_columns - _groupColumn * 8, 8)
    reach = _intVar(4)
    with _while(reach > 0):
        _syncThreadsLocal()
        with _if((_localColumn < reach) & (_localColumn + reach < left)):
            sums[_localColumn] += sums[_localColumn + reach]
        reach /= 2
    _syncThreadsLocal()
    return sums[0]


def guarded_by_a_break(f):
    _localThreads(8)
    tile, total = _local(_floatArray(8)), _floatVar()
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    with _for(8) as k:
        with _if(_groupColumn * 8 + k >= _columns):
            _break()
        total += tile[k]
    return total


def one_thread_writes(f):
    _localThreads(16)
    first = _local(_floatVar())
    with _if(_localColumn == 0):
        first @= _readTensor(f)
    _syncThreadsLocal()
    return first


def one_thread_initialises_bins(f):
    _localThreads(16)
    bins = _local(_intArray(4))
    with _if(_localColumn == 0):
        with _for(4) as k:
            bins[k] = 0
    _syncThreadsLocal()
    _atomic_inc(_pointerTo(bins[_convert_int(_readTensor(f)) % 4]))
    _syncThreadsLocal()
    return bins[_column % 4] * 1.0


def all_load_what_is_there(f):
    """A table of five, which the five threads of the last group can load."""
    _localThreads(16)
    table = _local(_floatArray(5))
    with _if(_localColumn < 5):
        table[_localColumn] = _localColumn * 2.0
    _syncThreadsLocal()
    return table[_convert_int(_readTensor(f)) % 5]


def own_elements(f):
    tile = _local(_floatArray(_localColumns))
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    return tile[_localColumn]


def mirrored_in_what_is_there(f):
    _localThreads(16)
    tile, last = _local(_floatArray(16)), _min(15, _columns - 1 - _groupColumn * 16)
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    return tile[last - _localColumn]


def shifted_among_what_is_there(f):
    _localThreads(16)
    tile = _local(_floatArray(16))
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    at = _convert_int(_readTensor(f))
    return tile[(at & 15) >> 2] + tile[(at & 1) << 2] + tile[(at & 1) | 2] + tile[(at & 1) ^ 3]


def computed_among_what_is_there(f):
    """By remainders, masks, and the nearest of what there is."""
    _localThreads(16)
    tile = _local(_floatArray(16))
    left = _min(16, _columns - _groupColumn * 16)
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    at = _convert_int(_readTensor(f))
    return (
        tile[(at & 1023) % left] + tile[at & 3] + tile[_clamp(at - 20, 0, left - 1)] + tile[_where(at > 3, left - 1, 2)]
    )


def computed_under_a_condition(f):
    _localThreads(16)
    tile = _local(_floatArray(16))
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    at, total = _convert_int(_readTensor(f)) % 16, _var(0.0)
    with _if(at + _groupColumn * 16 < _columns):
        total += tile[at]
    return total


def chosen_away(f):
    """A read of a place that is not there, and of no use: devices do not mind, and checked execution would say so."""
    _localThreads(16)
    tile = _local(_floatArray(16))
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    after = tile[(_localColumn + 1) % 16] * 2
    return _where(_column + 1 < _columns, after, 0.0) + _where(
        _localColumn == 0, tile[0], tile[_max(_localColumn - 1, 0)]
    )


LEGAL = [
    computed_among_what_is_there, shifted_among_what_is_there, computed_under_a_condition,
    guarded_tree, guarded_by_a_break, one_thread_writes, one_thread_initialises_bins, all_load_what_is_there, own_elements,
    mirrored_in_what_is_there,
]  # fmt: skip


def test_what_is_not_chosen_is_not_used() -> None:
    with gp.use_device("reference"):
        actual = gp.operator(chosen_away)(LINE).numpy()
    line = np.arange(37, dtype="f")
    last = np.arange(37) % 16 == 15
    after = np.where(last, line - 15, line + 1) * 2
    after[-1] = 0
    assert np.array_equal(actual, after + np.where(np.arange(37) % 16 == 0, line, line - 1))


@pytest.mark.parametrize("body", LEGAL)
def test_legal_programs_stay(body: Callable[..., Any]) -> None:
    """Checked execution finds nothing either, and lets threads that do not matter run."""
    with gp.use_device("reference", checked=True):
        gp.operator(body)(LINE).numpy()


# --- against checked execution --------------------------------------------------------------------------------------------


def tile_program(seed: int) -> Callable[..., Any]:
    """A tile that is loaded, updated and read at random shifts, under random guards."""
    rng = np.random.default_rng(seed)
    size, halo = int(rng.integers(2, 7)), int(rng.integers(0, 3))
    shift, read = int(rng.integers(0, halo + 1)), rng.integers(0, halo + 1, 2).tolist()
    guard = rng.choice(["none", "grid", "group", "strided"])

    def body(f):
        _localThreads(size)
        tile = _local(_floatArray(size + halo))
        if guard == "strided":
            with _for(_localColumn, size + halo, _localColumns) as k:
                tile[k] = _readTensor(f, _column + k)
        else:
            with _if(_localColumn == 0):
                for k in range(size + halo if guard == "group" else 0):
                    tile[k] = 0
            _syncThreadsLocal()
            tile[_localColumn + shift] = _readTensor(f)
        _syncThreadsLocal()
        total = _var(0.0)
        for k in read:
            with _if(_column + (k if guard == "grid" else 0) < _columns):
                total += tile[_localColumn + k]
        return total

    return body


def test_recording_finds_what_execution_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of programs that are right in whole groups, just those are refused that read what nobody wrote."""
    field = gp.ScalarField(np.arange(11, dtype="f"))
    plain = _localThreads

    def outcome(body: Callable[..., Any], check: Callable[..., Any], whole: bool) -> str:
        monkeypatch.setattr(finish, "check_tiles", check)
        monkeypatch.setitem(globals(), "_localThreads", lambda *shape: plain(*shape, whole_groups=whole))
        try:
            with gp.use_device("reference", checked=True):
                gp.operator(body)(field).numpy()
        except gp.SemanticError as error:
            return error.message
        return ""

    counts = Counter[bool]()
    for seed in seeds(0, 60):
        body = tile_program(seed)
        if not outcome(body, check_tiles, True):
            refused = "only threads beyond the grid would write it" in outcome(body, check_tiles, False)
            result = outcome(body, lambda kernel: None, False)
            assert refused == ("which no thread of its work-group has written" in result), (seed, result)
            counts[refused] += 1
    assert min(counts[True], counts[False]) > len(seeds(0, 60)) / 20, counts
