"""Operators that would cost others a schedule, by being fused with them or by computing their values, are left apart."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpuop as gp
from gpuop import ndimage
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.fusion import typical_devices, unfuse
from gpuop.fusion.kernel_limits import limits_ahead
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.fusion.typical_devices import predicted
from gpuop.ir.kernel import Kernel
from gpuop.passes import pipeline
from gpuop.passes.lowering_cache import suited
from gpuop.runtime.devices import current
from tests.harness import fused

F = np.random.default_rng(8).integers(0, 250, (500, 704))


@gp.operator
def box(f):
    return sum(_readTensor(f, _row + i, _column + j) for i in range(-1, 2) for j in range(-1, 2))


@gp.operator
def warped(f, by):
    return _readTensor(f, _row, _column + _convert_int(_readTensor(by)) % 3)


@gp.operator
def correlated(f, weights):
    total = _var(_readTensor(f))
    with _for(weights.field_shape[0]) as i:
        for j in range(weights.field_shape[1]):
            total += _readTensor(f, _row + i, _column + j) * _readTensor(weights, i, j)
    return total


@gp.operator(outputs=lambda f: f.type.replace(field_shape=tuple(n // 2 for n in f.field_shape)))
def largest(f):
    return _max(*(_readTensor(f, 2 * _row + i, 2 * _column + j) for i in range(2) for j in range(2)))


def kept_and_pooled(f):
    """Pooling reads each value once, so computing these again is as much as computing them for the result."""
    sums = correlated(f, gp.ScalarField(np.ones((9, 9), f.dtype)))
    return sums, largest(np.maximum(sums, 0))


def doubled(f):
    return box(f).astype("float64") * 0.25


@gp.operator
def blurred_rows(f):
    return sum(_readTensor(f, _row, _column + k, border="reflect") for k in range(-12, 13))


@gp.operator
def blurred_columns(f):
    return sum(_readTensor(f, _row + k, _column, border="reflect") for k in range(-12, 13))


def sharpened(f):
    """A block of some 30 rows needs as many again of the first blur."""
    return f + (f - blurred_columns(blurred_rows(f)) * 0.0016) * 1.5


def smoothed(f):
    """Along layers each quotient is read nine times by as many threads."""
    return ndimage.gaussian_filter(f / 65535.0, 1) > 0.2


STAGED = {
    "halos as high as blocks": (sharpened, "float32", (300, 451)),
    "a quotient": (smoothed, "uint16", (64, 128, 128)),
}
CASES = {
    "a stencil of bytes before doubles": (doubled, "uint8", "opencl:cpu"),
    "two readers of one field": (lambda f: (box(f), warped(f, f.astype("float64") * 1.5)), "int16", "opencl:cpu"),
    "a result that is pooled": (kept_and_pooled, "int32", "opencl:cpu"),
    "a result of floats that is pooled": (kept_and_pooled, "float32", "cuda:sm_90"),
    "a stencil at mirrored points": (lambda f: box(f)[::-1, ::-1], "uint8", "cuda:sm_90"),
}


def results(case: str, f: gp.Field) -> tuple[gp.Field, ...]:
    result = CASES[case][0](f)
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("case", CASES)
def test_no_plan_is_predicted_to_be_much_slower_than_one_apart(case: str) -> None:
    _, dtype, name = CASES[case]
    grid = F if name == "opencl:cpu" else np.zeros((2048, 2048))
    what = program([f.node for f in results(case, gp.ScalarField(grid.astype(dtype)))])
    limits, target = limits_ahead(target_named(name)), target_named(name)
    result, apart = plan(what, True, limits), plan(what, False, limits)
    seconds, alone = (sum(predicted(launch.kernel, target) for launch in each.launches) for each in (result, apart))
    assert seconds <= 1.3 * alone
    assert any(suited(launch.kernel, target) for launch in result.launches)
    why = "(together they would have no schedule|what another kernel computes would be computed again), which is predicted to take "
    reasons = [each.reason for each in result.apart]
    assert any(re.search(why, reason) for reason in reasons), reasons


@pytest.mark.parametrize("case", [case for case, (_, _, name) in CASES.items() if name == "opencl:cpu"])
def test_results_are_the_same_bits(case: str, device: str) -> None:
    f = F.astype(CASES[case][1])
    fused(lambda: {f"result{n}": each for n, each in enumerate(results(case, gp.ScalarField(f)))})


def test_what_shares_a_schedule_stays_together() -> None:
    f = gp.ScalarField(F.astype("uint8"))
    result = plan(program([(box(f) * np.float32(0.5)).node]), True, limits_ahead(target_named("opencl:cpu")))
    assert [len(launch.ops) for launch in result.launches] == [2] and not result.apart


# --- stages of one kernel ---------------------------------------------------------------------------------------------


def staged(case: str, shape: tuple[int, ...] | None = None) -> tuple[gp.Field, np.ndarray]:
    build, dtype, usual = STAGED[case]
    values = (250 * np.random.default_rng(9).random(shape or usual)).astype(dtype)
    return build(gp.ScalarField(values)), values


@pytest.mark.parametrize("case", STAGED)
def test_stages_that_compute_much_again_are_kernels_of_their_own(case: str) -> None:
    target = target_named("opencl:cpu")
    what = program([staged(case)[0].node])
    result = plan(what, True, limits_ahead(target))
    assert len(result.launches) == 2 < len(what.ops)
    why = r"as stages of one kernel they would compute values again, which is predicted to take 1\.[3-9]"
    assert any(re.search(why, each.reason) for each in result.apart), [each.reason for each in result.apart]


def test_stages_whose_halos_are_few_stay_together() -> None:
    what = program([staged("halos as high as blocks", (2048, 2048))[0].node])
    assert len(plan(what, True, limits_ahead(target_named("opencl:cpu"))).launches) == 1


@pytest.mark.parametrize("case", STAGED)
def test_stages_in_two_kernels_are_the_same_bits(case: str, device: str) -> None:
    if (target := current().target).device != "cpu" or target.vector_length == 1:
        pytest.skip("stages of devices without vectors are not parted")
    build, (_, values) = STAGED[case][0], staged(case)
    fused(lambda: {"result": build(gp.ScalarField(values))})


@gp.operator
def diffused(u):
    c = _readTensor(u)
    slopes = [_readTensor(u, _row + i, _column + j) - c for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    return c + 0.2 * sum(d * _exp(-d * d) for d in slopes)


def energy(u, steps):
    for _ in range(steps):
        u = diffused(u)
    return (u * u).sum()


def test_parts_that_cannot_be_much_faster_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of four steps is lowered as a whole: what it computes anyway takes most of its time."""
    timed: list[Kernel] = []
    monkeypatch.setattr(unfuse, "predicted", lambda kernel, target: timed.append(kernel) or predicted(kernel, target))
    u = gp.ScalarField(np.zeros((1024, 1024), np.float32))
    what = program([gp.grad(lambda u: energy(u, 4))(u).node])
    (launch,) = plan(what, True, limits_ahead(target_named("opencl:cpu"))).launches
    assert [kernel is launch.kernel for kernel in timed] == [True]


