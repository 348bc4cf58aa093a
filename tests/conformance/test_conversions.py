"""Conversions of every type to every type, and bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, has_double, same
from .samples import INTEGERS, NAMES, available, samples

rng = np.random.default_rng(17)


def converted(a: Any, dtype: str) -> Any:
    """Truncated and saturated, NaN giving 0; to bool, whether it is not 0."""
    if dtype == "bool":
        return a != 0
    with np.errstate(all="ignore"):
        if dtype.startswith("float"):
            return a.astype(dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    finite = [0.0 if v != v else min(max(v, -1e30), 1e30) for v in a.tolist()]
    return np.array([min(max(int(v), low), high) for v in finite], dtype)


def test_conversions(device: str) -> None:
    """Of every type to every type, by `_convert_T`, by `_convert` and by writing."""
    types = available()
    sources = {d: samples(d) for d in types}

    def to(target, *fields):
        values = [_readTensor(f) for f in fields]
        named, generic = globals().get(f"_convert_{NAMES[target]}"), [_convert(v, target) for v in values]
        converted = [named(v) for v in values] if named else generic
        parts = [converted[:4], generic[4:8], converted[8:]]
        return tuple(_vector(*part) for part in parts)

    for first in range(0, len(types), 3):
        some = types[first : first + 3]
        body = gp.operator(lambda *fields, some=some: tuple(v for t in some for v in to(t, *fields)))
        expected = []
        for target in some:
            each = [converted(a, target) for a in sources.values()]
            expected += [np.stack(part, -1) for part in (each[:4], each[4:8], each[8:])]
        all_same(body(*map(gp.Field, sources.values())), expected, [f"{t} {k}" for t in some for k in range(3)])


def test_conversion_by_writing(device: str) -> None:
    a, n = samples("float32"), samples("int32")
    targets = ("bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16")
    types = tuple(gp.FieldType(24, (), d) for d in targets)
    write = gp.operator(outputs=types)(lambda f: (_readTensor(f),) * len(targets))
    for array in (a, n):
        all_same(write(gp.Field(array)), [converted(array, d) for d in targets], targets)
    spread = gp.operator(outputs=(gp.FieldType(24, 3, "uint8"), gp.FieldType(24, (2, 2), "int16")))(
        lambda f: (_readTensor(f), 70000)
    )
    all_same(spread(gp.Field(a)), [np.stack([converted(a, "uint8")] * 3, -1), np.full((24, 2, 2), 32767, "i2")])


def corners(dtype: str) -> Any:
    """Around the bounds of all integer types; zeros, infinities, and NaNs of either sign, quiet and signalling."""
    kind, bits = np.dtype(dtype).type, np.dtype(f"u{np.dtype(dtype).itemsize}")
    with np.errstate(all="ignore"):
        bounds = np.array([f(np.iinfo(t)) for t in INTEGERS for f in (lambda i: i.min, lambda i: i.max)]).astype(kind)
        near = [np.nextafter(bounds, kind(-np.inf)), bounds, np.nextafter(bounds, kind(np.inf)), bounds - 1, bounds + 1]
    infinite = np.array([np.inf], kind).view(bits)[0]
    nans = np.array(
        [infinite + 1, ~infinite, infinite | ~(infinite >> 1), np.array([-np.inf], kind).view(bits)[0] + 1], bits
    )
    return np.concatenate([*near, np.array([0.0, -0.0, np.inf, -np.inf, 0.99, -0.99], kind), nans.view(kind)])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("lanes", [True, False])
def test_floats_at_the_bounds_of_integers(device: str, dtype: str, lanes: bool) -> None:
    """In vectors where the device has them, which a call of `_exp` asks for, and point by point."""
    if dtype not in available((dtype,)):
        pytest.skip("the device has no double")
    some = corners(dtype)
    n = 8192 if lanes else len(some)

    def converted_to_all(f):
        value = _readTensor(f) if lanes else _readTensor(f, _column + 1)
        return (*(_convert(value, t) for t in INTEGERS), _exp(value))

    *results, called = gp.operator(converted_to_all)(gp.Field(np.resize(some, n)))
    gp.evaluate(*results, called)
    shifted = some if lanes else np.append(some[1:], some[-1])
    all_same(results, [np.resize(converted(shifted, t), n) for t in INTEGERS], INTEGERS)


def test_rounding_to_half(device: str) -> None:
    """Once, to nearest even: also from double, where rounding to float first would round twice."""
    ties = np.array(
        [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-40, 65519.99, 65520, 2**-25, 2**-25 * (1 + 2**-30), 2**-24, -1e-7]
    )
    half = gp.operator(lambda f: _convert_half(_readTensor(f)))
    sources = [ties.astype("f4"), *([ties] if has_double() else [])]
    with np.errstate(over="ignore"):
        all_same([half(gp.Field(a)) for a in sources], [a.astype("f2") for a in sources])


def test_bits(device: str) -> None:
    arrays = {d: samples(d) for d in available() if d != "bool"}
    pairs = [(a, b) for a in arrays for b in arrays if a != b and np.dtype(a).itemsize == np.dtype(b).itemsize]
    for first in range(0, len(pairs), 10):
        some = tuple(pairs[first : first + 10])

        def body(*fields, some=some):
            return tuple(globals()[f"_as_{NAMES[to]}"](_readTensor(f)) for f, (_, to) in zip(fields, some, strict=True))

        expected = [arrays[a].view(b) for a, b in some]
        results = gp.operator(body)(*(gp.Field(arrays[a]) for a, _ in some))
        for result, want, (a, b) in zip(results, expected, some, strict=True):
            nan = np.isnan(want) | (np.isnan(arrays[a]) if "float" in a else False)  # a NaN's bits may change
            same(np.where(nan, 0, result.numpy()), np.where(nan, 0, want), f"{a} {b}")
    v = rng.standard_normal((6, 3)).astype(np.float32)
    all_same(
        gp.operator(lambda f: (_as_int3(_readTensor(f)), _as_float3(_as_uint3(_readTensor(f)))))(gp.VectorField(v)),
        (v.view("i4"), v),
    )


def test_components_clamped_side_by_side(device: str) -> None:
    """Of 16 bits each; NVIDIA's assembler does that for two at a time."""

    @gp.operator(outputs=(gp.FieldType((3,), (6,), "uint64"), gp.FieldType((3,), (4,), "int64")))
    def op(f):
        near = _where(
            _convert_short(_convert_half(_readTensor(f).x)) < 1,
            _convert_uchar(1),
            _convert_uchar(_readTensorElement(f, 1, 1)),
        )
        with _forEachTensorElement((6,)):
            _writeTensorElement(_out0, _convert_ulong(near), _tensorElement)
        other = _where(
            _readTensor(f, _column - 2).x != 0,
            _convert_long4(_readTensor(f, _column - 3, border="symmetric").yyxy),
            _convert_uchar4(_readTensor(f).yyyy),
        )
        _writeTensor(_out1, (_convert_long4(5) * _convert_char4(_readTensor(f).yxyx) * other) << 16)

    first, second = op(gp.VectorField(np.full((3, 2), -35, np.int16)))
    gp.evaluate(first, second)
    assert np.all(first.numpy() == 1) and np.all(second.numpy() == (5 * 35 * 35) << 16)


