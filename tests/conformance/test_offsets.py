"""Reads and writes so far from a thread's own point, of fields of any rank, and loops along several dimensions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same

rng = np.random.default_rng(3)


@gp.operator
def weighted(f, weights, border):
    """One body for all ranks: the sum of a window, in Python's loop."""
    total = 0.0
    for at in np.ndindex(weights.shape):
        offset = tuple(i - n // 2 for i, n in zip(at, weights.shape, strict=True))
        total = total + weights[at] * _readTensor(f, offset=offset, border=border)
    return total


@gp.operator
def looped(f, weights, border):
    """The same in loops of the device's."""
    table = _constantArray(weights.ravel())
    total = _var(0.0)
    with _for(weights.shape) as place:
        offset = [i - n // 2 for i, n in zip(place, weights.shape, strict=True)]
        total += table[_ravel(place, weights.shape)] * _readTensor(f, offset=offset, border=border)
    return total


@pytest.mark.parametrize(
    ("operator", "shape", "border", "mode"),
    [
        (weighted, (37,), "wrap", "grid-wrap"),
        (looped, (9, 14), "reflect", "mirror"),
        (weighted, (4, 1, 5), "symmetric", "reflect"),
        (looped, (3, 2, 4, 7), "clamp", "nearest"),
    ],
    ids=["1D", "2D", "3D", "4D"],
)
def test_windows_of_any_rank(device: str, operator: Any, shape: tuple[int, ...], border: str, mode: str) -> None:
    """Of small whole numbers, whose sums are exact."""
    values = rng.integers(-9, 9, shape).astype("float32")
    weights = rng.integers(-3, 4, (3, 2, 2, 2)[: len(shape)]).astype("float32")
    same(operator(gp.Field(values, 0), weights, border), scipy.ndimage.correlate(values, weights, mode=mode))


def test_offsets_are_seen_as_stencils() -> None:
    """As coordinates by hand are: the text is the same."""
    kind = gp.FieldType((40, 50))
    by_hand = gp.operator(lambda f: _readTensor(f, _row - 1, _column + 2) + _readTensor(f), name="moved")
    moved = gp.operator(lambda f: _readTensor(f, offset=(-1, 2)) + _readTensor(f, offset=[0, 0]), name="moved")
    for target in ("opencl", "opencl:cpu", "cuda"):
        assert moved.source(kind, target=target) == by_hand.source(kind, target=target)


def test_what_an_offset_may_be(device: str) -> None:
    """Values and vectors of the kernel's, beside elements and between points; fields that are longer than the threads are many."""
    values, vectors = rng.integers(0, 99, (8, 9)).astype("int32"), rng.random((8, 9, 5), np.float32)
    flow = rng.integers(-2, 3, (8, 9, 2)).astype("int32")
    line = rng.random(20).astype("float32")

    @gp.operator(outputs=(gp.FieldType((8, 9), dtype="int32"), gp.FieldType((8, 9)), gp.FieldType((8, 9))))
    def moved(f, v, flow):
        by = _readTensor(flow)
        turned = _readTensorElement(v, 3, offset=(by.y, _column % 2), border="wrap")
        between = _sampleTensor(f, offset=_convert_float2(by) * 0.25)
        return _readTensor(f, offset=by, border=-1), turned, between

    at = np.indices((8, 9))
    there = at + np.moveaxis(flow, -1, 0)
    inside = ((there >= 0) & (there < np.array([8, 9])[:, None, None])).all(0)
    clipped = np.clip(there, 0, np.array([7, 8])[:, None, None])
    actual = moved(gp.ScalarField(values), gp.VectorField(vectors), gp.VectorField(flow))
    same(actual[0], np.where(inside, values[tuple(clipped)], -1).astype("int32"))
    same(actual[1], vectors[(at[0] + flow[..., 1]) % 8, (at[1] + at[1] % 2) % 9, 3])
    quarter = np.clip(at + 0.25 * np.moveaxis(flow, -1, 0), 0, [[[7]], [[8]]])
    np.testing.assert_allclose(actual[2].numpy(), scipy.ndimage.map_coordinates(values * 1.0, quarter, order=1), 1e-6)
    differences = gp.operator(outputs=gp.FieldType(19))(lambda f: _readTensor(f, offset=1) - _readTensor(f, offset=0))
    same(differences(gp.ScalarField(line)), np.diff(line))


def test_offsets_of_named_dimensions(device: str) -> None:
    """An offset counts along the field's own dimensions, in their order."""
    image, turned = rng.random((5, 7), np.float32), rng.random((7, 5), np.float32)
    f, g = gp.ScalarField(image, dims="y:x"), gp.ScalarField(turned, dims="x:y")
    actual = gp.operator(lambda f, g: _readTensor(f, offset=(1, 0)) + _readTensor(g, offset=(-2, 0)))(f, g)
    moved = turned[np.clip(np.arange(7) - 2, 0, 6)].T
    same(actual, image[np.clip(np.arange(5) + 1, 0, 4)] + moved)


def moved(values: Any, *by: int) -> Any:
    """The values so much further along the first axes, among zeros."""
    out = np.zeros_like(values)
    there = tuple(slice(max(n, 0), k + min(n, 0)) for n, k in zip(by, values.shape, strict=False))
    out[there] = values[tuple(slice(max(-n, 0), k + min(-n, 0)) for n, k in zip(by, values.shape, strict=False))]
    return out


def test_writes_by_offsets(device: str) -> None:
    """Of whole tensors and of elements, by numbers and by values, and of atomic functions; outside the output they are dropped."""
    x, v, to = (
        rng.random((5, 7), np.float32),
        rng.random((5, 7, 3), np.float32),
        rng.integers(-1, 2, (5, 7, 2)).astype("i"),
    )

    @gp.operator(
        outputs=lambda f, v, to: (f.type, v.type, v.type, gp.FieldType((5, 7), dtype="int32")), default=(0, 0, -1, 0)
    )
    def scattered(f, v, to):
        by = _readTensor(to)
        _writeTensor(_out0, _readTensor(f), offset=(1, -2))
        _writeTensor(_out1, _readTensor(v), offset=[0, _row * 0 - 1])
        _writeTensorElement(_out2, _readTensor(f), 2, offset=(0, 0))
        _atomic_add(_pointerTo(_out3, offset=by), 1)

    counts = np.zeros((9, 11), "i")
    np.add.at(counts, tuple(np.moveaxis(to, -1, 0) + np.indices((5, 7)) + 2), 1)
    elements = np.full_like(v, -1)
    elements[..., 2] = x
    actual = scattered(gp.ScalarField(x), gp.VectorField(v), gp.VectorField(to))
    all_same(actual, [moved(x, 1, -2), moved(v, 0, -1), elements, counts[2:7, 2:9]])


def test_writes_by_offsets_in_any_rank() -> None:
    """And of an argument that is updated; the text is that of coordinates by hand."""
    with gp.use_device("reference"):
        for shape, by in (((9,), (-2,)), ((3, 4, 5), (1, 0, -1)), ((2, 3, 4, 5), (0, 1, -2, 1))):
            x = rng.random(shape, np.float32)
            put = gp.operator(outputs="same")(lambda f, by=by: _writeTensor(_out0, _readTensor(f), offset=by))
            same(put(gp.Field(x, 0)), moved(x, *by))
        line = np.arange(8.0, dtype="f")
        next_one = gp.operator(inout="f")(lambda f: _writeTensor(f, _column * 2.0, offset=1))
        same(next_one(gp.ScalarField(line)), np.concatenate([line[:1], np.arange(7, dtype="f") * 2]))
    kind = gp.FieldType((40, 50))
    by_hand = gp.operator(outputs="same", name="put")(
        lambda f: _writeTensor(_out0, _readTensor(f), _row - 1, _column + 2)
    )
    put = gp.operator(outputs="same", name="put")(lambda f: _writeTensor(_out0, _readTensor(f), offset=(-1, 2)))
    assert put.source(kind, target="cuda") == by_hand.source(kind, target="cuda")


def test_outputs_are_read_by_offsets(device: str) -> None:
    """Reads of values that threads of the group have written before a barrier."""

    @gp.operator(outputs="same")
    def reversed_pairs(f):
        _localThreads(8)
        _writeTensor(_out0, _readTensor(f) * 2)
        _syncThreadsGlobal()
        other = _readTensor(_out0, offset=1 - _column % 2 * 2, border=("wrap",))
        _syncThreadsGlobal()
        _writeTensor(_out0, other)

    values = rng.random(16).astype("float32")
    same(reversed_pairs(gp.ScalarField(values)), values.reshape(-1, 2)[:, ::-1].ravel() * 2)


# --- loops along several dimensions ---------------------------------------------------------------------------------------


def order(*bounds: object, **options: object):
    """A number that the counters make, in their order; turns are left out and left as their sums say."""

    def body(x):
        made = _intVar()
        with _for(*(tuple(b(x) if callable(b) else b for b in each) for each in bounds), **options) as place:
            with _if(sum(place, 0) % 4 == 3):
                _continue()
            with _if(sum(place, 0) > 9):
                _break()
            made @= made * 3 + sum(k * (j + 1) for j, k in enumerate(place)) + 1
        made += 1000000
        return made

    def expected(x: int) -> int:
        result = 0
        ends = [tuple(b(x) if callable(b) else b for b in each) for each in bounds]
        start, stop = ends if len(ends) == 2 else ((0,) * len(ends[0]), ends[0])
        step = options.get("step", 1)
        steps = step if isinstance(step, tuple) else (step,) * len(start)
        for place in itertools.product(*(range(*each) for each in zip(start, stop, steps, strict=True))):
            if sum(place) % 4 == 3:
                continue
            if sum(place) > 9:
                break
            result = (result * 3 + sum(k * (j + 1) for j, k in enumerate(place)) + 1 + 2**31) % 2**32 - 2**31
        return result + 1000000

    return body, expected


ORDERS = (
    order((3, 4)),
    order((2, 3, 2), unroll=True),
    order((-1, 2), (2, 7), step=(1, 2), unroll=2),
    order((3, 9), (0, 0), step=-1),
    order((lambda x: x, 8)),
    order(()),
    order((0, 5)),
)


def test_order_of_turns(device: str) -> None:
    """The last dimension is the fastest; `_break` leaves all of them."""
    values = np.arange(6, dtype="int32")
    actual = gp.operator(lambda f: tuple(body(_readTensor(f)) for body, _ in ORDERS))(gp.ScalarField(values))
    all_same(actual, [np.array([expected(int(x)) for x in values], "int32") for _, expected in ORDERS])


def test_counters_have_their_names() -> None:
    @gp.operator
    def sums(f):
        total = _var(0)
        with _for((3, _columns)) as (r, c):
            total += r * c
        return total

    text = sums.source(gp.FieldType(5), target="opencl")
    assert "for (int r = 0; r < 3; r += 1)" in text and "for (int c = 0; c <" in text and "left" not in text


def test_returns_in_loops_along_several_dimensions(device: str) -> None:
    @gp.operator(outputs=gp.FieldType(9, dtype="int32"), default=-1)
    def first(f):
        with _for((3, 4)) as (r, c):
            with _if(r * 4 + c == _readTensor(f)):
                _writeTensor(_out0, r * 10 + c)
                _return()
        _writeTensor(_out0, 99)

    want = [n // 4 * 10 + n % 4 if n < 12 else 99 for n in range(5, 14)]
    same(first(gp.ScalarField(np.arange(5, 14))), np.array(want, "int32"))
