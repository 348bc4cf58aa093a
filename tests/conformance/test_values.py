"""Variables, arrays and vectors of every type: assignment, components, selection; values stay what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, compute, same
from .samples import DTYPES, NAMES, available, samples

rng = np.random.default_rng(19)


def floats(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def test_an_expression_is_bound_where_it_is_written(device: str) -> None:
    a = floats(9)

    def body(f):
        x = _var(_readTensor(f))
        y, same_one, copy = x + 1, x, _var(x)
        x @= 5
        z = x * 2
        x += 1
        return y, same_one, copy, z, x

    five = np.full(9, 5, np.float32)
    all_same(gp.operator(body)(gp.Field(a)), (a + 1, five + 1, a, five * 2, five + 1))


SAME = {  # what gives a variable's value as it is
    "plus": lambda x: +x, "first power": lambda x: x**1, "zero": lambda x: x + 0, "conversion": lambda x: _convert_float(x),
    "dtype": lambda x: _convert(x, "float32"), "bits": lambda x: _as_float(x), "vector of one": lambda x: _vector(x),
    "choice": lambda x: _where(True, x, x),
}  # fmt: skip


def test_what_gives_a_value_as_it_is_gives_that_of_now(device: str) -> None:
    @gp.operator
    def now(f):
        x = _var(_readTensor(f))
        v = _var(_vector(x, x))
        u = _uintVar(x)
        same = [give(x) for give in SAME.values()]
        pair, whole = _float2(v), abs(u)
        x @= 50
        v @= _vector(50.0, 50.0)
        u @= 50
        total = _var(0.0)
        for value in (*same, pair.x, pair.y, _convert_float(whole)):
            total += value
        return total

    a = np.float32([3, 4])
    np.testing.assert_array_equal(now(gp.ScalarField(a)).numpy(), a * (len(SAME) + 3))


def test_a_component_keeps_its_value_too(device: str) -> None:
    a = floats(6, 3)

    def body(f):
        v = _var(_readTensor(f))
        x, swapped = v.x, v.zyx
        v.x = 7
        memory = _floatArray(2)
        memory[0] = x
        before = memory[0]
        memory[0] = 9
        return _vector(x, before, memory[0], v.x), swapped

    x, nine = a[:, 0], np.full(6, 9, np.float32)
    all_same(gp.operator(body)(gp.VectorField(a)), (np.stack([x, x, nine, nine - 2], -1), a[:, ::-1]))


def test_compound_assignment(device: str) -> None:
    a, n = floats(8), rng.integers(1, 100, 8).astype(np.int32)

    def body(f, g):
        x, i, j = _var(_readTensor(f)), _var(_readTensor(g)), _var(_readTensor(g))
        x += 1
        x -= 3.5
        x *= x
        x /= 7
        x **= 2
        i <<= 3
        i += 5
        i //= 2
        i %= 17
        i **= 3
        j >>= 1
        j &= 29
        j |= 2
        j ^= 7
        with pytest.warns(UserWarning, match="truncated each time"):
            j *= 1.5  # computed in float, converted as writing does
        return x, i, j

    x = (a + np.float32(1)) - np.float32(3.5)
    x = (x * x / np.float32(7)) ** 2
    i, j = (((n << 3) + 5) // 2 % 17) ** 3, (((n >> 1) & 29) | 2) ^ 7
    all_same(gp.operator(body)(gp.Field(a), gp.Field(n)), (x, i, j * 3 // 2))


def variables_of(dtype: str, lanes: int, value):
    """Through a variable and an array of the type; what both hold before anything is assigned."""
    name = NAMES[dtype] + (str(lanes) if lanes > 1 else "")
    variable, fresh, array = globals()[f"_{name}Var"](), globals()[f"_{name}Var"](), globals()[f"_{name}Array"](2, 3)
    variable @= value
    array[1, 2] = variable
    return array[1, 2], _vector(fresh, array[0, 1]) if lanes < 3 else array[0, 1]


def test_variables_and_arrays_of_every_type(device: str) -> None:
    for lanes in (1, 2, 3, 4):
        types = [d for d in available() if d != "bool" or lanes == 1]
        arrays = {d: np.stack([samples(d)] * lanes, -1) if lanes > 1 else samples(d) for d in types}
        for first in range(0, len(types), 5):
            some = tuple(types[first : first + 5])

            def body(*fields, some=some, lanes=lanes):
                return tuple(
                    v for d, f in zip(some, fields, strict=True) for v in variables_of(d, lanes, _readTensor(f))
                )

            results = gp.operator(body)(*(gp.Field(arrays[d], lanes > 1) for d in some))
            zeros = {1: (24, 2), 2: (24, 4), 3: (24, 3), 4: (24, 4)}[lanes]
            expected = [e for d in some for e in (arrays[d], np.zeros(zeros, d))]
            all_same(results, expected, [f"{d}{lanes}" for d in some for _ in range(2)])


def test_initial_values_and_conversion_on_assignment(device: str) -> None:
    def body():
        a, b, c = _ucharVar(300), _float3Var(2), _boolVar(0.5)
        d, e = _int2Var(_float2(1.9, -1.9)), _shortVar()
        e @= 1e6
        f = _charArray(1)
        f[0] = -1000
        g = _ushort4Var(-3.5)
        g @= 70000
        return a, b, c, d, e, f[0], g

    types = [
        ((), "u1", 255),
        ((3,), "f4", 2),
        ((), "?", True),
        ((2,), "i4", [1, -1]),
        ((), "i2", 32767),
        ((), "i1", -128),
        ((4,), "u2", 65535),
    ]
    kinds = tuple(gp.FieldType(2, shape, np.dtype(d)) for shape, d, _ in types)
    all_same(gp.operator(outputs=kinds)(body)(), [np.full((2, *shape), v, d) for shape, d, v in types])


def test_arrays(device: str) -> None:
    """Of one to three dimensions, at computed indices; zeroed anew at every turn."""
    a = floats(12)

    def body(f):
        x = _readTensor(f)
        one, three, vectors = _floatArray(12), _intArray(2, 3, 4), _float3Array(2, 2)
        with _for(12) as i:
            one[i] = _readTensor(f, i) * 2
            three[i % 2, i % 3, i / 3] += i + 1
        vectors[1, 0] = _float3(1, x, 3)
        vectors[1, 0] += 1
        sums = _intVar()
        with _for(3) as i:
            inner = _intArray(3)
            inner[i] += 5
            sums += inner[0] + inner[1] + inner[2]
        return one[11 - _column], three[_column % 2, _column % 3, _column / 3], vectors[1, 0], vectors[0, 1], sums

    c = np.arange(12, dtype=np.int32)
    expected = (
        a[::-1] * 2,
        c + 1,
        np.stack([a * 0 + 2, a + 1, a * 0 + 4], -1),
        np.zeros((12, 3), np.float32),
        c * 0 + 15,
    )
    all_same(gp.operator(body)(gp.Field(a)), expected)


def test_types_taken_from_fields(device: str) -> None:
    v, m, b = rng.integers(-9, 9, (5, 3)).astype(np.int16), floats(5, 2, 2), floats(5, 7)

    def body(f, g, h):
        x, y, z = _tensorVar(f), _tensorVar(g), _tensorElementVar(h)
        memory, elements = _tensorArray(g, 2), _tensorElementArray(f, 2, 2)
        x @= _readTensor(f) + 0.75
        memory[1] = _readTensor(g)
        y @= memory[1] + memory[0]
        z @= _readTensorElement(h, 6)
        elements[1, 1] = _readTensorElement(f, 2)
        return x, y, z, elements[1, 1]

    fields = gp.VectorField(v), gp.MatrixField(m), gp.VectorField(b)
    all_same(gp.operator(body)(*fields), (np.trunc(v + 0.75).astype(np.int16), m, b[:, 6], v[:, 2]))


def test_swizzles(device: str) -> None:
    """Reading in every order and with repetition; writing to components in any order."""
    a = floats(7, 4)

    def body(f):
        v = _readTensor(f)
        w, u = _var(v), _var(v)
        w.xz = v.yw
        w.w = w.x + 1
        u.wzyx = v
        u[1] = 5
        u[-1] += 1
        x, y, z, t = v
        u.xy *= 2
        return v.wzyx, v.xxyy, v.zw, v.y, v.zzx, w, u, _vector(t, z, y, x), _vector(v[0], v[-1], v[3]), v.xy.yx

    x, y, _, w = a.T
    u = np.stack([w * 2, 0 * x + 10, y, x + 1], -1)
    expected = (
        a[:, ::-1],
        a[:, [0, 0, 1, 1]],
        a[:, 2:],
        y,
        a[:, [2, 2, 0]],
        np.stack([y, y, w, y + 1], -1),
        u,
        a[:, ::-1],
        a[:, [0, 3, 3]],
        a[:, [1, 0]],
    )
    all_same(gp.operator(body)(gp.VectorField(a)), expected)


def test_vector_literals(device: str) -> None:
    a, i = floats(6), rng.integers(-9, 9, 6).astype(np.int32)

    def body(f, g):
        x, n = _readTensor(f), _readTensor(g)
        two = _float2(x, n)
        return (
            _float4(x),
            _float4(two, 1, 2),
            _float4(1, two, x),
            _float3(two, n),
            _vector(n, 1),
            _vector(n, x, 0.5),
            _int3(x * 100, n, 2.9),
            _uchar2(-3, 300),
            _vector(two, two),
        )

    x, n, one = a, i.astype(np.float32), np.ones(6, np.float32)
    expected = (
        np.stack([x] * 4, -1),
        np.stack([x, n, one, 2 * one], -1),
        np.stack([one, x, n, x], -1),
        np.stack([x, n, n], -1),
        np.stack([i, 0 * i + 1], -1),
        np.stack([n, x, one / 2], -1),
        np.stack([np.trunc(x * 100), n, 2 * one], -1).astype(np.int32),
        np.tile(np.uint8([0, 255]), (6, 1)),
        np.stack([x, n, x, n], -1),
    )
    all_same(gp.operator(body)(gp.Field(a), gp.Field(i)), expected)


def test_vectors_in_arithmetic(device: str) -> None:
    a, b, n = floats(6, 3), floats(6, 3), rng.integers(-99, 99, (6, 3)).astype(np.int16)

    def body(f, g, h):
        v, w, k = _readTensor(f), _readTensor(g), _readTensor(h)
        return v * w + 1, 2 - v, v * v.x, v < w, k / 7, k + w, k >> 1, -v / 2, abs(k), k & 12

    expected = (
        a * b + 1,
        2 - a,
        a * a[:, :1],
        a < b,
        (np.trunc(n / 7)).astype(np.int16),
        n + b,
        n >> 1,
        -a / 2,
        abs(n),
        n & 12,
    )
    all_same(gp.operator(body)(gp.VectorField(a), gp.VectorField(b), gp.VectorField(n)), expected)


def test_selection(device: str) -> None:
    a, b, n = floats(8, 3), floats(8, 3), rng.integers(-2, 2, 8).astype(np.int32)

    def body(f, g, h):
        v, w, k = _readTensor(f), _readTensor(g), _readTensor(h)
        return (
            _where(v > w, v, w),
            _select(v, w, v > w),
            _where(k, v, 0),
            _where(v.x > 0, 1, 2),
            _where(k > 0, k, 0.5),
            _where(_and(k > -2, k < 1), v.xy, w.yz),
            _select(k, 7, k == 0),
            _where(True, v, w),
        )

    k = n[:, None]
    expected = (
        np.where(a > b, a, b),
        np.where(a > b, b, a),
        np.where(k != 0, a, np.float32(0)),
        np.where(a[:, 0] > 0, 1, 2).astype(np.int32),
        np.where(n > 0, n, 0.5).astype(np.float32),
        np.where((k > -2) & (k < 1), a[:, :2], b[:, 1:]),
        np.where(n == 0, 7, n).astype(np.int32),
        a,
    )
    all_same(gp.operator(body)(gp.VectorField(a), gp.VectorField(b), gp.Field(n)), expected)


def test_the_names_are_all_there() -> None:
    """Every type has its variable, array, vector and conversion functions."""
    for dtype in DTYPES:
        for lanes in ("",) if dtype == "bool" else ("", "2", "3", "4"):
            name = NAMES[dtype] + lanes
            kinds = ("Var", "Array") if dtype == "bool" else ("Var", "Array", "convert", "as", *([""] if lanes else []))
            expected = [f"_{name}{k}" if k in ("Var", "Array", "") else f"_{k}_{name}" for k in kinds]
            assert all(callable(globals()[w]) for w in expected)


def test_functions_and_closures_are_metaprogramming(device: str) -> None:
    a, weights = floats(10), (0.25, 0.5, 0.25)

    def average(*values):
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total / len(values)

    def body(f):
        taps = [_readTensor(f, _column + k) * w for k, w in zip((-1, 0, 1), weights, strict=True)]
        return average(*taps), sum(taps)

    p = np.pad(a, 1, mode="edge")
    taps = [p[k : k + 10] * np.float32(w) for k, w in enumerate(weights)]
    first, second = compute(body, gp.Field(a))
    same(first, (taps[0] + taps[1] + taps[2]) / np.float32(3))
    same(second, taps[0] + taps[1] + taps[2])
