"""Cases that follow from the defects of Cog, the predecessor: 12 to 20 of 22; see test_cog_defects.py and
test_cog_defects_last.py for the others.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *
from tests.errors.wrong import check_line
from tests.harness import blur, fused, graph_of, half_and_double, matrix, tone

from .compare import compute, has_denormals, same

rng = np.random.default_rng(67)


def floats(*shape: int) -> Any:
    return rng.random(shape, np.float32)


def corners() -> Any:
    info = np.finfo(np.float32)
    some = [0, 0.3, 0.5, 1, 2, 2.5, 7, 100.3, info.max, info.tiny, np.inf]
    denormal = [info.smallest_subnormal, info.tiny / 2] if has_denormals("single") else []
    return np.array([s * v for v in (*some, *denormal) for s in (1, -1)] + [np.nan], np.float32)


def test_12_functions_at_every_corner(device: str) -> None:
    """Signed zeros, denormals, infinities, NaN, the largest values: what Cog's tests leave out.

    NumPy's values in double, here to 3e-6; test_functions.py has every function, within its bound.
    """
    one = "arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh exp exp2 expm1 fabs floor log log10 log1p log2 "
    one += "rint sin sinh sqrt tan tanh trunc"
    two = "arctan2 copysign fmax fmin fmod hypot nextafter power"
    x, y = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(corners(), corners()))
    for names, arguments in ((one.split(), (x,)), (two.split(), (x, y))):
        for first in range(0, len(names), 10):
            part = names[first : first + 10]
            functions = tuple(getattr(dsl, "_" + n.replace("arc", "a").replace("power", "pow")) for n in part)
            body = lambda *f, functions=functions: tuple(g(*map(_readTensor, f)) for g in functions)  # noqa: E731
            actual = compute(body, *map(gp.Field, arguments))
            for name, values in zip(part, actual, strict=True):
                wide = np.float32 if name == "nextafter" else np.float64
                with np.errstate(all="ignore"):
                    want = getattr(np, name)(*(a.astype(wide) for a in arguments)).astype(np.float32)
                tiny = 3e-45 if has_denormals("single") else 1.2e-38
                np.testing.assert_allclose(values, want, rtol=3e-6, atol=tiny, err_msg=name)


def test_13_many_inputs_and_outputs_and_shared_values(device: str) -> None:
    """65 of each; and 2 000 values, every other one used twice: Cog's text would double at each of these."""
    a = rng.integers(0, 100, (65, 3, 5)).astype(np.float32)
    fields = [gp.ScalarField(plane) for plane in a]
    same(
        compute(lambda *f: sum((k + 1) * _readTensor(x) for k, x in enumerate(f)), *fields),
        np.tensordot(np.arange(1, 66, dtype="f"), a, 1),
    )
    common = fields[0] + 1
    graph = graph_of(lambda: {f"out{k}": common * float(k) for k in range(65)})
    graph.reset()
    assert graph.kernel_count == 1
    for k in range(65):
        same(graph.read(f"out{k}"), (a[0] + 1) * np.float32(k))

    @gp.operator
    def deep(f, turns):
        x = _readTensor(f)
        for _ in range(turns):
            x = 1 - x * x
        return x

    x = floats(3, 5)
    assert len(deep.source(gp.FieldType((3, 5)), 1000, target="opencl").splitlines()) < 2_100
    actual, want = deep(gp.ScalarField(x), 300), x
    for _ in range(300):
        want = 1 - want * want
    same(actual, want)


SHAPES = [
    (1, 1),
    (1, 40),
    (40, 1),
    (15, 16),
    (16, 17),
    (17, 15),
    (31, 32),
    (32, 33),
    (33, 31),
    (16,),
    (257,),
    (3, 17, 15),
]


def test_14_awkward_shapes(device: str) -> None:
    """Around the sizes of work-groups."""

    @gp.operator
    def steps(f):
        return _readTensor(f, *own[:-1], own[-1] + 1, border="wrap") - _readTensor(
            f, own[0] - 1, *own[1:], border="reflect"
        )

    for shape in SHAPES:
        own = (_layer, _row, _column)[3 - len(shape) :]
        a = floats(*shape)
        above = np.pad(a, [(1, 0)] + [(0, 0)] * (a.ndim - 1), mode="reflect")[: shape[0]]
        same(steps(gp.ScalarField(a)) * 2, (np.roll(a, -1, -1) - above) * 2, str(shape))


def test_14_fields_of_more_than_2_gib(device: str) -> None:
    """Offsets are 64-bit; run on the default device alone, and where there is memory for it."""
    shape = (2**15 + 1, 2**16)

    @gp.operator(outputs=gp.FieldType(3, (), "uint8"))
    def last(f):
        _writeTensor(_out0, _readTensor(f, _rows * 0 + shape[0] - 1, shape[1] - 3 + _column))

    whole = gp.operator(lambda f: _readTensor(f, _row, _column + 1) + 1)
    for target, long in (("opencl", "long"), ("cuda", "long long")):
        for source in (
            last.source(gp.FieldType(shape, (), "uint8"), target=target),
            whole.source(gp.FieldType(shape), target=target),
        ):
            assert f"const {long} f_rowStride = 65536" in source and f"({long})" in source, source
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if device != gp.devices()[0].name or free < 12 * 2**30:
        return
    a = np.zeros(shape, np.uint8)
    a[-1, -3:] = 1, 2, 3
    np.testing.assert_array_equal(
        gp.pipeline(lambda whole: last(gp.ScalarField(whole)))(a), a[-1, -3:]
    )  # without a copy on CPUs


