"""`_switch`: one of several cases by an index."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same

rng = np.random.default_rng(4)
INDICES = np.array([-5, -1, 0, 1, 2, 3, 4, 99, 2, 1], "int32")


def at(*cases: object) -> np.ndarray:
    """The choice of NumPy, indices beyond the ends being brought to them."""
    return np.choose(INDICES, np.broadcast_arrays(*cases, INDICES)[:-1], mode="clip")


def test_values_of_cases(device: str) -> None:
    """Functions and values side by side or in a list; of their common type, as tuples or one by one."""
    f, g = rng.random(10, np.float32), rng.integers(-9, 9, 10).astype("int16")

    @gp.operator
    def chosen(k, f, g):
        i, x, y = _readTensor(k), _readTensor(f), _readTensor(g)
        mixed = _switch(i, lambda: y, 7, lambda: x * 2)
        narrow = _switch(i, [lambda: y, 5])
        first, second = _switch(i, lambda: (x, y > 0), lambda: (i, True), lambda: (2.5, y < 0))
        pair = _switch(i, lambda: _float2(x, 1), 0)
        return mixed, narrow, first, second, pair, _switch(1, 3, lambda: x)

    truth = at(g > 0, True, g < 0)
    pair = at(f, 0.0), at(1.0, 0.0)
    want = [
        at(g.astype("f"), np.float32(7), f * 2),
        at(g, np.int16(5)),
        at(f, INDICES.astype("f"), np.float32(2.5)),
        truth,
        np.stack(pair, -1).astype("f"),
        f,
    ]
    all_same(chosen(*map(gp.ScalarField, (INDICES, f, g))), want)


def test_only_one_case_runs(device: str) -> None:
    """Cases loop, assign, write, and are in one another; division by zero in others is nobody's."""
    values = np.arange(10, dtype="int32")

    @gp.operator(outputs=(gp.FieldType(10, dtype="int32"),) * 2, default=-1)
    def run(k, f):
        i, x = _readTensor(k), _readTensor(f)
        total = _var(100)

        def summed():
            with _for(x) as n:
                with _if(n == 4):
                    _break()
                total.assign(total + n)

        _switch(i, summed, lambda: total.assign(x), lambda: _writeTensor(_out1, x), lambda: None)
        inner = _switch(i, 1, lambda: _switch(x, 10, 20, 30), lambda: _switch(x - 4, lambda: x * x, 50))
        _writeTensor(_out0, total * 1000 + inner)

    totals = at([100 + sum(range(min(v, 4))) for v in values], values, 100)
    inner = at(1, np.choose(np.minimum(values, 2), (10, 20, 30)), np.where(values <= 4, values * values, 50))
    actual = run(gp.ScalarField(INDICES), gp.ScalarField(values))
    same(actual[0], (totals * 1000 + inner).astype("int32"))
    same(actual[1], np.where(INDICES == 2, values, -1).astype("int32"))


def test_stack_of_fields() -> None:
    """The result of numpy.stack is one kernel, fused with its parts."""
    images = rng.random((3, 5, 6), np.float32)

    @gp.operator(outputs=lambda fs: gp.FieldType((len(fs), *fs[0].field_shape)))
    def stacked(fs):
        return _switch(_layer, [lambda f=f: _readTensor(f, _row, _column) for f in fs])

    with gp.ComputeGraph() as graph:
        graph.probe(stacked([gp.ScalarField(image) * 2 for image in images]), "stack")
    graph.reset()
    same(graph.read("stack"), images * 2)
    assert graph.kernel_count == 1
