"""Running one graph fused and unfused on one device: what must not differ by a bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *

Build = Callable[[], Mapping[str, gp.Field]]
rng = np.random.default_rng(7)


def graph_of(build: Build, optimize: bool = True) -> gp.ComputeGraph:
    """A graph that probes the fields under their names."""
    with gp.ComputeGraph(optimize=optimize) as graph:
        for name, field in build().items():
            graph.probe(field, name)
    return graph


def read_all(graph: gp.ComputeGraph, names: Mapping[str, object]) -> dict[str, np.ndarray]:
    return {name: graph.read(name) for name in names}


def fused(build: Build, kernels: int | None = None, steps: int = 0) -> tuple[gp.ComputeGraph, dict[str, np.ndarray]]:
    """The fused graph and what it computes, which is what the unfused one computes, bit for bit."""
    names = build()
    graphs = [graph_of(build, optimize) for optimize in (True, False)]
    for graph in graphs:
        graph.reset()
        graph.step(steps)
    results, plain = (read_all(graph, names) for graph in graphs)
    for name in names:
        same_bits(results[name], plain[name], name)
    if kernels is not None:
        assert graphs[0].kernel_count == kernels, graphs[0].explain()
    assert graphs[0].kernel_count <= graphs[1].kernel_count
    graphs[1].release()
    return graphs[0], results


def same_bits(actual: np.ndarray, want: np.ndarray, what: str = "") -> None:
    """Equal types, shapes and bits."""
    assert (actual.dtype, actual.shape) == (want.dtype, want.shape), what
    if actual.tobytes() != want.tobytes():
        raise AssertionError(f"{what}: {np.flatnonzero(actual.ravel() != want.ravel())[:5]}\n{actual}\n{want}")


def image(*shape: int) -> np.ndarray:
    return rng.random(shape, np.float32)


@gp.operator
def gamma(f):
    v = _readTensor(f)
    return _where(v < 0.04045, v / 12.92, _pow((v + 0.055) / 1.055, 2.4))


@gp.operator
def matrix(f):
    r, g, b = _readTensor(f)
    return _vector(0.4 * r + 0.35 * g + 0.2 * b, 0.2 * r + 0.7 * g + 0.1 * b, 0.02 * r + 0.1 * g + 0.9 * b)


@gp.operator
def tone(f):
    v = _var(_readTensor(f))
    with _if(v.y > 0.5):
        v @= 1 - _exp(-2 * v)
    return v


@gp.operator
def shift(f):
    return _readTensor(f, _row, _column + 1)


@gp.operator
def blur(f):
    total = _readTensor(f)
    for dr, dc in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        total = total + _readTensor(f, _row + dr, _column + dc, border="reflect")
    return total / 5


@gp.operator
def half_and_double(f):
    v = _readTensor(f)
    return v / 2, v * 2


def counting(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """A pipeline, and the list that grows with each trace."""
    result, traces = gp.pipeline(function), list[int]()
    traced = result._trace_results
    result._trace_results = lambda returned: (traces.append(1), traced(returned))[1]
    return result, traces