def test_15_names_do_not_keep_equal_operators_apart(device: str) -> None:
    """In Cog the name is part of what is compared."""
    a = floats(5, 6)
    one, two = (gp.operator(lambda f: _readTensor(f) * 3, name=name) for name in ("one", "two"))
    graph = graph_of(lambda: {"x": one(gp.ScalarField(a) + 1), "y": two(gp.ScalarField(a))}, optimize=False)
    assert graph.kernel_count == 3
    shared = gp.ScalarField(a)
    graph = graph_of(lambda: {"x": one(shared), "y": two(shared)}, optimize=False)
    graph.reset()
    assert graph.kernel_count == 1
    for name in ("x", "y"):
        same(graph.read(name), a * 3)


@gp.schedule("plain")
def test_16_probes_change_no_kernel_count(device: str) -> None:
    """In Cog probes add outputs, and change what is fused."""
    a = gp.VectorField(floats(9, 11, 3))

    def chain() -> dict[str, gp.Field]:
        mixed = matrix(a * 2)
        return {"mixed": mixed, "out": blur(tone(mixed)) + a, "input": a, "again": blur(tone(mixed)) + a}

    counts = [
        graph_of(lambda names=names: {name: chain()[name] for name in names}).kernel_count
        for names in (
            ("out",),
            ("out", "input"),
            ("out", "again"),
            ("out", "mixed"),
            ("out", "mixed", "input", "again"),
        )
    ]
    assert counts == [2] * 5


def test_17_a_diamond_is_one_kernel(device: str) -> None:
    a = gp.ScalarField(floats(9, 11))

    def diamond() -> dict[str, gp.Field]:
        b, c = half_and_double(a + 1)
        return {"out": np.sqrt(b) * c - abs(c - b)}

    _, results = fused(diamond, kernels=1)
    b, c = (a.numpy() + 1) / 2, (a.numpy() + 1) * 2
    same(results["out"], np.sqrt(b) * c - abs(c - b))


def test_18_the_producer_of_a_stencil(device: str) -> None:
    """Cheap or not, it gives what it gives on its own. That a cheap one is computed anew (and how many kernels there are
    then) is for a later version: kernel counts are not tested here."""
    x = rng.integers(0, 64, (13, 17)).astype(np.float32)
    a = gp.ScalarField(x)

    @gp.operator
    def box(f):
        return sum(_readTensor(f, _row + r, _column + c) for r in (-1, 0, 1) for c in (-1, 0, 1))

    cheap = fused(lambda: {"out": box(a * 2 + 1)})[1]["out"]
    same(cheap, ndimage.correlate(x * 2 + 1, np.ones((3, 3)), mode="nearest"))
    dear = fused(lambda: {"out": box(np.exp(np.sin(np.sqrt(a + 1)) * 2) / (a + 3))})[1]["out"]
    inner = np.exp(np.sin(np.sqrt(x + 1)) * 2) / (x + 3)
    np.testing.assert_allclose(dear, ndimage.correlate(inner.astype("d"), np.ones((3, 3)), mode="nearest"), rtol=1e-5)


def test_19_barriers_in_divergent_control_flow_are_errors(device: str) -> None:
    """Cog lets them through, and the device hangs. Where all threads of a group come together they stand."""
    a = floats(4, 32)

    @gp.operator
    def mirrored(f, condition):
        _localThreads(1, 8)
        tile = _local(_floatArray(8))
        tile[_localColumn] = _readTensor(f)
        with _if(condition()):
            _syncThreadsLocal()  # here
        return tile[7 - _localColumn]

    field = gp.ScalarField(a)
    same(mirrored(field, lambda: _groupColumn >= 0), a.reshape(4, 4, 8)[..., ::-1].reshape(4, 32))
    for condition in (lambda: _column > 3, lambda: _localColumn < 4, lambda: _readTensor(field) > 0.5):
        with pytest.raises(gp.SemanticError, match="_syncThreadsLocal") as caught:
            mirrored(field, condition)
        check_line(caught.value, mirrored.function)


def test_20_fused_is_unfused_bit_for_bit(device: str) -> None:
    """No multiply-add that only fusion makes possible, no fast division: NumPy's bits too."""
    x, y, z = (floats(33, 47) + np.float32(0.1) for _ in range(3))
    a, b, c = map(gp.ScalarField, (x, y, z))
    _, results = fused(
        lambda: {"sum": a * b + c, "quotient": (a - b * c) / (b * b + 1), "root": np.sqrt(a * b + c * c) / 3}
    )
    same(results["sum"], x * y + z)
    same(results["quotient"], (x - y * z) / (y * y + 1))
    same(results["root"], np.sqrt(x * y + z * z) / np.float32(3))
    fused(lambda: {"out": np.exp(a * b) * np.sin(c * 9) + np.tanh(b) ** 3 - np.log(a + b * c)})
