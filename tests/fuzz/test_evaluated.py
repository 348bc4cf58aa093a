"""Graphs of which parts are in memory: results are NumPy's, whatever was evaluated before, and by whom values are read."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop import ndimage
from gpuop.dsl import *
from tests.nightly import seeds

from . import evaluated
from .evaluated import MORE, drawn

MASK = np.arange(42).reshape(6, 7) % 5 > 1
IMAGE = np.random.default_rng(3).integers(0, 9, (6, 7), np.int32)
MATRICES = np.random.default_rng(4).random((5, 3, 3), np.float32) + np.eye(3, dtype=np.float32)

# Functions of the library with several results.
SEVERAL = {
    "divmod": lambda: np.divmod(gp.ScalarField(IMAGE), 3),
    "modf": lambda: np.modf(gp.ScalarField(IMAGE) / 4),
    "unique": lambda: np.unique(gp.ScalarField(IMAGE), return_index=True, return_inverse=True, return_counts=True),
    "nonzero": lambda: np.nonzero(gp.ScalarField(IMAGE)),
    "gradient": lambda: tuple(np.gradient(gp.ScalarField(IMAGE / 3))),
    "histogram": lambda: np.histogram(gp.ScalarField(IMAGE), 4),
    "label": lambda: ndimage.label(gp.ScalarField(MASK)),
    "nearest": lambda: ndimage.distance_transform_edt(gp.ScalarField(MASK), return_indices=True),
    "eigh": lambda: np.linalg.eigh(gp.Field(MATRICES, 1)),
    "svd": lambda: np.linalg.svd(gp.Field(MATRICES, 1)),
    "qr": lambda: np.linalg.qr(gp.Field(MATRICES, 1)),
    "slogdet": lambda: np.linalg.slogdet(gp.Field(MATRICES, 1)),
}


def test_results_are_those_of_numpy():
    with gp.use_device("reference"):
        for seed in seeds(0, 60):
            evaluated.check(seed)


def test_results_on_the_best_device():
    for seed in seeds(1000, 6):
        evaluated.check(seed)


def test_the_pool_is_drawn_from():
    assert {name for seed in range(300) for name, _ in drawn(seed).calls} == set(MORE)


@pytest.mark.parametrize("name", SEVERAL)
def test_one_result_of_several_is_in_memory(name):
    """Each before the others: by itself, beside the others, and in what is made of all of them."""
    with gp.use_device("reference"):
        want = [field.numpy() for field in fields(name)]
        for first in range(len(want)):
            several = fields(name)
            several[first].numpy()
            for other in (gp.evaluate(*several), several, [+field for field in several]):
                for actual, expected in zip(other, want, strict=True):
                    np.testing.assert_array_equal(actual.numpy(), expected)


APART = {
    "iteration": lambda f: gp.iterate(lambda u: u + 1, f, times=2),
    "host": lambda f: gp.HostOperator(lambda a: a + 2, f, outputs=f.type),
    "device": lambda f: gp.DeviceOperator(lambda a, out: np.add(a, 2, out=out), f, outputs=f.type),
}
READERS = {
    "mean": (lambda v: v * 2 - v.mean(), lambda v: v * 2 - v.mean()),
    "sum": (lambda v: v * 2 + v.sum(), lambda v: v * 2 + v.sum()),
    "most": (lambda v: abs(v) - v.max(), lambda v: abs(v) - v.max()),
    "stencils": (lambda v: v * 2 + left(left(v)), lambda v: v * 2 + v[[0, 0, 0, 1]]),
}


@gp.operator
def left(f):
    return _readTensor(f, _column - 1)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("apart", APART)
def test_what_is_no_kernel_is_read_twice(apart, reader, optimize):
    """By its own point and by all, by itself and as the next value of a state."""
    array = np.float64([1, 2, 4, 8])
    of_fields, of_arrays = READERS[reader]
    want = of_arrays(array + 2)
    with gp.use_device("reference"):
        np.testing.assert_array_equal(of_fields(APART[apart](gp.ScalarField(array))).numpy(), want)
        with gp.ComputeGraph(optimize=optimize) as graph:
            state = gp.ScalarField(array)
            state.next = of_fields(APART[apart](state))
            graph.probe(state, "state")
        graph.step(2)
        np.testing.assert_array_equal(graph.read("state"), of_arrays(want + 2))


def fields(name: str) -> list[gp.Field]:
    return [result for result in SEVERAL[name]() if isinstance(result, gp.Field)]
