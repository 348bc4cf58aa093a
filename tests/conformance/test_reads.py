"""Reads outside the grid as numpy.pad has it, computed coordinates, scattered writes, defaults, many inputs and outputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.borders import MODES

from .compare import all_same, compute, same

rng = np.random.default_rng(13)
PADS: tuple[tuple[Any, dict[str, Any]], ...] = (
    *((rule, {"mode": pad}) for rule, (pad, _) in MODES.items()),
    (7.5, {"mode": "constant", "constant_values": 7.5}),
)
FAR = 23  # a few periods of the small grids below


def floats(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def padded(a: Any, pad: int, axes: int, **how: Any) -> Any:
    return np.pad(a, [(pad, pad)] * axes + [(0, 0)] * (a.ndim - axes), **how)


@pytest.mark.parametrize("grid", [(1,), (2,), (7,), (1, 1), (3, 5), (4, 1), (2, 3, 4), (1, 5, 1)], ids=str)
def test_borders(device: str, grid: tuple[int, ...]) -> None:
    """All rules at once, far outside: computed coordinates, whose range the compiler does not know."""
    pad, n = FAR if len(grid) < 3 else 9, len(grid)
    a, larger = floats(*grid), tuple(k + 2 * (FAR if len(grid) < 3 else 9) for k in grid)

    def body(field, offset):
        moved = [i - _readTensor(offset) for i in (_layer, _row, _column)[3 - n :]]
        return tuple(_readTensor(field, *moved, border=rule) for rule, _ in PADS)

    types = (gp.FieldType(larger),) * len(PADS)
    results = gp.operator(outputs=types)(body)(gp.Field(a), gp.Field(np.int32(pad)))
    all_same(results, [padded(a, pad, n, **how) for _, how in PADS], [str(rule) for rule, _ in PADS])


@pytest.mark.parametrize("offset", [(0, 0, 0), (-1, 0, 1), (1, 2, -2), (5, -7, 40), (-30, 3, -4)], ids=str)
def test_borders_at_known_offsets(device: str, offset: tuple[int, int, int]) -> None:
    """`_row + 1` and the like, whose range the compiler does know, on grids of 1 to 3 dimensions."""
    reach = 40
    for grid in ((3, 4, 5), (4, 1), (6,)):
        a, steps = floats(*grid), offset[3 - len(grid) :]

        def body(field):
            place = [i + s for i, s in zip((_layer, _row, _column)[3 - len(steps) :], steps, strict=True)]  # noqa: B023
            return tuple(_readTensor(field, *place, border=rule) for rule, _ in PADS)

        cut = tuple(slice(reach + s, reach + s + k) for s, k in zip(steps, grid, strict=True))
        all_same(gp.operator(body)(gp.Field(a)), [padded(a, reach, len(grid), **how)[cut] for _, how in PADS])


def test_borders_of_other_types(device: str) -> None:
    """Fills of vectors, bools, unorm8 and integers; borders of element reads concern the grid alone."""
    vectors, bools = floats(4, 6, 3), rng.random((4, 6)) > 0.5
    bytes_, big = rng.integers(0, 256, (4, 6), np.uint8), floats(4, 6, 7)

    def body(v, b, u, i, t):
        at = (_row - 2, _column + 3)
        yield _readTensor(v, *at, border=2.5)
        yield _readTensor(b, *at, border=True)
        yield _readTensor(u, *at, border=1.0)
        yield _readTensor(i, *at, border=200)
        yield _readTensorElement(t, *at, 6, border="symmetric")

    fields = (
        gp.VectorField(vectors),
        gp.ScalarField(bools),
        gp.ScalarField(bytes_, "unorm8"),
        gp.ScalarField(bytes_),
        gp.VectorField(big),
    )
    actual = compute(lambda *f: tuple(body(*f)), *fields)
    cut = np.s_[2:6, 7:13]

    def fill(a: Any, value: Any) -> Any:
        return padded(a, 4, 2, mode="constant", constant_values=value)[cut]

    same(actual[0], fill(vectors, np.float32(2.5)))
    same(actual[1], fill(bools, True))
    np.testing.assert_allclose(actual[2], fill(bytes_ / np.float32(255), np.float32(1)), rtol=2e-7)
    same(actual[3], fill(bytes_, 200))
    same(actual[4], padded(big, 4, 2, mode="symmetric")[cut][..., 6])


def test_gather(device: str) -> None:
    """Coordinates read from fields; of other integer types; unchecked ones that are inside."""
    a, i, j = floats(9, 8), rng.integers(0, 9, (5, 6)), rng.integers(0, 8, (5, 6))

    def body(field, rows, columns):
        r, c = _readTensor(rows), _readTensor(columns)
        return (
            _readTensor(field, r, c),
            _readTensor(field, r, c, border="unchecked"),
            _readTensor(field, 8 - r, c * 0 + 3),
        )

    fields = gp.ScalarField(a), gp.ScalarField(i.astype(np.int64)), gp.ScalarField(j.astype(np.uint8))
    types = (gp.FieldType((5, 6)),) * 3
    actual = gp.operator(outputs=types)(body)(*fields)
    all_same(actual, (a[i, j], a[i, j], a[8 - i, 3]))


def test_zero_dimensional_inputs(device: str) -> None:
    a, v, p = floats(4, 5), floats(3), gp.Parameter(2.5)

    def body(field, scalar, vector):
        x = _readTensor(field)
        return (
            x * scalar + p,
            x * _readTensor(scalar),
            x * _readTensor(vector),
            _readTensorElement(vector, 2) + x,
            _readTensor(3) + x,
        )

    s = np.float32(1.5)
    actual = compute(body, gp.ScalarField(a), gp.Field(s), gp.VectorField(v))
    for result, want in zip(actual, (a * s + np.float32(2.5), a * s, a[..., None] * v, v[2] + a, 3 + a), strict=True):
        same(result, want)


def test_scatter(device: str) -> None:
    """Writes at explicit points: what falls outside is dropped, what nobody writes holds the default."""
    a = floats(6, 7)
    kind = gp.FieldType((6, 7))

    def body(field):
        x = _readTensor(field)
        _writeTensor(_out0, x, _row + 2, _column - 3)
        _writeTensor(_out1, x, 5 - _row, 6 - _column)
        _writeTensor(_out2, x, _row * 2, _column * 1000000)

    actual = gp.operator(outputs=(kind, kind, kind), default=(0, None, -1))(body)(gp.ScalarField(a))
    moved, sparse = np.zeros_like(a), np.full_like(a, -1)
    moved[2:, :4] = a[:4, 3:]
    sparse[::2, 0] = a[:3, 0]
    all_same(actual, (moved, a[::-1, ::-1], sparse))


def test_scattered_elements(device: str) -> None:
    a = floats(5, 3)
    kinds = gp.FieldType(5, 3), gp.FieldType(5, 6)

    def body(field):
        with _for(-1, 8) as k:
            _writeTensorElement(_out0, _readTensorElement(field, 2) + k, k)
            _writeTensorElement(_out1, k, _column + 1, k)

    actual = gp.operator(outputs=kinds, default=9)(body)(gp.VectorField(a))
    second = np.full((5, 6), 9, np.float32)
    second[1:] = np.arange(6)
    all_same(actual, (a[:, 2:] + np.arange(3, dtype=np.float32), second))


def test_last_write_wins(device: str) -> None:
    a = floats(4, 8)
    kind = gp.FieldType((4, 8))

    def body(field):
        x = _readTensor(field)
        _writeTensor(_out0, x)
        _writeTensor(_out0, x + 1)
        _writeTensor(_out1, x)
        with _if(x > 0):
            _writeTensor(_out1, -x)
        _writeTensor(_out2, x, _row, 7 - _column)
        _writeTensor(_out2, x * 2, _row, 7 - _column)
        with _if(x > 0):
            _writeTensor(_out3, x)

    actual = gp.operator(outputs=(kind,) * 4, default=(None, None, 0, 5))(body)(gp.ScalarField(a))
    all_same(actual, (a + 1, -np.abs(a), a[:, ::-1] * 2, np.where(a > 0, a, np.float32(5))))


def test_defaults_of_every_kind(device: str) -> None:
    types = [
        gp.FieldType(4, t, d) for t, d in (((), "int16"), (3, "float16"), (4, "unorm8"), ((), "bool"), (7, "float32"))
    ]

    def body():
        with _if(_column == 2):
            for out in (_out0, _out3):
                _writeTensor(out, 0)
            _writeTensor(_out1, _float3(1, 2, 3))
            _writeTensor(_out2, _float4(0, 0.5, 1, 2))
            _writeTensorElement(_out4, 1.5, 4)

    results = gp.operator(outputs=tuple(types), default=(-3, 0.5, 1, True, 0.25))(body)()
    expected = [
        np.full((4, *t), v, d)
        for t, v, d in (((), -3, "i2"), ((3,), 0.5, "f2"), ((4,), 255, "u1"), ((), True, "?"), ((7,), 0.25, "f4"))
    ]
    expected[0][2], expected[1][2], expected[2][2], expected[3][2], expected[4][2, 4] = (
        0,
        [1, 2, 3],
        [0, 128, 255, 255],
        False,
        1.5,
    )
    all_same(results, expected)


def test_ten_outputs_and_twenty_inputs(device: str) -> None:
    arrays = [floats(5, 6) for _ in range(20)]
    ten = gp.operator(lambda f: tuple(_readTensor(f) + k for k in range(10)))(gp.ScalarField(arrays[0]))
    all_same(ten, [arrays[0] + np.float32(k) for k in range(10)])

    def body(*fields):
        total = _floatVar()
        for k, field in enumerate(fields):
            total.assign(total + _readTensor(field) * (k + 1))
        return total

    total = np.zeros((5, 6), np.float32)
    for k, a in enumerate(arrays):
        total = total + a * np.float32(k + 1)
    same(compute(body, *map(gp.ScalarField, arrays)), total)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "uint64", "bool", "float32", "float16"])
def test_infinite_borders_are_the_ends_of_the_dtype(dtype: str) -> None:
    """So that what is outside counts in no maximum or minimum, of any dtype."""
    info = None if dtype == "bool" else np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    low, high = (info.min, info.max) if info else (False, True) if dtype == "bool" else (-np.inf, np.inf)
    a = (np.arange(6) % 2 if dtype == "bool" else np.array([3, 1, 4, 1, 5, 9])).astype(dtype)

    def ends(f):
        return [_readTensor(f, _column + k, border=b) for k, b in ((-1, -math.inf), (1, math.inf))]

    left, right = gp.operator(ends)(gp.ScalarField(a))
    same(left, np.array([low, *a[:-1]], dtype))
    same(right, np.array([*a[1:], high], dtype))
