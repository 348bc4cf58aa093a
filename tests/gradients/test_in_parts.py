"""Gradients in windows, streams, Dask's blocks and ranks: the bits of the whole. Its expected values are a loop in NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.mpi import Domain
from tests.scaleout.thread_ranks import on_ranks

rng = np.random.default_rng(21)
RATE, CUBIC = 0.125, 0.25
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))


@gp.operator
def lit(u):
    """Reads further before than behind."""
    x = _readTensor(u)
    return x + CUBIC * (_readTensor(u, _row - 2, _column) * x - _readTensor(u, _row, _column + 1) * x)


def energy(u: Any, target: Any, times: int, checkpoints: int | None) -> Any:
    last = gp.iterate(lit, u, times=times, checkpoints=checkpoints) if times else lit(lit(u))
    return ((last - target) ** 2).sum()


def lowered(u: Any, target: Any, times: int, checkpoints: int | None) -> Any:
    """A step down the gradient: nothing of it is reduced over the grid."""
    return u - RATE * gp.grad(lambda u: energy(u, target, times, checkpoints))(u)


def lit_in_numpy(u: Any) -> Any:
    padded = np.pad(u, ((2, 0), (0, 1)), mode="edge")
    return u + CUBIC * (padded[:-2, :-1] - padded[2:, 1:]) * u


def pulled_in_numpy(u: Any, bar: Any) -> Any:
    padded = np.pad(u, ((2, 0), (0, 1)), mode="edge")
    back = bar * (1 + CUBIC * (padded[:-2, :-1] - padded[2:, 1:]))
    rows, columns = u.shape
    for r, c in product(range(rows), range(columns)):
        back[max(r - 2, 0), c] += CUBIC * bar[r, c] * u[r, c]
        back[r, min(c + 1, columns - 1)] -= CUBIC * bar[r, c] * u[r, c]
    return back


def lowered_in_numpy(u: Any, target: Any, times: int) -> Any:
    states = [u]
    for _ in range(times or 2):
        states.append(lit_in_numpy(states[-1]))
    bar = 2 * (states[-1] - target)
    for before in reversed(states[:-1]):
        bar = pulled_in_numpy(before, bar)
    return u - RATE * bar


def descent(times: int, checkpoints: int | None) -> Any:
    return gp.pipeline(lambda u, target: lowered(gp.ScalarField(u), gp.ScalarField(target), times, checkpoints))


CALLS = [(0, None), (3, None), (4, 2), (5, 100)]


@pytest.mark.parametrize(("times", "checkpoints"), CALLS)
def test_windows(times: int, checkpoints: int | None) -> None:
    u, target = rng.random((2, 44, 9)) * 0.25
    program = descent(times, checkpoints)
    with gp.use_device("reference"):
        whole = program(u, target)
        np.testing.assert_allclose(whole, lowered_in_numpy(u, target, times), 1e-9)
        needed = program.footprint(u, target)
        assert not needed.whole and needed.halo[0][0] < 30
        for start, stop in (((0, 0), (12, 9)), ((22, 0), (25, 4)), ((30, 3), (44, 9))):
            place = tuple(slice(*ends) for ends in needed.window(start, stop))
            result = program.window(u.shape, start, stop)(*(np.ascontiguousarray(x[place]) for x in (u, target)))
            np.testing.assert_array_equal(result, whole[start[0] : stop[0], start[1] : stop[1]])


@pytest.mark.parametrize(("times", "checkpoints"), CALLS)
def test_streams_and_blocks(times: int, checkpoints: int | None) -> None:
    u, target = rng.random((2, 70, 24)) * 0.25
    program = descent(times, checkpoints)
    with gp.use_device("reference"):
        whole = program(u, target)
        streamed = gp.stream(program, (u, target), chunks=(35, 24), progress=False)
        np.testing.assert_array_equal(streamed, whole)
        da, gd, dask = (pytest.importorskip(name) for name in ("dask.array", "gpuop.dask", "dask"))
        with dask.config.set(scheduler="synchronous"):
            blocks = gd.map_blocks(program, *(da.from_array(x, chunks=(35, 12)) for x in (u, target)))
            np.testing.assert_array_equal(blocks.compute(), whole)


@pytest.mark.parametrize(("times", "checkpoints"), [(0, None), (4, 2)])
def test_ranks(times: int, checkpoints: int | None) -> None:
    """A graph whose state goes down its gradient, on three ranks."""
    u, target = rng.random((2, 48, 9)) * 0.25

    def graph() -> gp.ComputeGraph:
        with gp.ComputeGraph() as graph:
            state = gp.ScalarField(u)
            state.next = lowered(state, gp.ScalarField(target), times, checkpoints)
            graph.probe(state, "u")
        return graph

    def run(comm: Any) -> Any:
        domain = Domain(comm, graph(), 0, 1)
        domain.step(3)
        return domain.gather("u")

    with gp.use_device("reference"):
        whole = graph()
        whole.step(3)
        expected = whole.read("u")
    in_numpy = u
    for _ in range(3):
        in_numpy = lowered_in_numpy(in_numpy, target, times)
    np.testing.assert_allclose(expected, in_numpy, 1e-9)
    np.testing.assert_array_equal(on_ranks(3, run, "reference")[0], expected)
