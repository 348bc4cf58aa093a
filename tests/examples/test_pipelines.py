"""The pipelines that are measured compute what NumPy does, whatever the size, fused and not."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from benchmarks.pipelines import frames, gpuop_itself, peers_cpu, predicted, schedules
from benchmarks.pipelines.catalogue import CATALOGUE
from benchmarks.pipelines.comparing import compared
from benchmarks.pipelines.contestant import Contestant, lines_of
from benchmarks.pipelines.measure import measure
from benchmarks.pipelines.pipeline import as_tuple
from benchmarks.pipelines.report import page, summary_of, table, verdict
from benchmarks.pipelines.stencils import harris

LARGE = {"nlm", "pyramid_blend", "local_laplacian"}  # seconds to plan and to compile
SHARES = 8  # of the pipelines, one for each device: drivers take their time


def differs(name, size, **options):
    pipeline = CATALOGUE[name]
    arrays = pipeline.inputs((*size, 9) if len(pipeline.shapes["cpu"]) == 3 else size)
    expected = as_tuple(pipeline.expected(*arrays))
    graph = pipeline.graph(arrays, **options)
    return pipeline.differs(tuple(graph.read(f"result{n}") for n in range(len(expected))), expected)[0]


@pytest.mark.parametrize("name", CATALOGUE)
def test_pipelines_on_the_reference(name):
    with gp.use_device("reference"):
        assert not differs(name, (17, 33))
        assert not differs(name, (3, 1), optimize=False)


def test_pipelines_on_devices(device, request):
    names = [name for name in CATALOGUE if name not in LARGE]
    for name in names[request.node.callspec.indices["device"] :: SHARES]:
        assert not differs(name, (50, 31)), name


# --- measuring ------------------------------------------------------------------------------------------------------


def peer(change=lambda a: a, wait=0.0, bits=False):
    """A contestant that computes 3×3 medians in NumPy, and changes them."""

    def make(arrays):
        time.sleep(wait)
        result = change(CATALOGUE["median3x3"].expected(*arrays))
        return Contestant(lambda times: None, lambda: (result,), bits=bits)

    return make


def test_who_is_wrong_fails_or_is_late_is_left_out(monkeypatch):
    monkeypatch.setattr("benchmarks.pipelines.measure.MADE_IN", 2.0)
    monkeypatch.setattr(
        "benchmarks.pipelines.measure.release_unused", lambda: None
    )  # which takes time in large processes
    pipeline = CATALOGUE["median3x3"]
    nearly = peer(lambda a: np.nextafter(a, np.float32(2)))
    others = {
        "right": peer(),
        "nearly": nearly,
        "not exact": lambda arrays: replace(nearly(arrays), bits=True),
        "wrong": peer(lambda a: np.where(a > 0.5, a, 0)),
        "transposed": peer(np.transpose),
        "no numbers": peer(lambda a: a * np.float32("nan")),
        "late": peer(wait=60.0),
        "failing": lambda arrays: 1 // 0,
    }
    with gp.use_device("reference") as backend:
        makers = {**others, **gpuop_itself.entries(pipeline)}
        result = measure(pipeline, (12, 17), makers, backend, rounds=2, seconds=20)
    assert set(result["left_out"]) == {"not exact", "wrong", "transposed", "no numbers", "late", "failing"}
    assert result["left_out"]["failing"] == "ZeroDivisionError: integer division or modulo by zero"
    assert result["left_out"]["not exact"] == "wrong: other bits than the unfused operators"
    assert result["left_out"]["late"] == "TooLong: not ready in 2 s"
    assert {"copy", "right", "nearly", "gpuop", "gpuop plain", "gpuop unfused"} <= set(result["contestants"])
    assert result["contestants"]["right"]["bits"] and not result["contestants"]["nearly"]["bits"]
    assert result["bytes"] == 2 * 12 * 17 * 4
    results = {"device": "reference", "pipelines": {"median3x3": result}}
    assert "left out: late" in table("medians", result) and "wrong: 1" in page(results, {}).replace("100.00%", "1")


def beside(own, other, **changed):
    """A pipeline that took gpuop and a peer so many milliseconds."""
    entry = {"spread": 0.2, "rounds": 7} | changed
    return {
        "shape": (1,),
        "left_out": {},
        "contestants": {"gpuop": {"ms": own, **entry}, "Peer": {"ms": other, **entry}},
    }


def test_what_differs_within_half_the_spread_is_a_tie_and_few_rounds_do_not_count():
    results = {
        "faster": beside(1.0, 1.11),
        "near": beside(1.0, 1.09),
        "as near": beside(1.09, 1.0),
        "slower": beside(1.3, 1.0),
        "once": beside(1.0, 9.0, rounds=1),
        "four times": beside(9.0, 1.0, rounds=4, allocates=True),
    }
    messages = [verdict(result, "peer") for result in results.values()]
    assert messages == ["won", "tie", "tie", "lost", "one run", "4 runs"]
    assert verdict(results["faster"], "hand") is None
    assert summary_of(results)[0] == (
        "1 of 4 pipelines are faster than the best peer; within the spread: near 0.92, as near 1.09; slower: slower 1.30. "
        "Not counted, with fewer than 5 rounds: once, four times."
    )
    text = page({"device": "a:0", "pipelines": results}, {})
    assert (
        "| one run |" in text and "1.00 ± 0.20 Peer (4 runs, allocates)" in text and "| 9.00 (4) | 1.00 (4) |" in text
    )
    assert "| four times | 9.00 (4) |" in text and "1.11 ± 0.20 Peer |" in text


def test_peers_write_into_their_last_results_where_they_can():
    pipeline = CATALOGUE["conv3x3"]
    arrays = pipeline.inputs((20, 30))
    scipy, numpy = (
        peers_cpu.scipy_entries(pipeline)["SciPy"](arrays),
        peers_cpu.numpy_entries(pipeline)["NumPy"](arrays),
    )
    before = scipy.results()[0], numpy.results()[0]
    for each in (scipy, numpy):
        each.run(2)
    assert scipy.results()[0] is before[0] and numpy.results()[0] is not before[1]
    assert (scipy.allocates, numpy.allocates) == (False, True)
    assert not pipeline.differs(scipy.results(), numpy.results())[0]


@pytest.mark.parametrize("name", [name for name, pipeline in CATALOGUE.items() if pipeline.photo])
def test_photos_are_taken_as_they_lie_and_results_written_into_the_same_array(name):
    pipeline = CATALOGUE[name]
    arrays = pipeline.inputs((20, 30))
    with gp.use_device("reference"):
        own = gpuop_itself.entries(pipeline)[gpuop_itself.AS_IT_IS](arrays)
        (before,) = own.results()
        before[:] = 0
        own.run(2)
    assert arrays[0].shape == (20, 30, 3) and own.results()[0] is before and not own.allocates
    assert not pipeline.differs(own.results(), as_tuple(pipeline.expected(*arrays)))[0]
    assert pipeline.program in ("unsharp", "luma_blur_threshold", "grade")


def test_comparing():
    a = np.linspace(-1, 1, 100, dtype=np.float32).reshape(20, 5)
    b = a.copy()
    b[0, :3] += 1e-3
    b[1, 0] = np.nan
    assert compared(a, a, 0.0).bits and not compared(b, a, 1.0).bits
    assert compared(b, a, 1e-2).far == 1 / 100 and compared(b, a, 1e-5).far == 4 / 100
    wide = np.array([1000.0, 0.0])
    assert compared(wide + 0.5, wide, 1e-3).far == 0 and compared(wide + 1.5, wide, 1e-3).far == 1
    assert compared(np.uint8([0]), np.uint8([255]), 0.5).far == 1  # 0 - 255 is not 1


def test_lines_of_code():
    """A function's, and those of what it uses: here two gradients and a sum, with their decorators."""
    assert lines_of((harris,)) == 5 + 2 * 5 + 3
    assert lines_of(("// a comment\n\nx = 1;\n  // another\ny = 2;",)) == 2


