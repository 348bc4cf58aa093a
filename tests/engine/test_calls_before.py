"""Calls that were made before are not bound and checked again, and see all that has changed since."""

from __future__ import annotations

import inspect
import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.ops.call_cache import CallCache
from tests.engine.ran import plans_that_run
from tests.harness import same_bits

A = np.arange(12, dtype="f").reshape(3, 4) - 5
B = A[::-1].copy() * 3
rows = itertools.count(71)


@pytest.fixture
def anew(monkeypatch):
    """The calls that were bound and checked."""
    calls, inner = [], Pipeline.anew

    def spy(self, args, kwargs):
        calls.append(self.name)
        return inner(self, args, kwargs)

    monkeypatch.setattr(Pipeline, "anew", spy)
    return calls


def test_known_calls_have_the_arrays_of_each(anew, device):
    less = gp.pipeline(lambda a, b: gp.ScalarField(a) - gp.ScalarField(b))
    same_bits(less(A, A), A - A)
    for a, b in ((A, B), (B, A), (A, A), (A[:, ::-1], B), (A.copy(order="F"), B)):
        same_bits(less(a, b), a - b)
        same_bits(less(a, b=b), a - b)
        same_bits(less(b=b, a=a), a - b)
    out = np.empty_like(A)
    for _ in range(3):
        assert less(A, B, out=out) is out
        same_bits(out, A - B)
    assert len(anew) == 1 + 1 + 5 + 1  # of each way to pass them the first; all of those in another order


@pytest.mark.parametrize("value", [np.asarray, gp.ScalarField], ids=["array", "field"])
def test_zeros_beside_an_image_have_their_signs(value):
    image = value(-np.ones((3, 5), "f"))
    for cval in (0.0, -0.0, 0.0):
        result = gp.ndimage.shift(image, (1, 0), order=0, mode="constant", cval=cval)
        same_bits(np.asarray(result), scipy.ndimage.shift(-np.ones((3, 5), "f"), (1, 0), order=0, cval=cval))


def test_subclasses_of_arrays_are_arrays():
    class Own(np.ndarray):
        pass

    same_bits(gp.ndimage.maximum_filter(A.view(Own), 3), scipy.ndimage.maximum_filter(A, 3))


def test_equal_constants_that_differ(anew):
    @gp.pipeline
    def scaled(a, k=1, more=()):
        f = gp.ScalarField(a) * k
        return f * more[0] if more else f

    zero = np.zeros((2, 3), "f")
    for _ in range(2):
        same_bits(scaled(zero, 0.0), zero)
        same_bits(scaled(zero + 1, -0.0), -zero)
        same_bits(scaled(zero + 1, (k := 3)), zero + k)
        assert scaled(np.ones(3, "i4"), 1).dtype == scaled(np.ones(3, "i4"), True).dtype == np.int32
        assert scaled(np.ones(3, "i4"), 1.0).dtype == np.float32
        same_bits(scaled(zero + 1, 2, [4]), zero + 8)
        same_bits(scaled(zero + 1, 2, more=(5,)), zero + 10)
    changing = [2]
    same_bits(scaled(A, 1, changing), A * 2)
    changing[0] = 3
    same_bits(scaled(A, 1, changing), A * 3)
    assert len(anew) == 8 + 2


def test_what_python_refuses_stays_refused():
    named = gp.pipeline(lambda a, *, k: gp.ScalarField(a) * k)
    placed = gp.pipeline(lambda a, /: gp.ScalarField(a))
    for _ in range(2):
        same_bits(named(A, k=2), A * 2)
        same_bits(placed(A), A)
        for wrong in (lambda: named(A, 2), lambda: placed(a=A), lambda: placed(A, A), lambda: named(A, k=2, q=1)):
            with pytest.raises(gp.SemanticError, match=r"argument|positional only"):
                wrong()


factor = 2
factors = [2]


@gp.pipeline
def by_globals(a, k=1):
    return gp.ScalarField(a) * factor * factors[0] * k


def test_what_is_captured_is_looked_at_again(monkeypatch):
    p = gp.Parameter(1.0)
    timed = gp.pipeline(lambda a: gp.ScalarField(a) * p)
    for _ in range(2):
        same_bits(by_globals(A), A * 4)
        same_bits(timed(A), A)
    p.set(7.0)
    same_bits(timed(A), A * 7)
    factors[0] = 5
    same_bits(by_globals(A), A * 10)
    monkeypatch.setattr("tests.engine.test_calls_before.factor", 3)
    same_bits(by_globals(A), A * 15)
    monkeypatch.setattr(by_globals.function, "__defaults__", (10,))
    same_bits(by_globals(A), A * 150)
    factors[0] = 2
    same_bits(by_globals(A), A * 60)


