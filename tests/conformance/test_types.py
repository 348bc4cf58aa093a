"""Types: storage, arithmetic in C's rank order, numbers, conversions, bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, compute, has_double, same

rng = np.random.default_rng(17)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = ("bool", *INTEGERS, "float16", "float32", "float64")
NAMES = dict(zip(DTYPES, "bool char uchar short ushort int uint long ulong half float double".split(), strict=True))


def available(dtypes: tuple[str, ...] = DTYPES) -> tuple[str, ...]:
    return tuple(d for d in dtypes if d != "float64" or has_double())


def samples(dtype: str) -> Any:
    """Values of a type: its corners and some between."""
    if dtype == "bool":
        return np.array([False, True, True, False] * 6)
    if dtype.startswith("float"):
        top = np.finfo(dtype).max
        some = [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 126.5, 127.5, 255.5, -128.5, 300, 4e4, -7e4, 2**31, -(2**31), 2**63, 2**64]
        with np.errstate(over="ignore"):
            return np.array([*some, np.nan, np.inf, -np.inf, top], np.float64).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    corners = [low, low + 1, low + 2, 0, 1, 2, 3, 7, 8, 31, 100, high // 3, high // 2, high - 1, high]
    corners += [high - 63] if low == 0 else [-1, -2, -7, -8, -100, low // 2]
    return np.resize(np.array(corners, dtype), 24)


# --- storage ----------------------------------------------------------------------------------------------------------


def test_round_trips(device: str) -> None:
    arrays = {d: samples(d) for d in available()} | {"complex64": (rng.random(24) - 1j).astype("c8"), "unorm8": np.arange(256, dtype="u1")}
    fields = [gp.Field(a, dtype="unorm8") if d == "unorm8" else gp.Field(a) for d, a in arrays.items()]
    vectors = [gp.VectorField(np.stack([a, a[::-1], a], -1)) for a in list(arrays.values())[:-2]]

    def copies(*fields):
        for k, field in enumerate(fields):
            _writeTensor(globals()[f"_out{k}"], _readTensor(field))

    for part in (fields[:7], fields[7:13], vectors[:6], vectors[6:]):
        kinds, sizes = tuple(f.type for f in part), {f.field_shape for f in part}
        if len(sizes) == 1:
            all_same(gp.operator(outputs=kinds)(copies)(*part), [f.numpy() for f in part], [k.dtype for k in kinds])
    same(gp.operator(copies)(fields[-1]), arrays["unorm8"])
    for field, array in zip(fields, arrays.values(), strict=True):
        same(field, array)


def test_unorm8_and_complex(device: str) -> None:
    levels = np.linspace(-0.5, 1.5, 400, dtype=np.float32)
    written = gp.operator(outputs=gp.FieldType(403, (), "unorm8"))(lambda f: _readTensor(f))
    got = written(gp.Field(np.append(levels, np.float32([np.nan, np.inf, -np.inf])))).numpy()
    assert np.abs(got[:400] - np.clip(levels, 0, 1) * 255.0).max() <= 0.5 + 1e-4
    assert got[400:].tolist() == [0, 255, 0]
    read = compute(lambda f: _readTensor(f) * 1, gp.Field(np.arange(256, dtype=np.uint8), dtype="unorm8"))
    same(read, np.arange(256, dtype=np.float32) / np.float32(255))
    z = (rng.random(9) + 1j * rng.random(9)).astype(np.complex64)
    swapped = gp.operator(outputs=lambda f: f.type)(lambda f: _readTensor(f).yx * 2)
    same(swapped(gp.ComplexField(z)), (z.imag + 1j * z.real).astype(np.complex64) * np.complex64(2))
    same(compute(lambda f: _readTensor(f).y, gp.ComplexField(z)), z.imag)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def in_python(a: Any, b: Any) -> list[Any]:
    """The operators on Python's integers, wrapped to the type."""
    bits = a.dtype.itemsize * 8

    def each(function: Any) -> Any:
        exact = [function(int(x), int(y)) % 2**bits for x, y in zip(a, b, strict=True)]
        return np.array(exact, f"u{bits // 8}").view(a.dtype)

    return [
        each(f)
        for f in (
            lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, truncated,
            lambda x, y: x - truncated(x, y) * y if y else 0, lambda x, y: x // y if y else 0, lambda x, y: -x, lambda x, y: ~x,
            lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: abs(x),
            lambda x, y: x << y % bits, lambda x, y: x >> y % bits, lambda x, y: x**3, lambda x, y: min(x, y),
        )
    ]  # fmt: skip


