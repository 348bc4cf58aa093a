"""Atomic updates in steps of graphs on ranks: all ranks have the result of all threads, as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.mpi import Domain

from .thread_ranks import on_ranks

SHAPE = (12, 10)
START = np.random.default_rng(5).integers(0, 90, SHAPE).astype(np.int32)
ROW, BITS, ONE, GRID = (gp.FieldType(n, (), "int32") for n in (7, 4, (), SHAPE))


@gp.operator(outputs=(ROW, BITS, BITS, ONE, ONE), default=(3, 6, -1, -1, 1000))
def counted(f):
    _globalThreads(f)
    x = _readTensor(f)
    _atomic_inc(_pointerTo(_out0, x % 7))
    _atomic_xor(_pointerTo(_out1, _column % 4), x)
    _atomic_and(_pointerTo(_out2, _column % 4), x | 9)
    _atomic_max(_pointerTo(_out3), x)
    _atomic_min(_pointerTo(_out4), x + _row)


@gp.operator(outputs=GRID)
def scattered(f):
    """To points that other ranks have."""
    _globalThreads(f)
    _atomic_sub(_pointerTo(_out0, (_row * 5 + _column) % 12, (_column * 3) % 10), _readTensor(f))


@gp.operator
def around(f):
    return (_readTensor(f, _row - 1, _column) + 2 * _readTensor(f) + _readTensor(f, _row + 2, _column + 1)) % 91


def stirred():
    """A state on the grid, a histogram of it that goes on, and what is scattered over the grid."""
    with gp.ComputeGraph() as graph:
        u, total, sand = (gp.ScalarField(a) for a in (START, np.zeros(7, np.int32), START * 0))
        counts, xor, both, most, least = counted(around(u))
        shares = counted(counts[u % 7] + u)[0]  # a stage that takes another one
        u.next = around(u) + most % 5 + least + shares[6]
        total.next = total + counts
        sand.next = sand // 2 + scattered(u)
        fields = {
            "u": u,
            "total": total,
            "sand": sand,
            "counts": counts,
            "xor": xor,
            "both": both,
            "far": scattered(around(u)),
        }
        for name, field in (fields | {"bins": np.histogram(u, 4, (0, 90))[0]}).items():
            graph.probe(field, name)
    return graph


def counted_by_numpy(x):
    columns, rows = np.indices(x.shape)[::-1]
    counts = np.bincount(x.ravel() % 7, minlength=7) + 3
    xor = [np.bitwise_xor.reduce(x[columns % 4 == k]) ^ 6 for k in range(4)]
    both = [np.bitwise_and.reduce(x[columns % 4 == k] | 9) for k in range(4)]
    return counts, np.array(xor), np.array(both), x.max(), (x + rows).min()


def scattered_by_numpy(x):
    result, (rows, columns) = np.zeros(SHAPE, np.int32), np.indices(SHAPE)
    np.subtract.at(result, ((rows * 5 + columns) % 12, (columns * 3) % 10), x)
    return result


def around_by_numpy(x):
    rows, columns = np.indices(SHAPE)
    above, below = x[np.maximum(rows - 1, 0), columns], x[np.minimum(rows + 2, 11), np.minimum(columns + 1, 9)]
    return (above + 2 * x + below) % 91


def by_numpy(steps):
    u, total, sand = START, np.zeros(7, np.int32), START * 0
    for _ in range(steps):
        counts, _, _, most, least = counted_by_numpy(around_by_numpy(u))
        shares = counted_by_numpy(counts[u % 7] + u)[0]
        total, sand = total + counts, sand // 2 + scattered_by_numpy(u)
        u = around_by_numpy(u) + most % 5 + least + shares[6]
    counts, xor, both, _, _ = counted_by_numpy(around_by_numpy(u))
    fields = {"u": u, "total": total, "sand": sand, "counts": counts, "xor": xor, "both": both}
    return fields | {"far": scattered_by_numpy(around_by_numpy(u)), "bins": np.histogram(u, 4, (0, 90))[0]}


@pytest.mark.parametrize(("ranks", "axes", "every"), [(1, (0,), 2), (2, (0,), 1), (4, (0, 1), 2), (3, (1,), 1)])
def test_all_ranks_have_what_all_threads_update(device, ranks, axes, every):
    expected = by_numpy(3)

    def run(comm):
        domain = Domain(comm, stirred(), axes, every)
        domain.step(3)
        return {name: domain.gather(name) for name in expected}

    for name, result in on_ranks(ranks, run, device)[0].items():
        np.testing.assert_array_equal(result, expected[name], name)


def test_steps_wait_only_for_what_they_take():
    with gp.ComputeGraph() as graph:
        u = gp.ScalarField(START)
        u.next = around(u)
        graph.probe(counted(u)[0], "counts")
    with gp.use_device("reference"):
        window = graph.window((0, 0), (5, 10))
        window.step()
        with pytest.raises(gp.SemanticError, match=r"`counted` \(.*:\d+\): `out0`, by `_atomic_add`: .*`combine=`"):
            window.read("counts")
        with pytest.raises(gp.SemanticError, match=r"`counted` \(.*:\d+\).* a window computes a part of it"):
            stirred().window((0, 0), (5, 10)).step()


def test_updates_whose_order_matters_are_refused():
    @gp.operator(outputs=ROW)
    def numbered(f):
        _globalThreads(f)
        _atomic_max(_pointerTo(_out0, 1), _atomic_add(_pointerTo(_out0, 0), _readTensor(f)))

    @gp.operator(inout="total")
    def tally(total, f):
        _globalThreads(f)
        _atomic_inc(_pointerTo(total, _readTensor(f) % 7))

    def refused(value):
        with gp.ComputeGraph() as graph:
            u, total = gp.ScalarField(START), gp.ScalarField(np.zeros(7, np.int32))
            u.next, total.next = around(u), value(u, total)
            graph.probe(total)
        return on_ranks(2, lambda comm: Domain(comm, graph), "reference")

    message = r"axis 0 .*must be whole.*operator `{}` \(.*test_rank_updates.py:\d+\) {}"
    with pytest.raises(
        gp.SemanticError, match=message.format("numbered", "uses what `out0` holds while other threads")
    ):
        refused(lambda u, total: numbered(u))
    with pytest.raises(gp.SemanticError, match=message.format("tally", "updates other points .* give a new output")):
        refused(lambda u, total: tally(total, u))
