"""Reports of plans: methods, bytes, operations, registers, reasons; as text and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.base.errors import Loc
from gpuop.dsl import *
from gpuop.fusion.kernel_statistics import operations, registers
from gpuop.fusion.report import explain as explaining
from gpuop.fusion.report.line_summary import summary
from gpuop.passes.unroll import unroll
from tests.errors.wrong import marked
from tests.harness import blur, gamma, graph_of, image, shift

N = 64 * 96 * 4  # bytes of a scalar float field
KERNEL_KEYS = [
    "number", "name", "threads", "thread_count", "work_group", "host", "where", "operators", "inputs", "outputs", "read_bytes",
    "written_bytes", "alternating", "operations", "operations_exact", "registers", "local_bytes", "lanes", "schedule",
    "refused_pin", "not_taken", "integer_sums", "float_pairs",
    "dynamic", "runs", "in_place", "repeats", "predictions",
]  # fmt: skip


def facts(graph):
    return json.loads(graph.explain(format="json"))


def kernel_of(*fields, operator):
    return operator(*fields).node.call.kernel


def chain(optimize=True):
    with gp.ComputeGraph(optimize=optimize) as graph:
        photo = gp.ScalarField(np.zeros((64, 96), "f"))
        brighter = gamma(photo) + 1
        graph.probe(brighter * 2, "out")
    return graph


def test_json_has_stable_keys_and_numbers():
    graph = chain()
    actual = facts(graph)
    counts = ["kernel_count", "library_calls", "operator_count", "moved_bytes", "step_bytes", "floor_bytes", "ratio"]
    assert list(actual) == [
        "kernels",
        "lines",
        "apart",
        "states",
        *counts,
        "buffers",
        "buffer_bytes",
        "predicted",
        "traced_again",
        "to_planes",
        "from_planes",
        "tier",
    ]
    (kernel,) = actual["kernels"]
    assert list(kernel) == KERNEL_KEYS
    assert (actual["kernel_count"], actual["operator_count"], actual["moved_bytes"], actual["floor_bytes"]) == (
        1,
        3,
        2 * N,
        2 * N,
    )
    assert (kernel["thread_count"], kernel["threads"], kernel["host"], kernel["local_bytes"]) == (
        6144,
        "64×96",
        False,
        0,
    )
    assert [(op["name"], op["method"], op["part"]) for op in kernel["operators"]] == [
        ("gamma", "registers", 0),
        ("add", "registers", 0),
        ("multiply", "registers", 0),
    ]
    assert all(op["file"] == "tests/fusion/test_explain.py" and op["line"] > 0 for op in kernel["operators"])
    assert kernel["inputs"] == [
        {"value": kernel["inputs"][0]["value"], "name": "photo", "type": "64×96 float32", "bytes": N, "kernel": None}
    ]
    assert [(v["name"], v["kernel"]) for v in kernel["outputs"]] == [("out", 1)]
    assert graph.explain(format="json") == graph.explain("json") == chain().explain("json")


def test_text_says_what_json_says():
    with gp.use_device("reference"):
        text = chain().explain()
    lines = text.split("\n")
    assert lines[:2] == [
        "1 kernel for 3 operators",
        "kernel 1: gamma_add_multiply on 64×96 threads; reads 24 KiB, writes 24 KiB",
    ]
    assert lines[2].startswith("  fused through registers: gamma (tests/fusion/test_explain.py:")
    assert lines[3] == "  photo → out"
    assert lines[4].startswith("  8 operations per thread, about ") and lines[4].endswith(" registers")
    assert lines[5:] == [
        "  computed once: nothing that it depends on changes",
        "the kernels move 48 KiB; inputs and outputs alone are 48 KiB (ratio 1)",
        "what kernels write takes 24 KiB in 1 buffer",
    ]


def test_unfused_it_moves_more():
    actual = facts(chain(optimize=False))
    assert actual["kernel_count"] == 3 and (actual["moved_bytes"], actual["floor_bytes"], actual["ratio"]) == (
        6 * N,
        2 * N,
        3.0,
    )
    assert {op["method"] for kernel in actual["kernels"] for op in kernel["operators"]} == {"alone"}
    assert [v["kernel"] for kernel in actual["kernels"] for v in kernel["inputs"]] == [None, 1, 2]


def test_left_apart_with_its_costs():
    def build(probed):
        def fields():
            made = mirror(a) + 1
            return {"out": made * 2} | ({"made": made} if probed else {})

        return fields

    @gp.operator(outputs=lambda f: f.type)
    def mirror(f):
        _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)

    a = gp.ScalarField(image(64, 96))
    graph = graph_of(build(False))
    (apart,) = facts(graph)["apart"]
    assert (apart["producer"], apart["consumer"], apart["bytes"]) == ("mirror", "add", 2 * N)
    assert (apart["producer_kernel"], apart["consumer_kernel"]) == (1, 2) and "at computed places" in apart["reason"]
    assert f"mirror → add: {apart['reason']}; costs 48 KiB" in graph.explain()


def test_states_that_copy_nothing(device):
    with gp.ComputeGraph() as graph:
        frame = gp.Sensor(gp.FieldType((64, 96)), lambda: np.zeros((64, 96), "f"))
        old, older, count, heat, held = (gp.ScalarField(image(64, 96)) for _ in range(5))
        old.name, older.name, count.name, heat.name, held.name = "old", "older", "count", "heat", "held"
        old.next, older.next = frame, old
        count.next, heat.next = count + 1, blur(heat)
        gain = gp.Parameter(2.0)
        held.next = gp.ScalarField(image(64, 96)) * gain
        graph.probe(older + heat + held, "out")
        graph.probe(count, "count")
    actual = facts(graph)["states"]
    assert {state["name"]: (state["next_name"], state["takes"]) for state in actual} == {
        "old": ("frame", "buffer"),
        "older": ("old", "buffer"),
        "count": ("count.next", "in place"),
        "heat": ("heat.next", "buffer"),
        "held": ("held.next", "copy"),
    }
    assert [state["kernel"] is None for state in actual] == [True, True, False, False, False]
    (line,) = (line for line in graph.explain().split("\n") if "buffer, and" in line)
    assert line == "states that take a buffer, and copy nothing: old that of frame, older that of old"


def test_turns_of_iterations_count_and_host_operators_do_not(device):
    a = gp.ScalarField(image(64, 96))
    with gp.ComputeGraph() as graph:
        graph.probe(gp.iterate(blur, a, times=7), "out")
        graph.probe(gp.HostOperator(np.flipud, a, outputs=a.type), "host")
    launched = 4 if ", two at a time" in graph.explain() else 7
    assert facts(graph)["kernel_count"] == graph.kernel_count == launched
    text = graph.explain()
    assert (
        text.startswith(f"1 kernel in {launched} launches for 2 operators\niteration 1: ")
        and "\nhost function 2: " in text
    )
    assert re.search(r"^    kernel 1\.1: blur on ", text, re.M) and not re.search(r"^ *kernel [12]: ", text, re.M)


def test_recomputed_operators_are_named():
    a = gp.ScalarField(image(64, 96))
    graph = graph_of(lambda: {"out": shift(a + 1)})
    (kernel,) = facts(graph)["kernels"]
    assert [(op["name"], op["method"], op["part"]) for op in kernel["operators"]] == [
        ("add", "recomputed", None),
        ("shift", "alone", 0),
    ]
    assert "  recomputed where it is read: add (tests/fusion/test_explain.py:" in graph.explain()


def test_side_by_side():
    a = gp.ScalarField(image(64, 96))
    graph = graph_of(lambda: {"one": a + 1, "two": gamma(a) * 2, "three": a - 3})
    (kernel,) = facts(graph)["kernels"]
    methods = {op["name"]: (op["method"], op["part"]) for op in kernel["operators"]}
    assert methods["gamma"] == methods["multiply"] and methods["gamma"][0] == "registers"
    assert methods["add"][0] == methods["subtract"][0] == "side by side" and methods["add"] != methods["subtract"]
    assert "  side by side, reading the same: add (" in graph.explain()
    assert facts(graph)["ratio"] == 1.0


def test_operations():
    a, v = gp.ScalarField(image(4, 5)), gp.VectorField(image(4, 5, 3))

    @gp.operator
    def loops(f):
        total = _var(0.0)
        with _for(10):
            with _for(1, 7, 2):
                total += _readTensor(f) * 2
        return total

    @gp.operator
    def unknown(f):
        total = _var(0.0)
        with _while(total < 5):
            total += _readTensor(f)
        return total

    @gp.operator
    def once(f):
        return _readTensor(f) * 2 + 1

    for operator, field, count, exact in (
        (once, a, 2, True),
        (once, v, 6, True),
        (loops, a, 60, True),
        (unknown, a, 2, False),
    ):
        actual = operations(kernel_of(field, operator=operator))
        assert (actual.count, actual.exact) == (count, exact), operator.name
    assert "  at least 2 operations per thread" in graph_of(lambda: {"out": unknown(a)}).explain()
    assert operations(unroll(kernel_of(a, operator=loops))).count == 60


@gp.operator
def sum_of_squares(f, taps):
    read = [_var(_readTensor(f, _row, _column + k)) for k in range(taps)]
    total = read[0] * 0
    for value in read:
        total = total + value * value
    return total


def test_registers_grow_with_what_is_kept():
    a = gp.ScalarField(image(4, 50))
    few, many = (registers(kernel_of(a, operator=lambda f, n=n: sum_of_squares(f, n))) for n in (2, 20))
    assert 4 <= few < 10 and 20 <= many < 30
    double = gp.ScalarField(image(4, 50).astype("f8"))
    assert registers(kernel_of(double, operator=lambda f: sum_of_squares(f, 20))) > 1.7 * many

    @gp.operator
    def table(f):
        kept = _floatArray(32)
        kept[_column % 32] = _readTensor(f)
        return kept[_row % 32]

    assert 32 < registers(kernel_of(a, operator=table)) < 48


def test_registers_of_a_loop_hold_what_comes_after_it():
    @gp.operator
    def late(f):
        kept = [_readTensor(f, _row, _column + k) for k in range(12)]
        total = _var(0.0)
        with _for(5):
            total += _readTensor(f)
        return sum(kept, total)

    assert 13 <= registers(kernel_of(gp.ScalarField(image(4, 50)), operator=late)) < 24


def test_local_memory():
    @gp.operator
    def staged(f):
        _localThreads(64)
        kept = _local(_floatArray(64))
        kept[_localColumn] = _readTensor(f)
        _syncThreadsLocal()
        return kept[63 - _localColumn]

    graph = graph_of(lambda: {"out": staged(gp.ScalarField(image(256)))})
    assert facts(graph)["kernels"][0]["local_bytes"] == 256 and "256 B of local memory" in graph.explain()


def test_a_host_operator_is_no_kernel_of_the_device():
    a = gp.ScalarField(image(64, 96))
    graph = graph_of(lambda: {"out": gp.HostOperator(np.flipud, a + 1, outputs=a.type) * 2})
    actual = facts(graph)["kernels"]
    assert [kernel["host"] for kernel in actual] == [False, True, False]
    assert actual[1]["operations"] is None and actual[1]["registers"] is None
    assert "\nhost function 2: flipud on the host; reads 24 KiB, writes 24 KiB" in graph.explain()


def test_nothing_to_explain():
    graph = graph_of(lambda: {"out": gp.ScalarField(image(2, 3))})
    assert graph.explain() == "0 kernels for 0 operators"
    assert facts(graph)["ratio"] == 1.0 and facts(graph)["kernels"] == []


def test_wrong_formats():
    graph = graph_of(lambda: {"out": blur(gp.ScalarField(image(4, 5)))})
    with pytest.raises(gp.SemanticError, match=r'there is no format \'xml\'; one of "text", "full" and "json"'):
        graph.explain(format="xml")


def test_it_says_how_many_points_a_thread_handles(monkeypatch):
    """Only where the device's kernels may have several."""
    with gp.use_device("reference") as backend:
        graph = chain()
        assert facts(graph)["kernels"][0]["lanes"] == {
            "count": 1, "form": "scalar", "reason": "one point per thread is as fast on the device",
        }  # fmt: skip
        assert "per thread" not in graph.explain().replace("operations per thread", "")
        monkeypatch.setattr(backend, "target", replace(backend.target, widening="unrolled", least_threads=1))
        assert facts(graph)["kernels"][0]["lanes"] == {"count": 4, "form": "wide", "reason": ""}
        assert "\n  4 points per thread, which are neighbours in memory\n" in graph.explain()
        monkeypatch.setattr(backend, "target", replace(backend.target, least_threads=6144))
        assert "\n  1 point per thread: more lanes would leave too few threads\n" in graph.explain()


