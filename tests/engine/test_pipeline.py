"""`gp.pipeline`: arrays in, arrays out; traced once per array types and other arguments."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.harness import blur, counting, half_and_double, image, same_bits


def test_arrays_in_arrays_out(device):
    @gp.pipeline
    def sharpen(image, amount=0.5):
        assert (image.shape, image.dtype, image.ndim) == ((21, 35), np.float32, 2)
        f = gp.ScalarField(image)
        return np.clip(f + amount * (f - blur(f)), 0, 1)

    for _ in range(3):
        x = image(21, 35)
        result = sharpen(x)
        assert type(result) is np.ndarray and result.flags.writeable and result.flags.c_contiguous
        f = gp.ScalarField(x)
        same_bits(result, np.clip(f + 0.5 * (f - blur(f)), 0, 1).numpy())
        same_bits(sharpen(x, amount=0.0), np.clip(x, 0, 1))


def test_several_outputs_and_field_constructors(device):
    @gp.pipeline
    def parts(rgb, mask, transform):
        v, m = gp.VectorField(rgb), gp.ScalarField(mask)
        low, high = half_and_double(v)
        return low, high * m, gp.ColorField(np.zeros((2, 3, 3), "u1")), gp.MatrixField(transform), v

    rgb, mask = image(2, 3, 3), np.array([[1, 0, 1], [0, 1, 0]], bool)
    transform = image(4, 2, 2).astype("f8")
    low, high, color, matrix, same = parts(rgb, mask, transform)
    same_bits(low, rgb / 2)
    same_bits(high, rgb * 2 * mask[..., None])
    assert color.dtype == np.uint8 and color.shape == (2, 3, 4) and (color[..., 3] == 255).all()
    same_bits(matrix, transform)
    same_bits(same, rgb)
    colors, convert = gp.pipeline(lambda a: gp.ColorField(a)), gp.pipeline(lambda a: gp.ScalarField(a, dtype="f4") * 2)
    assert colors(np.zeros((2, 2, 3), "u1")).tolist() == [[[0, 0, 0, 255]] * 2] * 2
    same_bits(convert(np.arange(5)), np.arange(5, dtype="f") * 2)
    assert gp.pipeline(lambda a: (gp.ScalarField(a),))(np.ones(2))[0].tolist() == [1, 1]


def test_every_layout_of_the_array(device):
    double = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    base = np.arange(48, dtype="f").reshape(6, 8)
    for x in (
        base,
        base[::-1, ::2],
        base.T,
        np.asfortranarray(base),
        base.astype(">f4"),
        base[:0],
        base[0, 0],
        np.array(3.0, "f"),
    ):
        x = np.asarray(x)
        x.flags.writeable = False
        np.testing.assert_array_equal(double(x), x * 2)
        assert double(x).dtype == np.float32


def test_traced_once_per_types_and_constants(device):
    scale, traces = counting(lambda image, k=1, mode="a": gp.ScalarField(image) * k)
    x = np.ones((3, 4), "f")
    for args in ((x,), (x, 1), (x + 1, 1, "a"), (x, np.int32(1)), (x, True)):
        same_bits(scale(*args), args[0])
    assert len(traces) == 3  # 1, np.int32(1), True
    scale(x, 2)
    scale(x, mode="b")
    scale(x[:2])
    scale(x.astype("f8"))
    assert len(traces) == 7
    assert scale(x, 1.0).dtype == np.float32 and scale(x.astype("i"), 1.0).dtype == np.float32
    assert scale(x.astype("i"), 1).dtype == np.int32 and len(traces) == 10
    scale(x, k=1)
    assert len(traces) == 10
    pair, traces = counting(lambda image, k: gp.ScalarField(image) * k[0] / k[1])
    ints = np.full(3, 3, "i")
    assert pair(ints, (1, 2)).dtype == np.float32
    pair(ints, (1.0, 2.0))
    assert len(traces) == 2


def test_parameters(device):
    gain = gp.Parameter(2.0)
    captured, traces = counting(lambda image: gp.ScalarField(image) * gain)
    values, traces_given = counting(lambda image, p: gp.ScalarField(image) * p)
    x = image(5)
    for value in (2.0, 3.0, -1.0):
        gain.set(value)
        same_bits(captured(x), x * np.float32(value))
        same_bits(values(x, gain), x * np.float32(value))
    assert len(traces) == len(traces_given) == 1
    same_bits(values(x, gp.Parameter(5.0)), x * np.float32(5))
    assert len(traces_given) == 2
    assert gp.pipeline(lambda a: (gp.ScalarField(a), gain))(x)[1] == -1


def test_constants_and_captured_fields(device):
    table = gp.ScalarField(image(5))
    add = gp.pipeline(lambda a: gp.ScalarField(a) + table)
    x = image(5)
    same_bits(add(x), x + table.numpy())
    assert gp.pipeline(lambda n: table * n)(3).shape == (5,)  # no arrays at all


def test_fields_in_fields_out(device):
    def double(f, k=2):
        return f * k

    result = gp.pipeline(double)(gp.ScalarField(np.ones(3)), k=3)
    assert isinstance(result, gp.Field) and result.numpy().tolist() == [3, 3, 3]
    with pytest.raises(gp.SemanticError, match=r"pipeline `double` gets Fields and arrays"):
        gp.pipeline(double)(np.ones(3), gp.ScalarField(np.ones(3)))


MISUSES = {
    "arithmetic": lambda a: a + 1,
    "reflected": lambda a: 2 * a,
    "comparison": lambda a: a == 1,
    "ufunc": lambda a: np.sqrt(a),
    "function": lambda a: np.sum(a),
    "array": lambda a: np.asarray(a),
    "method": lambda a: a.mean(),
    "item": lambda a: a[0],
    "len": lambda a: len(a),
    "loop": lambda a: [v for v in a],  # noqa: C416
    "truth": lambda a: 1 if a else 2,
    "float": lambda a: float(a),
    "list": lambda a: gp.ScalarField([a, a]),
    "in a body": lambda a: gp.operator(lambda f: _readTensor(a))(gp.ScalarField(np.ones(3))),
    "with a field": lambda a: a * gp.ScalarField(np.ones(3)),
    "operator": lambda a: blur(a),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_the_argument_is_no_array_inside(misuse):
    with pytest.raises(gp.GpuopError) as caught:
        gp.pipeline(lambda a: MISUSES[misuse](a))(np.ones((3, 4), "f"))
    assert "`gp.ScalarField(" in str(caught.value)
    assert misuse in ("list", "operator") or "test_pipeline.py" in str(
        caught.value
    )  # NumPy's line, the operator's line
    assert gp.pipeline(lambda a: gp.ScalarField(a))(np.ones(2)).tolist() == [1, 1]


def test_other_errors():
    echo = gp.pipeline(lambda a, k=None: gp.ScalarField(a))
    with pytest.raises(gp.SemanticError, match=r"what is not an array is a Parameter"):
        echo(np.ones(3), {1: 2})
    with pytest.raises(gp.SemanticError, match=r"pipeline `<lambda>`: missing a required argument: 'a'"):
        echo()
    with pytest.raises(
        gp.SemanticError,
        match=r"returns an array argument as it is; it returns a Field or a tuple of Fields, as `gp.ScalarField\(image\)`",
    ):
        gp.pipeline(lambda a: a)(np.ones(3))
    with pytest.raises(gp.SemanticError, match=r"returns None"):
        gp.pipeline(lambda a: None)(np.ones(3))
    references = []
    gp.pipeline(lambda a: references.append(gp.ScalarField(a)) or references[0] * 2)(np.ones(3))
    with pytest.raises(gp.SemanticError, match=r"stands for an argument of a pipeline"):
        references[0].numpy()


def test_a_trace_that_raises_is_not_kept():
    attempts = []

    @gp.pipeline
    def flaky(a):
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("not yet")
        return gp.ScalarField(a)

    with pytest.raises(ValueError, match="not yet"):
        flaky(np.ones(2))
    assert flaky(np.ones(2)).tolist() == [1, 1]


def test_traces_are_let_go(device, monkeypatch):
    """Programs that a call with another number compiled are not kept for ever."""
    monkeypatch.setattr(sys.modules["gpuop.engine.jit.pipeline"], "PLANS_KEPT", 3)
    scaled = gp.pipeline(lambda a, factor: gp.ScalarField(a) * factor)
    for factor in (1, 2, 3, 4, 5, 1):
        np.testing.assert_array_equal(scaled(np.ones(4, np.float32), factor), np.full(4, factor, np.float32))
    assert len(scaled.traces) == 3


# --- pipelines in pipelines -----------------------------------------------------------------------------------------------

difference = gp.pipeline(lambda x, y: gp.ScalarField(x) - gp.ScalarField(y))
listed = gp.pipeline(lambda xs, k=1: sum(gp.ScalarField(x) * k for x in xs))
ONES = np.ones((2, 3), "f")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_pipeline_is_traced_into_one_that_calls_it(device, swapped):
    """Other arrays stay arrays, and what it gives are Fields."""

    @gp.pipeline
    def outer(a, b):
        inner = difference(ONES, a) if swapped else difference(a, ONES)
        assert isinstance(inner, gp.Field)
        return inner * 10 + difference(b, a) + listed([a, b], k=2) + gp.ScalarField(difference(3 * ONES, ONES))

    for x in (image(2, 3), image(2, 3) + 4):
        y = image(2, 3) - 8
        inner = ONES - x if swapped else x - ONES
        np.testing.assert_allclose(outer(x, y), inner * 10 + (y - x) + (x * 2 + y * 2) + 2, rtol=1e-6)
    np.testing.assert_allclose(difference(x, y), x - y)  # on its own it takes arrays as before
    fields = gp.ScalarField(x), gp.ScalarField(y) * 2
    np.testing.assert_allclose(difference(*fields).numpy(), x - y * 2)  # and Fields, which are made no others


def test_what_stands_for_an_array_has_no_place_in_another_pipeline():
    kept = []

    @gp.pipeline
    def keeps(a):
        kept.append(gp.ScalarField(a))
        return gp.ScalarField(a) + difference(a, a)

    keeps(ONES)
    later = gp.pipeline(lambda b: gp.ScalarField(b) + kept[0])
    captures = gp.pipeline(lambda a: gp.pipeline(lambda b: gp.ScalarField(b) - gp.ScalarField(a))(ONES) + 1)
    for wrong in (later, captures):
        with pytest.raises(
            gp.SemanticError, match="an array that was an argument of another call of a pipeline; make it"
        ):
            wrong(3 * ONES)
    with pytest.raises(gp.SemanticError, match="gives Fields here, which have no memory yet; leave out `out=`"):
        gp.pipeline(lambda a: difference(a, ONES, out=ONES))(ONES)


@pytest.mark.parametrize("of", ["operator", "pipeline"])
def test_lists_that_hold_themselves(of):
    weights: list = [1.0]
    weights.append(weights)
    takes = gp.operator(lambda f, w: f) if of == "operator" else gp.pipeline(lambda f, w: gp.ScalarField(f))
    with pytest.raises(gp.SemanticError, match=r"argument `w` of .* is a list that holds itself"):
        takes(gp.ScalarField(ONES) if of == "operator" else ONES, weights)
