"""Rows of the page of other systems that say several things at once: a test of all that each says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop import testing
from gpuop.base.config import config
from gpuop.dsl import *
from gpuop.runtime.tuning.store import VARIANT, TuneStore

ROOT = Path(__file__).parents[2]
DEVICES = list(dict.fromkeys([gp.devices()[0].name, "reference"]))
rng = np.random.default_rng(8)


@pytest.fixture(params=DEVICES)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    with gp.use_device(request.param):
        yield request.param


def same(actual, want):
    actual = actual.numpy() if isinstance(actual, gp.Field) else actual
    assert actual.dtype == want.dtype and np.array_equal(actual, want)


# --- B06, J01: what is read, what is written, and what is both ------------------------------------------------------------

BATCH = gp.Dims("img:chan:y:x")


@gp.operator(inputs={"x": BATCH}, outputs=gp.Dims("img:y:x"))
def over_channels(x):
    total = _var(0.0)
    for chan in range(x.dims.chan):
        total += _readTensor(x, img=_dim("img"), chan=chan, y=_dim("y"), x=_dim("x"))
    return total


@gp.operator(inputs={"x": BATCH, "count": gp.Dims("img:y:x")}, inout="count")
def counted(x, count):
    """A counter: one more than before at points with a positive first channel."""
    first = _readTensor(x, img=_dim("img"), chan=0, y=_dim("y"), x=_dim("x"))
    _writeTensor(count, _readTensor(count) + _where(first > 0, 1.0, 0.0))


def test_arguments_are_declared(name):
    a = rng.integers(-4, 5, (2, 3, 5, 6)).astype("f")
    x = gp.ScalarField(a, dims=BATCH)
    summed = over_channels(x)
    assert [*summed.type.array_shape] == [2, 5, 6]
    same(summed, a.sum(axis=1))
    before = gp.ScalarField(np.full((2, 5, 6), 7, "f"), dims="img:y:x")
    same(counted(x, before), np.where(a[:, 0] > 0, 8, 7).astype("f"))
    same(before, np.full((2, 5, 6), 7, "f"))
    with pytest.raises(gp.SemanticError, match="`x` is to be img:chan:y:x, and is "):
        over_channels(gp.ScalarField(a[0]))
    with pytest.raises(gp.SemanticError, match="`count` has y=4, and `x` has y=5"):
        counted(x, gp.ScalarField(np.zeros((2, 4, 6), "f"), dims="img:y:x"))


@gp.operator(inout="a")
def mirrored(a):
    """A permutation: threads exchange what lies at both ends."""
    last = _columns - 1 - _column
    with _if(_column < last):
        left, right = _var(_readTensor(a)), _var(_readTensor(a, _row, last))
        _writeTensor(a, right)
        _writeTensor(a, left, _row, last)


def test_kernels_that_work_in_place(name):
    a = rng.random((6, 9), np.float32)
    field = gp.ScalarField(a)
    same(mirrored(field), a[:, ::-1])
    same(field, a)  # any other field stays
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(a)
        state.next = mirrored(state)
        graph.probe(state, "state")
    graph.step(3)
    same(graph.read("state"), a[:, ::-1])
    assert "in place, when the next step begins: state.next" in graph.explain()


# --- B37: layers of a network ------------------------------------------------------------------------------------------------


@gp.operator(outputs=lambda f: gp.FieldType(f.field_shape[::-1]))
def turned(f):
    """Filters × taps as taps × filters."""
    return _readTensor(f, _column, _row)


@gp.operator(outputs=lambda signal, filters, dims: gp.FieldType(dims[0] * dims[1] * dims[2]))
def convolved(signal, filters, dims):
    """Each output's place is taken apart into a block of filters, a column, and a filter of the block."""
    block, column, lane = _unravel(_column, dims)
    total = _var(0.0)
    for tap in range(3):
        weight = _readTensor(filters, tap, block * dims[2] + lane)
        total += weight * _readTensor(signal, column + tap - 1, border="zero")
    return total


def test_filters_are_turned_once(name):
    """In a graph: at the first step, for all layers; what follows a convolution is in its kernel, and outputs lie in blocks."""
    filters, dims = rng.integers(-3, 4, (12, 3)).astype("f"), (3, 40, 4)
    signals = rng.integers(-3, 4, (2, 40)).astype("f")
    with gp.ComputeGraph() as graph:
        ready = turned(gp.ScalarField(filters))
        for n, signal in enumerate(signals):
            moving = gp.ScalarField(signal)
            moving.next = moving + 1
            graph.probe(np.maximum(convolved(moving, ready, dims), 0), f"layer{n}")
    for step in range(2):
        graph.step()
        for n, signal in enumerate(signals):
            each = [np.convolve(signal + step + 1, taps[::-1], "same") for taps in filters]
            blocks = np.maximum(each, 0).reshape(3, 4, 40).swapaxes(1, 2)
            same(graph.read(f"layer{n}").reshape(dims), np.ascontiguousarray(blocks.astype("f")))
    kernels = json.loads(graph.explain(format="json"))["kernels"]
    runs = {op["name"]: (kernel["runs"], kernel["number"]) for kernel in kernels for op in kernel["operators"]}
    assert (
        runs["turned"][0] == "once" and runs["convolved"] == runs["maximum"] and runs["maximum"][0] == "at every step"
    )


# --- B39, K35: tuning ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuneStore:
    monkeypatch.setattr(config, "tune_store", tmp_path / "tuned.sqlite")
    return TuneStore(config.tune_store)


