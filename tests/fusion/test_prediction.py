"""Predicted times: what threads are counted to do, and what is told of each schedule that suits a kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.fusion.report import workload as workload_module
from gpuop.fusion.report.explain import explain
from gpuop.fusion.report.prediction import expected, predictions, totals
from gpuop.fusion.report.workload import workload
from gpuop.ir.device_model import MODELS, DeviceFacts
from gpuop.ir.kernel import DeviceFunction, Kernel, Pin
from gpuop.ir.target import Target

PLAIN = Target("opencl")
CPU = Target("opencl", device="cpu", simd_width=16, widening="vector")
GPU = target_named("sm_90")
EVEN = DeviceFacts(1e-6, ((10**9, 1.0),), lambda kind: 1e-12)


def field(rows=1024, columns=1024, dtype="float32"):
    return gp.ScalarField(np.zeros((rows, columns), dtype))


def kernel_of(result: gp.Field, target: Target = PLAIN) -> Kernel:
    (launch,) = plan(program([result.node]), True, Limits(target=target)).launches
    assert isinstance(launch.kernel, Kernel)
    return launch.kernel


@gp.operator
def doubled(f):
    return _readTensor(f) * 2


@gp.operator
def across(f):
    return _readTensor(f, _row, _column - 1) + _readTensor(f, _row, _column + 1)


@gp.operator
def along(f):
    return _readTensor(f, _row - 1, _column) + _readTensor(f, _row + 1, _column)


@gp.operator
def turned(f):
    return _readTensor(f, _column, _row)


@gp.operator
def roots(f):
    return _exp(_readTensor(f)) + _sqrt(_readTensor(f))


@gp.operator
def summed(f):
    total = _var(0.0)
    x = _readTensor(f)
    with _for(0, 10) as k:
        total += x * k
    return total


@gp.operator(outputs=gp.FieldType(256, (), "int32"))
def counts(f):
    _globalThreads(f)
    _atomic_inc(_pointerTo(_out0, _readTensor(f)))


def test_a_kernel_that_only_moves_is_predicted_by_its_bytes() -> None:
    slow = DeviceFacts(1e-3, ((1, 1e-6),), lambda kind: 0.0)
    (result,) = predictions(kernel_of(doubled(field(100, 125))), PLAIN, slow)
    assert result["method"] == "plain"
    assert result["ms"] == pytest.approx(1 + 100)  # the launch, and 100,000 bytes


def test_a_kernel_that_computes_is_predicted_by_what_its_threads_do() -> None:
    costs = {"exp float32": 3e-9, "sqrt float32": 2e-9, "operation": 1e-9}
    fast = DeviceFacts(0.0, ((10**9, 1e-9),), lambda kind: costs[kind])
    (result,) = predictions(kernel_of(roots(field())), PLAIN, fast)
    around = 1 + 2 * 2 + 2 * 3  # the sum; of the point that is read and that is written the place, and an access
    assert result["ms"] == pytest.approx((3 + 2 + around) * 2**20 * 1e-6)


def test_few_threads_take_as_long_as_those_that_keep_a_device_busy() -> None:
    fast = DeviceFacts(0.0, ((10**9, 1e-9),), lambda kind: 1e-9)
    few, more = (predictions(kernel_of(doubled(field(n, n))), PLAIN, fast)[0]["ms"] for n in (1, 256))
    assert few == pytest.approx(more)


def test_computed_places_of_few_threads_do_not_wait_for_vectors() -> None:
    fast = DeviceFacts(0.0, ((10**9, 1e-9),), lambda kind: 1e-6 if kind == "neighbour" else 0.0)
    (result,) = predictions(kernel_of(across(field(1, 4)), CPU), CPU, fast)
    assert result["ms"] == pytest.approx(2 * 8 * 1e-3, rel=1e-3), "of two reads that few threads wait for"


def test_what_threads_do_is_counted() -> None:
    work = workload(kernel_of(across(field())), PLAIN)
    # of each read the border and the sum that is its place; the sum of both; the place of the point
    assert work.threads == 2**20
    assert work.lanes == {"operation": 6, "neighbour": 2, "access": 1}
    assert work.scalars == {"operation": 3}, "the rows of two fields, and the last column, are those of the next thread"
    beside = workload(kernel_of(along(field())), PLAIN)
    assert beside.lanes["neighbour"] == 0, "what is read lies beside what the next thread reads"
    assert beside.lanes["access"] == 3


def test_a_transposed_read_has_a_line_to_itself() -> None:
    work = workload(replace(kernel_of(turned(field())), pin=Pin("plain")), PLAIN)
    assert (work.lanes["far"], work.lanes["access"]) == (1, 1)


def test_loops_count_as_often_as_they_turn() -> None:
    work = workload(kernel_of(summed(field())), PLAIN)
    # in each turn a conversion of the counter, which all threads have, a product and a sum; two places of the point
    assert work.lanes["operation"] == 2 * 10 + 2
    assert work.scalars["operation"] == 10 + 2
    assert work.lanes["access"] == 2


def test_loops_that_may_be_left_count_the_mean_of_one_and_all_turns() -> None:
    def roots(turns: int, leaves: bool) -> float:
        @gp.operator
        def repeated(f):
            x = _var(_readTensor(f))
            with _for(turns):
                x @= _sqrt(x)
                with _for(2):
                    if leaves:
                        with _if(x < 1):
                            _break()
                with _if(x < 2):
                    x @= 2 * x
                    if leaves:
                        _break()
            return x

        return workload(kernel_of(repeated(field())), PLAIN).lanes["sqrt float32"]

    assert roots(400, False) == 400
    assert roots(400, True) == pytest.approx(20)


def test_searches_in_searches_are_short() -> None:
    @gp.operator
    def searched(f):
        x = _var(_readTensor(f))
        with _while(lambda: x > 2):
            x @= _sqrt(x)
            with _while(lambda: x > 4):
                x @= _exp(x)
        return x

    work = workload(kernel_of(searched(field())), PLAIN)
    assert work.lanes["sqrt float32"] == 16
    assert work.lanes["exp float32"] == 16 * 4


def test_reading_an_output_is_no_atomic_operation() -> None:
    @gp.operator(outputs=gp.FieldType(256, (), "int32"))
    def chained(f):
        _globalThreads(256)
        at = _convert_int(_readTensor(f, 0, _column))
        _writeTensor(_out0, _readTensor(_out0, at) + 1, at)

    work = workload(kernel_of(chained(field(1, 256))), PLAIN)
    assert (work.lanes["atomic"], work.lanes["neighbour"]) == (0, 2)


def test_assignments_under_a_condition_take_part() -> None:
    @gp.operator
    def changed(f):
        x = _var(_readTensor(f))
        with _if(_column == 3):
            x @= 2.0
        with _if(x > 7):
            x @= _exp(x)
        return x

    assert workload(kernel_of(changed(field())), PLAIN).lanes["exp float32"] == 1


def test_doubles_are_operations_of_their_own() -> None:
    work = workload(kernel_of(doubled(field(dtype="float64"))), PLAIN)
    assert work.lanes["add float64"] == 1


def test_vectors_count_by_lanes() -> None:
    work = workload(kernel_of(doubled(field())), CPU)
    assert work.vectors
    assert work.threads == 2**20 // 16
    assert work.lanes == {"operation": 16, "access": 32}


def test_edges_are_left_out() -> None:
    """The columns at both ends of a row are computed by one thread of it."""
    work = workload(kernel_of(across(field()), CPU), CPU)
    assert work.threads * work.lanes["access"] == pytest.approx(3 * 2**20)


@gp.operator
def highest(f):
    return _max(_readTensor(f), 0.5)


@gp.operator
def between(f):
    x = _readTensor(f)
    return _where((x > 0.25) & (x <= 0.5), 1.0, x)


def test_a_comparison_counts_as_it_is_written() -> None:
    """Of a maximum a CPU has one instruction; a comparison for something else is one, and so are what joins two and a choice."""
    assert workload(kernel_of(highest(field()), CPU), CPU).lanes["operation"] == 16 * 1
    assert workload(kernel_of(between(field()), CPU), CPU).lanes["operation"] == 16 * 4


def test_comparisons_of_bytes_are_as_narrow_as_these() -> None:
    """A vector has twice as many of them; that of what is true is stored as bytes."""
    results = [workload(kernel_of(field(dtype=dtype) > 7, CPU), CPU) for dtype in ("uint8", "float32")]
    assert [work.lanes["operation"] for work in results] == [16 / 2 + 16 / 2, 16 + 16 / 2]


def test_operations_of_written_vectors_have_times_of_their_own() -> None:
    """A compiler may make narrower ones of threads, as PoCL's does."""

    def taken(target: Target, **seconds: float) -> float:
        costs = {"vector operation": 1e-9, "operation": 1e-9} | {k.replace("_", " "): s for k, s in seconds.items()}
        facts = DeviceFacts(0.0, ((10**9, 1e-9),), lambda kind: costs[kind])
        return float(predictions(kernel_of(doubled(field()), target), target, facts)[0]["ms"])

    assert taken(CPU, operation=2e-9) == taken(CPU) and taken(CPU, vector_operation=2e-9) > 1.9 * taken(CPU)
    assert taken(PLAIN, vector_operation=2e-9) == taken(PLAIN) and taken(PLAIN, operation=2e-9) > 1.9 * taken(PLAIN)