@pytest.mark.parametrize("case", STAGED)
def test_lower_bounds_are_no_longer_than_any_parts(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the whole kernel, from its recorded form and from its operators: as parts are taken the best ones, or all apart."""
    bounds: list[float] = []
    for name in ("recorded", "apart"):
        bound = getattr(typical_devices, name)
        monkeypatch.setattr(unfuse, name, lambda *args, bound=bound: bounds.append(bound(*args)) or bounds[-1])
    monkeypatch.setattr(unfuse, "POSSIBLY_SLOWER", 0.01)
    what, target = program([staged(case)[0].node]), target_named("opencl:cpu")
    plans = [plan(what, optimize, limits_ahead(target)) for optimize in (True, False)]
    times = [sum(predicted(launch.kernel, target) for launch in each.launches) for each in plans]
    assert len(plans[0].launches) > 1 and len(bounds) > 1
    assert max(bounds[:2]) <= min(times)


def test_kernels_whose_time_was_predicted_are_those_that_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of planning share kernels, and compilation goes on from the form whose work was counted: no pass runs twice."""
    timed: list[object] = []
    monkeypatch.setattr(unfuse, "predicted", lambda kernel, target: timed.append(kernel) or predicted(kernel, target))
    monkeypatch.setattr(typical_devices, "cached_on_disk", lambda memo, kernel, target, make: make())
    monkeypatch.setattr(unfuse.Parting._more, "__defaults__", (unfuse.predicted,))
    target = target_named("opencl:cpu")
    result = plan(
        program([sharpened(gp.ScalarField(np.zeros((300, 451), np.float32))).node]), True, limits_ahead(target)
    )
    assert len(result.launches) == 2
    assert all(any(launch.kernel is kernel for kernel in timed) for launch in result.launches)
    scheduled = [launch.kernel for launch in result.launches if isinstance(launch.kernel, Kernel)]
    runs: list[object] = []
    monkeypatch.setattr(pipeline, "_run", lambda steps, kernel: runs.append(kernel) or ())
    assert all(pipeline.unguarded(kernel, target).body for kernel in scheduled)
    assert not runs
