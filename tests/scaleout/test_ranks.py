"""Graphs whose grid is spread over ranks: what they gather has the bits of the graph by itself. Ranks are threads here."""

from __future__ import annotations

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.builtins.threads import generated
from gpuop.engine.graphs.window import repeatable
from gpuop.mpi import Domain
from gpuop.runtime.devices import current
from gpuop.scaleout.mpi import exchange
from gpuop.scaleout.mpi.domain import RankWindow
from gpuop.scaleout.mpi.grid import RankGrid
from tests.harness import image, same_bits

from .thread_ranks import ThreadNccl, on_ranks

OWN = ("_layer", "_row", "_column")
LAUNCHER = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


@gp.operator
def smeared(f, border):
    """Reads further before than behind, and at corners; depends on where it is."""
    own = [generated()[name] for name in OWN[3 - len(f.field_shape) :]]
    far = [own[0] - 2, *(x + 1 for x in own[1:])]
    near = [own[0] + 1, *(x - 1 for x in own[1:])]
    place = _convert_float(sum(own)) / 64
    return (
        0.5 * _readTensor(f) + 0.25 * _readTensor(f, *far, border=border) + 0.125 * _readTensor(f, *near, border=border)
    ) + place


@gp.operator
def smeared_down(f):
    return _readTensor(f) + 0.5 * _readTensor(f, _row - 1, _column)


@pytest.fixture
def ahead(monkeypatch):
    """Others get what is computed twice, before the steps, however long that takes; counts where they did."""
    counted, step = [], RankWindow._step_ahead
    monkeypatch.setattr(RankWindow, "seconds", lambda self: 2.0 - (self.faces is not None))
    monkeypatch.setattr(RankWindow, "can_be_ahead", lambda self: repeatable(self.window))
    monkeypatch.setattr(RankWindow, "_step_ahead", lambda *args: counted.append(1) or step(*args))
    return counted


@pytest.fixture(params=["after", "ahead"])
def way(request):
    return request.getfixturevalue("ahead") if request.param == "ahead" else []


def stepped(start, border):
    """Two states of which each reads the other, a captured field, a parameter."""
    scale, weights = gp.Parameter(0.75), gp.ScalarField(np.cos(start))
    with gp.ComputeGraph() as graph:
        u, v = gp.ScalarField(start), gp.ScalarField(start[::-1].copy())
        u.next = smeared(v, border) * scale
        v.next = u * weights + smeared(u, border)
        graph.probe(u, "u")
        graph.probe(smeared(smeared(v, border), border), "far")
    return graph, scale


def compared(start, border, ranks, axes, every, steps=(1, 4), device="reference"):
    """Return whether so many ranks give the values that the graph gives by itself."""
    graph, scale = stepped(start, border)
    expected = []
    with gp.use_device(device):
        for n in steps:
            graph.step(n)
            expected += [graph.read("u"), graph.read("far")]
            scale.set(0.5)

    def run(comm):
        mine, scale = stepped(start, border)
        domain, results = Domain(comm, mine, axes, every), []
        for n in steps:
            domain.step(n)
            results += [domain.gather("u"), domain.gather("far")]
            scale.set(0.5)
        assert domain.tick == sum(steps)
        return results

    first, *others = on_ranks(ranks, run, device)
    for actual, want in zip(first, expected, strict=True):
        same_bits(actual, want)
    assert all(each is None for other in others for each in other)


def gathered(operator, start, device, every, steps):
    """The values on two ranks of a state whose next values an operator gives."""

    def run(comm):
        with gp.ComputeGraph() as graph:
            u = gp.ScalarField(start)
            u.next = operator(u)
            graph.probe(u)
        domain = Domain(comm, graph, every=every)
        for n in steps:
            domain.step(n)
        return domain.gather(u)

    return on_ranks(2, run, device)[0]


@pytest.mark.parametrize(
    ("shape", "border", "ranks", "axes", "every"),
    [
        ((29,), "symmetric", 3, 0, 3),
        ((11, 7), "wrap", 4, (0, 1), 1),
        ((5, 6, 5), "reflect", 3, (1,), 2),
        ((8, 5), "clamp", 5, (-1,), 5),  # a column each: halos are of others' others
        ((7, 6), 0.25, 2, (0,), 2),
    ],
    ids=str,
)
def test_ranks_have_the_bits_of_one_graph(shape, border, ranks, axes, every):
    compared(image(*shape), border, ranks, axes, every)