def test_devices_and_precisions_by_context(anew, monkeypatch):
    ran = plans_that_run(monkeypatch)
    fused = gp.pipeline(lambda a: gp.ScalarField(a) * 3 + 1)
    names = [gp.devices()[0].name, "reference"]
    for _ in range(2):
        for precision, name in zip(("exact", "contract"), names, strict=True):
            with gp.precision(precision):
                same_bits(fused(A), A * 3 + 1)
            with gp.use_device(name):
                same_bits(fused(A), A * 3 + 1)
            same_bits(fused(A, device=name), A * 3 + 1)
    default = gp.device().name
    assert [plan.backend.name for plan in ran] == 2 * [each for name in names for each in (default, name, name)]
    assert len(anew) == 2 + 4  # for each precision, and whenever it is named


def test_functions_of_the_library(anew, device):
    shape = next(rows), 9  # that nobody has called them with
    image, weights = np.linspace(0, 1, 9 * shape[0], dtype="f").reshape(shape), np.array([1.0, 2, 1], "f")
    for _ in range(2):
        expected = scipy.ndimage.correlate1d(image, weights)
        np.testing.assert_allclose(gp.ndimage.correlate1d(image, weights), expected, rtol=1e-6)
        np.testing.assert_allclose(gp.ndimage.correlate1d(image, [1, 2, 1]), expected * 4 / weights.sum(), rtol=1e-6)
        weights *= 2  # in place: other weights
    assert len(anew) == 3
    weights /= 4
    into = np.empty(shape, "f")
    for n in range(3):
        for dtype in ("float32", None):
            result = gp.ndimage.correlate1d(image + n, weights, output=dtype)
            assert result.dtype == (dtype or "float32")
        assert gp.ndimage.correlate1d(image + n, weights, output=into) is into
        np.testing.assert_allclose(into, scipy.ndimage.correlate1d(image + n, weights), rtol=1e-6)
        np.testing.assert_allclose(gp.linalg.matmul(image, (image + n).T), image @ (image + n).T, rtol=1e-5)
        np.testing.assert_allclose(gp.linalg.matmul(x2=image.T, x1=image + n), (image + n) @ image.T, rtol=1e-5)
    assert len(anew) == 3 + 3 + 1 + 3
    field = gp.ndimage.correlate1d(gp.ScalarField(image), weights)
    assert isinstance(field, gp.Field)


def test_fields_that_functions_of_the_library_are_called_with_again(device):
    """The trace of a call is that of the types of its fields; values, names, lines and warnings are those of each call."""
    image, other = (np.random.default_rng(n).random((6, 7)).astype("f") for n in (0, 1))
    f, g, p = gp.ScalarField(image), gp.ScalarField(other), gp.Parameter(2.0)
    for a, b in ((f, f), (f, g), (g, f), (g, f)):
        expected = scipy.ndimage.uniform_filter(a.numpy(), 3)
        for times in (1, 2, 2):
            p.set(times)
            np.testing.assert_allclose(gp.ndimage.uniform_filter(a * p, 3).numpy(), expected * times, rtol=1e-5)
        np.testing.assert_allclose(gp.linalg.vecdot(a, b).numpy(), (a.numpy() * b.numpy()).sum(-1), rtol=1e-5)
        smooth = gp.ndimage.uniform_filter(a, 3)
        assert smooth.name == "smooth" and smooth.node.call.loc.line == line() - 1
        summed = gp.ndimage.sum(a)
        assert np.isclose(float(summed), a.numpy().sum(), rtol=1e-5)
        with pytest.warns(UserWarning, match="ignoring size"):
            gp.ndimage.minimum_filter(a, size=3, footprint=[[1, 1, 1]])
    named = gp.ndimage.uniform_filter(gp.ScalarField(image, dims="y:x"), 3)
    assert [name for name, _ in named.type.dims.grid] == ["y", "x"] and gp.ndimage.uniform_filter(f, 3).type.names == ()
    summed_of = [gp.pipeline(lambda a: gp.linalg.trace(gp.ScalarField(a))) for _ in range(2)]
    assert [str(each.footprint(image)) for each in summed_of[:1]] == [
        str(each.footprint(image)) for each in summed_of[1:]
    ]


def line():
    return sys._getframe(1).f_lineno


class WithInterface:
    """An array of a library without DLPack, as Numba's: its shape and its dtype are of the object."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    @property
    def __cuda_array_interface__(self):
        raise AssertionError("the device knows the library")


class WithoutShape:
    """Such an object, that nothing else is known of."""

    __cuda_array_interface__ = property(
        lambda self: {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3}
    )


def test_keys_of_arrays_without_dlpack():
    cache = CallCache(inspect.signature(lambda a: a), {})
    made, result = [], SimpleNamespace(holds=lambda: True, result=lambda inputs, out: (inputs, out))

    def anew(args, kwargs):
        made.append(args)
        return None, result, [*args]

    arrays = [
        WithInterface(np.zeros(shape, dtype))
        for shape, dtype in (((2, 3), "f"), ((2, 3), "f"), ((3, 2), "f"), ((2, 3), "i4"))
    ]
    for array in arrays * 2:
        cache.result((array,), {}, anew)
    assert len(made) == 3
    for _ in range(2):
        cache.result((WithoutShape(),), {}, anew)
    assert len(made) == 5
