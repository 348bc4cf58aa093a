"""Gradients through many iterations, with few states in memory. Expected values are a reverse loop in NumPy with all states."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.binomial_checkpoints import actions, recomputed
from gpuop.fusion.iteration import swept
from gpuop.runtime.devices import current

rng = np.random.default_rng(18)
CUBIC, LIFT = 0.2, 0.05


@gp.operator
def step(u, v, speed):
    centre = _readTensor(u)
    around = _readTensor(u, _column - 1, border="wrap") + _readTensor(u, _column + 1, border="wrap")
    faster = _readTensor(v) + _readTensor(speed) * (around - 2 * centre - CUBIC * centre * centre * centre)
    return centre + LIFT * faster, faster


def waves(u: Any, v: Any, speed: Any, **settings: Any) -> Any:
    squared = speed * speed
    return gp.iterate(lambda u, v: step(u, v, squared), (u, v), **settings)


def waves_in_numpy(u: Any, v: Any, speed: Any, times: int) -> list[tuple[Any, Any]]:
    states = [(u, v)]
    for _ in range(times):
        u, v = states[-1]
        v = v + speed**2 * (np.roll(u, 1) + np.roll(u, -1) - 2 * u - CUBIC * u**3)
        states.append((u + LIFT * v, v))
    return states


def pulled_in_numpy(u: Any, v: Any, speed: Any, times: int) -> tuple[Any, Any, float]:
    """The gradient of the sum of the products of the last u and v."""
    states = waves_in_numpy(u, v, speed, times)
    bar_u, bar_v, bar_speed = states[-1][1], states[-1][0], 0.0
    for before, _ in reversed(states[:-1]):
        faster = bar_v + LIFT * bar_u
        force = np.roll(before, 1) + np.roll(before, -1) - 2 * before - CUBIC * before**3
        bar_speed += 2 * speed * (faster * force).sum()
        moved = speed**2 * faster
        bar_u = bar_u + np.roll(moved, 1) + np.roll(moved, -1) - (2 + 3 * CUBIC * before**2) * moved
        bar_v = faster
    return bar_u, bar_v, bar_speed


def gradient(arrays: Any, times: int, **settings: Any) -> list[Any]:
    u, v, speed = arrays
    fields = gp.Field(u), gp.Field(v), gp.Parameter(np.float64(speed))

    def energy(u: Any, v: Any, speed: Any) -> Any:
        last = waves(u, v, speed, times=times, **settings)
        return (last[0] * last[1]).sum()

    return [each.numpy() for each in gp.evaluate(*gp.grad(energy, (0, 1, 2))(*fields))]


@pytest.mark.parametrize("times", [1, 2, 7, 23])
def test_any_number_of_checkpoints(device: str, times: int) -> None:
    """States of two fields and a captured parameter: the gradient of a loop, the same bits with any number of states in memory."""
    arrays = (*rng.random((2, 6)), 0.4)
    without = gradient(arrays, times)
    for own, expected in zip(without, pulled_in_numpy(*arrays, times), strict=True):
        np.testing.assert_allclose(own, expected, 1e-11, 1e-12)
    for checkpoints in (1, 3, 100):
        for own, other in zip(gradient(arrays, times, checkpoints=checkpoints), without, strict=True):
            np.testing.assert_array_equal(own, other)


def test_no_iterations(device: str) -> None:
    u = gp.Field(rng.random(4))
    result = gp.grad(lambda u: (gp.iterate(lambda u: u * u, u, times=0, checkpoints=2) ** 2).sum())(u)
    np.testing.assert_array_equal(result.numpy(), 2 * u.numpy())


@cache
def fewest(times: int, checkpoints: int) -> int:
    """The least number of iterations that reverse some, by trying all places of the next checkpoint."""
    if times == 1:
        return 0
    if checkpoints == 1:
        return times * (times - 1) // 2
    places = range(1, times)
    return min(n + fewest(times - n, checkpoints - 1) + fewest(n, checkpoints) for n in places)


def test_the_order_takes_the_fewest_iterations() -> None:
    for times in range(1, 40):
        for checkpoints in range(1, times + 2):
            kept, reached = {0: 0}, []
            for action in actions(times, checkpoints):
                state = kept[action.source] + action.iterations
                if action.target is None:
                    reached.append(state)
                else:
                    assert 0 < action.target < checkpoints
                    kept[action.target] = state
            assert reached == list(range(times))[::-1]
            assert recomputed(times, checkpoints) == fewest(times, checkpoints)
    assert recomputed(1000, 20) == 2747  # Griewank and Walther: 3·1000 − C(23, 21)


@gp.operator
def slower(u):
    x = _readTensor(u)
    return x - 0.01 * x * x * x


def test_memory_and_iterations_of_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty states in memory, one of them in that of the argument, and two that are passed from iteration to iteration."""
    with gp.use_device("reference"):
        backend = current()
        empty, shapes = backend.empty, []

        def noted(kind: Any) -> Any:
            shapes.append(tuple(kind.field_shape))
            return empty(kind)

        u = gp.Field(rng.random((3, 5)))
        total, gradient = gp.value_and_grad(lambda u: gp.iterate(slower, u, times=1000, checkpoints=20).sum())(u)
        monkeypatch.setattr(backend, "empty", noted)
        with gp.profile() as times:
            total, result = gp.evaluate(total, gradient)
            result = result.numpy()
    slope, x = 1.0, u.numpy()
    for _ in range(1000):
        slope, x = slope * (1 - 0.03 * x * x), x - 0.01 * x * x * x
    np.testing.assert_allclose(total.numpy(), x.sum(), 1e-12)
    np.testing.assert_allclose(result, slope, 1e-10)
    # 19 checkpoints besides the argument, two states and two cotangents that take turns; the first cotangent, and both results
    assert shapes.count((3, 5)) <= 19 + 2 + 2 + 3
    counts = {row.name: row.count for row in times.rows}
    # of these 1,000 are the function itself, which leaves the first checkpoints: 1,748 iterations are computed again
    assert (counts["slower"], counts["adjoint_of_slower"]) == (2748, 1000)