@pytest.mark.parametrize(
    ("shape", "border", "ranks", "axes", "every", "blocks"),
    [
        ((11, 7), "wrap", 4, (0, 1), 1, 5),  # corners are parts of faces
        ((23, 3), "symmetric", 3, 0, 3, 3),
        ((8, 5), "clamp", 5, (-1,), 2, 3),  # a column each: all is computed twice
    ],
    ids=str,
)
def test_ranks_exchange_what_they_compute_first(ahead, shape, border, ranks, axes, every, blocks):
    """Steps that end within a block are exchanged after it; a parameter is set where one ends, and within."""
    compared(image(*shape), border, ranks, axes, every, (2 * every, every + 1, every))
    assert len(ahead) == blocks * ranks


@pytest.mark.parametrize(
    ("times", "every", "message"),
    [
        ({(1, False): 4, (2, False): 3, (4, False): 9, (2, True): 2.5, (1, True): 2}, 1, "while the interior"),
        ({(1, False): 4, (2, False): 3, (4, False): 9, (2, True): 2, (1, True): 2.1}, 2, "while the interior"),
        ({(1, False): 4, (2, False): 3, (4, False): 9, (2, True): 3.1, (1, True): 3.1}, 2, "share\n"),
        ({(1, False): 4, (2, False): 3, (4, False): 9, (2, True): 6}, 2, "share\n"),
    ],
    ids=["fewer", "as many", "hardly slower", "slower"],
)
def test_the_way_is_measured(ahead, monkeypatch, times, every, message):
    measured = []

    def seconds(self):
        measured.append((self.window.steps, self.faces is not None))
        return times[measured[-1]]

    monkeypatch.setattr(RankWindow, "seconds", seconds)
    start = image(40, 4)

    def run(comm):
        domain = Domain(comm, stepped(start, "clamp")[0])
        domain.step(3)
        return domain.every, domain.explain(), domain.gather("u")

    chosen, text, actual = on_ranks(2, run, "reference")[0]
    assert chosen == every and set(measured) == set(times) and message in text
    graph = stepped(start, "clamp")[0]
    with gp.use_device("reference"):
        graph.step(3)
        same_bits(actual, graph.read("u"))


@gp.operator
def told(f):
    _print("%f\n", _readTensor(f))
    return _readTensor(f)


@pytest.mark.parametrize(
    ("step", "can"),
    [
        (lambda u: u + 1, True),
        (lambda u: u / u.max(), False),
        (told, False),
        (None, False),
    ],
    ids=["plain", "reduced", "printed", "on the host"],
)
def test_steps_are_computed_twice_where_nobody_sees_it(step, can):
    with gp.ComputeGraph("reference") as graph:
        u, v = gp.ScalarField(image(9, 4)), gp.ScalarField(np.float32(1))
        u.next = u if step is None else step(u)
        v.next = gp.HostOperator(np.negative, v, outputs=v.type) if step is None else v
    assert repeatable(graph.window((0, 0), (5, 4))) is can


@pytest.mark.parametrize("hosts", ["abc", "aab"])
def test_ranks_are_of_several_hosts(monkeypatch, hosts):
    each = iter(hosts)
    monkeypatch.setattr(exchange, "host", lambda: next(each))
    compared(image(10, 3), "wrap", 3, (0,), 2)
    assert not [*each]


def test_nobody_overwrites_what_another_still_reads(monkeypatch, way):
    """Rank 0 gets nothing, and would be far ahead."""
    brought = exchange.bring_parts
    monkeypatch.setattr(exchange, "bring_parts", lambda *args: (sleep(0.03), brought(*args)))
    start = image(6, 3)
    result = gathered(smeared_down, start, "reference", 1, (6,))
    expected = start
    for _ in range(6):
        expected = expected + np.float32(0.5) * expected[np.maximum(np.arange(6) - 1, 0)]
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_points_go_from_gpu_to_gpu(monkeypatch):
    """Two faces go to the same rank, each to its place."""
    results = []
    monkeypatch.setattr(exchange, "_nccl", lambda comm, backend: results.append(ThreadNccl(comm)) or results[-1])
    compared(image(7, 6), "wrap", 2, (0,), 2)
    assert [nccl.exchanges for nccl in results] == [2, 2]  # before the third step and the fifth