def test_lanes_of_kernels_that_run_at_every_step(monkeypatch):
    with gp.use_device("reference") as backend:
        monkeypatch.setattr(
            backend, "target", replace(backend.target, widening="vector", simd_width=8, least_threads=1)
        )
        with gp.ComputeGraph() as graph:
            state = gp.ScalarField(np.ones((40, 50), np.float32))
            state.next = state * 2
        text = graph.explain()
        assert "on 40×50 points" in text and "\n  1 operation per point, " in text
        assert "\n  16 points per thread, as vectors\n" in text


def test_one_switch_turns_lanes_off(monkeypatch):
    with gp.use_device("reference") as backend:
        monkeypatch.setattr(
            backend, "target", replace(backend.target, widening="vector", simd_width=8, least_threads=1)
        )
        assert "\n  16 points per thread, as vectors\n" in chain().explain()
        monkeypatch.setattr(config, "widen", False)
        assert "\n  1 point per thread: GPUOP_WIDEN is 0\n" in chain().explain()


def test_many_operators_of_one_place_are_told_of_once():
    with gp.ComputeGraph() as graph:
        total = gp.ScalarField(np.zeros((6, 7), "f"))
        for _ in range(13):
            total = gamma(total)
        graph.probe(total, "out")
    (line,) = (line for line in graph.explain().splitlines() if "gamma (" in line)
    assert line.endswith(" 13 times"), line
    assert line.count("gamma (") == 1