@pytest.mark.parametrize("wide", ["int32", "uint32", "int64", "uint64"])
def test_what_is_clipped_to_narrow_integers_is_compared(device: str, wide: str) -> None:
    """Of what lies in an array of the thread's own, too: NVIDIA's assembler has lost such comparisons."""
    narrow = ("int8", "uint8", "int16", "uint16")
    ends = [(int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in narrow]

    @gp.operator(outputs=[gp.FieldType(9, (), "int32")] * len(narrow))
    def compared(x: Any, zeros: Any) -> None:
        table = _intArray(8)
        at = _convert_int(_readTensor(zeros))
        outputs = (_out0, _out1, _out2, _out3)
        for out, dtype, (low, high) in zip(outputs, narrow, ends, strict=True):
            value, kept = _convert(_readTensor(x), dtype), _convert(table[at ^ 7], dtype)
            total = _where(value >= high, 1, 0) + _where(value <= low, 2, 0) + _where(value == 7, 4, 0)
            _writeTensor(out, total + _where(high <= kept, 8, 0) + _where(kept == 0, 16, 0))

    info = np.iinfo(wide)
    numbers = [v for v in (0, 1, 7, -1, 127, 128, -128, 255, 65535) if info.min <= v <= info.max]
    x = np.resize(np.array(numbers, wide), 9)
    result = compared(gp.ScalarField(x), gp.ScalarField(np.zeros(9, wide)))
    for field, (low, high) in zip(result, ends, strict=True):
        clipped = [min(max(int(v), low), high) for v in x]
        expected = [(v >= high) + 2 * (v <= low) + 4 * (v == 7) + 16 for v in clipped]
        np.testing.assert_array_equal(field.numpy(), expected)
