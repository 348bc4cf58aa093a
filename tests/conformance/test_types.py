"""Types: storage, results in C's rank order, numbers, bools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, compute, same
from .samples import DTYPES, available, samples

rng = np.random.default_rng(17)
# --- storage ----------------------------------------------------------------------------------------------------------


def test_round_trips(device: str) -> None:
    arrays = {d: samples(d) for d in available()} | {
        "complex64": (rng.random(24) - 1j).astype("c8"),
        "complex128": rng.random(24) - 1j,
        "unorm8": np.arange(256, dtype="u1"),
    }
    fields = [gp.Field(a, dtype="unorm8") if d == "unorm8" else gp.Field(a) for d, a in arrays.items()]
    vectors = [gp.VectorField(np.stack([a, a[::-1], a], -1)) for a in list(arrays.values())[:-3]]

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
    actual = written(gp.Field(np.append(levels, np.float32([np.nan, np.inf, -np.inf])))).numpy()
    assert np.abs(actual[:400] - np.clip(levels, 0, 1) * 255.0).max() <= 0.5 + 1e-4
    assert actual[400:].tolist() == [0, 255, 0]
    read = compute(lambda f: _readTensor(f) * 1, gp.Field(np.arange(256, dtype=np.uint8), dtype="unorm8"))
    same(read, np.arange(256, dtype=np.float32) / np.float32(255))
    z = (rng.random(9) + 1j * rng.random(9)).astype(np.complex64)
    swapped = gp.operator(outputs=lambda f: f.type)(lambda f: _readTensor(f).yx * 2)
    same(swapped(gp.ComplexField(z)), (z.imag + 1j * z.real).astype(np.complex64) * np.complex64(2))
    same(compute(lambda f: _readTensor(f).y, gp.ComplexField(z)), z.imag)


# --- types of results -------------------------------------------------------------------------------------------------


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
    assert (
        promoted("int8", "uint8") == "uint8"
        and promoted("uint8", "int16") == "int16"
        and promoted("float16", "int64") == "float16"
    )


def test_mixed_types_wrap(device: str) -> None:
    i, u, b = np.array([-1, -2, 5, 300], "i4"), np.array([1, 1, 3, 4], "u4"), np.array([200, 255, 0, 1], "u1")

    def body(f, g, h):
        x, y, z = _readTensor(f), _readTensor(g), _readTensor(h)
        return x + y, x < y, z + z, z + _convert_char(x), x * z, x + 0.5, z / 2, _readTensor(h) + (z > 1)

    expected = (
        i.view("u4") + u,
        i.view("u4") < u,
        b + b,
        b + np.array([255, 254, 5, 127], "u1"),
        i * b.astype("i4"),
        i.astype("f4") + np.float32(0.5),
        b // np.uint8(2),
        b + (b > 1).astype("u1"),
    )
    all_same(gp.operator(body)(gp.Field(i), gp.Field(u), gp.Field(b)), expected)


NUMBERS: tuple[tuple[str, Any, str | None], ...] = (
    ("uint8", 1, "uint8"),
    ("uint8", 255, "uint8"),
    ("uint8", 256, None),
    ("uint8", -1, None),
    ("int8", 128, None),
    ("int8", -128, "int8"),
    ("uint8", 0.5, "float32"),
    ("int64", 2**40, "int64"),
    ("int32", 2**31, None),
    ("uint64", 2**64 - 1, "uint64"),
    ("uint64", 2**64, None),
    ("float32", 1, "float32"),
    ("float32", 2**40, "float32"),
    ("float16", 65504.0, "float16"),
    ("float16", 1e6, None),
    ("float16", 70000, None),
    ("float32", 1e39, None),
    ("float32", float("inf"), "float32"),
    ("float64", 1e39, "float64"),
    ("float64", 0.1, "float64"),
    ("bool", 1, "int32"),
    ("bool", 1.5, "float32"),
    ("uint8", True, "uint8"),
    ("float32", np.float64(0.1), "float32"),
    ("int16", np.int64(3), "int16"),
    ("int16", np.int64(40000), None),
    ("uint8", np.float32(2), "float32"),
    ("float32", np.bool_(True), "float32"),
)


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

    expected = (
        1 / x,
        np.array([2, -2, 1]),
        np.array([1, 1, 0]),
        np.array([2, -3, 1]),
        2 - x,
        np.uint64(1) << s,
        np.full(3, 1, "i4"),
        np.full(3, 1.5, "f4"),
        np.float32(0.1) * x,
    )
    actual = gp.operator(body)(gp.Field(x), gp.Field(n), gp.Field(s))
    all_same(actual[:9], expected)
    np.testing.assert_allclose(actual[9], 2.0**x, rtol=1e-6)


def test_bools(device: str) -> None:
    p, q = np.array([False, False, True, True]), np.array([False, True, False, True])

    def body(f, g):
        a, b = _readTensor(f), _readTensor(g)
        return a + b, a & b, a ^ b, ~a, -a, a < b, _and(a, b) | _not(b), _or(a, 0), a * 2.5, a == b

    i, j = p.astype("i4"), q.astype("i4")
    expected = (i + j, p & q, p ^ q, ~p, -i, p < q, (p & q) | ~q, p, p.astype("f4") * np.float32(2.5), p == q)
    all_same(gp.operator(body)(gp.Field(p), gp.Field(q)), expected)


KEPT = (np.uint8(200), np.int8(-5), np.uint16(60000), np.int16(-3), np.uint32(0xDEADBEEF), np.int32(7), np.uint64(2**63 + 1),
        np.int64(2**40), np.float16(0.1), np.float32(0.1), np.bool_(True))  # fmt: skip
AS_PYTHONS = (np.int64(7), np.float64(0.1), np.array(3), np.array(0.25))


def test_numbers_of_numpy_keep_their_dtype() -> None:
    """Alone: int64 and float64 are what NumPy makes of Python's numbers, so they count as such where they fit."""

    @gp.operator
    def inferred(f, numbers):
        return [_var(n) for n in numbers]

    for start in (0, 1):  # ten outputs at most
        numbers = KEPT[start : start + 10]
        all_same(inferred(gp.ScalarField(np.zeros(2, "f")), numbers), [np.full(2, n) for n in numbers])
    weak = gp.operator(lambda f: tuple(map(_var, AS_PYTHONS)))(gp.ScalarField(np.zeros(2, "f")))
    all_same(weak, [np.full(2, n, d) for n, d in zip(AS_PYTHONS, ("i4", "f4", "i4", "f4"), strict=True)])


