"""Operators with `tune=`: which variant runs, what is measured when, and that all compute what NumPy does."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.dsl import *
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.variants import Variants, identity_of
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.devices import current
from gpuop.runtime.tuning.benchmark import value_of
from gpuop.runtime.tuning.chooser import limits_on
from gpuop.runtime.tuning.schedule_choices import key_of
from gpuop.runtime.tuning.store import SCHEDULE, VARIANT, DeviceSignature, TunedChoice, TuneStore, signature_of
from tests.conformance.compare import same

rng = np.random.default_rng(3)
COMPILING = [d.name for d in gp.devices() if d.name != "reference"][:1]
needs_driver = pytest.mark.skipif(not COMPILING, reason="no OpenCL device")
ON_GPU = bool(COMPILING) and gp.device(COMPILING[0]).target.device == "gpu"
MANY = 30_000 if ON_GPU else 1000  # which take longer than a launch
UNKNOWN = DeviceSignature("cuda", 90, "gpu", "NVIDIA H200", "580")
OLDER = DeviceSignature("cuda", 50, "gpu", "NVIDIA GeForce GTX 750", "535")  # which is not here, whatever is


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuneStore:
    monkeypatch.setattr(config, "tune_store", tmp_path / "tuned.sqlite")
    return TuneStore(config.tune_store)


@gp.operator(tune={"turns": (MANY, 1), "block": (4,)})
def wrapped(field, gain, *, turns, block):
    """The same for any number of turns, of which each takes time."""
    _localThreads(block)
    x = _var(_readTensor(field))
    with _for(turns):
        x @= _fmod(x, 2.0)
    return x * gain


def planned(field: gp.Field) -> Plan:
    return plan(program([field.node]), limits=limits_on(current(), pinned()))


def choice(field: gp.Field) -> str:
    """The parameters of the variant that would run now."""
    node: Any = field.node
    (op,) = planned(field).program.ops
    (result,) = [v for v in node.call.kernel.variants if v.identity == op.identity]
    return ", ".join(f"{name}={value}" for name, value in result.parameters)


def test_the_fastest_runs(device: str, store: TuneStore) -> None:
    """It is measured with "auto" and found with "stored"; alone, in pipelines and in graphs, fused with others."""
    a = rng.normal(0, 3, 40).astype("f")
    f, expected = gp.ScalarField(a), np.fmod(a, np.float32(2)) * 3
    assert choice(wrapped(f, 3)) == f"turns={MANY}, block=4" and not store.entries()  # nothing is timed by default
    with gp.tuning("auto"):
        same(wrapped(f, 3), expected)
    (entry,) = store.entries()
    assert entry.choice == "turns=1, block=4", entry.tried
    assert (entry.types, entry.place) == ("40 float32", signature_of(current()))
    assert f"turns={MANY}, block=4: " in entry.tried and entry.seconds > 0
    assert choice(wrapped(f, 3)) == "turns=1, block=4"
    with gp.tuning("never"):
        assert choice(wrapped(f, 3)) == f"turns={MANY}, block=4"

    @gp.pipeline
    def piped(x):
        return wrapped(gp.ScalarField(x), 3) + 1

    same(piped(a), expected + 1)
    with gp.ComputeGraph() as graph:
        graph.probe(wrapped(f, 3) + 1, "result")
    same(graph.read("result"), expected + 1)
    assert graph.kernel_count == 1 and str(MANY) not in graph.source()
    assert "wrapped [turns=1, block=4] (" in graph.explain()


def test_force_measures_once_in_a_block(store: TuneStore) -> None:
    f = gp.ScalarField(np.zeros(9, "f"))
    with gp.use_device("reference"), gp.tuning("force"):
        wrapped(f, 3).numpy()
        first = store.entries()
        (wrapped(f, 3) + 1).numpy()
        assert store.entries() == first
    with gp.use_device("reference"), gp.tuning("force"):
        (wrapped(f, 3) + 2).numpy()
    assert store.entries()[0].measured > first[0].measured


def test_arguments_that_calls_give() -> None:
    f = gp.ScalarField(np.ones(3, "f"))
    assert isinstance(wrapped(f, 3, turns=2, block=2).node.call.kernel, Kernel)  # any, where all are given
    assert choice(wrapped(f, 3, block=4)) == f"turns={MANY}, block=4"
    node = pickle.loads(pickle.dumps(wrapped))(f, 3).node
    assert isinstance(node.call.kernel, Variants) and len(node.call.kernel.variants) == 2


def test_unsupported_variants_are_skipped(device: str) -> None:
    @gp.operator(tune=({"size": n} for n in (4096, 2, 1)))
    def sized(field, size):
        if size > 99:
            raise gp.UnsupportedError("so many are not written")
        _localThreads(size)
        return _readTensor(field) + _convert_float(_localColumn - _localColumn)

    f = gp.ScalarField(np.arange(4, dtype="f"))
    assert choice(sized(f)) == "size=2"
    same(sized(f), np.arange(4, dtype="f"))


@needs_driver
def test_variants_that_the_device_refuses(store: TuneStore) -> None:
    """The first that it can run is the default, and refused ones are left when it is measured."""

    @gp.operator(tune={"threads": (1 << 20, 4)})
    def grouped(field, threads):
        _localThreads(threads)
        return _readTensor(field) + _convert_float(_localColumn - _localColumn)

    f = gp.ScalarField(np.arange(4, dtype="f"))
    with gp.use_device(COMPILING[0]):
        assert choice(grouped(f)) == "threads=4"
        with gp.tuning("auto"):
            same(grouped(f), np.arange(4, dtype="f"))
    assert "threads=1048576: not measured, skipped: " in store.entries()[0].tried


def test_a_variant_that_computes_something_else() -> None:
    @gp.operator(tune={"by": (0, 1)})
    def moved(field, by):
        return _readTensor(field) + by

    with gp.use_device("reference"), gp.tuning("auto"), pytest.raises(gp.SemanticError) as wrong:
        moved(gp.ScalarField(np.zeros(5, "f"))).numpy()
    assert wrong.value.message == (
        "the variants of operator `moved` compute the same, and with by=1 5 of 5 values differ from those with by=0"
    )
    assert wrong.value.loc is not None and wrong.value.loc.text == "def moved(field, by):"


def test_rounding_may_differ() -> None:
    """Sums in another order are equal enough."""

    @gp.operator(tune={"backwards": (False, True)}, outputs=gp.FieldType((), (), "float32"))
    def total(field, backwards):
        x, n = _var(0.0), field.field_shape[0]
        with _for(n) as k:
            x += _readTensor(field, n - 1 - k if backwards else k)
        return x

    a = rng.random(99).astype("f")
    with gp.use_device("reference"), gp.tuning("auto"):
        np.testing.assert_allclose(total(gp.ScalarField(a)).numpy(), a.sum(), rtol=1e-5)


def test_time_and_progress(store: TuneStore) -> None:
    """The end of the time lets no other variant begin; the first runs in any case."""
    messages: list[str] = []
    with gp.use_device("reference"):
        result = gp.tune(wrapped, gp.ScalarField(np.ones(9, "f")), 2, seconds=1e-9, progress=messages.append)
    assert result.rows == tuple(store.entries()) and result.rows[0].choice == f"turns={MANY}, block=4"
    assert result.rows[0].tried.endswith("turns=1, block=4: not measured, no time was left")
    assert messages[0] == "wrapped on reference: 2 variants" and len(messages) == 2
    assert str(result).startswith(f"wrapped (9 float32) on reference reference: turns={MANY}, block=4, ")


def test_representative_data() -> None:
    """A field's own values; else made ones of its type."""
    node: Any = wrapped(gp.ScalarField(np.arange(6, dtype="f")), 1).node
    (param,), backend = node.call.kernel.inputs, current()
    assert np.array_equal(backend.download(param.type, value_of(param, node.call.inputs[0], backend))[0], np.arange(6))
    result = backend.download(param.type, value_of(param, None, backend))
    assert result.shape == (1, 6) and 0 <= result.min() < result.max() <= 1