def test_schedules_and_predictions_are_measured(capsys, monkeypatch):
    """By the commands that say whether the best schedule was chosen, and how long it was taken to take."""
    on = [d.name for d in gp.devices() if d.name != "reference"]
    if not on:
        pytest.skip("the reference has no schedules")
    for command, messages in ((schedules, "best"), (predicted, "within 1.3")):
        monkeypatch.setattr(
            "sys.argv", ["", "--device", on[0], "--only", "conv3x3", "--size", "64", "--seconds", "0.5"]
        )
        command.main()
        assert messages in capsys.readouterr().out


# --- frames ----------------------------------------------------------------------------------------------------------


def test_frames_are_measured_beside_peers_and_wrong_ones_are_left_out(monkeypatch, capsys):
    pipeline = CATALOGUE["photo_grade"]
    makers = {
        "gpuop": frames.gpuop_maker(pipeline, "NumPy", writes=True),
        "NumPy": peers_cpu.numpy_entries(pipeline)["NumPy"],
        "flipped": peers_cpu.entry(lambda picture: pipeline.expected(picture) ^ 64),
    }
    monkeypatch.setattr(frames, "makers_of", lambda pipeline, backend: makers)
    monkeypatch.setattr(frames, "TURN", 1e-4)
    with gp.use_device("reference") as backend:
        rows = dict(frames.measured(pipeline, {"small": (5, 7), "odd": (4, 9)}, 2, backend))
    assert [list(row) for row in rows.values()] == [["gpuop", "NumPy"]] * 2
    lines = frames.lines_of(pipeline, "small", rows["small"])
    assert len(lines) == 3 and "gpuop over the best peer" in lines[-1]
    assert "left out of photo_grade: flipped: 100.00% of the points differ" in capsys.readouterr().out


def test_the_ratio_of_frames_is_of_the_fastest_and_calls_ties_ties():
    row = {
        "gpuop": {"call": [4.0, 4, 4]},
        "gpuop, out=": {"call": [2.0, 2, 2]},
        "A": {"call": [4.0, 4, 4]},
        "B": {"call": [9.0]},
    }
    assert frames.ratio(row, "call") == "0.50"
    assert frames.ratio(row | {"A": {"call": [1.0, 2.5, 4.0]}}, "call") == "0.80 tie"
    assert frames.ratio({"gpuop": row["gpuop"]}, "call") == "–"