SCHEDULED = {
    ("vector rows", CPU): lambda: along(field()),
    ("line buffers", CPU): lambda: along(across(field())),
    ("transpose", CPU): lambda: turned(field()),
    ("privatize", CPU): lambda: counts(field(2048, 2048, "uint8")),
    ("roll", GPU): lambda: along(field(2048, 2048)),
    ("tile", GPU): lambda: along(across(along(across(field(2048, 2048))))),
    ("transpose", GPU): lambda: turned(field(2048, 2048)),
    ("privatize", GPU): lambda: counts(field(4096, 4096, "uint8")),
    ("shifted rows", GPU): lambda: field(2048, 2049)[:, 1:],
    ("ragged words", GPU): lambda: along(field(2048, 2049, "uint8")),
}


@pytest.mark.parametrize(("method", "target"), SCHEDULED)
def test_each_schedule_that_suits_is_told_of(method: str, target: Target) -> None:
    kernel = kernel_of(SCHEDULED[method, target](), target)
    result = predictions(kernel, target, EVEN)
    names = [each["method"] for each in result]
    assert names[0] == method
    assert "plain" in names
    assert len(set(names)) == len(names)
    assert all(each["ms"] > 1e-3 for each in result)


def test_schedules_that_only_suit_by_a_pin_are_told_of() -> None:
    """As those of grids that are small: who reads a time knows what to pin."""
    chosen, *others = predictions(kernel_of(across(field(40, 50)), CPU), CPU, EVEN)
    assert chosen["method"] == "plain" and [each["method"] for each in others] == ["vector rows"]


