"""Sizes of a pipeline's arrays: the first has kernels of its own, others share kernels, and those that repeat get their own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.base.config import config
from gpuop.base.system import LOWER
from gpuop.dsl import *
from gpuop.engine.jit import sizes
from gpuop.runtime.base import background
from gpuop.runtime.devices import current

rng = np.random.default_rng(23)
SIZES = [(70, 90), (81, 67), (1, 40), (66, 131), (0, 5), (33, 1), (2, 2), (97, 97), (129, 257)]


@gp.operator
def slopes(f):
    return _readTensor(f, _row, _column + 1, border="reflect") - _readTensor(f, _row - 2, _column, border="reflect")


def edges(image):
    f = gp.ScalarField(image)
    return abs(slopes(f)) * 2, f.sum(axis=1), f.max()


def wanted_edges(x):
    wide = np.pad(x, ((2, 0), (0, 1)), "reflect")
    return abs(wide[2:, 1:] - wide[:-2, :-1]) * 2, x.sum(axis=1), x.max()


@pytest.fixture
def tier(monkeypatch):
    """A function that sets GPUOP_SPECIALIZE."""
    return lambda value: monkeypatch.setattr(config, "specialize", value)


@pytest.fixture(autouse=True)
def auto(tier, monkeypatch):
    """The suite has kernels for each size, but for tests of tiers; here jobs behind the calls are done when they come."""
    tier("auto")
    monkeypatch.setattr(sizes, "later", lambda job: job())


def meet(pipeline, *others):
    """Call a pipeline with two sizes: from then on there are kernels for others."""
    for shape in ((70, 90), (66, 80)):
        pipeline(of_numbers(shape), *others)


def of_numbers(shape):
    return rng.integers(-99, 99, shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["auto", "0", "1"])
def test_results_of_all_sizes(device, tier, mode):
    tier(mode)
    pipeline = gp.pipeline(lambda image: (abs(gp.ScalarField(image)) * 3 + 1, gp.ScalarField(image).T))
    for shape in SIZES:
        x = of_numbers(shape)
        found, turned = pipeline(x)
        assert np.array_equal(found, abs(x) * 3 + 1) and np.array_equal(turned, x.T), shape


LIBRARY = [
    ("gaussian_filter", np.float32, (1.5,)),
    ("median_filter", np.uint8, (3,)),
    ("grey_opening", np.float32, (3,)),
    ("sobel", np.float32, ()),
    ("binary_closing", bool, ()),
    ("label", bool, ()),
    ("shift", np.float32, ((1.5, -2),)),
]


@pytest.mark.parametrize(("name", "dtype", "arguments"), LIBRARY, ids=[name for name, *_ in LIBRARY])
def test_tiers_have_the_same_bits(device, tier, name, dtype, arguments):
    """Of images that are small, odd, primes, and larger than strips; sizes twice, so that prepared calls run too."""
    function, shapes = getattr(gp.ndimage, name), [(40, 56), (67, 89), (3, 5), (131, 173)]
    images = [(rng.random(shape) * 3).astype(dtype) for shape in shapes]
    results = {}
    for mode in ("1", "auto", "0"):
        gp.release()  # traces are those of this mode
        tier(mode)
        results[mode] = [
            np.asarray(function(x, *arguments)[0] if name == "label" else function(x, *arguments)) for x in images * 2
        ]
    for mode in ("auto", "0"):
        for found, wanted in zip(results[mode], results["1"], strict=True):
            assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes(), (mode, found.shape)
    if dtype is not np.float32:  # exact
        for found, x in zip(results["auto"], images * 2, strict=True):
            wanted = getattr(scipy.ndimage, name)(x, *arguments)
            assert np.array_equal(found, wanted[0] if name == "label" else wanted)


def test_later_sizes_compile_nothing(built):
    pipeline = gp.pipeline(edges)
    shapes = [(70, 90), (81, 67), (72, 75), (79, 88), (78, 71)]  # reductions of these take as many steps
    counts = []
    for shape in shapes:
        x = of_numbers(shape)
        for found, wanted in zip(pipeline(x), wanted_edges(x), strict=True):
            assert np.array_equal(found, wanted)
        counts.append(len(built))
    assert 0 < counts[0] < counts[1] == counts[2] == counts[3] == counts[4]


def test_functions_of_the_library_compile_nothing_for_later_sizes(built):
    for shape in ((270, 290), (281, 267)):  # those of few rows or columns have another kernel
        gp.ndimage.median_filter(of_numbers(shape), 3)
    before = len(built)
    x = of_numbers((333, 269))
    assert np.array_equal(gp.ndimage.median_filter(x, 3), scipy.ndimage.median_filter(x, 3)) and len(built) == before


def test_a_size_that_repeats_is_compiled_for_itself(built):
    pipeline = gp.pipeline(lambda image: slopes(gp.ScalarField(image)))
    other = of_numbers((81, 67))
    meet(pipeline)
    results = [pipeline(other) for _ in range(sizes.OFTEN - 1)]
    assert "compiled for all sizes of `image`" in pipeline.explain(other)
    results.append(pipeline(other))
    before = len(built)
    results += [pipeline(other) for _ in range(3)]
    assert len(built) == before  # it is compiled behind the third call
    told = pipeline.explain(other)
    assert "compiled for this size, which has come often" in told and "compiled for any size" not in told
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    assert np.array_equal(results[0], wanted_edges(other)[0] / 2 * np.sign(results[0]))


def test_what_fails_behind_the_calls_is_told(built, monkeypatch):
    pipeline = gp.pipeline(lambda image: slopes(gp.ScalarField(image)))
    meet(pipeline)
    x = of_numbers((81, 67))
    monkeypatch.setattr(sizes, "plan_on", lambda *_: 1 / 0)
    for _ in range(5):
        pipeline(x)
    assert "compiled for all sizes of `image`; for this size alone: division by zero" in pipeline.explain(x)
    assert np.array_equal(abs(pipeline(x)) * 2, wanted_edges(x)[0])


def test_reasons_for_kernels_of_each_size(built):
    """Few points, and a grid without points."""
    x = np.ones((16, 80), np.float32)
    doubled = gp.pipeline(lambda image: gp.ScalarField(image) * 2)
    meet(doubled)
    for shape in ((9, 70), (0, 4), (70, 30)):
        doubled(np.ones(shape, np.float32))
    assert doubled.explain(np.ones((0, 4))[:0].astype(np.float32)).endswith("its grid has no points")
    assert doubled.explain(x).endswith("compiled for all sizes of `image`")


def test_only_what_changes_is_open(built):
    """Arrays that have one shape in all calls, as weights, keep their extents as constants."""

    @gp.operator
    def weighted(f, weights):
        total = _var(0.0)
        with _for(0, weights.field_shape[0]) as j:
            total += _readTensor(f, _row + j - 1, _column) * _readTensor(weights, j)
        return total

    pipeline = gp.pipeline(lambda image, weights: weighted(gp.ScalarField(image), gp.ScalarField(weights)))
    weights = np.ones(11, np.float32)
    meet(pipeline, weights)
    for shape in ((70, 90), (81, 67), (90, 91)):
        x = of_numbers(shape)
        wide = np.pad(x, ((1, 9), (0, 0)), "edge")
        assert np.array_equal(pipeline(x, weights), sum(wide[n : n + shape[0]] for n in range(11)))
    assert pipeline.explain(x, weights).endswith("compiled for all sizes of `image`")


def test_declared_tiers():
    """`dynamic=False` and True are what they were, whatever sizes come; a copy by pickle keeps the choice."""
    for dynamic, told in ((False, None), (True, None), ("auto", "compiled for all sizes of `image`")):
        pipeline = gp.pipeline(lambda image: gp.ScalarField(image) * 2, dynamic=dynamic)
        meet(pipeline)
        pipeline(of_numbers((81, 67)))
        last = pipeline.explain(of_numbers((81, 67))).splitlines()[-1]
        assert (last == told) if told else not last.startswith("compiled"), dynamic
        assert pipeline.settings()[-1] == dynamic


# --- behind the calls -------------------------------------------------------------------------------------------------


@pytest.fixture
def endless_turns(monkeypatch):
    """A turn ends when the job wants the interpreter no longer: nothing depends on time."""
    monkeypatch.setattr(background, "TURN", -1)


def test_calls_go_on_while_a_driver_compiles_their_size(built, monkeypatch, endless_turns):
    """None waits for a driver that never returns; when it does, the next one has kernels of its size."""
    pipeline, x = gp.pipeline(lambda image: slopes(gp.ScalarField(image))), of_numbers((87, 61))
    start, end = threading.Event(), threading.Event()
    build = type(current()).build

    def slow(self, program, binary):
        start.set()
        assert end.wait(60)
        return build(self, program, binary)

    meet(pipeline)
    results = [pipeline(x) for _ in range(sizes.OFTEN - 1)]
    monkeypatch.setattr(type(current()), "build", slow)
    monkeypatch.setattr(sizes, "later", background.later)
    results += [pipeline(x)]
    assert start.wait(60)
    results += [pipeline(x) for _ in range(50)]
    before = len(built)
    end.set()
    background.settle()
    results += [pipeline(x) for _ in range(3)]
    assert len(built) == before + 1 and "compiled for this size, which has come often" in pipeline.explain(x)
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def test_other_kernels_do_not_wait_for_those_behind_the_calls(built, monkeypatch, endless_turns):
    """A compiler that runs in several threads: a first call compiles while the driver of a job never returns."""
    pipeline, x = gp.pipeline(lambda image: slopes(gp.ScalarField(image))), of_numbers((89, 59))
    start, end, build = threading.Event(), threading.Event(), type(current()).build

    def slow(self, program, binary):
        if threading.current_thread() is not threading.main_thread():
            start.set()
            assert end.wait(60)
        return build(self, program, binary)

    monkeypatch.setattr(type(current()), "builds_at_once", True)
    meet(pipeline)
    monkeypatch.setattr(type(current()), "build", slow)
    monkeypatch.setattr(sizes, "later", background.later)
    for _ in range(sizes.OFTEN):
        pipeline(x)
    assert start.wait(60)
    first = gp.pipeline(lambda image: slopes(gp.ScalarField(image)) * 3 - 7)(x)
    end.set()
    background.settle()
    assert np.array_equal(first, pipeline(x) * 3 - 7) and "which has come often" in pipeline.explain(x)


class Turns:
    """A job that counts the turns that it gets.

    Args:
        action: what it does.
    """

    def __init__(self, action):
        self.action, self.count = action, 0

    def give_turn(self):
        self.count += 1


def test_calls_give_turns_until_their_size_is_compiled(built, monkeypatch):
    """To the job of their size alone: another size has one of its own."""
    pipeline, jobs = gp.pipeline(lambda image: slopes(gp.ScalarField(image))), []
    monkeypatch.setattr(sizes, "later", lambda action: jobs.append(Turns(action)) or jobs[-1])
    meet(pipeline)
    x, y = of_numbers((81, 67)), of_numbers((83, 69))
    for _ in range(sizes.OFTEN - 1):
        pipeline(x), pipeline(y)
    assert not jobs
    for _ in range(5):
        pipeline(x)
    pipeline(y)
    assert [job.count for job in jobs] == [5, 1]
    jobs[0].action()
    for _ in range(5):
        pipeline(x), pipeline(y)
    assert [job.count for job in jobs] == [5, 6]


def test_jobs_run_in_a_thread_of_their_own():
    done = []
    background.later(lambda: done.append(threading.current_thread()))
    background.settle()
    assert done and done[0] is not threading.current_thread() and done[0].daemon


def test_a_turn_ends_with_what_the_job_computes(endless_turns):
    start, go, results = threading.Event(), threading.Event(), []

    def action():
        start.set()
        go.wait(60)
        results.extend(n * n for n in range(1000))

    job = background.later(action)
    assert start.wait(60) and not results
    go.set()
    job.give_turn()
    assert len(results) == 1000
    job.give_turn()  # it is done


def test_the_last_job_is_the_next(endless_turns):
    """Those that wait get no turns, so calls do not wait for the jobs of others."""
    start, go, order = threading.Event(), threading.Event(), []
    background.later(lambda: (start.set(), go.wait(60)))
    assert start.wait(60)
    jobs = [background.later(partial(order.append, n)) for n in range(3)]
    for job in jobs:
        job.give_turn()
    go.set()
    background.settle()
    assert order == [2, 1, 0]


def test_the_process_is_as_it_was_but_while_a_job_computes(endless_turns):
    def state():
        return round(sys.getswitchinterval() * 1e6), gc.get_threshold()

    def priority():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before, states, priorities, jobs = state(), [], [priority()], []

    def driver():
        jobs[0].give_turn()  # nobody waits for a driver
        states.append(state())
        priorities.append(priority())
        raise ZeroDivisionError

    def action():
        assert go.wait(60)
        states.append(state())
        with pytest.raises(ZeroDivisionError):
            background.in_driver(driver)
        states.append(state())

    go = threading.Event()
    jobs.append(background.later(action))
    go.set()
    background.settle()
    computing = (round(background.SWITCH * 1e6), (*before[1][:2], background.NEVER))
    assert states == [computing, before, computing] and state() == before
    assert priorities[1] == priorities[0] + LOWER or sys.platform != "linux"


def test_what_somebody_sets_while_a_job_computes_stays():
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    try:
        background.later(lambda: (sys.setswitchinterval(0.003), gc.set_threshold(900, 8, 7)))
        background.settle()
        assert sys.getswitchinterval() == pytest.approx(0.003) and gc.get_threshold() == (900, 8, 7)
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)


def test_processes_end_while_sizes_are_compiled():
    """Nothing waits for the thread behind the calls, and nothing is printed."""
    program = """
import numpy as np, gpuop as gp
for n in (70, 80, 80, 80):
    gp.ndimage.gaussian_filter(np.ones((n, 90), np.float32), 2)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "GPUOP_SPECIALIZE": "auto"},
        check=False,
        timeout=120,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
