"""Collective operations of work-groups. Expected values are NumPy's; floats have one order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.conftest import is_driver
from tests.nightly import left_to_nightly

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(29)
SIZES = (1, 2, 5, 13, 20, 32, 33, 100, 256, 777, 1024)  # all up to 1024 were tried
ON_DRIVERS = (20, 777)
ON_INTERPRETERS = (5, 32, 33, 777)  # of what the passes make
Combine = Callable[[Any, Any], Any]


def ordered(values: Sequence[Any], size: int, combine: Combine) -> Any:
    """The reduction of a part of so many threads, of which some may be missing at its end."""

    def step(values: Sequence[Any], reach: int, count: int) -> list[Any]:
        results = []
        for first in range(min(reach, len(values))):
            items = list(values[first : first + reach * count : reach])
            while len(items) > 1:
                pairs = [combine(*items[k : k + 2]) for k in range(0, len(items) - 1, 2)]
                items = pairs + items[2 * len(pairs) :]
            results.append(items[0])
        return results

    if size > 32:
        values = step(values, 32, -(-size // 32))
    reach = min(32, 1 << (size - 1).bit_length())
    while reach > 1:
        count = min(4, reach)
        reach //= count
        values = step(values, reach, count)
    return values[0]


def scanned(values: Sequence[Any], combine: Combine) -> list[Any]:
    """The scan of a part: of 32 in a row at distances that double; then second halves of blocks take the last of the first."""
    results, half = list(values), 32
    for distance in (1, 2, 4, 8, 16):
        results = [combine(results[k - distance], x) if k % 32 >= distance else x for k, x in enumerate(results)]
    while half < len(results):
        results = [combine(results[(k & -half) - 1], x) if k & half else x for k, x in enumerate(results)]
        half *= 2
    return results


def add(a: Any, b: Any) -> Any:
    return a + b


def by_groups(values: Any, size: int, f: Callable[[Any], Any]) -> Any:
    """The results of a function for each work-group of a row of threads."""
    return np.concatenate([f(values[k : k + size]) for k in range(0, len(values), size)])


def total(group: Any) -> Any:
    return np.full(len(group), ordered(group, max(len(group), 1), add), group.dtype)


@pytest.mark.parametrize("size", SIZES)
def test_every_size(device: str, size: int) -> None:
    """Groups of any size, of which the last one lacks threads; floats have the bits of one order everywhere."""
    if device != "reference" and size not in (ON_DRIVERS if is_driver(device) else ON_INTERPRETERS):
        left_to_nightly("a few sizes will do where each is lowered and compiled")
    x = rng.normal(size=2 * size + max(size // 3, 1)).astype(np.float32)
    kind, flags = gp.FieldType(x.shape, (), "float32"), gp.FieldType(x.shape, (), "int32")

    @gp.operator(outputs=(kind, kind, kind, kind, kind, flags))
    def together(f):
        _localThreads(size)
        x = _readTensor(f)
        _writeTensor(_out0, _reduceGroup(x, "add"))
        _writeTensor(_out1, _scanGroup(x, "add"))
        _writeTensor(_out2, _scanGroup(x, "add", inclusive=False))
        _writeTensor(_out3, _selectGroup(x, size // 3))
        _writeTensor(_out4, _shuffleGroupUp(x, 3) + _broadcastGroup(x, 4))
        _writeTensor(_out5, _countGroup(x > 0) + 10000 * _anyGroup(x > 3) + 20000 * _allGroup(x > -1))

    def shuffled(group: Any) -> Any:
        at = np.arange(len(group))
        return group[np.where(at >= 3, at - 3, at)] + group[min(4, len(group) - 1)]

    def votes(group: Any) -> Any:
        n = (group > 0).sum() + 10000 * (group > 3).any() + 20000 * (group > -1).all()
        return np.full(len(group), n, np.int32)

    expected = (
        by_groups(x, size, lambda g: np.full(len(g), ordered(g, size, add))),
        by_groups(x, size, lambda g: scanned(g, add)),
        by_groups(x, size, lambda g: [np.float32(0), *scanned(g, add)[:-1]]),
        by_groups(x, size, lambda g: np.full(len(g), np.sort(g)[min(size // 3, len(g) - 1)])),
        by_groups(x, size, shuffled),
        by_groups(x, size, votes),
    )
    all_same(together(gp.ScalarField(x)), expected)


# --- operations, types, parts -----------------------------------------------------------------------------------------

FLOATS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "fmin": np.fmin, "fmax": np.fmax}
INTEGERS = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
GROUP = (5, 12)
OVER = (None, "column", "row", 12, 4, 15, 30)  # how the threads of a group are taken together; 15 cuts rows


def parts(shape: tuple[int, int], group: tuple[int, int], over: str | int | None) -> list[Any]:
    """The places in a grid, in row-major order, of the threads of each part of each group, which the grid has."""
    row, column = np.indices(shape)
    local_row, local_column = row % group[0], column % group[1]
    groups = row // group[0] * -(-shape[1] // group[1]) + column // group[1]
    place = local_row * group[1] + local_column
    size = over if isinstance(over, int) else group[0] * group[1]
    which = {"column": local_row, "row": local_column}.get(str(over), place // size)
    key = (groups * 1000 + which).ravel()
    return [np.flatnonzero(key == k) for k in np.unique(key)]


def reduced(x: Any, ufunc: Any, over: str | int | None, group: tuple[int, int] = GROUP) -> Any:
    out = np.empty_like(x)
    for part in parts(x.shape, group, over):
        out.ravel()[part] = ufunc.reduce(x.ravel()[part], dtype=x.dtype)
    return out


def numbers(dtype: str, shape: tuple[int, ...]) -> Any:
    """Of which sums and products are exact, or wrap."""
    kind = np.dtype(dtype)
    if kind.kind != "f":
        return rng.integers(0, 2**64, shape, np.uint64).astype(kind)
    return np.where(rng.random(shape) < 0.1, np.ldexp(1.0, rng.integers(-1, 2, shape)), 1.0).astype(kind)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_and_types(device: str, dtype: str) -> None:
    """Each operation over parts of one kind, in groups of a grid that lacks rows and columns of the last ones."""
    if is_driver(device) and dtype not in ("int8", "uint64", "float16", "float32"):
        left_to_nightly("drivers get a few types, as each is compiled")
    operations = FLOATS if np.dtype(dtype).kind == "f" else INTEGERS
    x = numbers(dtype, (13, 40))
    with_nan = np.where(rng.random(x.shape) < 0.02, np.nan, x).astype(dtype) if operations is FLOATS else x
    types = tuple(gp.FieldType(x.shape, (), dtype) for _ in operations)

    @gp.operator(outputs=types)
    def together(f, g):
        _localThreads(*GROUP)
        x, y = _readTensor(f), _readTensor(g)
        outputs = (_out0, _out1, _out2, _out3, _out4, _out5, _out6)
        for out, name, over in zip(outputs, operations, OVER, strict=False):
            _writeTensor(out, _reduceGroup(x if name in ("add", "mul") else y, name, over=over))

    expected = [
        reduced(x if name in ("add", "mul") else with_nan, ufunc, over)
        for (name, ufunc), over in zip(operations.items(), OVER, strict=False)
    ]
    all_same(together(gp.ScalarField(x), gp.ScalarField(with_nan)), expected, list(operations))


@pytest.mark.parametrize("group", [(8, 8), (3, 7), (1, 64), (64, 1)])
def test_parts(device: str, group: tuple[int, int]) -> None:
    """Sums and places in parts of every kind, in grids of 2 dimensions."""
    threads = group[0] * group[1]
    over = [None, "column", "row", *(n for n in (1, 2, 7, 8, 16, 32) if threads % n == 0)]
    if is_driver(device):  # whose compilers take a while for each
        over = over[1::3]
    x = rng.integers(-1000, 1000, (19, 70)).astype(np.int32)
    types = tuple(gp.FieldType(x.shape, (), "int32") for _ in over)

    @gp.operator(outputs=types)
    def together(f):
        _localThreads(*group)
        x = _readTensor(f)
        outputs = (_out0, _out1, _out2, _out3, _out4, _out5, _out6, _out7, _out8)
        for out, part in zip(outputs, over, strict=False):
            before = _scanGroup(x, "add", inclusive=False, over=part)
            _writeTensor(out, before + 7 * _reduceGroup(x, "add", over=part))

    def placed(over: str | int | None) -> Any:
        out = np.empty_like(x)
        for part in parts(x.shape, group, over):
            values = x.ravel()[part]
            out.ravel()[part] = np.cumsum(values) - values + 7 * values.sum()
        return out

    all_same(together(gp.ScalarField(x)), [placed(part) for part in over])


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ((8, 8), np.int32([0, 0, 1, 2, -8, -(2**31)])),
        ((3, 7), np.uint32([0, 0, 2**31, 64])),
        ((2, 32), np.int64([0, 0, 2**40])),
        ((2, 16), np.float32([0, -0.0, 0.25, np.nan])),
    ],
)
def test_ballots(device: str, group: tuple[int, int], values: Any) -> None:
    """A bit for each thread of a part whose number is not 0; those that the grid has not have none."""
    over = [n for n in ("column", "row", 2, 7, 8, 16, 32) if isinstance(n, str) or group[0] * group[1] % n == 0]
    if is_driver(device):
        over = over[::2]
    x = rng.choice(values, (19, 70))
    types = tuple(gp.FieldType(x.shape, (), "uint32") for _ in over)

    @gp.operator(outputs=types)
    def together(f):
        _localThreads(*group)
        outputs = (_out0, _out1, _out2, _out3, _out4, _out5, _out6)
        for out, part in zip(outputs, over, strict=False):
            _writeTensor(out, _ballotGroup(_readTensor(f), over=part))

    def voted(over: str | int) -> Any:
        out = np.empty(x.shape, np.uint32)
        for part in parts(x.shape, group, over):
            out.ravel()[part] = sum(int(vote != 0) << n for n, vote in enumerate(x.ravel()[part]))
        return out

    all_same(together(gp.ScalarField(x)), [voted(part) for part in over])


def test_layers(device: str) -> None:
    x = rng.integers(0, 100, (5, 6, 7)).astype(np.int32)

    @gp.operator(outputs=lambda f: (f.type, f.type, f.type))
    def together(f):
        _localThreads(2, 3, 4)
        x = _readTensor(f)
        _writeTensor(_out0, _reduceGroup(x, "add"))
        _writeTensor(_out1, _reduceGroup(x, "add", over="layer"))
        _writeTensor(_out2, _scanGroup(x, "add", over=6))

    layer, row, column = np.indices(x.shape)
    groups = layer // 2 * 100 + row // 3 * 10 + column // 4
    place = (layer % 2 * 3 + row % 3) * 4 + column % 4
    whole, layers, six = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    for key, out in ((groups, whole), (groups * 100 + place % 12, layers), (groups * 100 + place // 6, six)):
        for k in np.unique(key):
            out[key == k] = np.cumsum(x[key == k]) if out is six else x[key == k].sum()
    all_same(together(gp.ScalarField(x)), (whole, layers, six))


def test_functions_of_two_values(device: str) -> None:
    """Functions need not be commutative in scans: maps x -> a x + b one after another."""
    a, b = rng.choice([-1, 1, 1, 2], 130).astype(np.int32), rng.integers(-5, 6, 130).astype(np.int32)

    def after(p: Any, q: Any) -> Any:
        return _int2(p.x * q.x, p.y * q.x + q.y)

    @gp.operator(
        outputs=(gp.FieldType(130, 2, "int32"), gp.FieldType(130, (), "int32"), gp.FieldType(130, (), "int32"))
    )
    def together(f, g):
        _localThreads(50)
        step = _int2(_readTensor(f), _readTensor(g))
        _writeTensor(_out0, _scanGroup(step, after, inclusive=False, identity=_int2(1, 0)))
        _writeTensor(_out1, _reduceGroup(_readTensor(g), lambda x, y: _where(abs(x) >= abs(y), x, y)))
        _writeTensor(_out2, _reduceGroup(_readTensor(g), "add", broadcast=False))

    steps, largest, sums = np.zeros((130, 2), np.int32), np.zeros(130, np.int32), b.copy()
    for first in range(0, 130, 50):
        p, q = 1, 0
        for k in range(first, min(first + 50, 130)):
            steps[k] = p, q
            p, q = (np.array([p * a[k], q * a[k] + b[k]])).astype(np.int32)
        group = b[first : first + 50]
        largest[first : first + 50] = np.abs(group).max()
        sums[first] = group.sum()
    result = together(gp.ScalarField(a), gp.ScalarField(b))
    same(result[0], steps)
    np.testing.assert_array_equal(np.abs(result[1].numpy()), largest)
    same(result[2], sums)


def test_truth_values(device: str) -> None:
    x = rng.integers(0, 3, 90).astype(np.int32)
    kinds = tuple(gp.FieldType(90, (), dtype) for dtype in ("bool", "bool", "int32", "bool", "bool"))

    @gp.operator(outputs=kinds)
    def together(f):
        _localThreads(30)
        odd = _readTensor(f) == 1
        _writeTensor(_out0, _reduceGroup(odd, "xor"))
        _writeTensor(_out1, _scanGroup(odd, "max", inclusive=False))
        _writeTensor(_out2, _scanGroup(odd, "add"))
        _writeTensor(_out3, _shuffleGroupDown(odd, 2))
        _writeTensor(_out4, _scanGroup(odd, "and", inclusive=False))

    odd = (x == 1).reshape(3, 30)
    before = np.logical_or.accumulate(odd, axis=1)
    all_before = np.logical_and.accumulate(odd, axis=1)
    expected = (
        np.repeat(odd.sum(1) % 2 == 1, 30),
        np.concatenate([np.zeros((3, 1), bool), before[:, :-1]], axis=1).ravel(),
        np.cumsum(odd, axis=1).astype(np.int32).ravel(),
        np.concatenate([odd[:, 2:], odd[:, 28:]], axis=1).ravel(),
        np.concatenate([np.ones((3, 1), bool), all_before[:, :-1]], axis=1).ravel(),
    )
    all_same(together(gp.ScalarField(x)), expected)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_selection(device: str, dtype: str) -> None:
    """NaN comes last, values that are equal count each, and a place that there is not is the nearest."""
    x = rng.integers(0, 20, (6, 33)).astype(dtype)
    if dtype == "float32":
        x[rng.random(x.shape) < 0.2] = np.nan

    @gp.operator(outputs=lambda f: (f.type, f.type))
    def together(f):
        _localThreads(2, 40)
        _writeTensor(_out0, _selectGroup(_readTensor(f), 16, over="column"))
        _writeTensor(_out1, _selectGroup(_readTensor(f), 1000))

    middle = np.repeat(np.sort(x, axis=1)[:, 16:17], 33, axis=1)
    last = np.repeat(np.sort(x.reshape(3, 66), axis=1)[:, -1], 66).reshape(6, 33)
    all_same(together(gp.ScalarField(x)), (middle, last))


def test_shuffles(device: str) -> None:
    """In parts that a warp has, and that it has not; of a number that there is not, the thread's own value."""
    x = rng.normal(size=(3, 100)).astype(np.float16)
    at = rng.integers(-3, 40, (3, 100)).astype(np.int32)
    over = (8, 25)
    types = tuple(gp.FieldType((3, 100), (), "float16") for _ in range(8))

    @gp.operator(outputs=types)
    def together(f, g):
        _localThreads(200)
        x, at = _readTensor(f), _readTensor(g)
        outputs = iter((_out0, _out1, _out2, _out3, _out4, _out5, _out6, _out7))
        for part in over:
            _writeTensor(next(outputs), _shuffleGroup(x, at, over=part))
            _writeTensor(next(outputs), _shuffleGroupUp(x, 2, over=part))
            _writeTensor(next(outputs), _shuffleGroupDown(x, at, over=part))
            _writeTensor(next(outputs), _shuffleGroupXor(x, 3, over=part))

    column = np.arange(100)
    expected = []
    for part in over:
        own, have = column % part, np.minimum(part, 100 - column // part * part)
        for sources in (at, own - 2 + 0 * at, own + at, (own ^ 3) + 0 * at):
            there = (sources >= 0) & (sources < have)
            source = np.where(there, column - own + sources, column)
            expected.append(np.take_along_axis(x, source, axis=1))
    all_same(together(gp.ScalarField(x), gp.ScalarField(at)), expected)


# --- where they stand -------------------------------------------------------------------------------------------------


def test_in_loops_and_conditions(device: str) -> None:
    """Results of whole groups decide about what all threads do next; memory is used again from turn to turn."""
    x = rng.integers(1, 9, 100).astype(np.int32)

    @gp.operator
    def together(f):
        _localThreads(32)
        left = _var(_readTensor(f))
        turns = _intVar()
        with _while(_anyGroup(left > 0)):
            left -= 1
            turns += 1
            with _if(_countGroup(left > 0) > 16):
                most = _reduceGroup(left, "max")
                with _if(left == most):
                    left -= 1
        return turns * 100 + _reduceGroup(turns, "max") + left

    expected = []
    for first in range(0, 100, 32):
        left, turns = x[first : first + 32].copy(), 0
        while (left > 0).any():
            left -= 1
            turns += 1
            if (left > 0).sum() > 16:
                left[left == left.max()] -= 1
        expected.append(turns * 101 + left)
    same(together(gp.ScalarField(x)), np.concatenate(expected).astype(np.int32))


def test_whole_groups(device: str) -> None:
    """Tail threads that run are left out all the same."""
    x = rng.integers(1, 100, (9, 21)).astype(np.int32)

    @gp.operator(outputs=lambda f: (f.type, f.type, f.type, f.type))
    def together(f):
        _localThreads(4, 8, whole_groups=True)
        x = _readTensor(f)
        _writeTensor(_out0, _reduceGroup(x, "add"))
        _writeTensor(_out1, _reduceGroup(x, "add", over="column"))
        _writeTensor(_out2, _selectGroup(x, 1))
        _writeTensor(_out3, _scanGroup(x, "add", over=16))

    second, scan = np.empty_like(x), np.empty_like(x)
    for part in parts(x.shape, (4, 8), None):
        second.ravel()[part] = np.sort(x.ravel()[part])[min(1, len(part) - 1)]
    for part in parts(x.shape, (4, 8), 16):
        scan.ravel()[part] = np.cumsum(x.ravel()[part])
    expected = (reduced(x, np.add, None, (4, 8)), reduced(x, np.add, "column", (4, 8)), second, scan)
    all_same(together(gp.ScalarField(x)), expected)


def test_sizes_that_the_target_decides(device: str) -> None:
    x = rng.integers(0, 50, 256).astype(np.int32)

    @gp.operator(outputs=lambda f: (f.type, f.type))
    def together(f):
        _localThreads(_target.choose({"opencl": 32, "cuda": 64}, 16))
        width = _target.choose({"opencl": 8, "cuda": 16}, 4)
        _writeTensor(_out0, _reduceGroup(_readTensor(f), "add"))
        _writeTensor(_out1, _reduceGroup(_readTensor(f), "max", over=width))

    group, width = (
        (32, 8) if device.startswith("opencl") else (64, 16) if device.startswith(("cuda", "sm_")) else (16, 4)
    )
    sums = np.repeat(x.reshape(-1, group).sum(1), group).astype(np.int32)
    all_same(together(gp.ScalarField(x)), (sums, np.repeat(x.reshape(-1, width).max(1), width)))


def test_fused(device: str) -> None:
    """Operators before and after are in one kernel with it, and so are two that need nothing of one another."""
    x = rng.integers(1, 100, 200).astype(np.int32)

    @gp.operator
    def share(f):
        _localThreads(64)
        return _readTensor(f) * 1000 / _reduceGroup(_readTensor(f), "add")

    @gp.operator
    def place(f):
        _localThreads(64)
        return _scanGroup(_readTensor(f), "max")

    with gp.ComputeGraph() as graph:
        f = gp.ScalarField(x)
        graph.probe(share(f * 2 + 1) + place(3 - f), "made")
    graph.reset()
    assert graph.kernel_count == 1
    y = 2 * x + 1
    shares = by_groups(y, 64, lambda g: g * 1000 // g.sum())
    same(graph.read("made"), (shares + by_groups(3 - x, 64, np.maximum.accumulate)).astype(np.int32))


def test_rows_of_threads_are_lanes() -> None:
    """On CPUs a thread runs a row of threads that reduce what they have read, as it does those of fields' reductions."""
    f = gp.FieldType((64, 4096))

    @gp.operator(outputs=gp.FieldType(64))
    def sums(f):
        _globalThreads(64, 32)
        _localThreads(8, 32)
        total = _var(0.0)
        with _for(128) as i:
            total += _readTensor(f, _row, _localColumn + i * 32, border="unchecked")
        total @= _reduceGroup(total, "add", over="column")
        with _if(_localColumn == 0):
            _writeTensor(_out0, total, _row)

    text = sums.source(f, target="opencl:cpu")
    assert "the 32 threads of a row of a work-group, in vectors of 16" in text
    assert "barrier" not in text


def test_median_of_non_zeros(device: str) -> None:
    """Values that are left out go behind all others, and counts tell the place of the middle."""
    x = np.where(rng.random((6, 41)) < 0.4, 0, rng.integers(-50, 50, (6, 41))).astype(np.float32)
    x[3] = 0

    @gp.operator(outputs=gp.FieldType(6))
    def medians(f):
        _globalThreads(f)
        _localThreads(2, 41)
        x = _readTensor(f)
        count = _countGroup(x, over="column")
        kept = _where(x != 0, x, np.inf)
        low = _selectGroup(kept, (count - 1) / 2, over="column")
        high = _selectGroup(kept, count / 2, over="column")
        with _if(_column == 0):
            _writeTensor(_out0, _where(count > 0, (low + high) / 2, 0), _row)

    expected = [np.median(row[row != 0]) if row.any() else 0 for row in x]
    same(medians(gp.ScalarField(x)), np.float32(expected))
