"""`_window`: loops over constant arrays around each point; borders that differ between axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.dsl import *
from tests.borders import MODES

from .compare import all_same, same

rng = np.random.default_rng(8)


@gp.operator
def correlated(f, weights, centre=None, border="symmetric"):
    total = _var(0.0)
    with _window(weights, centre=centre) as (offset, weight):
        total += weight * _readTensor(f, offset=offset, border=border)
    return total


@pytest.mark.parametrize(
    ("shape", "window", "centre"),
    [((23,), (4,), (0,)), ((9, 11), (3, 5), None), ((8, 9), (17, 16), (2, 15)), ((3, 2, 4, 5), (2, 1, 2, 3), None)],
    ids=str,
)
def test_correlation(device: str, shape: Any, window: Any, centre: Any) -> None:
    """Of whole numbers, so that sums are exact: small arrays are written out, the large one is a table."""
    values, weights = (rng.integers(-5, 6, s).astype("float32") for s in (shape, window))
    origin = [c - n // 2 for c, n in zip(centre, window, strict=True)] if centre else 0
    want = scipy.ndimage.correlate(values, weights, mode="reflect", origin=origin)
    same(correlated(gp.Field(values, 0), weights, centre), want)


def test_small_windows_are_written_out() -> None:
    """The text is that of the taps by hand, without a table; a large one is a loop over a table."""
    weights = np.float32([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16

    @gp.operator(name="correlated")
    def by_hand(f):
        total = _var(0.0)
        for (r, c), weight in np.ndenumerate(weights):
            total += float(weight) * _readTensor(f, offset=(r - 1, c - 1), border="symmetric")
        return total

    kind = gp.FieldType((200, 300))
    for target in ("opencl", "opencl:cpu", "cuda"):
        assert correlated.source(kind, weights, target=target) == by_hand.source(kind, target=target)
    large = correlated.source(kind, np.ones((17, 17)), target="opencl")
    assert "table[" in large and large.count("for (") == 2


def test_footprints_and_early_ends(device: str) -> None:
    """Arrays of bools and integers, nested lists, conditions on elements, and `_break` and `_continue`."""
    values = rng.integers(0, 200, (7, 9)).astype("uint8")
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)

    @gp.operator
    def around(f):
        most, first, count = _var(_lowest(f)), _ucharVar(), _var(0)
        with _window(cross) as (offset, holds):
            with _if(holds):
                most @= _max(most, _readTensor(f, offset=offset, border=0))
        with _window([[1, 2, 3], [4, 5, 6]], unroll=False) as (offset, number):
            with _if(number == 2):
                _continue()
            with _if(_readTensor(f, offset=offset, border=200) < 100):
                first @= number
                _break()
            count += 1
        return most, first, count

    padded = np.pad(values, 1, constant_values=200)
    want = np.zeros((2, *values.shape), int)
    for r, c in np.ndindex(values.shape):
        for k, (i, j) in enumerate(np.ndindex(2, 3), 1):
            if k == 2:
                continue
            if padded[r + i, c + j] < 100:
                want[0, r, c] = k
                break
            want[1, r, c] += 1
    most = scipy.ndimage.grey_dilation(values, footprint=cross, mode="constant")
    all_same(around(gp.ScalarField(values)), [most, want[0].astype("uint8"), want[1].astype("int32")])


# --- borders that differ between axes -----------------------------------------------------------------------------------

OFFSETS = ((-3, 2), (3, -9), (0, 3), (2, 0))


@pytest.mark.parametrize(
    "borders", [("clamp", "wrap"), ("symmetric", "reflect"), ("wrap", 5.0), (5.0, "reflect"), ("zero", 0)], ids=str
)
def test_a_border_for_each_axis(device: str, borders: Any) -> None:
    """As numpy.pad pads axis after axis; a number is what lies outside of what the other axis brings inside."""
    values, reach = rng.random((4, 12), np.float32), 9
    padded = values
    for axis in sorted(range(2), key=lambda k: not isinstance(borders[k], str)):
        widths = [(reach, reach) if k == axis else (0, 0) for k in range(2)]
        number = 0 if borders[axis] == "zero" else borders[axis]
        how = {"mode": MODES[number][0]} if isinstance(number, str) else {"constant_values": number}
        padded = np.pad(padded, widths, **how)

    @gp.operator
    def read(f):
        return tuple(_readTensor(f, offset=offset, border=borders) for offset in OFFSETS)

    want = [padded[reach + r : reach + r + 4, reach + c : reach + c + 12] for r, c in OFFSETS]
    all_same(read(gp.ScalarField(values)), want)


def test_borders_of_elements_samples_and_4d(device: str) -> None:
    values = rng.integers(0, 50, (2, 3, 2, 4)).astype("float32")
    field, tensors = gp.Field(values, 0), gp.VectorField(values)

    @gp.operator(outputs=field.type)
    def moved(f):
        _writeTensor(_out0, _readTensor(f, offset=(1, -1, 1, 2), border=("wrap", "clamp", "clamp", 7)))

    at = np.ix_((np.arange(2) + 1) % 2, np.maximum(np.arange(3) - 1, 0), np.minimum(np.arange(2) + 1, 1), np.arange(4))
    want = np.full_like(values, 7)
    want[..., :2] = values[at][..., 2:]
    same(moved(field), want)
    corner = gp.operator(lambda f: _readTensorElement(f, 3, offset=(1, 1, -1), border=("wrap", 9, "clamp")))
    rolled = np.full(values.shape[:3], 9, "float32")
    rolled[:, :2] = values[np.ix_([1, 0], [1, 2], [0, 0], [3])][..., 0]
    same(corner(tensors), rolled)
    image = values[0, 0]
    halfway = gp.operator(lambda f: _sampleTensor(f, offset=(0.5, 0.5), border=("wrap", "clamp")))
    padded = np.pad(np.pad(image, ((0, 1), (0, 0)), mode="wrap"), ((0, 0), (0, 1)), mode="edge")
    same(halfway(gp.ScalarField(image)), (padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4)
