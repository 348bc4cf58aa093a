"""Times of kernels: by the device's clock, over steps that the graph takes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.conftest import is_driver
from tests.harness import blur, image, same_bits


@gp.operator(outputs=lambda f: f.type)
def mirror(f):
    _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)


def build():
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(image(32, 48) * 0 + 2)
        heat.next = blur(mirror(heat))
        graph.probe(heat)
    return graph


def test_rows_and_table(device):
    graph = build()
    result = graph.profile(steps=5)
    assert result.steps == 5 and graph.tick == 5, "the graph has taken the steps"
    assert [(row.number, row.name) for row in result.rows] == [
        (n, step.kernel.name) for n, step in enumerate(graph.plan.launches, 1)
    ]
    for row, step in zip(result.rows, graph.plan.launches, strict=True):
        assert row.nbytes == sum(graph.plan.program.types[v].nbytes for v in (*step.inputs, *step.outputs))
        assert row.median_ms > 0 and row.spread_ms >= 0
        assert (row.predicted_ms > 0) == is_driver(device)
        assert row.gb_per_s == pytest.approx(row.nbytes / row.median_ms / 1e6)
    assert sum(row.share for row in result.rows) == pytest.approx(1)
    lines = str(result).split("\n")
    assert lines[0].endswith(", 5 steps") and lines[1].split() == [
        "kernel",
        "ms",
        "±",
        "ms",
        "predicted",
        "GB/s",
        "share",
    ]
    assert len(lines) == len(result.rows) + 3 and lines[-1].startswith("all ") and repr(result) == str(result)
    ends = {len(lines[1]), *(line.index("%") + 1 for line in lines[2:-1])}
    assert len(ends) == 1, "the columns are aligned"
    assert all(line.endswith(f"  {', '.join(row.lines)}") for line, row in zip(lines[2:-1], result.rows, strict=True))


def test_results_are_those_of_steps(device):
    measured, stepped = build(), build()
    measured.step(2)
    measured.profile(3)
    measured.step()
    stepped.step(6)
    assert measured.tick == 6
    same_bits(measured.read("heat"), stepped.read("heat"))


def test_parameters_and_host_operators(device):
    rate = gp.Parameter(1.0)
    with gp.ComputeGraph() as graph:
        total = gp.ScalarField(np.zeros((4, 5), "f"))
        total.next = total + rate
        flipped = gp.HostOperator(np.flipud, total * 2, outputs=total.type)
        graph.probe(flipped)
    graph.profile(2)
    rate.set(10.0)
    result = graph.profile(2)
    assert "flipud" in [row.name for row in result.rows] and len(result.rows) == len(graph.plan.launches)
    assert (graph.read("flipped") == 2 * 22).all()


@gp.schedule("plain")  # others take two turns at once, and move less
def test_an_iteration_is_a_row(device):
    start = image(32, 48)
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(start)
        heat.next = gp.iterate(blur, heat + 1, times=6) * 0.5
        graph.probe(heat)
    result = graph.profile(3)
    (row,) = [row for row in result.rows if "iterate" in row.name]
    assert row.nbytes == 6 * 2 * 32 * 48 * 4 and row.median_ms > 0
    assert row.predicted_ms == pytest.approx(6 * _predicted_of_turn(graph))
    assert (row.predicted_ms > 0) == (is_driver(device) and "on the host" not in device)  # whose facts are measured
    with gp.ComputeGraph() as plain:
        warm = gp.ScalarField(start)
        warm.next = gp.iterate(blur, warm + 1, times=6) * 0.5
        plain.probe(warm)
    plain.step(3)
    same_bits(graph.read("heat"), plain.read("warm"))


def _predicted_of_turn(graph):
    (repeats,) = [k["repeats"] for k in json.loads(graph.explain("json"))["kernels"] if k["repeats"]]
    return sum(each["ms"] for k in repeats["turn"]["kernels"] for each in (k["predictions"] or [])[:1])


def test_sensors_end_it(device):
    with gp.ComputeGraph() as graph:
        frame = gp.Sensor(gp.FieldType((3, 4)), iter([np.full((3, 4), k, "f") for k in range(4)]))
        graph.probe(frame + 1, "out")
    assert graph.profile(20).steps == 3 and graph.tick == 3
    assert (graph.read("out") == 4).all()


def test_frames_of_sensors_are_uploads(device):
    with gp.ComputeGraph() as graph:
        kind = gp.FieldType((30, 40), 3)
        often = gp.Sensor(kind, lambda: np.ones(kind.array_shape, "f"))
        once = gp.Sensor(gp.FieldType(7), [np.zeros(7, "f")] + [None] * 9)
        graph.probe(often * 2, "out")
        graph.probe(once + 1, "same")
    result = graph.profile(4)
    (upload,) = result.uploads  # the other one has shown its only frame
    assert (upload.name, upload.nbytes) == ("often", 30 * 40 * 3 * 4) and upload.median_ms > 0 and upload.spread_ms >= 0
    assert upload.gb_per_s == pytest.approx(upload.nbytes / upload.median_ms / 1e6)
    lines = str(result).split("\n")
    assert lines[-2].startswith("upload of often ") and lines[-1].startswith("all kernels ")
    assert len(lines) == len(result.rows) + 4
    assert (graph.read("out") == 2).all() and (graph.read("same") == 1).all()


def test_nothing_to_measure():
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(image(2, 3)), "out")
    assert graph.profile(2).rows == ()
    assert "all" in str(graph.profile(1))


def test_no_steps():
    with pytest.raises(gp.SemanticError, match="profile takes a number of steps, 1 or more, not 0"):
        build().profile(0)
