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


def test_states_that_do_not_matter(device: str) -> None:
    """A state that the probe does not depend on may be computed in any way, and has a gradient of zeros."""
    first = rng.random(5)
    with gp.ComputeGraph() as graph:
        u, other = gp.Field(first), gp.Field(rng.random(5))
        u.next = u * u
        other.next = gp.HostOperator(np.sinc, other, outputs=other.type) + u
        graph.probe(u.sum(), "total")
    slopes = graph.gradient("total", ("u", "other"), steps=3)
    np.testing.assert_allclose(slopes["u"], 8 * first**7, 1e-12)
    np.testing.assert_array_equal(slopes["other"], np.zeros(5))


def test_what_is_refused() -> None:
    graph = waves(*rng.random((2, 6)), 0.4)
    with gp.ComputeGraph() as watching:
        seen = gp.Sensor(gp.FieldType((3,), (), "float64"), iter([np.ones(3)] * 9))
        state = gp.Field(np.zeros(3))
        state.next = state + seen
        watching.probe(state.sum(), "total")
    for call, message in (
        (
            lambda: graph.gradient("u", "v", steps=2),
            "gradient: the probe is a 6 float64 field; a gradient is of a real 0D field: probe `f.sum()`, or what is to be less",
        ),
        (
            lambda: graph.gradient("none", "v", steps=2),
            "'none' is not probed (probes: 'energy', 'u', 'with_speed'); call",
        ),
        (
            lambda: graph.gradient("energy", ("u", "w"), steps=2),
            "gradient: `wrt=` takes states (here 'u', 'v', 'count') and parameters, not 'w'",
        ),
        (
            lambda: graph.gradient("energy", ("u", "u"), steps=2),
            "gradient: results are by name, and two have the name 'u'; `field.name = …` gives one",
        ),
        (
            lambda: graph.gradient("energy", "count", steps=2),
            "gradient: `count` is a 0D int32 field, and int32 has no gradient; leave it out of `wrt=`",
        ),
        (lambda: graph.gradient("energy", "u", steps=-1), "a graph takes a number of steps, 0 or more, not -1"),
        (
            lambda: graph.gradient("energy", "u", steps=3, checkpoints=0),
            "`checkpoints=` is the number of values that reverse mode keeps, an integer of 1 or more, not 0",
        ),
        (
            lambda: watching.gradient("total", "state", steps=2),
            "gradient: the probe depends on the sensor `seen`, whose frames cannot be had again; make states or parameters of ",
        ),
    ):
        with pytest.raises(gp.SemanticError) as error:
            call()
        assert error.value.message.startswith(message)
