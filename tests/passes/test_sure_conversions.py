"""Conversions of floats to integers that ranges show to fit are plain; others clamp, and take NaN for 0. Values are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.ir import nodes as ir
from gpuop.ir.visit import expressions
from gpuop.passes.pipeline import lower
from tests.as_gpus import used
from tests.runtime.cuda_on_host.compiled import COMPILER
from tests.runtime.cuda_on_host.host_device import ON_HOST

BYTES = np.arange(256, dtype=np.uint8).reshape(4, 64)
SHORTS = np.linspace(-32768, 32767, 256).astype(np.int16).reshape(4, 64)
FLOATS = np.array([np.nan, np.inf, -np.inf, -1, 0, 0.5, 254.9, 255, 255.5, 256, 1e30, -1e30] * 16, np.float32).reshape(
    3, 64
)


def clipped(x, low, high):
    return np.nan_to_num(np.clip(np.trunc(x), low, high), nan=0.0)


# a function of a value, the conversion, the same in NumPy, and whether the conversion is plain
CASES = {
    "clamped": (
        BYTES,
        lambda x: _clamp(x * 1.28 - 30.5, 0.0, 255.0),
        "uchar",
        lambda x: np.clip(x * np.float32(1.28) - np.float32(30.5), 0, 255),
        True,
    ),
    "clamped by minima": (
        BYTES,
        lambda x: _min(_max(x * 2 - 40, 0.0), 255.0),
        "uchar",
        lambda x: np.clip(x * 2 - 40, 0, 255),
        True,
    ),
    "itself": (BYTES, lambda x: x * 1.0, "uchar", lambda x: x, True),
    "just above": (BYTES, lambda x: x * 1.004, "uchar", lambda x: np.minimum(x * np.float32(1.004), 255), False),
    "of a sign": (BYTES, lambda x: 127 - x, "char", lambda x: 127 - x, True),
    "below a sign": (BYTES, lambda x: 126 - x, "char", lambda x: np.maximum(126 - x, -128), False),
    "unsigned of negative": (BYTES, lambda x: -x, "uchar", lambda x: x * 0, False),
    "products": (SHORTS, lambda x: x * x, "int", lambda x: np.minimum(x * x, 2**31 - 1), True),
    "rounded": (
        BYTES,
        lambda x: _floor(x * 0.5 + 0.5),
        "uchar",
        lambda x: np.floor(x * np.float32(0.5) + np.float32(0.5)),
        True,
    ),
    "chosen otherwise": (
        BYTES,
        lambda x: _where(x > 99.0, x * 9, x),
        "uchar",
        lambda x: np.minimum(np.where(x > 99, x * 9, x), 255),
        False,
    ),
    "the other side": (
        BYTES,
        lambda x: _where(x * 9 < 255.0, x * 9, 3.0),
        "uchar",
        lambda x: np.where(x * 9 < 255, x * 9, 3),
        True,
    ),
    "floats": (FLOATS, lambda x: _clamp(x, 0.0, 255.0), "uchar", lambda x: clipped(x, 0, 255), False),
    "quotients": (BYTES, lambda x: 255.0 / x, "uchar", lambda x: clipped(np.float32(255) / x, 0, 255), False),
}


def computed(name: str):
    array, compute, kind, *_ = CASES[name]

    @gp.operator
    def converted(f):
        return globals()[f"_convert_{kind}"](compute(_convert_float(_readTensor(f))))

    return converted(gp.ScalarField(array))


@pytest.mark.parametrize("name", CASES)
def test_values(device: str, name: str) -> None:
    array, _, kind, expected, _ = CASES[name]
    with np.errstate(all="ignore"):
        right = expected(array.astype(np.float32))
    dtype = {"uchar": np.uint8, "char": np.int8, "int": np.int32}[kind]
    np.testing.assert_array_equal(computed(name).numpy(), right.astype(np.float64).astype(dtype))


@pytest.mark.parametrize("name", CASES)
def test_plain_conversions(name: str) -> None:
    """On NVIDIA GPUs saturating takes the place of clamping."""
    kernel = computed(name).node.call.kernel
    for target in ("cuda", "opencl:cpu"):
        parts = list(expressions(lower(kernel, target_named(target)).body))
        casts = [e for e in parts if isinstance(e, ir.Cast) and e.arg.type.kind == "f" and e.type.integer]
        unclamped = target == "cuda" and name in ("clamped", "clamped by minima", "floats")
        assert [e.fits for e in casts] == [CASES[name][-1] and not unclamped]
        assert not unclamped or not any(isinstance(e, ir.Apply) and e.op == "choose" for e in parts)


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_saturation_by_one_instruction(dtype: str) -> None:
    """Clamped at the ends of the type, beyond them, and inside: there the clamping stays."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = np.array(
        [np.nan, np.inf, -np.inf, low - 1, low - 0.5, low, -0.9, 0, high - 0.5, high + 0.9, 7e4, -4e4, 1e30]
    )
    values = np.concatenate([values, -values]).astype(np.float32)
    with used(ON_HOST):
        for least, most in ((low, high), (low - 5, high + 5), (low + 1, high), (low, high - 1)):
            f = gp.ScalarField(values)
            clamped = gp.operator(lambda x, a=least, b=most: _clamp(_readTensor(x), float(a), float(b)))
            result = clamped(f).astype(dtype).numpy()
            with np.errstate(invalid="ignore"):
                right = np.nan_to_num(
                    np.trunc(np.clip(values.astype(np.float64), max(least, low), min(most, high))), nan=0.0
                )
            assert np.array_equal(result, right.astype(dtype))


def test_the_greatest_integers_are_no_floats() -> None:
    """2³¹ and 2⁶³ are floats, though no int32 and int64."""

    @gp.operator(outputs=lambda f: (f.type.replace(dtype="int32"), f.type.replace(dtype="int64")))
    def converted(f):
        x = _convert_float(_readTensor(f)) * 0.0
        _writeTensor(_out0, _convert_int(x + 2147483648.0))
        _writeTensor(_out1, _convert_long(x + 9223372036854775808.0))

    first, second = converted(gp.ScalarField(BYTES))
    assert (first.numpy() == 2**31 - 1).all() and (second.numpy() == 2**63 - 1).all()