def test_states_that_the_function_left_are_used_once(device: str) -> None:
    """In a graph the function of constants runs once, and the way back at every step, after others have overwritten checkpoints."""
    start, weights = rng.random((2, 4))
    with gp.ComputeGraph() as graph:
        u, scale = gp.Field(start), gp.Field(np.ones(()))
        scale.next = scale * 2
        loss = lambda u: (gp.iterate(slower, u, times=9, checkpoints=2) ** 2 * gp.Field(weights)).sum() * scale  # noqa: E731
        graph.probe(gp.grad(loss)(u), "slope")
    expected, x = 2 * weights, start
    for _ in range(9):
        expected, x = expected * (1 - 0.03 * x * x), x - 0.01 * x * x * x
    expected = expected * x
    assert len(swept(graph.plan)) == 1
    for step in range(3):
        np.testing.assert_allclose(graph.read("slope"), expected * 2**step, 1e-13)
        graph.step()


def test_until_a_condition_holds(device: str) -> None:
    """The way back has as many iterations as the function took, which differ from argument to argument."""

    def root(a: Any, **settings: Any) -> Any:
        ends = lambda x: abs(x * x / a - 1).max() < 1e-12  # noqa: E731
        return gp.iterate(lambda x: (x + a / x) * 0.5, a, until=ends, **settings)

    for scale, settings in ((1, {"times": 100}), (30, {"checkpoints": 2}), (900, {"checkpoints": 3, "every": 2})):
        a = gp.Field((rng.random(4) + 1) * scale)
        slope = gp.grad(lambda a, settings=settings: root(a, **settings).sum())(a)
        np.testing.assert_allclose(slope.numpy(), 0.5 / np.sqrt(a.numpy()), 1e-9)


def test_the_most_iterations_before_the_condition(device: str) -> None:
    u = gp.Field(rng.random(4))

    def halved(u: Any) -> Any:
        return gp.iterate(lambda u: u * 0.5, u, until=lambda u: u.max() < 0, times=7, every=3, checkpoints=2).sum()

    np.testing.assert_array_equal(gp.grad(halved)(u).numpy(), np.full(4, 0.5**7))


def test_numbers_of_iterations_and_exchanged_states(device: str) -> None:
    """Integer states have no gradient and are computed again; states that only change places are copied."""
    u, begin = gp.Field(rng.random(5) + 0.5), gp.Field(np.zeros((), np.int32))

    def turned(u: Any) -> Any:
        last = gp.iterate(
            lambda a, b, same, n: (b, a * same + n.astype("float64"), same, n + 1),
            (u, u * 2, u, begin), times=19, checkpoints=4,
        )  # fmt: skip
        return (last[1] * last[0]).sum()

    def in_numpy(u: Any) -> Any:
        a, b = u, u * 2
        for n in range(19):
            a, b = b, a * u + n
        return (a * b).sum()

    expected = [(in_numpy(u.numpy() + s) - in_numpy(u.numpy() - s)) / 2e-6 for s in 1e-6 * np.eye(5)]
    np.testing.assert_allclose(gp.grad(turned)(u).numpy(), expected, 1e-6)