def test_numbers_of_numpy_in_functions() -> None:
    """Of numbers alone a function computes in their dtypes; beside a value they take its type."""

    @gp.operator
    def computed(f):
        x = _readTensor(f)
        return (
            _clz(np.uint8(1)), _clz(np.uint16(1)), _max(np.uint8(3), 7), _add_sat(np.uint8(200), np.uint8(100)),
            x + np.uint8(1), x * np.float64(2.5), np.float64(2.5) * x, _max(x, np.int64(3)), _vector(np.uint8(1), np.uint8(2)),
        )  # fmt: skip

    bytes_ = np.array([4, 250], "uint8")
    want = [np.uint8(7), np.uint16(15), np.uint8(7), np.uint8(255)]
    want = [np.full(2, n) for n in want] + [np.array([5, 251], "uint8"), *[np.float32(2.5) * bytes_.astype("f")] * 2]
    want += [np.array([4, 250], "uint8"), np.array([[1, 2]] * 2, "uint8")]
    all_same(computed(gp.ScalarField(bytes_)), want)


def test_a_number_returned_converts_to_the_declared_type() -> None:
    kinds = tuple(gp.FieldType(2, dtype=d) for d in ("uint32", "uint64", "int64", "uint8", "float64", "bool"))
    numbers = (0xDEADBEEF, 2**64 - 1, -(2**40), 300, 0.1, 1)
    results = gp.operator(outputs=kinds)(lambda f: numbers)(gp.ScalarField(np.zeros(2, "f")))
    want = [
        np.full(2, n, k.dtype) for n, k in zip((0xDEADBEEF, 2**64 - 1, -(2**40), 255, 0.1, True), kinds, strict=True)
    ]
    all_same(results, want)
