"""The programs of the conformance suite, each with expected values from NumPy.

There is one for each feature that a back end implements itself: types, borders, control flow, work-groups, atomics, grids,
and the launches of plans. None needs pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *

Case = tuple[Any, ...]  # a field or an array, its expected values, and the tolerance in units of the last place
PROGRAMS: dict[str, Callable[[], Iterable[Case]]] = {}

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ODD = (19, 37)  # no multiple of any vector or work-group


def program(make: Callable[[], Iterable[Case]]) -> Callable[[], Iterable[Case]]:
    PROGRAMS[make.__name__] = make
    return make


def reals(shape: Any = ODD, dtype: str = "float32", seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def whole(dtype: str, shape: Any = ODD, seed: int = 0) -> Any:
    """Any values of an integer type."""
    return np.random.default_rng(seed).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


# --- numbers ----------------------------------------------------------------------------------------------------------


@program
def floats() -> Iterable[Case]:
    a, b = reals(), reals(seed=1)
    x, y = gp.ScalarField(a), gp.ScalarField(b)
    yield x * y + x, a * b + a  # no contraction
    yield x / y, a / b
    yield np.sqrt(np.abs(x)), np.sqrt(np.abs(a))
    yield np.floor(x * 8) % 3, np.floor(a * 8) % 3


@program
def functions() -> Iterable[Case]:
    a = reals()
    x = gp.ScalarField(a)
    exact = a.astype("float64")
    yield np.exp(x), np.exp(exact), 3
    yield np.sin(x), np.sin(exact), 4
    yield np.log(np.abs(x) + 1), np.log((np.abs(a) + np.float32(1)).astype("float64")), 3
    yield np.arctan2(x, x * x), np.arctan2(exact, (a * a).astype("float64")), 6


@program
def doubles() -> Iterable[Case]:
    a, b = reals(dtype="float64"), reals(dtype="float64", seed=1)
    yield gp.ScalarField(a) / gp.ScalarField(b), a / b


@program
def halves() -> Iterable[Case]:
    a = reals(dtype="float16")
    yield gp.ScalarField(a) * gp.ScalarField(a), a * a


@program
def integers() -> Iterable[Case]:
    for dtype in INTEGERS:
        a, b = whole(dtype), whole(dtype, seed=1)
        x, y = gp.ScalarField(a), gp.ScalarField(b)
        yield x * y - x, a * b - a  # they wrap
        yield x ^ (y >> 1), a ^ (b >> 1)
        yield np.maximum(x, ~y), np.maximum(a, ~b)


@program
def quotients() -> Iterable[Case]:
    for dtype in INTEGERS:
        a, b = whole(dtype), whole(dtype, seed=1)
        a[a == np.iinfo(dtype).min] = 1
        b[b == 0] = 3
        yield gp.ScalarField(a) // gp.ScalarField(b), a // b
        yield gp.ScalarField(a) % gp.ScalarField(b), a % b


@gp.operator(outputs=lambda f: f.type.replace(dtype="uint8"))
def clipped(f):  # type: ignore[no-untyped-def]
    return _readTensor(f) * 100


@program
def conversions() -> Iterable[Case]:
    a = reals() * 3
    a[0, :3] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        saturated = np.nan_to_num(np.trunc(np.clip(a * np.float32(100), 0, 255))).astype("uint8")
    yield clipped(gp.ScalarField(a)), saturated
    counts = whole("int16")
    yield gp.ScalarField(counts).astype("float32"), counts.astype("float32")
    bytes_ = whole("uint8")
    yield gp.ScalarField(bytes_, dtype="unorm8") * 1, bytes_.astype("float32") / np.float32(255), 1


@program
def tensors() -> Iterable[Case]:
    v, m, c = reals((*ODD, 3)), reals((5, 6, 2, 3)), reals() + 1j * reals(seed=1)
    yield gp.ComplexField(c) + gp.ComplexField(c).conj(), c + c.conj()
    yield gp.VectorField(v) * 2 - 1, v * 2 - 1
    yield gp.MatrixField(m)[2], m[2]
    big = reals((4, 5, 40))
    yield gp.VectorField(big) + gp.VectorField(big), big + big


# --- places -----------------------------------------------------------------------------------------------------------


@gp.operator
def cross(f, border):  # type: ignore[no-untyped-def]
    around = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    return reduce(lambda a, b: a + b, [_readTensor(f, _row + r, _column + c, border=border) for r, c in around])


@program
def borders() -> Iterable[Case]:
    a = reals()
    modes = {"clamp": "edge", "zero": "constant", "wrap": "wrap", "reflect": "reflect", "symmetric": "symmetric"}
    for border, mode in modes.items():
        p = np.pad(a, 1, mode=mode)  # type: ignore[call-overload]
        yield cross(gp.ScalarField(a), border), p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]


@program
def stages() -> Iterable[Case]:
    a = reals((70, 150))
    f = gp.ScalarField(a)

    def blurred(x: Any) -> Any:
        p = np.pad(x, 1, mode="edge")
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]

    yield cross(cross(f, "clamp"), "clamp") - f, blurred(blurred(a)) - a


@program
def layouts() -> Iterable[Case]:
    a = reals((9, 20, 33))
    f = gp.ScalarField(a)
    yield np.transpose(f, (2, 0, 1)) + 1, np.transpose(a, (2, 0, 1)) + 1
    yield f[::2, ::-1, 3:], a[::2, ::-1, 3:]
    yield np.concatenate([f, f * 2], axis=1), np.concatenate([a, a * 2], axis=1)


@program
def grids() -> Iterable[Case]:
    for shape in [(), (1,), (300,), (1, 1), (3, 1000), (7, 5, 6), (0,), (3, 0)]:
        a = reals(shape)
        yield gp.ScalarField(a) * 2, np.asarray(a * 2)


# --- control flow -----------------------------------------------------------------------------------------------------


@gp.operator
def collatz(n):  # type: ignore[no-untyped-def]
    left, steps = _var(_readTensor(n)), _intVar(0)
    with _while(left > 1):
        with _if(left % 2 == 0):
            left @= left / 2
        with _else():
            left @= 3 * left + 1
        steps += 1
        with _if(steps > 90):
            _break()
    return steps


@program
def loops() -> Iterable[Case]:
    def steps(n: int) -> int:
        count = 0
        while n > 1 and count < 91:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    a = np.arange(1, 201, dtype="int32")
    yield collatz(gp.ScalarField(a)), np.array([steps(int(n)) for n in a], "int32")


# --- work-groups ------------------------------------------------------------------------------------------------------


@gp.operator(outputs=lambda f, size: gp.FieldType(-(-f.field_shape[0] // size), dtype=f.dtype))
def sums_of_groups(f, size):  # type: ignore[no-untyped-def]
    _globalThreads(f)
    _localThreads(size)
    total = _reduceGroup(_readTensor(f), "add")
    with _if(_localColumn == 0):
        _writeTensor(_out0, total, _groupColumn)


@gp.operator
def backwards(f, size):  # type: ignore[no-untyped-def]
    _localThreads(size)
    values = _local(_tensorArray(f, size))
    values[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    return values[size - 1 - _localColumn]


@gp.operator
def running(f, size):  # type: ignore[no-untyped-def]
    _localThreads(size)
    return _scanGroup(_readTensor(f), "add")


@program
def groups() -> Iterable[Case]:
    a = whole("int32", 300) // 1000
    for size in (1, 7, 32, 64):
        padded = np.pad(a, (0, -len(a) % size)).reshape(-1, size)
        yield sums_of_groups(gp.ScalarField(a), size), padded.sum(1, dtype="int32")
    yield running(gp.ScalarField(a[:256]), 64), a[:256].reshape(-1, 64).cumsum(1, dtype="int32").ravel()
    b = reals(320)
    yield backwards(gp.ScalarField(b), 32), np.ascontiguousarray(b.reshape(-1, 32)[:, ::-1]).ravel()


@gp.operator(outputs=gp.FieldType(256, dtype="int32"))
def histogram(levels):  # type: ignore[no-untyped-def]
    _globalThreads(levels)
    _atomic_add(_pointerTo(_out0, _convert_int(_readTensor(levels))), 1)


@program
def atomics() -> Iterable[Case]:
    a = whole("uint8", (60, 70))
    yield histogram(gp.ScalarField(a)), np.bincount(a.ravel(), minlength=256).astype("int32")


@program
def reductions() -> Iterable[Case]:
    a = whole("int32", (61, 130)) // 100000
    f = gp.ScalarField(a)
    yield f.sum(axis=1), a.sum(axis=1, dtype="int32")
    yield f.max(axis=0), a.max(axis=0)
    yield f.argmin(), np.asarray(a.argmin(), "int32")
    b = reals((61, 130))
    yield gp.ScalarField(b).min(), b.min()


# --- what plans launch ------------------------------------------------------------------------------------------------


@program
def states() -> Iterable[Case]:
    gain = gp.Parameter(2)
    with gp.ComputeGraph() as graph:
        before, now = (gp.ScalarField(np.full(5, start, "int32")) for start in (0, 1))
        before.next, now.next = now, before + now
        graph.probe(now * gain, "now")
    graph.step(20)
    yield graph.read("now"), np.full(5, 2 * 10946, "int32")
    gain.set(-3)
    graph.step()
    yield graph.read("now"), np.full(5, -3 * 17711, "int32")


@program
def iterations() -> Iterable[Case]:
    a = whole("int32") // 8
    expected = a
    for _ in range(5):
        expected = expected // 2 + 1
    yield gp.iterate(lambda u: u // 2 + 1, gp.ScalarField(a), times=5), expected


@program
def pipelines() -> Iterable[Case]:
    @gp.pipeline
    def doubled(a: Any) -> Any:
        return gp.ScalarField(a) * 2

    a = reals()
    yield doubled(a), a * 2
    yield doubled(a[::2, 1:]), a[::2, 1:] * 2


@program
def host_functions() -> Iterable[Case]:
    a = reals()
    f = gp.ScalarField(a)
    yield gp.HostOperator(lambda x: np.sort(x, axis=1), f, outputs=f.type) * 2, np.sort(a, axis=1) * 2