def many(count: int) -> gp.ComputeGraph:
    """A graph of a kernel for each of `count` + 3 operators, at three lines."""
    with gp.ComputeGraph(device="reference", optimize=False) as graph:
        photo = gp.ScalarField(np.zeros((64, 96), "f"))
        bright = photo + 1  # first
        for _ in range(count):
            bright = bright * 2  # second
        graph.probe(np.sqrt(abs(bright)), "out")  # third
    return graph


def test_many_kernels_have_a_summary_by_line():
    lines = {name: marked(many, f"# {name}") for name in ("first", "second", "third")}
    file = Loc(__file__, 1).path
    report = facts(many(10))
    assert report["lines"] == [
        {"file": file, "line": lines[name], "text": text, "kernels": kernels, "bytes": 2 * N * len(kernels), "ms": None}
        for name, text, kernels in (
            ("first", "bright = photo + 1  # first", [1]),
            ("second", "bright = bright * 2  # second", [*range(2, 12)]),
            ("third", 'graph.probe(np.sqrt(abs(bright)), "out")  # third', [12, 13]),
        )
    ]
    title, *rows = many(10).explain().splitlines()[1:6]
    assert title == "by line, each kernel at the line of its last operator:"
    assert rows == [
        f"  10 kernels, 480 KiB: bright = bright * 2  # second ({file}:{lines['second']})",
        f'  2 kernels, 96 KiB: graph.probe(np.sqrt(abs(bright)), "out")  # third ({file}:{lines["third"]})',
        f"  1 kernel, 48 KiB: bright = photo + 1  # first ({file}:{lines['first']})",
        "kernel 1: add on 64×96 threads; reads 24 KiB, writes 24 KiB",
    ]
    assert "by line" not in many(9).explain()  # of twelve kernels