def test_second_order(device: str) -> None:
    """Forward over reverse of any number of iterations, reverse over reverse of a few."""
    u, v, t = rng.random((3, 5))

    def energy(u: Any, times: int, checkpoints: int) -> Any:
        last = waves(u, gp.Field(v), gp.Field(np.float64(0.3)), times=times, checkpoints=checkpoints)
        return (last[0] * last[1]).sum()

    field, along = gp.Field(u), gp.Field(t)
    for times in (5, 70):
        ends = [pulled_in_numpy(u + side * 1e-5 * t, v, 0.3, times)[0] for side in (1, -1)]
        expected = (ends[0] - ends[1]) / 2e-5
        curved = gp.hvp(lambda u, n=times: energy(u, n, 4), (field,), (along,))
        np.testing.assert_allclose(curved.numpy(), expected, 1e-6, 1e-7 * abs(expected).max())
        twice = lambda u, n=times: (gp.grad(lambda u: energy(u, n, 4))(u) * along).sum()  # noqa: E731
        if times == 5:
            np.testing.assert_allclose(gp.grad(twice)(field).numpy(), expected, 1e-6, 1e-7 * abs(expected).max())
            continue
        with pytest.raises(gp.SemanticError) as error:
            gp.grad(twice)(field)
        assert error.value.message == (
            "`iterate` of `lambda` has 70 iterations, and reverse mode goes back twice through 64 with `times=` at most; use "
            "`gp.hvp`, or `gp.jvp` of the gradient, which take any number"
        )
        assert "gp.iterate(" in error.value.loc.text


def test_batches_and_pipelines(device: str) -> None:
    us, v = rng.random((3, 6)), rng.random(6)

    @gp.pipeline
    def slopes(us: Any, v: Any) -> Any:
        def energy(u: Any) -> Any:
            last = waves(u, gp.Field(v), gp.Field(np.float64(0.3)), times=20, checkpoints=3)
            return (last[0] * last[1]).sum()

        return gp.vmap(gp.grad(energy))(gp.Field(us))

    for own, u in zip(slopes(us, v), us, strict=True):
        np.testing.assert_allclose(own, pulled_in_numpy(u, v, 0.3, 20)[0], 1e-11, 1e-12)


def test_what_explain_says() -> None:
    """States kept, their bytes, and what runs again, in text and in JSON."""

    @gp.pipeline
    def slope(a: Any) -> Any:
        return gp.grad(lambda u: gp.iterate(slower, u, times=1000, checkpoints=20).sum())(gp.ScalarField(a))

    array = np.ones((6, 8), np.float32)
    with gp.use_device("reference"):  # others take several iterations in one kernel
        text, facts = slope.explain(array), json.loads(slope.explain(array, format="json"))
    assert (
        "iteration 2: back_through_slower goes back through 1000 iterations, with at most 20 states of 192 B in memory "
        "(2747 iterations run again);"
    ) in text
    assert "    kernel 2.1: slower on 6×8 threads" in text
    assert "    kernel 2.back.1: adjoint_of_slower on 6×8 threads" in text
    back = facts["kernels"][1]["repeats"]["back"]
    assert (back["checkpoints"], back["state_bytes"], back["again"]) == (20, 192, 2747)
    assert facts["kernel_count"] == 1 + 2747 + 1000


def test_only_wanted_cotangents_go_back() -> None:
    """A captured value whose gradient nobody wants has none, and a state that does not matter none either."""

    def slopes(argnums: Any) -> int:
        def energy(u: Any, v: Any, speed: Any) -> Any:
            ended = gp.iterate(lambda u, v, w: (*step(u, v, speed), w * u), (u, v, u), times=20, checkpoints=2)
            return ended[1].sum()

        @gp.pipeline
        def program(u: Any, v: Any, speed: Any) -> Any:
            fields = gp.Field(u), gp.Field(v), gp.Field(speed)
            return gp.grad(energy, argnums)(*fields)

        with gp.use_device("reference"):
            facts = json.loads(program.explain(*rng.random((2, 6)), np.float64(0.4).reshape(()), format="json"))
        (back,) = [kernel for kernel in facts["kernels"] if kernel["repeats"] and kernel["repeats"]["back"]]
        return len(back["outputs"])

    assert [slopes(0), slopes((0, 1)), slopes((1, 2))] == [2, 2, 3]


def test_other_numbers_of_checkpoints_are_refused() -> None:
    u = gp.Field(rng.random(4))
    for wrong in (0, -1, 1.5, "all"):
        with pytest.raises(gp.SemanticError) as error:
            gp.iterate(lambda u: u * u, u, times=3, checkpoints=wrong)
        assert error.value.message == (
            f"`checkpoints=` is the number of values that reverse mode keeps, an integer of 1 or more, not {wrong!r}"
        )
