"""Numbers of kernels of graphs; each has the bits of the unfused graph, and of the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import LEAST
from tests import rotation
from tests.harness import Build, blur, fused, gamma, image, same_bits, shift
from tests.nightly import left_to_nightly

SHAPE = (21, 34)
a, b = gp.ScalarField(image(*SHAPE)), gp.ScalarField(image(*SHAPE))
photo = gp.VectorField(image(*SHAPE, 3))
tiny = gp.ScalarField(image(5, 7))
big = gp.VectorField(image(*SHAPE, 6))
wide = gp.ScalarField(image(300, 500))
other = gp.ScalarField(image(300, 500))
row = gp.ScalarField(image(100_003))
tall = gp.VectorField(image(300, 500, 3))
huge = gp.VectorField(image(300, 100, 6))
level = gp.ScalarField(np.float32(3))
ONE_DEVICE = gp.devices()[0].name


@gp.operator
def costly(f):
    return _sin(_exp(_cos(_readTensor(f))))


@gp.operator
def both(f):
    x = _readTensor(f)
    return x + 1, x * 2


@gp.operator(outputs=lambda f: f.type)
def mirrored(f):
    _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)


@gp.operator
def flipped(f):
    return _readTensor(f, _rows - 1 - _row, _column)


@gp.operator(outputs=lambda f: f.type.replace(field_shape=tuple(n // 2 for n in f.field_shape)))
def halved(f):
    _writeTensor(_out0, _readTensor(f, 2 * _row, 2 * _column))


@gp.operator
def slope(f):
    return _readTensor(f, _row, _column + 1) - _readTensor(f, _row, _column)


@gp.operator
def weighted(f):
    return _readTensor(f) * _column + _row


@gp.operator
def lit(f, amount):
    return _readTensor(f) * _readTensor(amount)


@gp.operator
def tiled(f):
    _localThreads(8, 16)
    tile = _local(_floatArray(_localRows, _localColumns))
    tile[_localRow, _localColumn] = _readTensor(f)
    _syncThreadsLocal()
    return tile[_localRow, _localColumn] * 2


@gp.operator
def tiled_otherwise(f):
    _localThreads(4, 32)
    return _readTensor(f) + _localColumn


@gp.operator(outputs=gp.FieldType(16, dtype="int32"))
def histogram(f):
    _globalThreads(f)
    _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(f) * 16)))


@gp.operator
def squared(v):
    with _forEachTensorElement(v.tensor_shape):
        x = _readTensorElement(v)
        _writeTensorElement(_out0, x * x)


@gp.operator
def rotated(f):
    x, y, z = _readTensor(f)
    return _vector(y, z, x)


@gp.operator(outputs=lambda f: f.type.replace(tensor_shape=()))
def element_sum(f):
    total = _var(0.0)
    with _for(f.tensor_shape[0]) as k:
        total += _readTensorElement(f, _row, _column + 1, k)
    _writeTensor(_out0, total)


@gp.operator(outputs=lambda f: f.type.replace(tensor_shape=()))
def last_element(f):
    _writeTensor(_out0, _readTensorElement(f, _row, _columns - 1 - _column, f.tensor_shape[0] - 1))


@gp.operator(outputs=gp.FieldType((SHAPE[0], 3)))
def columns_of_groups(f):
    """Each group adds what its threads read at places of their own, one after another."""
    _globalThreads((SHAPE[0], 48))
    _localThreads(1, 16)
    values = _local(_floatArray(16))
    values[_localColumn] = _readTensor(f, _row, _column * 2, border="reflect")
    _syncThreadsLocal()
    with _if(_localColumn == 0):
        total = _var(0.0)
        with _for(16) as k:
            total += values[k]
        _writeTensor(_out0, total, _row, _groupColumn)


def host(f):
    return gp.HostOperator(lambda x: x[::-1].copy(), f, outputs=f.type)


def parameter(value: float) -> gp.Field:
    return gp.Parameter(value)


def repeated(f: gp.Field, step: Callable[[gp.Field], gp.Field], times: int) -> gp.Field:
    for _ in range(times):
        f = step(f)
    return f


def diamond(f):
    return (f + 0.5) * (f - 0.5)


def swapped(p, q):
    return both(p)[1] + both(q)[0], both(q)[1] - both(p)[0]


TABLE: dict[str, tuple[Build, int]] = {
    # local access
    "one": (lambda: {"o": a * 2}, 1),
    "chain": (lambda: {"o": gamma(a * 2 + 1) * b}, 1),
    "chain of 30": (lambda: {"o": repeated(a, lambda f: f * 1.5 - 1, 15)}, 1),
    "diamond": (lambda: {"o": diamond(a)}, 1),
    "diamonds": (lambda: {"o": repeated(a, diamond, 5)}, 1),
    "every step probed": (lambda: {"p": a + 1, "q": (a + 1) * 2, "r": (a + 1) * 2 - 3}, 1),
    "several outputs": (lambda: dict(zip("pq", both(a * 2), strict=True)), 1),
    "one of several outputs": (lambda: {"o": both(a * 2)[0] * 3}, 1),
    "outputs crossed": (lambda: dict(zip("pq", swapped(a, b), strict=True)), 1),
    "the same twice": (lambda: {"o": gamma(a) + gamma(a)}, 1),
    "the same twice, probed": (lambda: {"p": gamma(a), "q": gamma(a), "r": gamma(a) * 2}, 1),
    "two trees": (lambda: {"p": a * 2 + b, "q": b - a}, 1),
    "nothing shared": (lambda: {"p": a * 2, "q": b * 2}, 2),
    "one input shared": (lambda: {"p": gamma(a) * b, "q": a + 1}, 1),
    "other grids": (lambda: {"p": a * 2, "q": tiny * 2}, 2),
    "vectors and scalars": (lambda: {"o": (photo * a + 1) * photo}, 1),
    "big tensors": (lambda: {"o": squared(squared(big))}, 1),
    "big tensors and scalars": (lambda: {"o": squared(big * a)}, 1),
    "a cheap scalar for each element": (lambda: {"o": big * (a + 1)}, 1),
    "0D made where it is used": (lambda: {"o": a * (level + 1)}, 1),
    "0D of a parameter": (lambda: {"o": a * (parameter(2.0) * 3 + 1)}, 1),
    "0D probed": (lambda: {"p": level + 1, "o": a * (level + 1)}, 2),
    # access elsewhere
    "shift of a chain": (lambda: {"o": shift(gamma(a) + 1)}, 1),
    "flip of a chain": (lambda: {"o": flipped(a * 2 + b)}, 1),
    "downsampled chain": (lambda: {"o": halved(gamma(a) * b)}, 1),
    "downsampled twice": (lambda: {"o": halved(halved(a * 2) + 1)}, 1),
    "slope of a chain": (lambda: {"o": slope(a * b + 1)}, 1),
    "slope of a slope": (lambda: {"o": slope(slope(a))}, 1),
    "a chain that knows its place": (lambda: {"o": shift(weighted(a)) + flipped(weighted(b))}, 1),
    "cheap under a stencil": (lambda: {"o": blur(a * 2)}, 1),
    "costly under a stencil": (lambda: {"o": blur(costly(a))}, 2),
    "costly under a shift": (lambda: {"o": shift(costly(a))}, 1),
    "stencil under a stencil": (lambda: {"o": blur(blur(a))}, 2),
    "local and shifted": (lambda: {"o": (lambda x: x - shift(x))(gamma(a))}, 1),
    "probed and shifted": (lambda: {"p": gamma(a), "o": shift(gamma(a))}, 2),
    "scatter, then local": (lambda: {"o": mirrored(a * 2) + 1}, 2),
    "two stencils of one": (lambda: {"p": blur(a), "q": slope(a)}, 1),
    "a detour": (lambda: {"o": (lambda x: x + blur(x))(costly(a))}, 2),
    # work-groups, atomics, reductions
    "local memory in a chain": (lambda: {"o": tiled(a * 2) + 1}, 1),
    "two in local memory": (lambda: {"o": tiled(tiled(a))}, 1),
    "different groups": (lambda: {"o": tiled(tiled_otherwise(a))}, 2),
    "counted and used": (lambda: {"p": histogram(a * b), "o": a * b + 1}, 1),
    "the count, used": (lambda: {"o": histogram(a * b) * 2}, 2),
    "summed": (lambda: {"o": (a * b + 1).sum()}, 1),
    "normalised": (lambda: {"o": a / a.sum()}, 2),
    "summed in two steps": (lambda: {"o": (wide * other + 1).sum()}, 2),
    "three of a field": (lambda: {"p": wide.min(), "q": wide.max(), "r": wide.mean()}, 2),
    "three of a chain": (lambda: (lambda f: {"p": f.min(), "q": f.max(), "r": f.mean()})(wide * other + 1), 2),
    "three of a chain that is probed": (
        lambda: (lambda f: {"f": f, "p": f.min(), "q": f.max(), "r": f.mean()})(wide * other + 1),
        3,
    ),
    "places and values": (lambda: (lambda f: {"p": f.argmin(), "q": f.max(), "r": f.sum()})(wide * other + 1), 2),
    "in a row, not in whole groups": (
        lambda: (lambda f: {"p": f.min(), "q": f.sum(), "r": f.argmax()})(row * 2 - row),
        2,
    ),
    "over rows": (lambda: (lambda f: {"p": f.min(axis=0), "q": f.max(axis=0)})(wide * other + 1), 1),
    "over columns": (lambda: (lambda f: {"p": f.min(axis=1), "q": f.max(axis=1)})(wide * other + 1), 1),
    "over different axes": (lambda: {"p": (wide + 1).sum(axis=0), "q": (wide + 1).sum(axis=1)}, 2),
    "different chains of shared fields": (lambda: {"p": (wide * other).sum(), "q": (wide - other).max()}, 2),
    "different reductions that are used together": (lambda: {"o": wide.max() - (wide * other).min()}, 3),
    "a spread": (lambda: {"o": (lambda f: ((f - f.mean()) ** 2).mean())(wide * other)}, 4),
    "normalised, recomputed": (lambda: {"o": (lambda f: f / f.sum())(wide * other)}, 3),
    "vectors": (lambda: {"o": (tall * wide + 1).sum(axis=(0, 1)), "p": (tall * wide + 1).max(axis=(0, 1))}, 2),
    "vectors, all of them": (lambda: {"o": (tall * 2 + 1).mean()}, 3),
    "vectors of another kind": (lambda: {"o": rotated(tall).sum(axis=(0, 1))}, 3),
    "big tensors summed": (lambda: {"o": (huge * 2 + 1).sum(axis=(0, 1))}, 2),
    "big tensors read by elements": (lambda: {"o": element_sum(huge * 2 + 1)}, 1),
    "vectors read by elements": (lambda: {"o": element_sum(tall * wide)}, 1),
    "chosen elements": (lambda: {"o": last_element(huge * 2 + 1)}, 1),
    "a stencil summed": (lambda: {"o": slope(wide * 2).sum()}, 2),
    "gathered by groups": (lambda: {"o": columns_of_groups(a * b + 1), "p": columns_of_groups(a * b - 1)}, 1),
    "sliced": (lambda: {"o": (a * 2)[2:-2, ::3] + 1}, 1),
    "components": (lambda: {"o": (photo * 2)[..., 0] - photo[..., 2]}, 1),
    # the host
    "host in the middle": (lambda: {"o": host(a * 2) + 1}, 2),
    "host at the end": (lambda: {"o": host(a * 2 + b)}, 1),
}


@pytest.mark.daily
@pytest.mark.parametrize(
    ("on", "name"),
    dict.fromkeys([*(("reference", name) for name in TABLE), *((ONE_DEVICE, name) for name in [*TABLE][::2])]),
)
def test_kernels(name: str, on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if on != "reference" and not rotation.is_turn(name, 4):
        left_to_nightly("the interpreter runs it each day, and a driver every fourth day")
    build, kernels = TABLE[name]
    monkeypatch.setattr(gp.device(on), "limits", LEAST)  # GPUs have few registers for what is reduced by threads
    with gp.use_device(on):
        _, results = fused(build, kernels=kernels)
    if on != "reference":
        with gp.use_device("reference"):
            for key, field in build().items():
                np.testing.assert_allclose(results[key], field.numpy(), 2e-5, 2e-5, err_msg=key)


def test_states_in_the_middle() -> None:
    """Two coupled states of one kernel; a third that is read elsewhere; all as NumPy steps them."""

    x, y = a.numpy(), b.numpy()
    graphs = []
    for optimize in (True, False):
        with gp.ComputeGraph(optimize=optimize) as graph:
            p, q = gp.ScalarField(x), gp.ScalarField(y)
            p.next, q.next = q * 0.5 + p, p * 0.25
            graph.probe(p, "p")
            graph.probe(p + q, "sum")
        graph.step(3)
        graphs.append(graph)
    assert [graph.kernel_count for graph in graphs] == [1, 4]
    for _ in range(3):
        x, y = y * np.float32(0.5) + x, x * np.float32(0.25)
    for graph in graphs:
        same_bits(graph.read("p"), x)
        same_bits(graph.read("sum"), x + y)


def test_the_table_is_long_enough() -> None:
    assert len(TABLE) >= 40
