"""Values from outside in windows of graphs: parameters as large as the grid are followed, arrays stay as they were."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.fields.field import Field
from gpuop.ir.layout import Layout
from gpuop.ir.values import Leaf
from gpuop.mpi import Domain
from gpuop.runtime.base.device_sources import Shared
from gpuop.runtime.devices import current
from tests.scaleout.thread_ranks import on_ranks

GRID = (12, 10)
rng = np.random.default_rng(23)
START, *GIVEN = (rng.integers(0, 9, GRID).astype(np.float32) for _ in range(4))
STEPS = 2  # between two values


@gp.operator
def smeared(f):
    return (
        0.5 * _readTensor(f) + 0.25 * _readTensor(f, _row - 1, _column + 2) + 0.25 * _readTensor(f, _row + 1, _column)
    )


def smeared_by_numpy(x):
    wide = np.pad(x, ((1, 1), (0, 2)), "edge")
    return x / 2 + wide[:-2, 2:] / 4 + wide[2:, :-2] / 4


def stepped(values):
    """States that take a field of the grid's extents, by neighbours and by a reduction over the grid."""
    with gp.ComputeGraph() as graph:
        u = gp.ScalarField(START)
        u.next = smeared(u) * 0.5 + smeared(values) + (u * values).max() * 0.25
        graph.probe(u, "u")
        graph.probe(values * 2 + u, "seen")
    return graph


def adjustable():
    """A graph of a Parameter that is a matrix, as a grid."""
    values = gp.Parameter(GIVEN[0])
    return stepped(values.with_tensor_order(0)), values


def expected(arg=tuple(GIVEN)):
    """Both probes whenever the next value is set; all is exact in float32."""
    u, results = START, []
    for value in arg:
        for _ in range(STEPS):
            u = smeared_by_numpy(u) / 2 + smeared_by_numpy(value) + (u * value).max() / 4
        results += [u, value * 2 + u]
    return results


def followed(step, values, read):
    results = []
    for number, value in enumerate(GIVEN):
        if number:
            values.set(value)
        step(STEPS)
        results += [read("u"), read("seen")]
    return results


def test_graphs_follow_them(device):
    graph, values = adjustable()
    result = followed(graph.step, values, lambda name: graph.read(name).copy())
    assert all(map(np.array_equal, result, expected()))


def test_windows_follow_them(device):
    """One that has the whole grid, whose parts are those of all windows."""
    graph, values = adjustable()
    window = graph.window((0, 0), GRID, STEPS, lambda parts: [parts])

    def step(n):
        window.step(n)
        window.left = window.steps  # nothing is around it

    result = followed(step, values, lambda name: window.read(name).copy())
    assert all(map(np.array_equal, result, expected()))


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("every", [1, 2])
def test_ranks_follow_them(device, ranks, every):
    def work(comm):
        graph, values = adjustable()
        domain = Domain(comm, graph, every=every)
        return followed(domain.step, values, domain.gather)

    result = on_ranks(ranks, work, device)[0]
    assert all(map(np.array_equal, result, expected()))


@pytest.mark.parametrize("value", [2.0, np.ones(7), np.ones(GRID)], ids=["number", "vector", "matrix"])
def test_parameters_are_on_no_grid(value):
    """So none is cut when a window is made: a grid is made of its matrix by an operator, which windows compute."""
    parameter = gp.Parameter(value)
    assert parameter.type.field_shape == ()
    with pytest.raises(gp.SemanticError, match="a Parameter is a number, a vector or a matrix"):
        gp.Parameter(np.ones((2, *GRID)))


def test_arrays_stay_as_they_were(device):
    """In windows as in the graph itself, which has copies."""
    array = GIVEN[0].copy()
    graph = stepped(gp.ScalarField(array))
    array[:] = -1
    window = graph.window((0, 0), GRID, STEPS, lambda parts: [parts])
    array[:] = -2
    for which in (graph, window):
        which.step(STEPS)
        assert np.array_equal(which.read("u"), expected(GIVEN[:1])[0])


@pytest.mark.parametrize("turned", [False, True])
def test_memory_of_other_libraries(device, turned):
    """As an array of a GPU's that is not copied, in rows or in columns."""
    if turned and device == "reference":
        pytest.skip("it has memory of its own alone, which lies in rows")
    backend, kind = current(), gp.FieldType(GRID)
    array = np.ascontiguousarray(GIVEN[0].T) if turned else GIVEN[0]
    memory = backend.empty(kind)
    backend.write(memory, array.reshape(1, -1))
    layout = Layout((1, GRID[0]), kind.field_shape.points) if turned else None
    values = Field.of(Leaf(kind, Shared(backend, memory, layout), name="values"))
    window = stepped(values).window((4, 0), (9, 10), 1, lambda parts: [parts])
    assert np.array_equal(window.read("seen"), (GIVEN[0] * 2 + START)[4:9])
    window.step()