def test_steps_are_those_of_scipy(device, ahead):
    @gp.operator
    def heat(u):
        return _readTensor(u) + 0.25 * sum(
            _readTensor(u, _row + r, _column + c) - _readTensor(u) for r, c in ((0, 1), (1, 0), (0, -1), (-1, 0))
        )

    start = image(12, 10)
    result = gathered(heat, start, device, 2, (5, 3))
    expected = start
    for _ in range(8):
        expected = expected + 0.25 * ndimage.laplace(expected, mode="nearest")
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def levelled(start):
    """A step takes what is reduced over the grid, and what follows from that."""
    with gp.ComputeGraph() as graph:
        u, most = gp.ScalarField(start), gp.ScalarField(np.float32(9))
        spread = smeared(u, "clamp")
        rest = abs(u - u.max()).max()  # two stages
        u.next = spread * (0.5 / u.max()) + rest
        most.next = u.max()
        probes = {"u": u, "most": most, "share": u / rest, "where": spread.argmax(), "rows": spread.max(1)}
        probes |= {"low": spread.min() - rest, "many": (u > 0.5).astype("int32").sum(), "columns": u.min(0)}
        probes |= {"total": u.sum(), "flow": gp.VectorField(np.stack([start] * 3, -1)).sum(-1) + u}
        for name, field in probes.items():
            graph.probe(field, name)
    return graph


def test_reductions_are_of_the_whole_grid():
    start = image(9, 7)
    graph, names = levelled(start), ("u", "most", "share", "where", "rows", "low", "many", "columns", "flow")

    def run(comm):
        domain = Domain(comm, levelled(start), (1,), every=2)
        domain.step(3)
        return [domain.gather(name) for name in names], domain.gather("total"), str(levelled(start).footprint(2))

    with gp.use_device("reference"):
        graph.step(3)
        result, total, message = on_ranks(2, run, "reference")[0]
        for name, actual in zip(names, result, strict=True):
            same_bits(actual, graph.read(name), name)
        np.testing.assert_allclose(total, graph.read("u").sum(dtype="f8"), rtol=1e-6)
        u = graph.read("u")
        assert result[6] == (u > 0.5).sum() and np.array_equal(result[7], u.min(0))
        with pytest.raises(gp.SemanticError, match="over all axes: a window computes a part of it; give `combine=`"):
            levelled(start).window((0, 0), (9, 3)).step()
    assert "stage 0: operator `max`" in message and "stage 1: operator `max`" in message and "whole" not in message


def test_steps_end_when_a_probe_says_so(way):
    def run(comm):
        with gp.ComputeGraph() as graph:
            u = gp.ScalarField(np.arange(6, dtype="i4"))
            u.next = np.roll(u, 1) + 1
            graph.probe(u.max() >= 10, "late")
        domain = Domain(comm, graph, every=2)
        ended = [domain.step(2, until="late"), domain.step(9, until="late", every=3), domain.step(1, until="late")]
        return ended, domain.tick

    assert on_ranks(2, run, "reference") == [([False, True, True], 6)] * 2