# --- other devices ------------------------------------------------------------------------------------------------------


def entry_of(field: gp.Field, place: DeviceSignature, which: str, when: float = 1.0) -> TunedChoice:
    node: Any = field.node
    key = identity_of(node.call.kernel.fitting(current().target))
    return TunedChoice(VARIANT, key, place, "wrapped", "", which, 1.0, "", when)


def test_the_nearest_device_counts(store: TuneStore) -> None:
    """Of the same kind only, and only what there is; what was measured here counts before all others."""
    with gp.use_device("reference") as backend:
        f = wrapped(gp.ScalarField(np.ones(5, "f")), 1)
        store.put([entry_of(f, UNKNOWN, "turns=1, block=4")])
        assert choice(f) == f"turns={MANY}, block=4"
        here = signature_of(backend)
        old = DeviceSignature(here.backend, 0, here.kind, here.device, "an older one")
        store.put([entry_of(f, old, "turns=7, block=4")])
        assert choice(f) == f"turns={MANY}, block=4"
        store.put([entry_of(f, old, "turns=1, block=4")])
        assert choice(f) == "turns=1, block=4"
        store.put([entry_of(f, here, f"turns={MANY}, block=4")])
        assert choice(f) == f"turns={MANY}, block=4"


def test_distances() -> None:
    ahead = DeviceSignature("cuda", 80, "gpu")
    others = [UNKNOWN, DeviceSignature("cuda", 86, "gpu", "A40", "1"), DeviceSignature("opencl", 0, "gpu", "A40", "1")]
    assert min(others, key=lambda p: ahead.distance(p) or (9, 9)) is others[1]
    assert ahead.distance(DeviceSignature("opencl", 0, "cpu", "A40", "1")) is None
    ranks = [UNKNOWN.distance(DeviceSignature(*near)) for near in (
        ("cuda", 90, "gpu", "NVIDIA H200", "580"), ("cuda", 90, "gpu", "NVIDIA H200", "590"),
        ("opencl", 0, "gpu", "NVIDIA H200", "3"), ("cuda", 80, "gpu", "A100", "580"), ("opencl", 0, "gpu", "A100", "3"),
    )]  # fmt: skip
    assert ranks == [(0, 0), (1, 0), (2, 90), (3, 10), (4, 90)]