@gp.operator(tune={"turns": (300, 1), "block": (4, 8)})
def wrapped(field, *, turns, block):
    """The same for any number of turns, of which each takes time."""
    _localThreads(block)
    x = _var(_readTensor(field))
    with _for(turns):
        x @= _fmod(x, 2.0)
    return x


@gp.operator(tune={"by": (0, 1)})
def moved(field, by):
    return _readTensor(field) + by


def test_operations_parameters_and_devices(store):
    """All variants of an operator on each device; one that computes something else is found, and so would a device be."""
    f, digests = gp.ScalarField(np.arange(9, dtype="f")), set()
    for device in DEVICES:
        with gp.use_device(device):
            gp.tune(wrapped, f)
            digests.add(testing.digest(wrapped(f)))
            with (
                gp.tuning("auto"),
                pytest.raises(gp.SemanticError, match="with by=1 9 of 9 values differ from those with by=0"),
            ):
                moved(f).numpy()
    tried = [entry.tried for entry in store.entries() if entry.what == VARIANT]
    assert len(tried) == len(DEVICES) and all(text.count("turns=") == 4 for text in tried)
    assert len(digests) == 1


FIRST = """
import numpy as np, gpuop as gp
from gpuop.dsl import *

def test_each(gpuop_device):
    runs = []
    @gp.operator(tune={"n": (1, 2)})
    def doubled(f, n):
        runs.append(n)
        return _readTensor(f) * 2
    assert (doubled(gp.ScalarField(np.ones(3, "f"))).numpy() == 2).all()
    assert gp.device().name == gpuop_device
    print("\\nran on", gpuop_device)
"""


def test_tuning_in_tests(store, tmp_path):
    """`never` measures nothing and takes the first variant, `force` measures anew; the fixture takes a device of each API."""
    f = gp.ScalarField(np.arange(9, dtype="f"))
    with gp.use_device("reference"):
        with gp.tuning("never"):
            wrapped(f).numpy()
        assert store.entries() == []
        for _ in range(2):
            with gp.tuning("force"):
                wrapped(f).numpy()
            measured = [entry.measured for entry in store.entries()]
        (last,) = measured
        with gp.tuning("force"):
            wrapped(f).numpy()
        assert store.entries()[0].measured > last
    (tmp_path / "test_first.py").write_text(FIRST)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "gpuop.testing.plugin", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "GPUOP_TUNE": "never"}
    environment["GPUOP_TUNE_STORE"] = str(tmp_path / "of_tests.sqlite")
    done = subprocess.run(
        [*command, "--gpuop-devices=first-per-api"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    kinds = {each.name.partition(":")[0] for each in gp.devices()}
    assert f"{len(kinds)} passed" in done.stdout, done.stdout + done.stderr
    assert {
        line.split()[-1].partition(":")[0] for line in done.stdout.splitlines() if line.startswith("ran on")
    } == kinds
    assert not (tmp_path / "of_tests.sqlite").exists()


# --- K37: statistics -----------------------------------------------------------------------------------------------------------


def test_percentiles_and_sums_of_parts_of_rows(name):
    a = rng.integers(0, 90, (7, 130)).astype("f")
    mask = a > 40
    f = gp.ScalarField(a)
    np.testing.assert_allclose(
        np.percentile(f, [25, 50, 75], axis=1).numpy(), np.percentile(a, [25, 50, 75], axis=1), rtol=1e-6
    )
    same(f[:, 67:128].sum(axis=1), a[:, 67:128].sum(axis=1))
    same(f.sum(where=gp.ScalarField(mask)), np.float32(a[mask].sum()))
    same(f.sum(axis=1, where=f > 40), np.where(mask, a, 0).sum(axis=1).astype("f"))


# --- C13, C23: Python while recording --------------------------------------------------------------------------------------------


def doubles_only(value, dtype):
    if dtype != np.float64:
        raise TypeError(f"{dtype} is no double")
    return value * 2


def test_exceptions_are_those_of_recording(name):
    """One that is caught decides what is recorded, one that is not reached is nothing, and any other is the caller's."""

    @gp.operator
    def careful(f):
        try:
            return doubles_only(_readTensor(f), f.dtype)
        except TypeError:
            return _readTensor(f) + 1

    same(careful(gp.ScalarField(np.ones(3, "f"))), np.full(3, 2, "f"))
    careless = gp.operator(lambda f: doubles_only(_readTensor(f), f.dtype))
    with pytest.raises(TypeError, match="float32 is no double"):
        careless(gp.ScalarField(np.ones(3, "f")))
    same(gp.ScalarField(np.ones(3, "f")) + 1, np.full(3, 2, "f"))


def test_libraries_while_recording(name):
    """Containers, sorting and NumPy's numbers and arithmetic; of its functions a kernel has its own, which the error names."""

    @gp.operator
    def weighted(f, taps):
        kept = dict(sorted(taps, key=lambda item: -item[1]))
        terms = [np.float32(w) * _readTensor(f, _row, _column + at, border="zero") for at, w in kept.items()]
        return np.add(terms[0], sum(terms[1:]))

    a = np.arange(12, dtype="f").reshape(2, 6)
    padded = np.pad(a, ((0, 0), (1, 1)))
    same(weighted(gp.ScalarField(a), ((-1, 1.0), (1, 4.0))), padded[:, :-2] + 4 * padded[:, 2:])
    with pytest.raises(gp.UnsupportedError, match=r"numpy.sqrt does not take kernel values; .* as `_sqrt\(x\)`"):
        gp.operator(lambda f: np.sqrt(_readTensor(f)))(gp.ScalarField(a))
