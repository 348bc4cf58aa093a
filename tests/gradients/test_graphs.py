"""`graph.gradient`: a probe after some steps, by first values and parameters. Expected values are a reverse loop in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from tests.gradients.test_checkpoints import pulled_in_numpy, step

rng = np.random.default_rng(20)


def waves(first: Any, second: Any, number: float) -> gp.ComputeGraph:
    speed = gp.Parameter(np.float64(number))
    speed.name = "speed"
    with gp.ComputeGraph() as graph:
        u, v = gp.Field(first), gp.Field(second)
        count = gp.Field(np.zeros((), np.int32))
        u.next, v.next = step(u, v, speed * speed)
        count.next = count + 1
        graph.probe((u * v).sum(), "energy")
        graph.probe(u)
        graph.probe(speed * u.sum() + count.astype("float64"), "with_speed")
        graph.speed = speed
    return graph


@pytest.mark.parametrize(("steps", "checkpoints"), [(1, None), (6, None), (30, 4), (30, None)])
def test_states_and_parameters(device: str, steps: int, checkpoints: int | None) -> None:
    first = rng.random((2, 6))
    graph = waves(*first, 0.4)
    slopes = graph.gradient("energy", ("u", "v", graph.speed), steps=steps, checkpoints=checkpoints)
    assert list(slopes) == ["u", "v", "speed"] and slopes["speed"].shape == ()
    for own, expected in zip(slopes.values(), pulled_in_numpy(*first, 0.4, steps), strict=True):
        np.testing.assert_allclose(own, expected, 1e-11, 1e-12)
    assert graph.tick == 0


def test_the_probe_itself(device: str) -> None:
    """No steps; and a parameter that the probe reads beside the steps."""
    first = rng.random((2, 6))
    graph = waves(*first, 0.4)
    slopes = graph.gradient("with_speed", ["u", "v", graph.speed], steps=0)
    np.testing.assert_array_equal(slopes["u"], np.full(6, 0.4))
    np.testing.assert_array_equal(slopes["v"], np.zeros(6))
    np.testing.assert_allclose(slopes["speed"], first[0].sum(), 1e-14)
