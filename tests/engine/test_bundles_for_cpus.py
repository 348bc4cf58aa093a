"""Bundles for CPUs: one text, in vectors, is right on each driver; other devices do not get it. NumPy expects the values."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.bundles import reading
from gpuop.ir.target import Target

from .test_bundles import OPENCL, nothing_recorded, saved

CPUS = [card for card in OPENCL if gp.device(card).target.device == "cpu"]
CPU, GPU = Target("opencl", device="cpu"), Target("opencl")
SHAPE = gp.FieldType((90, 301))
each_cpu = pytest.mark.parametrize("card", CPUS)
rng = np.random.default_rng(5)


@gp.operator
def across(f):
    return sum(k * _readTensor(f, _row, _column + k, border="wrap") for k in range(-2, 3))


@gp.operator
def down(f):
    return _max(*(_readTensor(f, _row + k, _column, border="wrap") for k in (-1, 1)))


def chain(f: gp.Field) -> gp.Field:
    return down(across(f))


def chained(a: Any) -> Any:
    moved = sum(k * np.roll(a, -k, 1) for k in range(-2, 3))
    return np.maximum(np.roll(moved, 1, 0), np.roll(moved, -1, 0))


def texts(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name).decode() for name in archive.namelist() if name.endswith(".text")]


@each_cpu
@pytest.mark.parametrize("targets", [("opencl:cpu",), ("opencl", "opencl:cpu")])
def test_cpus_take_what_is_for_them(card: str, targets: tuple[str, ...], tmp_path: Path) -> None:
    path = saved(tmp_path / "f", chain, SHAPE, targets=targets)
    a = rng.integers(-99, 100, (90, 301)).astype(np.float32)
    loaded = gp.load_bundle(path)
    assert loaded.targets == targets
    with gp.use_device(card), nothing_recorded():
        assert np.array_equal(loaded(a), chained(a))
    contents = reading.read(path)
    assert reading.plan_on(contents, gp.device(card).target) is contents.code["opencl:cpu"]


def test_a_chain_is_one_kernel_in_vectors(tmp_path: Path) -> None:
    (text,) = texts(saved(tmp_path / "f", chain, SHAPE, targets=("opencl:cpu",)))
    assert "float16" in text
    plain = texts(saved(tmp_path / "g", chain, SHAPE, targets=("opencl",)))
    assert plain and not any("float16" in text for text in plain)


@each_cpu
def test_doubles_halves_and_functions(card: str, tmp_path: Path) -> None:
    """Types and functions in which the vectors of drivers differ."""

    def several(f: gp.Field, d: gp.Field, h: gp.Field) -> tuple[gp.Field, ...]:
        return np.exp(across(f) / 999), across(d), across(h), d % 7.5

    kinds = [gp.FieldType((90, 301), (), dtype) for dtype in ("float32", "float64", "float16")]
    f, d, h = (rng.integers(-99, 100, (90, 301)).astype(kind.dtype) for kind in kinds)
    loaded = gp.load_bundle(saved(tmp_path / "f", several, *kinds, targets=("opencl:cpu",)))
    with gp.use_device(card):
        grown, doubles, halves, left = loaded(f, d, h)

    def moved(a: Any) -> Any:
        return sum(k * np.roll(a.astype(np.float64), -k, 1) for k in range(-2, 3))

    assert np.allclose(grown, np.exp(moved(f) / 999), rtol=1e-6, atol=0)
    assert np.array_equal(doubles, moved(d)) and np.array_equal(halves, moved(h)) and np.array_equal(left, d % 7.5)


@gp.operator
def grown(f):
    return _exp(_readTensor(f) / 99)


@each_cpu
def test_points_that_are_counted_along_one_axis(card: str, tmp_path: Path) -> None:
    """The kernel's grid has another shape than its fields."""
    a = rng.integers(-99, 100, (90, 301)).astype(np.float32)
    loaded = gp.load_bundle(saved(tmp_path / "f", grown, SHAPE, targets=("opencl:cpu",)))
    with gp.use_device(card):
        assert np.allclose(loaded(a), np.exp(a / 99), rtol=1e-6, atol=0)


@each_cpu
def test_iterations(card: str, tmp_path: Path) -> None:
    def turned(f: gp.Field) -> gp.Field:
        return gp.iterate(lambda u: down(u) - 1, f, times=5)

    loaded = gp.load_bundle(saved(tmp_path / "f", turned, SHAPE, targets=("opencl:cpu",)))
    a = expected = rng.integers(-99, 100, (90, 301)).astype(np.float32)
    for _ in range(5):
        expected = np.maximum(np.roll(expected, 1, 0), np.roll(expected, -1, 0)) - 1
    with gp.use_device(card):
        assert np.array_equal(loaded(a), expected)


@pytest.mark.parametrize(("target", "expected"), [(GPU, "opencl"), (Target("cuda", 75), "sm_75")])
def test_other_devices_do_not_get_it(target: Target, expected: str, tmp_path: Path) -> None:
    contents = reading.read(saved(tmp_path / "f", chain, SHAPE, targets=("opencl:cpu",)))
    with pytest.raises(gp.DeviceError) as caught:
        reading.plan_on(contents, target)
    assert str(caught.value) == (
        f"bundle `chain` has no code for {target}: it has opencl:cpu; add it with `gpuop compile --targets {expected},…`"
    )


def test_any_device_takes_what_is_for_all(tmp_path: Path) -> None:
    contents = reading.read(saved(tmp_path / "f", chain, SHAPE, targets=("opencl",)))
    assert reading.plan_on(contents, CPU) is reading.plan_on(contents, GPU) is contents.code["opencl"]