def test_text_for_a_target_goes_by_the_nearest(store: TuneStore) -> None:
    f = wrapped(gp.ScalarField(np.ones(5, "f")), 1)
    assert str(MANY) in wrapped.source(gp.FieldType(5), 1, target="cuda:sm_90")
    store.put([entry_of(f, UNKNOWN, "turns=1, block=4")])
    assert str(MANY) not in wrapped.source(gp.FieldType(5), 1, target="cuda:sm_80")
    assert str(MANY) in wrapped.source(gp.FieldType(5), 1, target="opencl:cpu")


# --- schedules ----------------------------------------------------------------------------------------------------------


def window(field: gp.Field) -> Any:
    @gp.operator
    def summed(field):
        return _readTensor(field, _row - 1, _column) + _readTensor(field, _row + 1, _column)

    return summed(field)


@needs_driver
def test_schedules_are_measured_and_stored(store: TuneStore) -> None:
    """By `gp.tune` alone; results keep their bits, and only the device's own entries count."""
    a = rng.random((24, 80)).astype("f")
    with gp.use_device(COMPILING[0]) as backend:
        f = gp.ScalarField(a)
        expected = window(f).numpy()
        with gp.ComputeGraph() as graph:
            graph.probe(window(f), "result")
        (row,) = gp.tune(graph, seconds=0.01).rows
        method, tried = ("roll", "roll columns=4") if ON_GPU else ("vector rows", "vector rows rows=4: ")
        assert row.what == SCHEDULE and "as predicted: " in row.tried and tried in row.tried
        kernel = graph.plan.launches[0].kernel
        assert isinstance(kernel, Kernel) and row.kernel == key_of(kernel)
        for place, pin in ((OLDER, None), (signature_of(backend), Pin("plain"))):
            config.tune_store.unlink()
            store.put([TunedChoice(SCHEDULE, row.kernel, place, "", "", "plain", 1.0, "", 1.0)])
            (launch,) = planned(window(f)).launches
            assert isinstance(launch.kernel, Kernel) and launch.kernel.pin == pin
            same(window(f), expected)
        assert "schedule" not in graph.explain()
        with gp.schedule(method):
            assert "plain" not in str(planned(window(f)).launches[0].kernel.pin)  # type: ignore[attr-defined]


def test_what_is_tuned(store: TuneStore) -> None:
    f = gp.ScalarField(np.ones(5, "f"))
    with gp.use_device("reference"):
        assert str(gp.tune(f + 1)) == "nothing has several variants or schedules on reference"
        assert len(gp.tune(lambda x: (wrapped(x, 1), x), f).rows) == 1
        assert len(gp.tune(gp.iterate(lambda u: wrapped(u, 1), f, times=2)).rows) == 1

        @gp.pipeline
        def piped(x):
            return wrapped(gp.ScalarField(x), 3)

        assert len(gp.tune(piped, np.ones(5, "f")).rows) == 1


# --- records, as `gpuop tune export` writes them ------------------------------------------------------------------------


def test_export_is_a_table(store: TuneStore, capsys: pytest.CaptureFixture[str]) -> None:
    from gpuop.__main__ import main

    f = wrapped(gp.ScalarField(np.ones(5, "f")), 1)
    store.put([entry_of(f, OLDER, "turns=1, block=4"), entry_of(f, signature_of(current()), f"turns={MANY}, block=4")])
    assert main(["tune", "export", "--store", str(store.path)]) == 0
    (table,) = json.loads(capsys.readouterr().out)["wrapped"].values()
    assert table["cuda:sm_50"] == {"turns": 1, "block": 4}
    assert repr(_target.choose(table).turns).startswith("_target.choose({")