def test_every_third_step_is_looked_at(way):
    """A step of the graph is three turns, of which probes see the last."""

    @gp.operator
    def spread(u):
        around = ((0, 1), (1, 0), (0, -1), (-1, 0))
        return 0.25 * sum(_readTensor(u, _row + r, _column + c, border="zero") for r, c in around)

    start, cross = image(12, 10), ndimage.generate_binary_structure(2, 1) * 0.25
    cross[1, 1] = 0

    def run(comm):
        with gp.ComputeGraph() as graph:
            u = gp.ScalarField(start)
            u.next = gp.iterate(spread, u, times=3)
            graph.probe(u, "u"), graph.probe(u.std(), "spread")
        domain, results = Domain(comm, graph, every=1), []
        for _ in range(3):
            domain.step()
            results.append((domain.gather("u"), domain.gather("spread")))
        return results

    expected = start
    for u, spread_of_u in on_ranks(2, run, "reference")[0]:
        for _ in range(3):
            expected = ndimage.convolve(expected, cross, mode="constant")
        np.testing.assert_allclose(u, expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(spread_of_u, expected.std(), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_states_of_other_kinds(way, dtype):
    """Vectors, integers and complex numbers go whole; what is on no grid is each rank's own; a state may follow another."""
    wave = (image(9, 4) + 1j * image(9, 4)).astype(dtype)

    def build():
        with gp.ComputeGraph() as graph:
            flow = gp.VectorField(np.stack([wave.real, wave.imag, wave.real], -1))
            count = gp.ScalarField(np.arange(36, dtype="u1").reshape(9, 4))
            phase, time = gp.ScalarField(wave), gp.ScalarField(np.float32(1))
            big = gp.Field(np.arange(216, dtype="f").reshape(9, 4, 6), 1)
            before = gp.ScalarField(wave)
            flow.next, count.next = np.roll(flow, 1, 0) * time, np.roll(count, -1, 0) + 1
            phase.next, time.next, before.next, big.next = np.roll(phase, 2, 0), time + 1, phase, np.roll(big, 1, 0)
            for f in (flow, count, phase, time, before, big):
                graph.probe(f)
        return graph

    graph = build()
    names = ["flow", "count", "phase", "time", "before", "big"]

    def run(comm):
        domain = Domain(comm, build(), every=2)
        domain.step(1)
        domain.step(4)
        return [domain.gather(name) for name in names]

    result = on_ranks(3, run, "reference")[0]
    with gp.use_device("reference"):
        graph.step(5)
        for name, actual in zip(names, result, strict=True):
            same_bits(actual, graph.read(name), name)


def test_files_are_of_any_number_of_ranks(tmp_path, way):
    start, path = image(10, 6), tmp_path / "states.npz"

    def run(comm, steps, load):
        domain = Domain(comm, stepped(start, "clamp")[0], every=2)
        if load:
            domain.load(path)
        domain.step(steps)
        domain.save(path)
        return domain.tick

    assert on_ranks(2, lambda comm: run(comm, 3, False), "reference") == [3] * 2
    assert on_ranks(3, lambda comm: run(comm, 2, True), "reference") == [5] * 3
    graph, again = stepped(start, "clamp")[0], stepped(start, "clamp")[0]
    with gp.use_device("reference"):
        again.load(path)
        again.step(2)
        graph.step(7)
        same_bits(again.read("u"), graph.read("u"))
    with pytest.raises(OSError, match="none"):
        on_ranks(
            2, lambda comm: Domain(comm, stepped(start, "clamp")[0], every=1).save(tmp_path / "none" / "x"), "reference"
        )


def test_how_many_steps_is_measured():
    start = image(64, 4)

    def run(comm):
        graph = stepped(start, "clamp")[0]
        domain = Domain(comm, graph)
        domain.step(3)
        return domain.every, domain.measured, domain.gather("u"), domain.explain()

    result = on_ranks(2, run, "reference")
    every, measured, actual, text = result[0]
    assert result[1][:2] == (every, measured) and measured[every] == min(measured.values())
    assert list(measured) == [2**k for k in range(len(measured))] and len(measured) > 1
    graph = stepped(start, "clamp")[0]
    with gp.use_device("reference"):
        graph.step(3)
        same_bits(actual, graph.read("u"))
    assert "grid 64×4 in 2×1 parts" in text and f"exchanged every {every} steps, axis 0: " in text


@pytest.mark.parametrize("hosts", ["aa", "ab"])
def test_a_step_moves_no_more_than_halos(monkeypatch, hosts):
    """States stay where they are: nothing but the points around them goes to the device, and from it."""
    start, moved, each = image(100, 4), [], iter(hosts)
    monkeypatch.setattr(exchange, "host", lambda: next(each))
    with gp.use_device("reference"):
        backend = type(current())
    for name in ("upload", "download", "write"):
        make = getattr(backend, name)
        monkeypatch.setattr(
            backend, name, lambda *a, make=make: moved.append(a[2].shape if a[2:] else a[1]) or make(*a)
        )

    def run(comm):
        domain = Domain(comm, stepped(start, "clamp")[0], every=2)
        domain.step(2)
        before = comm.world.sent
        comm.barrier()
        moved.clear()
        comm.barrier()
        domain.step(2)
        comm.barrier()
        return before, comm.world.sent, len(moved), domain.recomputed

    before, sent, moves, share = on_ranks(2, run, "reference")[0]
    below, above = 4, 2  # two steps; "far" reads as much, but after one step more
    halos = (below + 2) + (above + 1)
    assert before == 0 and sent == (2 * 4 * 4 * halos if hosts == "ab" else 2) and moves == 8
    assert share == pytest.approx(halos / 100)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda comm, graph: Domain(comm, graph, axes=(2,)),
            r"`axes=` are different axes of the grid \(3, 4\): .* not \(2,\)",
        ),
        (lambda comm, graph: Domain(comm, graph, axes=(0, 0)), "`axes=` are different axes"),
        (lambda comm, graph: Domain(comm, graph, every=0), '`every` is "auto" or a number of steps, 1 or more, not 0'),
        (lambda comm, graph: Domain(None, graph), r"`comm` is a communicator of mpi4py's .*pip install mpi4py"),
        (lambda comm, graph: Domain(comm, graph.step), "`graph` is a ComputeGraph, not a method"),
        (
            lambda comm, graph: Domain(comm, graph, (1,), 1 + (comm.Get_rank() == 2)),
            "all ranks have .*, but rank 0 has `every=` 1, and rank 2 2",
        ),
        (lambda comm, graph: pickle.dumps(Domain(comm, graph, (1,), 1)), "a Domain is of all ranks together"),
        (lambda comm, graph: Domain(comm, graph), r"4 ranks do not each get a part of 3 points, along axes \(0,\)"),
        (
            lambda comm, graph: Domain(comm, graph, axes=(1,), every=1),
            r"axis 1 .* must be whole.*operator `cumsum.*test_ranks.py",
        ),
        (
            lambda comm, graph: Domain(comm, graph, axes=(0, 1), every=1).step(2, until="u"),
            r"`until` is a 0D field of bool, not float32 of \(., .\): probe a condition, as `u.max\(\) < 1e-3`",
        ),
        (
            lambda comm, graph: Domain(comm, graph, axes=(0, 1), every=1).step(2, until="mean"),
            "`until` is a 0D field of bool, not float32: probe a condition",
        ),
        (
            lambda comm, graph: Domain(comm, graph, axes=(0, 1), every=1).step(2, until="u", every=0),
            "`every` is a number of steps, 1 or more, not 0",
        ),
        (
            lambda comm, graph: Domain(comm, graph, axes=(0, 1), every=1).gather("most"),
            "probe 'most' is not computed in parts",
        ),
    ],
)
def test_what_is_refused(wrong, message):
    def run(comm):
        with gp.ComputeGraph() as graph:
            u = gp.ScalarField(image(3, 4))
            u.next = np.cumsum(u, 1) if "must be whole" in message else u + 1
            graph.probe(np.cumsum(u, 0), "most")
            graph.probe(u, "u")
            graph.probe(u.mean(), "mean")
        return wrong(comm, graph)

    with pytest.raises(gp.SemanticError, match=message):
        on_ranks(4, run, "reference")


