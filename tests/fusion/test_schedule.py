"""`gp.schedule`: a schedule that a user pins."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.fusion.report.explain import explain
from gpuop.ir.device_model import DeviceFacts
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.target import Target
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.common.method import Method
from gpuop.passes.schedules.common.plain import without_intermediates
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.reference.device import Reference

HALVES = Method(
    "halves",
    ("rows", "lanes"),
    lambda kernel: "" if kernel.intermediates else "it has no stages",
    lambda kernel: ({"rows": 4, "lanes": 2}, {"rows": 8, "lanes": 1}),
    lambda kernel, parameters: parameters,
    lambda kernel, parameters: replace(without_intermediates(kernel), name=f"halves_{parameters['rows']}"),
)


@gp.operator
def across(f):
    return _readTensor(f, _row, _column - 1) + 2 * _readTensor(f) + _readTensor(f, _row, _column + 1)


@gp.operator
def down(f):
    return _readTensor(f, _row - 1, _column) + 2 * _readTensor(f) + _readTensor(f, _row + 1, _column)


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "METHODS", (HALVES,))
    monkeypatch.setattr("gpuop.passes.schedules.pinning.METHODS", (HALVES,))


def planned(pin: Pin | None = None) -> list[Kernel]:
    out = down(across(gp.ScalarField(np.ones((8, 8), np.float32))))
    result = plan(program([out.node]), limits=Limits(target=target_named("opencl"), pin=pin))
    return [launch.kernel for launch in result.launches if isinstance(launch.kernel, Kernel)]


@pytest.mark.usefixtures("halves")
def test_stages_are_made_where_a_schedule_suits() -> None:
    (kernel,) = planned()
    assert len(kernel.intermediates) == 1
    assert schedules.schedule(replace(kernel, target=target_named("opencl"))).name == "halves_4"


@pytest.mark.usefixtures("halves")
def test_a_pin_gives_parameters() -> None:
    (kernel,) = planned(Pin("halves", (("rows", 16),)))
    assert schedules.schedule(replace(kernel, target=target_named("opencl"))).name == "halves_16"


@pytest.mark.usefixtures("halves")
def test_plain_has_no_stages() -> None:
    assert [len(kernel.intermediates) for kernel in planned(Pin("plain"))] == [0]  # recomputed


def test_unknown_parameters_are_told_where_they_are_written() -> None:
    """Even if no kernel follows that the method suits."""
    with pytest.raises(
        gp.SemanticError, match="the schedule 'resample' has no parameter columns; it has rows"
    ) as error:
        gp.schedule("resample", columns=3)
    assert error.value.loc is not None
    assert error.value.loc.text == 'gp.schedule("resample", columns=3)'


@pytest.mark.usefixtures("halves")
def test_the_innermost_pin_holds() -> None:
    assert pinned() is None
    with gp.schedule("halves", rows=2):
        with gp.schedule("plain"):
            assert pinned() == Pin("plain")
        assert pinned() == Pin("halves", (("rows", 2),))
    assert pinned() is None


def test_unknown_methods_are_told() -> None:
    with pytest.raises(gp.SemanticError, match="there is no schedule 'tiling'; one of plain"), gp.schedule("tiling"):
        pass


@pytest.mark.parametrize("value", [0, -1, True, 2.0])
def test_parameters_are_whole_numbers(value: int) -> None:
    with pytest.raises(
        gp.SemanticError, match="the parameter rows of a schedule is a whole number above 0, not"
    ) as error:
        gp.schedule("roll", rows=value)
    assert error.value.loc is not None
    assert error.value.loc.text == 'gp.schedule("roll", rows=value)'


def test_plain_has_no_parameters() -> None:
    with pytest.raises(gp.SemanticError, match="the schedule 'plain' has no parameters; leave out rows, columns"):
        gp.schedule("plain", rows=3, columns=4)


def test_a_pin_is_part_of_what_is_planned() -> None:
    image = np.random.default_rng(1).random((9, 7), dtype=np.float32)
    field = gp.ScalarField(image)
    padded = np.pad(image, 1, "edge")
    rows = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    expected = rows[:-2] + 2 * rows[1:-1] + rows[2:]
    np.testing.assert_array_equal(down(across(field)).numpy(), expected)
    with gp.schedule("plain"):
        np.testing.assert_array_equal(down(across(gp.ScalarField(image))).numpy(), expected)
        with gp.ComputeGraph() as graph:
            graph.probe(down(across(field)), "out")
    graph.step()
    np.testing.assert_array_equal(graph.read("out"), expected)
    assert graph.kernel_count == 1
    assert "  schedule: " not in graph.explain()


def test_a_pin_that_does_not_suit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_named("cuda")
    what = program([down(gp.ScalarField(np.ones((40, 64), np.float32))).node])

    def explained(method: str) -> tuple[str, object]:
        result = plan(what, limits=Limits(target=target, pin=Pin(method)))
        facts = json.loads(explain(result, "json", target=target))
        return explain(result, target=target), facts["kernels"][0]["refused_pin"]

    text, refused = explained("vector rows")
    assert refused == {"method": "vector rows", "reason": "the device has no vectors"}
    assert "\n  pinned: vector rows, which does not suit: the device has no vectors\n" in text
    for suited in ("roll", "plain"):
        text, refused = explained(suited)
        assert refused is None
        assert ("schedule: roll (" if suited == "roll" else "thread") in text
        assert "pinned" not in text
    monkeypatch.setattr(config, "schedule", "plain")
    assert "\n  pinned: roll, which does not suit: GPUOP_SCHEDULE is plain\n" in explained("roll")[0]


def test_where_the_setting_is_plain_no_other_schedule_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_named("cuda")
    facts = DeviceFacts(1e-6, ((10**9, 1.0),), lambda kind: 1e-12)
    result = plan(program([down(gp.ScalarField(np.ones((1024, 1024), np.float32))).node]), limits=Limits(target=target))

    def methods() -> list[str]:
        actual = json.loads(explain(result, "json", target=target, device=facts))["kernels"][0]["predictions"]
        return [each["method"] for each in actual]

    assert set(methods()) > {"plain"}
    monkeypatch.setattr(config, "schedule", "plain")
    assert methods() == ["plain"]


@pytest.mark.usefixtures("halves")
@pytest.mark.parametrize("times", [1, 2, 3, 6, 7])
def test_two_turns_are_one_launch_where_a_schedule_keeps_what_is_between(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reference, "limits", Limits(target=target_named("opencl")))
    image = np.random.default_rng(2).integers(0, 9, (6, 5)).astype(np.float32)
    source = gp.ScalarField(np.ones((6, 5), np.float32))

    def blurred(u: gp.Field, v: gp.Field) -> tuple[gp.Field, gp.Field]:
        return down(v) / 4 + source, u

    u, v = image, image[::-1]
    for _ in range(times):
        padded = np.pad(v, ((1, 1), (0, 0)), "edge")
        u, v = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4 + 1, u
    with gp.use_device("reference"), gp.ComputeGraph() as graph:
        states = gp.iterate(blurred, (gp.ScalarField(image), gp.ScalarField(image[::-1].copy())), times=times)
        for name, state in zip("uv", states, strict=True):
            graph.probe(state, name)
    with gp.use_device("reference"):
        np.testing.assert_array_equal(graph.read("u"), u)
        np.testing.assert_array_equal(graph.read("v"), v)


@pytest.mark.usefixtures("halves")
def test_turns_in_pairs_are_counted_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reference, "limits", Limits(target=target_named("opencl")))
    image = np.ones((6, 5), np.float32)

    def graph_of(**ends: object) -> gp.ComputeGraph:
        with gp.ComputeGraph("reference") as graph:
            graph.probe(gp.iterate(lambda u: down(across(u)) / 16, gp.ScalarField(image), **ends), "u")  # type: ignore[arg-type]
        return graph

    with gp.use_device("reference"):
        graph = graph_of(times=7)
        assert graph.kernel_count == 4
        assert "repeats 7 iterations, two at a time; " in graph.explain()
        np.testing.assert_array_equal(graph.read("u"), image)
        even = graph_of(until=lambda u: u.max() < 0, every=4, times=9)
        assert "two at a time" in even.explain()
        np.testing.assert_array_equal(even.read("u"), image)
        assert "two at a time" not in graph_of(until=lambda u: u.max() < 0, every=3, times=9).explain()


@pytest.mark.parametrize("shape", [(0,), (0, 5), (7, 0), (0, 0, 5)])
@pytest.mark.parametrize("target", [target_named("cuda"), gp.device(gp.devices()[0].name).target])
def test_nothing_is_scheduled_on_no_points(shape: tuple[int, ...], target: Target) -> None:
    f = gp.ScalarField(np.zeros(shape, np.float32))
    for field in (f[::-1], (f * 2)[::-1] + 1):
        result = plan(program([field.node]), limits=Limits(target=target))
        for launch in result.launches:
            assert isinstance(launch.kernel, Kernel)
            assert schedules.choice(replace(launch.kernel, target=target)) is None