def test_strips_of_as_many_vectors_as_a_thread_has_at_most() -> None:
    """The work of a column does not depend on the number of threads that share it, but for strips at the ends."""
    kernel = kernel_of(field(764, 1152).sum(axis=0), CPU)
    counts = [
        (work := workload(replace(kernel, pin=Pin("interchange", (("vectors", n),))), CPU)).threads
        * work.lanes["operation"]
        for n in (1, 2, 8)
    ]
    assert counts[0] >= 764 * 1152 and max(counts) <= 1.2 * min(counts)


def test_stages_that_go_through_memory_move_more() -> None:
    kernel = kernel_of(along(across(field())), CPU)
    moving = DeviceFacts(0.0, ((1, 1e-9),), lambda kind: 0.0)
    results = {each["method"]: each["ms"] for each in predictions(kernel, CPU, moving)}
    assert results["plain"] == pytest.approx(2 * results["line buffers"])


def test_the_choice_is_that_of_the_kind_of_device() -> None:
    """Whatever was measured: text is the same on each run. Here atomic operations were found to cost nothing."""
    kernel = kernel_of(counts(field(2048, 2048, "uint8")), CPU)
    odd = DeviceFacts(0.0, ((1, 1e-18),), lambda kind: 1e-18 if kind == "atomic" else 1e-9)
    chosen, plain = predictions(kernel, CPU, odd)
    assert (chosen["method"], plain["method"]) == ("privatize", "plain")
    assert chosen["ms"] > plain["ms"]


