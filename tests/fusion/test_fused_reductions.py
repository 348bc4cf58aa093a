"""Reductions take in what makes their values and join each other, and no bit of any result depends on it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.devices import current
from tests.harness import fused, graph_of, image, read_all, same_bits

SMALL, WIDE, ROW = (
    (21, 34),
    (60, 300),
    (20_003,),
)  # reduced in one step, in two, and in chunks the last of which is short


@functools.cache
def inputs(shape: tuple[int, ...]) -> tuple[gp.Field, gp.Field]:
    return gp.ScalarField(image(*shape) - 0.5), gp.ScalarField(image(*shape))


def several(shape: tuple[int, ...]) -> dict[str, gp.Field]:
    a, b = inputs(shape)
    f = a * b - a
    return {"min": f.min(), "max": f.max(), "mean": f.mean(), "argmax": f.argmax(), "sum": (a + b).sum()}


def along(shape: tuple[int, ...]) -> dict[str, gp.Field]:
    a, b = inputs(shape)
    return {f"{axis}": (a * b).sum(axis=axis) - (a - b).max(axis=axis) for axis in range(len(shape))}


def spread(shape: tuple[int, ...]) -> dict[str, gp.Field]:
    a, b = inputs(shape)
    f = a * b
    apart = f - f.mean()
    return {"variance": (apart * apart).mean(), "scaled": apart / (f.max() - f.min())}


@functools.cache
def on_the_reference(build: object, shape: tuple[int, ...]) -> Mapping[str, np.ndarray]:
    with gp.use_device("reference"):
        fields = build(shape)  # type: ignore[operator]
        graph = graph_of(lambda: fields, optimize=False)
        graph.reset()
        return read_all(graph, fields)


def check_bits(build: object, shape: tuple[int, ...]) -> None:
    """Fused, what the reference has unfused."""
    graph, results = fused(lambda: build(shape))  # type: ignore[operator]
    for name, want in on_the_reference(build, shape).items():
        same_bits(results[name], want, name)
    graph.release()


@pytest.mark.parametrize("name", [d.name for d in gp.devices()])
@pytest.mark.parametrize(("build", "shape"), [(several, SMALL), (along, WIDE), (spread, ROW)])
def test_equal_bits_fused_and_unfused_on_every_device(name, build, shape):
    with gp.use_device(name):
        check_bits(build, shape)


@pytest.mark.parametrize(("build", "shape"), [(several, ROW), (several, WIDE), (spread, WIDE), (along, (300, 21))])
def test_equal_bits_fused_and_unfused(device, build, shape):
    check_bits(build, shape)


@pytest.mark.parametrize("shape", [WIDE, ROW], ids=str)
def test_they_are_what_numpy_has(device, shape):
    """Of whole numbers, which any order adds exactly."""
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-3, 4, shape).astype("f") for _ in range(2))
    a, b = gp.ScalarField(x), gp.ScalarField(y)
    f, g = a * b + a, x * y + x
    graph = graph_of(lambda: {"sum": f.sum(), "min": f.min(), "argmax": f.argmax(), "rows": f.sum(axis=-1)})
    graph.reset()
    for name, want in {"sum": g.sum(), "min": g.min(), "argmax": g.argmax(), "rows": g.sum(axis=-1)}.items():
        np.testing.assert_array_equal(graph.read(name), want, err_msg=name)


@pytest.mark.parametrize(
    ("dtype", "names"),
    [("unorm8", "sum max"), ("int16", "sum argmin mean"), ("float16", "mean min"), ("complex64", "sum mean")],
)
def test_other_types(device, dtype, names):
    x = image(40, 300, *([2] if dtype == "complex64" else [])) * 200
    array = x.view("complex64")[..., 0] if dtype == "complex64" else x.astype("uint8" if dtype == "unorm8" else dtype)
    f = gp.ScalarField(array, dtype="unorm8") if dtype == "unorm8" else gp.ScalarField(array)
    fused(lambda: {name: getattr(f + f, name)() for name in names.split()})


@pytest.mark.parametrize("tensor", [(3,), (6,)], ids=str)
def test_tensors(device, tensor):
    f = gp.Field(image(50, 70, *tensor), len(tensor))
    a = gp.ScalarField(image(50, 70))

    def build():
        g = f * a + 1
        return {"colour": g.mean(axis=(0, 1)), "all": g.sum(), "rows": g.max(axis=0), "place": g.argmin()}

    fused(build)


def test_a_step_moves_what_it_must_and_no_more():
    a, b = inputs((300, 500))
    f = a * b - a
    graph = graph_of(lambda: {"p": f.min(), "q": f.max(), "r": f.mean()})
    facts = json.loads(graph.explain("json"))
    assert facts["kernel_count"] == 2 and facts["ratio"] < 1.01
    assert facts["kernels"][0]["read_bytes"] == 2 * 4 * 300 * 500


def test_one_tree_has_the_barriers_of_all_and_each_place_is_read_once():
    a = inputs((300, 500))[0]
    alone, joined = (
        graph_of(lambda names=names: {n: getattr(a, n)() for n in names}).source("opencl").split("__kernel")[1]
        for names in (["min"], ["min", "max", "mean"])
    )
    assert joined.count("barrier(") == alone.count("barrier(") == 3  # 32 threads share a row: 4 × 4 × 2
    assert (
        joined.count(" a[") == alone.count(" a[") == 1 + 2
    )  # what the least starts from, a whole turn, and the last one


@gp.operator
def reversed_in_groups(f, steps):
    """Each turn of it is behind a barrier."""
    _localThreads(1, 16)
    tile = _local(_floatArray(16))
    value = _var(_readTensor(f))
    for _ in range(steps):
        tile[_localColumn] = value
        _syncThreadsLocal()
        value @= tile[_localColumns - 1 - _localColumn] + 1
        _syncThreadsLocal()
    return value


def test_operators_wait_together_and_for_one_another(device):
    """Side by side with more and with fewer barriers, and one behind the other."""
    x = image(5, 64)
    a = gp.ScalarField(x)

    def build():
        first = reversed_in_groups(a, 2)
        return {"p": first, "q": reversed_in_groups(a * 2, 3), "r": reversed_in_groups(first * 3 + a, 1) - a}

    _, results = fused(build, kernels=1)
    groups = x.reshape(5, 4, 16)
    same_bits(results["p"], (groups + 1 + 1).reshape(5, 64))
    same_bits(results["q"], (groups[..., ::-1] * np.float32(2) + 1 + 1 + 1).reshape(5, 64))
    third = (groups + 1 + 1) * np.float32(3) + groups
    same_bits(results["r"], ((third[..., ::-1] + 1) - groups).reshape(5, 64))


def test_stencils_are_left_apart_where_they_read_much():
    """Threads that share work do not share what they read of neighbours; little of that is computed there all the same."""

    def taps(f, places):
        return sum(_readTensor(f, _row + r, _column + c) for r, c in places)

    near, window = ((0, 0), (0, 1)), tuple((r, c) for r in range(5) for c in range(5))
    operators = [gp.operator(lambda f, places=places: taps(f, places)) for places in (near, window)]
    a = inputs((300, 500))[0]
    fused(lambda: {"p": operators[0](a).sum()}, 2)
    graph, results = fused(lambda: {"p": operators[1](a).sum()}, 3)
    padded = np.pad(a.numpy(), (0, 4), mode="edge").astype("d")
    np.testing.assert_allclose(results["p"], sum(padded[r : 300 + r, c : 500 + c].sum() for r, c in window), rtol=1e-6)
    assert "operations more" in graph.explain()


def test_consumers_of_single_values_do_not_wait_on_the_host(device, monkeypatch):
    """A value of no dimensions stays on the device: steps and evaluations that need it only enqueue."""
    start = x = image(60, 300)
    with gp.ComputeGraph() as graph:
        f = gp.ScalarField(x)
        f.next = f / f.max() + f.mean()
        graph.probe((f - f.min()) / (f.max() - f.min()), "spread")
    graph.reset()

    def waits(*args):
        raise AssertionError("the host waits")

    with monkeypatch.context() as patched:
        for name in ("download", "synchronize", "settle"):
            patched.setattr(type(current()), name, waits)
        graph.step(2)
        total = gp.evaluate(gp.ScalarField(start).sum())
        scaled = gp.evaluate(gp.ScalarField(start) / total)
    for _ in range(2):
        x = x / x.max() + x.mean(dtype="f8").astype("f4")
    np.testing.assert_allclose(graph.read("spread"), (x - x.min()) / (x.max() - x.min()), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(scaled.numpy(), start / start.sum(dtype="d"), rtol=1e-5)
    message = graph.explain()
    assert graph.kernel_count == 3 and "`max` runs on 1×32 threads, `divide` on 60×300; costs 16 B" in message


@pytest.mark.parametrize(("name", "passes"), [("nanmean", 1), ("nanvar", 2)])
def test_what_two_reductions_need_is_computed_in_both(name, passes):
    """The mask of what is not NaN does not go through memory: the kernel reads what it is made of anyway."""
    x = image(1024, 1024)
    x[::7, ::5] = np.nan
    graph = graph_of(lambda: {"r": getattr(np, name)(gp.ScalarField(x))})
    with gp.use_device("reference"):
        moved = re.search(r"the kernels move .* \(ratio (.*)\)", graph.explain())
        assert moved and float(moved[1]) < passes + 0.1
        np.testing.assert_allclose(graph.read("r"), getattr(np, name)(x.astype("d")), rtol=1e-5)