def test_a_summary_has_the_slowest_lines_first_and_counts_others():
    rows = [
        {"file": "a.py", "line": n, "text": f"x{n}", "kernels": [n], "bytes": 1024, "ms": 1.0 * n} for n in range(1, 15)
    ]
    unknown = {"file": "", "line": 0, "text": "", "kernels": [15, 16], "bytes": 1, "ms": 99.0}
    _, first, *others, last = summary([*rows, unknown])
    assert first == "  2 kernels, 1 B, 99 ms predicted: no line of the program"
    assert others[:2] == [f"  1 kernel, 1 KiB, {n} ms predicted: x{n} (a.py:{n})" for n in (14, 13)]
    assert len(others) == 11 and last == "  and 3 more lines"
    assert summary(rows[:1] * 20) and not summary(rows[:12]) and not summary([{**unknown, "kernels": [*range(20)]}])


def test_copies_between_interleaved_arrays_and_planes_are_named():
    pixels, ramp = np.ones((20, 30, 3), "f"), np.ones((20, 30), "f")

    @gp.pipeline
    def turned(pixels, ramp):
        photo, grey = gp.VectorField(pixels), gp.ScalarField(ramp)
        return photo * 2, grey + 1

    with gp.use_device("reference"):
        text = turned.explain(pixels, ramp).splitlines()[-1]
        report = json.loads(turned.explain(pixels, ramp, format="json"))
    assert text == "interleaved arrays that the host copies at each call: to planes photo (7.03 KiB); back … (7.03 KiB)"
    assert [each["bytes"] for each in report["to_planes"] + report["from_planes"]] == [pixels.nbytes] * 2
    assert "interleaved" not in gp.pipeline(lambda a: gp.ScalarField(a) + 1).explain(ramp)


def test_many_kernels_are_a_line_each_and_the_whole_text_has_all_of_them():
    graph = many(30)
    brief, full = (graph.explain(format=name).splitlines() for name in ("text", "full"))
    heads = [line for line in full if line.startswith("kernel ")]
    assert len(heads) == 33 and [line for line in brief if line.startswith("kernel ")] == heads
    assert len(brief) < 48 and len(full) > 100
    assert brief[-1] == '`explain(format="full")` has the operators, schedules and work of each kernel'
    assert set(brief[:-1]) <= set(full)
    assert graph.explain() == "\n".join(brief) and many(9).explain() == many(9).explain(format="full")


def test_the_costliest_of_many_pairs_are_listed():
    pairs = [{"producer": f"p{n}", "consumer": "c", "reason": "why", "bytes": n * 1024} for n in (*range(1, 12), 3)]
    every = [f"  p{n} → c: why; costs {n} KiB" for n in range(1, 12)]
    every[2] = "  p3 → c (2 times): why; costs 6 KiB"
    assert explaining._apart(pairs, None) == explaining._apart(pairs, 11) == every
    assert explaining._apart(pairs, 3) == [every[10], every[9], every[8], "  and 8 more pairs"]