def test_a_second_report_lowers_nothing(monkeypatch):
    """The counts of a kernel are in the cache, and times are still those of the device of the report."""
    values = kernel_of(across(doubled(field())), CPU)
    first = predictions(values, CPU, EVEN)
    monkeypatch.setattr(workload_module, "unguarded", None)
    assert predictions(values, CPU, EVEN) == first
    slower = predictions(values, CPU, replace(EVEN, seconds=lambda kind: 1e-9))
    assert [each["ms"] > before["ms"] for each, before in zip(slower, first, strict=True)] == [True] * len(first)


def test_a_library_is_predicted_by_what_it_has_to_do() -> None:
    """Of a transform by the usual count of operations, and by moving what it reads and writes once for each axis."""
    device = Target("opencl", device="cpu", simd_width=16, widening="vector", has_arrays=True)
    result = plan(program([gp.fft.rfft2(field(), method="library").node]), True, Limits(target=device))
    (kernel,) = (launch.kernel for launch in result.launches if isinstance(launch.kernel, DeviceFunction))
    slow, quick = (DeviceFacts(0.0, ((10**9, 1.0),), lambda kind, each=each: each) for each in (1e-9, 1e-18))
    computing, moving = (expected(kernel, result.limits, device, facts) for facts in (slow, quick))
    assert moving == pytest.approx(2 * sum(p.type.nbytes for p in (*kernel.inputs, *kernel.written)) / 10**9, rel=1e-3)
    assert computing == pytest.approx(MODELS["cpu"].library * 2.5 * 1024**2 * 20 * 1e-9, rel=0.1)
    ms = f"{1e3 * expected(kernel, result.limits, device, EVEN):.3g}"
    text = explain(result, target=device, device=EVEN)
    assert f"\n  predicted: {ms} ms as library\n" in text and "ms in all" in text
    unknown = gp.DeviceOperator(lambda a, out: None, field(), outputs=field().type)
    assert totals(plan(program([doubled(doubled(unknown)).node]), True, Limits(target=device)), device, EVEN) is None


def test_what_is_fused_and_predicted_to_be_slower_is_told(monkeypatch) -> None:
    """By more than a prediction knows."""
    result = plan(program([doubled(doubled(field())).node]), True, Limits(target=CPU))
    for ms, messages in (
        (2.0, "which is less: `optimize=False` is that, and `profile` measures both"),
        (1.02, "2 kernels"),
    ):
        results = {"ms": ms, "unfused_ms": 1.0, "unfused_kernel_count": 2}
        monkeypatch.setattr("gpuop.fusion.report.plan_report.totals", lambda *_, result=results: result)
        assert explain(result, target=CPU, device=EVEN).splitlines()[-1].endswith(messages)


def test_a_plan_is_compared_with_one_that_fuses_nothing() -> None:
    """Of two pointwise operators, which move twice as much apart; nothing is compared where nothing is fused, and of many."""

    def compared(operators: int, optimize: bool = True) -> dict[str, float] | None:
        result = field()
        for _ in range(operators):
            result = doubled(result)
        return totals(plan(program([result.node]), optimize, Limits(target=CPU)), CPU, EVEN)

    actual = compared(2)
    assert actual is not None
    assert actual["unfused_kernel_count"] == 2
    assert actual["unfused_ms"] == pytest.approx(2 * actual["ms"], rel=0.01)
    assert actual["ms"] == pytest.approx(1e3 * (1e-6 + 2 * field().type.nbytes / 10**9), rel=0.01)
    assert compared(1) is compared(2, optimize=False) is compared(33) is None
    text = explain(plan(program([doubled(doubled(field())).node]), True, Limits(target=CPU)), target=CPU, device=EVEN)
    assert (
        f"\npredicted: {actual['ms']:.3g} ms in all; with a kernel for each operator {actual['unfused_ms']:.3g} ms in 2 kernels"
        in text
    )