@pytest.mark.parametrize(("ranks", "axes", "counts"), [(6, (0, 1), (2, 3)), (7, (0,), (7, 1)), (4, (0, 1), (2, 2))])
def test_parts_cover_the_grid(ranks, axes, counts):
    grid = RankGrid.of((9, 10), ranks, axes)
    assert grid.counts == counts
    visits = np.zeros((9, 10), int)
    for rank in range(ranks):
        visits[tuple(map(slice, *grid.own(rank)))] += 1
    assert (visits == 1).all()


CONTINUED = """
import sys
import gpuop as gp, numpy as np
from gpuop.mpi import Domain
from mpi4py import MPI

comm, path = MPI.COMM_WORLD, sys.argv[1]
with gp.ComputeGraph("reference") as graph:
    u = gp.ScalarField(np.arange(20, dtype="f").reshape(5, 4))
    u.next = np.roll(u, 1, 0) + 0.5 * np.roll(u, 1, 1)
    graph.probe(u)
domain = Domain(comm, graph, every=2)
assert sys.platform != "linux" or "through memory that ranks of a host share" in domain.explain()
if sys.argv[2:]:
    domain.load(path)
    domain.step(9 - domain.tick)
    np.save(path, domain.gather("u")) if comm.Get_rank() == 0 else domain.gather("u")
else:
    domain.step(3)
    domain.save(path)
    if comm.Get_rank() == 1:
        raise ValueError("on rank 1 alone")
    domain.step(6)
    domain.gather("u")
"""


@pytest.mark.skipif(LAUNCHER is None or importlib.util.find_spec("mpi4py") is None, reason="there is no MPI")
def test_processes_that_fail_go_on_from_what_was_saved(tmp_path):
    """A rank that raises ends the others, which would wait for it."""
    script, path = tmp_path / "continued.py", tmp_path / "states.npy"
    script.write_text(CONTINUED)
    failed = launched(2, script, path)
    assert failed.returncode != 0 and "ValueError: on rank 1 alone" in failed.stderr
    done = launched(2, script, path, "again")
    assert done.returncode == 0, done.stderr
    expected = np.arange(20, dtype="f").reshape(5, 4)
    for _ in range(9):
        expected = np.roll(expected, 1, 0) + np.float32(0.5) * np.roll(expected, 1, 1)
    same_bits(np.load(path), expected)


def launched(ranks, script, *options):
    """A program on ranks; Open MPI starts as root, and more ranks than there are cores, only where it is told to."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    allowed |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    command = [LAUNCHER, "-n", ranks, sys.executable, script, *options]
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=60, env=os.environ | allowed, check=False
    )
