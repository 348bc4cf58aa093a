"""`gp.vmap` among all else: pipelines, graphs, iterations, random numbers, functions of Python, and what it captures."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.transforms.entries import Batch
from tests.borders import CHECKED, away
from tests.harness import same_bits

rng = np.random.default_rng(43)
FACTOR = 2.0


def numbers(*shape: int) -> np.ndarray:
    return np.rint(rng.standard_normal(shape) * 64).astype(np.float32)


@gp.operator
def slope(f):
    return _readTensor(f, _row, _column + 1) - 2 * _readTensor(f, _row - 1, _column)


def sloped(a: np.ndarray) -> np.ndarray:
    return away(a, 0, 1) - 2 * away(a, -1, 0)


# --- arrays ---------------------------------------------------------------------------------------------------------


def steep(image: Any, offset: Any) -> gp.Field:
    return slope(gp.ScalarField(image)) + gp.ScalarField(offset)


def test_functions_of_arrays(device):
    x, offset = numbers(5, 6, 7), numbers(6, 7)
    expected = sloped(x) + offset
    for f in (steep, gp.pipeline(steep)):
        same_bits(gp.vmap(f, in_axes=(0, None))(x, offset), expected)
        same_bits(
            gp.vmap(f, in_axes=(-1, None), out_axes=1)(np.moveaxis(x, 0, -1), offset), np.moveaxis(expected, 0, 1)
        )
    same_bits(gp.vmap(steep)(x, offset=np.stack([offset] * 5)), expected)
    out = np.empty_like(expected)
    assert gp.vmap(steep, in_axes=(0, None))(x, offset, out=out) is out
    same_bits(out, expected)


def test_pipelines_of_mapped_functions(device):
    """A batch of batches too, which outer pipelines stand for."""
    x, offset = numbers(2, 3, 6, 7), numbers(6, 7)
    one = gp.vmap(steep, in_axes=(0, None))
    for f in (
        gp.pipeline(one),
        gp.pipeline(lambda x, offset: one(x, offset)),
        gp.pipeline(lambda x, o: one(gp.ScalarField(x), o)),
    ):
        same_bits(f(x[0], offset), sloped(x[0]) + offset)
    for f in (gp.vmap(one, in_axes=(0, None)), gp.vmap(gp.pipeline(one), in_axes=(0, None))):
        same_bits(f(x, offset), sloped(x) + offset)


def test_library_functions_of_arrays(device):
    x = numbers(3, 8, 9)
    same_bits(gp.vmap(gp.ndimage.maximum_filter, in_axes=(0, None))(x, 3), np.stack([_greatest(a) for a in x]))
    same_bits(gp.vmap(lambda a: gp.ndimage.maximum_filter(a, size=3))(x), np.stack([_greatest(a) for a in x]))


def _greatest(a: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(a, 1, "symmetric"), (3, 3))
    return windows.max((-2, -1))


def test_types_of_arrays(device):
    """Conversions that fields make of an entry: bytes as numbers from 0 to 1, colours, another dtype."""
    photos = rng.integers(0, 256, (4, 5, 6, 3)).astype(np.uint8)
    raised = gp.vmap(lambda photo: gp.ColorField(photo) * 1.0)(photos)
    alpha = np.concatenate([photos, np.full((4, 5, 6, 1), 255, np.uint8)], -1)
    np.testing.assert_allclose(raised, alpha / np.float32(255), rtol=1e-6)
    doubled = gp.vmap(lambda photo: gp.VectorField(photo, dtype="float32") * 2)(photos)
    same_bits(doubled, photos.astype(np.float32) * 2)
    same_bits(
        gp.vmap(lambda photo: gp.VectorField(photo) + gp.VectorField(photo))(photos[:, :, ::2]), photos[:, :, ::2] * 2
    )


@gp.operator
def mixed(photo):
    here, there = _readTensor(photo), _readTensor(photo, _row + 1, _column - 1)
    return _vector(here.x + there.y, here.y * 2, here.z - there.x)


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
def test_batches_of_photographs(device, first):
    """They are read where they lie, whichever axis their channels are along, and results are written so."""
    photos = numbers(3, 100, 165, 3)
    x = np.moveaxis(np.ascontiguousarray(np.moveaxis(photos, -1, 1)), 1, -1) if first else photos
    run = gp.pipeline(gp.vmap(lambda photo: mixed(gp.VectorField(photo))))
    near = away(np.moveaxis(photos, -1, 1), 1, -1)
    expected = np.stack([photos[..., 0] + near[:, 1], photos[..., 1] * 2, photos[..., 2] - near[:, 0]], -1)
    same_bits(run(x), expected)
    if device == "opencl:0":
        assert "the host copies" not in run.explain(x)


def test_a_size_more_shares_kernels(monkeypatch):
    """Sizes of entries that are extents of kernels, and layers that are numbers in them."""
    monkeypatch.setenv("GPUOP_SPECIALIZE", "auto")
    third = gp.operator(lambda f: _readTensor(f, _layer + 1, _row, _column, border="wrap") + _layers)
    for shape in ((2, 4, 8, 9), (2, 4, 8, 17), (3, 5, 8, 9), (2, 7, 20, 30)):
        x = numbers(*shape)
        same_bits(mapped_third(third)(x), np.roll(x, -1, 1) + np.float32(shape[1]))


@functools.cache
def mapped_third(third: Any) -> Any:
    return gp.vmap(lambda a: third(gp.ScalarField(a)))


def test_layers_under_every_border():
    """Layers of all entries are one axis: what a border names, and a number outside, are those of the own entry."""
    x = numbers(3, 4, 5, 6)

    @gp.operator
    def beyond(f, border):
        near = _readTensor(f, _layer + 1, _row, _column - 1, border=border)
        return near - 2 * _readTensor(f, _layers - 4 - _layer, _row, _column, border=border)

    def of_numpy(a, border):
        layers = away(a[::-1], 3, 0, 0, border=border) if border != "wrap" else np.roll(a[::-1], -3, 0)
        return away(a, 1, 0, -1, border=border) - 2 * layers

    with gp.use_device("reference"):
        for border in CHECKED:
            mapped = gp.vmap(lambda f, border=border: beyond(f, border))(gp.ScalarField(x))
            same_bits(mapped.numpy(), np.stack([of_numpy(a, border) for a in x]), border)


def test_layers_outside_are_not_written():
    """They would be those of the next entry."""

    @gp.operator(outputs=lambda f: (f.type, f.type.replace(dtype="int32")), default=(7, 0))
    def further(f):
        _writeTensor(_out0, _readTensor(f), _layer + 1, _row, _column)
        _atomic_add(_pointerTo(_out1, 2 * _layer - 1, _row, _column), 1)

    x = numbers(3, 4, 5, 6)
    with gp.use_device("reference"):
        moved, counts = gp.vmap(further)(gp.ScalarField(x))
        same_bits(moved.numpy(), np.concatenate([np.full((3, 1, 5, 6), 7, np.float32), x[:, :-1]], 1))
        expected = np.array([0, 1, 0, 1], np.int32)
        np.testing.assert_array_equal(counts.numpy(), np.broadcast_to(expected[:, None, None], (3, 4, 5, 6)))


# --- arguments and results ------------------------------------------------------------------------------------------


Pair = namedtuple("Pair", "near far")


def test_containers(device):
    x, y = numbers(3, 4, 5), numbers(4, 5)

    def both(pair, others, number):
        return Pair(slope(pair[0]) + others["a"], [pair[1] * number])

    fields = (gp.ScalarField(x), gp.ScalarField(y)), {"a": gp.ScalarField(x)}
    result = gp.vmap(both, in_axes=((0, None), 0, None), out_axes=(0, None))(*fields, 2)
    assert isinstance(result, Pair) and isinstance(result.far, list)
    same_bits(result.near.numpy(), sloped(x) + x)
    same_bits(result.far[0].numpy(), y * 2)
    same_bits(
        gp.vmap(both, in_axes=((0, None), 0, None), out_axes=1)(*fields, 2).far[0].numpy(), np.stack([y * 2] * 3, 1)
    )


def test_what_is_not_mapped_is_computed_once(device):
    calls = []

    def counted(a):
        calls.append(a.shape)
        return a + 1

    shared = gp.ScalarField(numbers(4, 5))

    def f(a):
        return a + gp.HostOperator(counted, shared, outputs=shared.type)

    x = numbers(3, 4, 5)
    same_bits(gp.vmap(f)(gp.ScalarField(x)).numpy(), x + (shared.numpy() + 1))
    assert calls == [(4, 5)]


def test_identities(device):
    x = numbers(3, 4, 5)
    same_bits(gp.vmap(lambda f: f)(gp.ScalarField(x)).numpy(), x)
    same_bits(gp.vmap(lambda a: gp.ScalarField(a))(x), x)


def test_partial_functions_methods_and_objects(device):
    class Scaled:
        def __init__(self, by):
            self.by = by

        def of(self, f):
            return slope(f) * self.by

        def __call__(self, f):
            return self.of(f)

    x = numbers(3, 4, 5)
    field, two = gp.ScalarField(x), Scaled(2)
    for f in (two.of, two, functools.partial(Scaled.of, two), functools.partial(lambda by, f: slope(f) * by, 2)):
        same_bits(gp.vmap(f)(field).numpy(), sloped(x) * 2)


# --- what is captured -----------------------------------------------------------------------------------------------


def test_captured_values(device, monkeypatch):
    """A changed global is seen by pipelines of mapped functions, and an unchanged one is not asked for again."""
    global FACTOR
    calls = []
    monkeypatch.setattr("gpuop.transforms.vmap.Batch", lambda name: calls.append(name) or Batch(name))

    def f(a):
        return gp.ScalarField(a) * FACTOR

    x, g = numbers(3, 4, 5), gp.vmap(f)
    pipe = gp.pipeline(lambda a: g(a))
    for run in (g, pipe):
        calls.clear()
        for factor, count in ((2.0, 1), (2.0, 1), (3.0, 2), (3.0, 2)):
            FACTOR = factor
            same_bits(run(x), x * np.float32(factor))
            assert calls == ["f"] * count


def test_parameters(device):
    x, by = numbers(3, 4, 5), gp.Parameter(2.0)
    result = gp.vmap(lambda f: slope(f) * by)(gp.ScalarField(x))
    for number in (2.0, 5.0):
        by.set(number)
        same_bits((result + 0).numpy(), sloped(x) * np.float32(number))


# --- graphs and iterations ------------------------------------------------------------------------------------------


def test_iterations(device):
    """Mapped iterations, also of states that all entries share at first, and iterations of mapped functions."""
    x, y = numbers(3, 4, 5), numbers(4, 5)

    def turned(a: np.ndarray, b: np.ndarray, times: int) -> np.ndarray:
        for _ in range(times):
            a = sloped(a) / np.float32(4) + b
        return a

    def iterated(f, g, times):
        return gp.iterate(lambda u: slope(u) / 4 + g, f, times=times)

    for times in (0, 1, 2, 5):
        fields = gp.ScalarField(x), gp.ScalarField(y)
        same_bits(gp.vmap(iterated, in_axes=(0, None, None))(*fields, times).numpy(), turned(x, y, times))
        expected = turned(np.broadcast_to(y, x.shape), x, times)
        if times:
            same_bits(gp.vmap(iterated, in_axes=(None, 0, None))(*fields[::-1], times).numpy(), expected)
        outer = gp.iterate(lambda u: gp.vmap(slope)(u) / 4 + gp.ScalarField(x), fields[0], times=times)
        same_bits(outer.numpy(), turned(x, x, times))
    until = gp.iterate(lambda u: gp.vmap(slope)(u), gp.ScalarField(x), until=lambda u: u.max() > 1e3, times=20)
    wanted = x
    for _ in range(20):
        wanted = sloped(wanted)
        if wanted.max() > 1e3:
            break
    same_bits(until.numpy(), wanted)


def test_graphs(device):
    x = numbers(3, 4, 5)
    with gp.ComputeGraph() as graph:
        u = gp.ScalarField(x)
        u.next = gp.vmap(lambda f: slope(f) / 2)(u)
        graph.probe(gp.vmap(np.sum)(u), "sums")
    graph.reset()
    graph.step(2)
    expected = sloped(sloped(x) / np.float32(2)) / np.float32(2)
    np.testing.assert_allclose(graph.read("sums"), expected.astype("f8").sum((1, 2)), rtol=1e-6)


# --- random numbers, functions of Python, libraries -----------------------------------------------------------------


def test_random_numbers(device):
    """A key for each entry gives each its own numbers; one key gives all entries the same, as a loop would."""
    keys = gp.random.split(gp.random.key(7), 3)
    words = np.stack([k.numpy() for k in keys])
    drawn = gp.vmap(lambda k: gp.random.bits(k, (4, 5)))(gp.VectorField(words))
    same_bits(drawn.numpy(), np.stack([gp.random.bits(k, (4, 5)).numpy() for k in keys]))
    split = gp.vmap(lambda k: gp.random.bits(gp.random.fold_in(k, 3), 8))(gp.VectorField(words))
    same_bits(split.numpy(), np.stack([gp.random.bits(gp.random.fold_in(k, 3), 8).numpy() for k in keys]))
    x = np.zeros((3, 4), np.uint32)
    same = gp.vmap(lambda f: f + gp.random.bits(keys[0], 4))(gp.ScalarField(x)).numpy()
    assert (same == same[0]).all() and len({*same[0]}) == 4


def test_functions_of_python(device):
    x, y = numbers(3, 4, 5), numbers(5)
    kind = gp.FieldType(5), gp.FieldType((2, 5), (), "float32")

    def both(a, b):
        a[0] += b  # its own to change
        return a.sum(0), np.stack([b, a[1]])

    sums, rows = gp.vmap(lambda f, g: gp.HostOperator(both, f, g, outputs=kind), in_axes=(0, None))(
        gp.ScalarField(x), gp.ScalarField(y)
    )
    same_bits(sums.numpy(), x.sum(1) + y)
    same_bits(rows.numpy(), np.stack([np.broadcast_to(y, (3, 5)), x[:, 1]], 1))


def test_functions_of_devices(device):
    x, y = numbers(3, 4, 5), numbers(2, 5)

    def product(f, g):
        return gp.DeviceOperator(lambda a, b, c: np.matmul(a, b.T, out=c), f, g, outputs=gp.FieldType((4, 2)))

    for axes, fields, expected in (
        ((0, None), (x, y), x @ y.T),
        ((0, 0), (x, np.stack([y, 2 * y, 3 * y])), (x @ y.T) * np.arange(1, 4, dtype="f")[:, None, None]),
    ):
        same_bits(gp.vmap(product, in_axes=axes)(*map(gp.ScalarField, fields)).numpy(), expected)


@pytest.mark.parametrize("method", ["passes", "library"])
def test_fourier_transforms(device, method):
    x = numbers(3, 2, 12, 10)
    transformed = gp.vmap(lambda f: gp.fft.fftn(f, axes=(-2, -1), method=method))(gp.ScalarField(x))
    np.testing.assert_allclose(transformed.numpy(), np.fft.fftn(x, axes=(-2, -1)), atol=2e-3)
    back = gp.vmap(lambda f: gp.fft.irfft2(gp.fft.rfft2(f, method=method), (12, 10), method=method))(gp.ScalarField(x))
    np.testing.assert_allclose(back.numpy(), x, atol=1e-3)


def test_one_launch(device):
    """A batch of a chain is as many kernels as the chain of one entry."""

    def chain(a):
        f = gp.ScalarField(a)
        return np.sqrt(abs(slope(slope(f)))) + f.mean()

    x = numbers(4, 16, 20)
    kernels = [
        run.explain(a).splitlines()[0] for run, a in ((gp.pipeline(gp.vmap(chain)), x), (gp.pipeline(chain), x[0]))
    ]
    assert kernels[0].partition(" for ")[0] == kernels[1].partition(" for ")[0]