def arithmetic(a, b):
    first = (a + b, a - b, a * b, a / b), (a % b, a // b, -a, ~a)
    return *(_vector(*four) for four in first), _vector(a & b, a | b, a ^ b, abs(a)), _vector(a << b, a >> b, a**3, _min(a, b))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integer_arithmetic(device: str, bits: int) -> None:
    """All pairs of corners; division by zero gives 0 and harms nobody; INT_MIN / -1 stays what it is."""
    arrays, expected = [], []
    for letter in "iu":
        corners = samples(f"{letter}{bits // 8}"[0] and ("int" if letter == "i" else "uint") + str(bits))
        pairs = np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2)
        arrays += [np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])]
        found = in_python(*arrays[-2:])
        expected += [np.stack(found[k : k + 4], -1) for k in (0, 4, 8, 12)]

    def body(a, b, c, d):
        return *arithmetic(_readTensor(a), _readTensor(b)), *arithmetic(_readTensor(c), _readTensor(d))

    results = gp.operator(body)(*map(gp.Field, arrays))
    all_same(results, expected)


def test_constants_fold_as_devices_compute(device: str) -> None:
    """The same corners with constant operands, which the compiler computes."""
    corners = [np.int32(v) for v in (-(2**31), -7, -1, 0, 1, 7, 2**31 - 1)]
    pairs = [(a, b) for a in corners for b in corners]

    def body():
        for k, (a, b) in enumerate(pairs):
            x, y = _convert_int(a), _convert_int(b)
            for j, v in enumerate((x + y, x - y, x * y, x / y, x % y, x // y, -x, ~x, x & y, x | y, x ^ y, abs(x), x << y, x >> y, x**3, _min(x, y))):
                _writeTensorElement(_out0, v, k, j)

    kind = gp.FieldType(len(pairs), 16, "int32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = gp.operator(outputs=kind, default=0)(lambda: _one_thread(body))().numpy()
    same(got, np.stack(in_python(*np.array(pairs, np.int32).T), -1))


def _one_thread(body: Any) -> None:
    with _if(_column == 0):
        body()


def test_float_arithmetic(device: str) -> None:
    """+ - * / sqrt are correctly rounded, half's too; % is fmod, // rounds down; comparisons of NaN are false."""
    for dtype in available(("float16", "float32", "float64")):
        corners = samples(dtype)
        corners = np.append(corners, rng.standard_normal(40).astype(dtype))
        a, b = (np.ascontiguousarray(x) for x in np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2).T)

        def body(f, g):
            x, y = _readTensor(f), _readTensor(g)
            return _vector(x + y, x - y, x * y, x / y), _vector(_sqrt(x), -x, abs(x), x**2), x % y, _vector(x < y, x <= y, x == y, x != y), x // y

        with np.errstate(all="ignore"):
            wide = (a.astype("f4") / b.astype("f4")).astype(a.dtype) if dtype == "float16" else a / b
            expected = (np.stack([a + b, a - b, a * b, wide], -1), np.stack([np.sqrt(a), -a, abs(a), a * a], -1), np.fmod(a, b),
                        np.stack([a < b, a <= b, a == b, a != b], -1), np.floor(wide))  # fmt: skip
        all_same(gp.operator(body)(gp.Field(a), gp.Field(b)), expected)


def promoted(a: str, b: str) -> str:
    """C's rank order, without promotion to int below it."""
    for kind in "fui":
        widths = [np.dtype(d).itemsize for d in (a, b) if np.dtype(d).kind == kind]
        others = [np.dtype(d).itemsize for d in (a, b) if np.dtype(d).kind in "iu"]
        if widths and (kind == "f" or max(widths) == max(others)):
            return {"f": "float", "u": "uint", "i": "int"}[kind] + str(8 * max(widths))
    return "int32"


def test_result_types() -> None:
    """Of a + b for all pairs of types: no device is needed to see them."""
    add = gp.operator(lambda f, g: _readTensor(f) + _readTensor(g))
    less = gp.operator(lambda f, g: _readTensor(f) < _readTensor(g))
    fields = {d: gp.Field(samples(d)) for d in DTYPES}
    for a in DTYPES:
        for b in DTYPES:
            assert add(fields[a], fields[b]).dtype == promoted(a, b), (a, b)
            assert less(fields[a], fields[b]).dtype == "bool"
    assert promoted("int8", "uint8") == "uint8" and promoted("uint8", "int16") == "int16" and promoted("float16", "int64") == "float16"


def test_mixed_types_wrap(device: str) -> None:
    i, u, b = np.array([-1, -2, 5, 300], "i4"), np.array([1, 1, 3, 4], "u4"), np.array([200, 255, 0, 1], "u1")

    def body(f, g, h):
        x, y, z = _readTensor(f), _readTensor(g), _readTensor(h)
        return x + y, x < y, z + z, z + _convert_char(x), x * z, x + 0.5, z / 2, _readTensor(h) + (z > 1)

    expected = (
        i.view("u4") + u, i.view("u4") < u, b + b, b + np.array([255, 254, 5, 127], "u1"), i * b.astype("i4"),
        i.astype("f4") + np.float32(0.5), b // np.uint8(2), b + (b > 1).astype("u1"),
    )  # fmt: skip
    all_same(gp.operator(body)(gp.Field(i), gp.Field(u), gp.Field(b)), expected)


NUMBERS: tuple[tuple[str, Any, str | None], ...] = (
    ("uint8", 1, "uint8"), ("uint8", 255, "uint8"), ("uint8", 256, None), ("uint8", -1, None), ("int8", 128, None), ("int8", -128, "int8"),
    ("uint8", 0.5, "float32"), ("int64", 2**40, "int64"), ("int32", 2**31, None), ("uint64", 2**64 - 1, "uint64"), ("uint64", 2**64, None),
    ("float32", 1, "float32"), ("float32", 2**40, "float32"), ("float16", 65504.0, "float16"), ("float16", 1e6, None), ("float16", 70000, None),
    ("float32", 1e39, None), ("float32", float("inf"), "float32"), ("float64", 1e39, "float64"), ("float64", 0.1, "float64"), ("bool", 1, "int32"),
    ("bool", 1.5, "float32"), ("uint8", True, "uint8"), ("float32", np.float64(0.1), "float32"), ("int16", np.int64(3), "int16"),
    ("int16", np.int64(40000), None), ("uint8", np.float32(2), "float32"), ("float32", np.bool_(True), "float32"),
)  # fmt: skip


@pytest.mark.parametrize(("dtype", "number", "result"), NUMBERS)
def test_numbers_take_the_type_of_the_other_side(dtype: str, number: Any, result: str | None) -> None:
    field = gp.Field(samples(dtype))
    left, right = gp.operator(lambda f: number + _readTensor(f)), gp.operator(lambda f: _readTensor(f) + number)
    if result is None:
        for wrong in (left, right):
            with pytest.raises(gp.SemanticError, match="does not fit"):
                wrong(field)
    else:
        assert left(field).dtype == right(field).dtype == result


def test_numbers_alone_and_on_the_left(device: str) -> None:
    x, n, s = np.float32([0.5, 2, -4]), np.array([3, -3, 7]), np.array([1, 9, 40], "u8")

    def body(f, g, h):
        a, b, c = _readTensor(f), _readTensor(g), _readTensor(h)
        return 1 / a, 7 / b, 7 % b, 7 // b, 2 - a, 1 << c, _var(3) / 2, _var(3.0) / 2, np.float64(0.1) * a, 2**a

    expected = (1 / x, np.array([2, -2, 1]), np.array([1, 1, 0]), np.array([2, -3, 1]), 2 - x, np.uint64(1) << s, np.full(3, 1, "i4"),
                np.full(3, 1.5, "f4"), np.float32(0.1) * x)  # fmt: skip
    got = gp.operator(body)(gp.Field(x), gp.Field(n), gp.Field(s))
    all_same(got[:9], expected)
    np.testing.assert_allclose(got[9], 2.0**x, rtol=1e-6)


def test_bools(device: str) -> None:
    p, q = np.array([False, False, True, True]), np.array([False, True, False, True])

    def body(f, g):
        a, b = _readTensor(f), _readTensor(g)
        return a + b, a & b, a ^ b, ~a, -a, a < b, _and(a, b) | _not(b), _or(a, 0), a * 2.5, a == b

    i, j = p.astype("i4"), q.astype("i4")
    expected = (i + j, p & q, p ^ q, ~p, -i, p < q, (p & q) | ~q, p, p.astype("f4") * np.float32(2.5), p == q)
    all_same(gp.operator(body)(gp.Field(p), gp.Field(q)), expected)


# --- conversions ------------------------------------------------------------------------------------------------------


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
    spread = gp.operator(outputs=(gp.FieldType(24, 3, "uint8"), gp.FieldType(24, (2, 2), "int16")))(lambda f: (_readTensor(f), 70000))
    all_same(spread(gp.Field(a)), [np.stack([converted(a, "uint8")] * 3, -1), np.full((24, 2, 2), 32767, "i2")])


def test_rounding_to_half(device: str) -> None:
    """Once, to nearest even: also from double, where rounding to float first would round twice."""
    ties = np.array([1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-40, 65519.99, 65520, 2**-25, 2**-25 * (1 + 2**-30), 2**-24, -1e-7])
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
    all_same(gp.operator(lambda f: (_as_int3(_readTensor(f)), _as_float3(_as_uint3(_readTensor(f)))))(gp.VectorField(v)), (v.view("i4"), v))
