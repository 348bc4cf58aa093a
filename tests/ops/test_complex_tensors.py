"""Fields of complex vectors and matrices: host algebra, slices, reductions, and what kernels see of them."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

rng = np.random.default_rng(8)
SHAPES = {"pair": ((4, 5, 2), 1), "vector": ((6, 3), 1), "matrix": ((5, 2, 3), 2), "one vector": ((3,), 1)}


def numbers(shape):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("complex64")


def check(cases):
    gp.evaluate(*(field for _, field, _ in cases))
    for name, field, want in cases:
        actual, want = field.numpy(), np.asarray(want)
        assert actual.shape == want.shape and actual.dtype.kind == want.dtype.kind, name
        np.testing.assert_allclose(actual, want, 4e-5, 4e-6, err_msg=str(name))


@pytest.fixture(params=SHAPES)
def given(request):
    shape, order = SHAPES[request.param]
    with gp.use_device(gp.device().name if request.param in ("pair", "vector") else "reference"):
        yield numbers(shape), numbers(shape), order


def test_algebra(given):
    z, w, order = given
    grid = z.shape[: z.ndim - order]
    r, t = rng.normal(size=grid).astype("f"), rng.normal(size=z.shape).astype("f")
    f, g, s, v = gp.Field(z, order), gp.Field(w, order), gp.ScalarField(r), gp.Field(t, order)
    r = r.reshape(grid + (1,) * order)
    check([
        ("itself", f, z), ("product", f * g, z * w), ("number", f * (2 - 1j) + 1, z * (2 - 1j) + 1), ("scalars", f * s, z * r),
        ("real", f / v, z / t), ("abs", abs(f), abs(z)), ("conj", f.conj(), z.conj()), ("imag", f.imag, z.imag),
        ("angle", np.angle(f), np.angle(z)), ("ne", f != g, z != w), ("where", np.where(s > 0, f, g), np.where(r > 0, z, w)),
        ("chain", np.exp(f * g) - abs(f), np.exp(z * w) - abs(z)), ("astype", v.astype("complex64"), t + 0j),
        ("iterated", gp.iterate(lambda x: x * 2, f, times=3), z * 8), ("equal", (f == f).all(), True),
    ])  # fmt: skip


def test_reductions_and_slices(given):
    z, _, order = given
    f = gp.Field(z, order)
    axes = [None, *range(z.ndim)]
    slices = [np.s_[...], np.s_[..., 0], np.s_[..., ::-1], np.s_[..., 1:], np.s_[0], np.s_[1:]]
    check([(name, getattr(f, name)(axis=a), getattr(z, name)(axis=a)) for name in ("sum", "mean") for a in axes])
    check([(at, f[at], z[at]) for at in slices])


def test_nothing_to_add():
    for order in (0, 1):
        empty = gp.Field(np.empty((0, 3), "complex64"), order)
        assert np.array_equal(empty.sum(axis=0).numpy(), np.zeros(3)) and empty.sum(axis=0).dtype == "complex64"
        mean = empty.mean(axis=0).numpy()
        assert np.isnan(mean.real).all() and np.isnan(mean.imag).all()


def test_kernels_see_parts():
    """Elements are parts, real and imaginary alternately; a returned float4 of a complex pair is a complex pair."""
    z, big = numbers((5, 2)), numbers((4, 3))

    @gp.operator
    def turned(f):
        x = _readTensor(f)
        return _float4(_complexMul(x.xy, _float2(0, 1)), _complexConj(x.zw))

    @gp.operator(outputs=lambda f: f.type)
    def second_only(f):
        with _forEachTensorElement(f.type.planes):
            e = _tensorElement
            _writeTensorElement(_out0, _where(e / 2 == 1, _readTensorElement(f, e), 0.0), e)

    pair = turned(gp.VectorField(z))
    assert str(pair.type) == "5 complex64[2]" and gp.is_big_tensor(gp.VectorField(big)) and not gp.is_big_tensor(pair)
    want = np.stack([z[:, 0] * 1j, z[:, 1].conj()], -1)
    check([("turned", pair, want), ("second", second_only(gp.VectorField(big)), big * [0, 1, 0])])


def test_in_and_out(device, tmp_path):
    """Through pipelines, states, sensors and files."""
    z = numbers((4, 3))
    assert np.array_equal(gp.pipeline(lambda a: gp.VectorField(a) * 2)(z), z * 2)
    assert np.array_equal(gp.pipeline(lambda a: gp.VectorField(a) * 2)(z[::-1, ::-1]), z[::-1, ::-1] * 2)

    def graph_of():
        with gp.ComputeGraph() as graph:
            wave = gp.VectorField(z)
            wave.next = wave * 1j + gp.Sensor(wave.type, lambda: z)
            graph.probe(wave)
        return graph

    first, second = graph_of(), graph_of()
    first.step(3)
    first.save(tmp_path / "waves.npz")
    second.load(tmp_path / "waves.npz")
    want = z
    for _ in range(3):
        want = want * np.complex64(1j) + z
    check(
        [("stepped", gp.VectorField(first.read("wave")), want), ("loaded", gp.VectorField(second.read("wave")), want)]
    )
    assert "complex64" in gp.VectorField(z)._repr_html_()
