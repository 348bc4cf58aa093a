"""Pipelines on windows of their grids: what is put together of windows has the bits of the whole."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
import gpuop.ndimage
from gpuop.base.errors import SemanticError
from gpuop.dsl import *
from gpuop.engine.jit import grid_window
from gpuop.fusion.windows.axis_blocks import GridBlocks
from gpuop.fusion.windows.buffer_pool import let_go, reused
from gpuop.runtime.devices import current
from tests.fuzz.windowed import WindowedProgram, taken
from tests.harness import image
from tests.nightly import left_to_nightly


def parts(grid, *chunks):
    """The windows of chunks of so many points along each axis."""
    for place in np.ndindex(*(-(-n // c) for n, c in zip(grid, chunks, strict=True))):
        start = tuple(k * c for k, c in zip(place, chunks, strict=True))
        yield start, tuple(min(a + c, n) for a, c, n in zip(start, chunks, grid, strict=True))


@pytest.mark.parametrize("border", ["clamp", "wrap", "reflect", "symmetric", 0.25])
def test_chains_under_every_border(device, border):
    if device != "reference" and border not in ("clamp", "wrap"):
        left_to_nightly("borders of drivers are alike")

    @gp.operator
    def step(f):
        return _readTensor(f, _row - 1, _column + 2, border=border) - 0.5 * _readTensor(
            f, _row + 1, _column, border=border
        )

    @gp.pipeline
    def twice(x):
        return step(step(gp.ScalarField(x)))

    x = image(11, 9)
    modes = {"clamp": "nearest", "reflect": "mirror", "symmetric": "reflect", 0.25: "constant"}
    kernel = np.zeros((3, 5), np.float32)
    kernel[0, 4], kernel[2, 2] = 1, -0.5
    expected = x
    for _ in range(2):
        expected = ndimage.correlate(expected, kernel, mode=modes.get(border, border), cval=0.25)
    whole, needed = twice(x), twice.footprint(x)
    np.testing.assert_allclose(whole, expected, rtol=1e-5, atol=1e-6)
    assert needed.periodic == ((0, 1) if border == "wrap" else ())
    windows = parts(x.shape, 4, 2) if device == "reference" else [((4, 0), (11, 5))]
    for start, stop in windows:
        part = np.ascontiguousarray(taken(x, needed.window(start, stop)))
        np.testing.assert_array_equal(twice.window(x.shape, start, stop)(part), whole[tuple(map(slice, start, stop))])


@pytest.mark.parametrize("seed", [0, 3, 5, 11])
def test_random_programs_have_the_bits_of_the_whole(seed):
    result = WindowedProgram(seed)
    with gp.use_device("reference"):
        whole = result.pipeline(result.array, result.weights)
        np.testing.assert_array_equal(result.in_windows(result.windows(), result.footprint), whole)


@pytest.mark.parametrize("seed", [0, 8, 14, 39])
def test_a_point_less_around_windows_is_noticed(seed):
    result = WindowedProgram(seed)
    with gp.use_device("reference"):
        noticed = [result.notices(axis) for axis in range(len(result.grid))]
    assert True in noticed and False not in noticed


@pytest.mark.parametrize(("border", "needed"), [("reflect", (3, 6)), ("symmetric", (2, 6))])
def test_what_is_mirrored_is_needed_once(border, needed):
    @gp.operator
    def ahead(f):
        return _readTensor(f) + 2 * _readTensor(f, _column + 3, border=border)

    program = gp.pipeline(lambda x: ahead(ahead(gp.ScalarField(x))))
    x = np.arange(30, dtype="f") ** 2
    once = x + 2 * np.pad(x, 3, mode=border)[6:]
    assert program.footprint(x).halo == (needed,)
    with gp.use_device("reference"):
        for at in range(30):
            ((first, last),) = program.footprint(x).window((at,), (at + 1,))
            result = program.window(30, at, at + 1)(x[first:last])
            np.testing.assert_array_equal(result, (once + 2 * np.pad(once, 3, mode=border)[6:])[at : at + 1])


@gp.operator
def blurred(f):
    return sum(_readTensor(f, _row + a, _column + b) for a in (-1, 0, 1) for b in (-1, 0, 1)) / 9


@gp.operator
def placed(f):
    return _readTensor(f) + _convert_float(_row * _columns + _column)


def test_footprints_add_up_through_a_graph():
    @gp.pipeline
    def program(x, y):
        made = gp.iterate(blurred, blurred(gp.ScalarField(x)), times=4)
        return np.roll(gp.ScalarField(y), 2, 0) + placed(made[:, :])

    needed = program.footprint(gp.FieldType((10**6, 10**5)), ((10**6, 10**5), "float32"))
    assert needed.whole.keys() == {0} and "wrap" in needed.whole[0] and "clamp" in needed.whole[0]
    assert needed.halo[1] == (5, 5) and needed.positions == (1,) and needed.periodic == ()
    assert needed.window((0, 3), (10**6, 10**5 - 2)) == ((0, 10**6), (0, 10**5))
    assert "axis 1: 5 before, 5 after; positions count" in str(needed)
    with pytest.raises(SemanticError, match=r"axis 0 of the grid .* must be whole, .*operator `roll`"):
        needed.window((1, 0), (10**6, 10**5))


@gp.operator(outputs=gp.FieldType((6, 9)))
def spread(table):
    return _readTensor(table, _row) * 2 + _column


@gp.operator
def above(f):
    return _readTensor(f, _row - 1, _column)


def test_fields_made_of_constants_alone():
    table, x = np.arange(6, dtype="f"), image(6, 9)
    over = table[:, None] * 2 + np.arange(9)
    once, twice = np.roll(over, 1, 0), np.roll(over, 2, 0)
    once[0], twice[:2] = over[0], over[0]

    @gp.pipeline
    def added(x):
        return above(spread(gp.ScalarField(table))) + gp.ScalarField(x)

    @gp.pipeline
    def in_turns(x):
        return gp.iterate(lambda f: f + above(above(spread(gp.ScalarField(table)))), gp.ScalarField(x), times=1)

    for program, expected in ((added, once + x), (in_turns, x + twice)):
        needed = program.footprint(x)
        for start, stop in parts(x.shape, 3, 5):
            part = np.ascontiguousarray(taken(x, needed.window(start, stop)))
            result = program.window(x.shape, start, stop)(part)
            np.testing.assert_array_equal(result, expected[tuple(map(slice, start, stop))].astype("f"))


def test_footprints_of_graphs():
    with gp.ComputeGraph() as graph:
        u, v = (gp.ScalarField(np.zeros((30, 40), "f")) for _ in range(2))
        u.next, v.next = placed(u) + np.roll(v, 1, 1), blurred(u)[:, :] * 2
        graph.probe(u.max(), "most")
    assert graph.footprint(0).halo == ((0, 0), (0, 0))
    assert graph.footprint().halo[0] == (1, 1) and graph.footprint(5).halo[0] == (3, 3)
    assert graph.footprint().positions == (0,) and graph.footprint().whole.keys() == {1}


def test_one_compilation_serves_all_windows_of_one_shape(device, monkeypatch):
    compiled = []
    backend = type(current())
    make = backend.compile_all
    monkeypatch.setattr(backend, "compile_all", lambda self, kernels: compiled.extend(kernels) or make(self, kernels))
    program, x = gp.pipeline(lambda x: placed(blurred(gp.ScalarField(x)))), image(45, 21)
    results = {
        start: program.window(x.shape, (start, 0), (start + 5, 21))(x[start - 1 : start + 6]) for start in range(1, 38)
    }
    assert len(compiled) <= 2
    whole = program(x)
    assert all(np.array_equal(part, whole[start : start + 5]) for start, part in results.items())


def test_tensors_other_arrays_and_out(device):
    @gp.pipeline
    def program(x, table, y):
        made = gp.VectorField(x)
        return made * gp.ScalarField(y) + table_at(gp.ScalarField(table)), np.sin(made)

    @gp.operator(outputs=gp.FieldType((12, 14)))
    def table_at(table):
        return _readTensor(table, _column % 3, _row % 3) + _readTensor(table, 0, 0)

    x, y, table = image(12, 14, 5), image(12, 14), image(3, 3)
    window = program.window((12, 14), (3, 3), (6, 6), shared="table")
    out = np.zeros((3, 3, 5), "f"), np.zeros((3, 3, 5), "f")
    cut = np.s_[3:6, 3:6]
    window(x[cut], table, y[cut], out=out)
    for part, whole in zip(out, program(x, table, y), strict=True):
        np.testing.assert_array_equal(part, whole[cut])


def test_assertions_and_loops_count_where_results_are(capfd):
    @gp.operator
    def rising(f):
        value = _readTensor(f, _column + 1, border="wrap") - _readTensor(f, _column - 1, border="wrap")
        _assert(value > 0, "rises")
        total = _var(value)
        with _while(total < 1):  # has no end where nothing rises, as beyond the ends of windows
            total *= 2
        return total * 0.0 + _readTensor(f)

    program = gp.pipeline(lambda x: rising(rising(gp.ScalarField(x))))
    x = np.arange(20, dtype="f")
    with gp.use_device("reference", checked=True):
        np.testing.assert_array_equal(program.window(20, 4, 9)(x[2:11]), x[4:9])
        with pytest.raises(SemanticError, match="an assertion does not hold: rises"):
            program.window(20, 4, 9)(-x[2:11])


@gp.operator
def thrown(f):
    return _readTensor(f, _row + _convert_int(_readTensor(f)), _column)


@gp.operator
def first(f):
    return _readTensor(f, 0, _column) + _readTensor(f)


@gp.operator
def far(f):
    return _readTensor(f, _row + 7, _column)


@gp.operator(outputs=gp.FieldType((8, 8)))
def moved(f):
    _writeTensor(_out0, _readTensor(f), _row + 1, _column)


def rolled(f):
    return gp.iterate(lambda u: np.roll(u, 3, 0), f, times=3)


def test_what_cannot_be_cut_is_refused():
    """Each reason names the operator and its line, and says what to do instead."""
    x = image(8, 8)
    for function, reason in (
        (thrown, "`thrown` .* reads `f` along rows at a place that is no constant distance away: bound the distance"),
        (first, "`first` .* reads `f` along rows at a fixed place: give what is there as an array of its own"),
        (far, "`far` .* reads `f` up to 7 rows away, of 8: cut another axis"),
        (moved, "`moved` .* writes at other points than the thread's own: let these read there, or update by atomic"),
        (rolled, "3 iterations reach around the axis, of 8: take fewer at once"),
        (
            lambda f: gp.iterate(above, f, until=lambda u: u.max() < 1),
            "a condition on the whole grid holds: say `times=`",
        ),
        (lambda f: np.roll(above(f), 1, 0), 'under border="wrap", and .*: cut another axis, or give both one border'),
        (lambda f: f.T + 1, "`T` .* reads `a` along rows at the thread's column"),
        (lambda f: f[::-1] + f, "`slice` .* reads `a` along rows"),
        (
            lambda f: f[1:] - f[:-1],
            "`slice` .* makes of a field in windows one of another grid, 7×8 float32: have windows end before it",
        ),
        (lambda f: gp.HostOperator(np.negative, f, outputs=f.type), "runs on the host: call it of the whole"),
    ):
        program = gp.pipeline(lambda x, function=function: function(gp.ScalarField(x)))
        with pytest.raises(SemanticError, match=rf"must be whole(?=.*operator `.*\(.*test_windows.py:\d+\)).*{reason}"):
            program.window((8, 8), (0, 0), (4, 8))(x[:5])


def test_iterations_reach_no_point_from_both_sides():
    """Seven iterations of one row each have the other seven of eight rows in their windows; eight would have a row twice."""

    def moved_up(times):
        return gp.pipeline(lambda x: gp.iterate(lambda u: np.roll(u, 1, 0) * 2, gp.ScalarField(x), times=times))

    x, program = image(8, 3), moved_up(7)
    with gp.use_device("reference"):
        part = taken(x, program.footprint(x).window((0, 0), (4, 3)))
        np.testing.assert_array_equal(
            program.window(x.shape, (0, 0), (4, 3))(np.ascontiguousarray(part)), np.roll(x, 7, 0)[:4] * 2**7
        )
        with pytest.raises(SemanticError, match="8 iterations reach around the axis, of 8: take fewer at once"):
            moved_up(8).window(x.shape, (0, 0), (4, 3))(x)


def test_wrong_windows_are_refused():
    program, x = gp.pipeline(lambda x: blurred(gp.ScalarField(x))), image(9, 9)
    with pytest.raises(SemanticError, match=r"need a window \[1:7, 0:9\], of extents \(6, 9\), and `x` has \(5, 9\)"):
        program.window((9, 9), (2, 0), (6, 9))(x[1:6])
    for start, stop in (((0,), (9,)), ((3, 3), (3, 4)), ((0, 0), (10, 9)), ((-1, 0), (3, 3)), ((0.5, 0), (3, 3))):
        with pytest.raises(SemanticError, match=r"is an integer for each axis|are not within the grid"):
            program.window((9, 9), start, stop)
    with pytest.raises(SemanticError, match="has no array 'y' to share"):
        program.window((9, 9), (0, 0), (4, 4), shared="y")(x)


def in_stages(pipeline, x, *chunks):
    """The results of a pipeline with stages, put together of windows of all stages; the windows are in no order."""
    grid, needed, totals = x.shape[: len(chunks)], pipeline.footprint(x), ()
    windows = [(s, e, np.ascontiguousarray(taken(x, needed.window(s, e)))) for s, e in parts(grid, *chunks)]
    for stage in range(len(needed.stages)):
        calls = ((pipeline.window(grid, s, e, stage=stage, known=totals), part) for s, e, part in windows[::-1])
        totals += needed.known(call(part) for call, part in calls)
    actual = np.zeros(grid, np.float32)
    for start, stop, part in windows:
        result, *others = pipeline.window(grid, start, stop, known=totals)(part)
        actual[tuple(map(slice, start, stop))] = result
    return actual, others


def test_reductions_over_the_grid_are_stages(device):
    @gp.pipeline
    def program(x):
        field = blurred(gp.ScalarField(x))
        scaled = field - field.min()
        return scaled - scaled.max(axis=0)[None, :], field.argmax(), gp.ScalarField(x).sum()

    x = image(9, 11)
    x[7, 4] = x[2, 3] = 9  # of equal places it is the first in the whole
    result, (place, total) = in_stages(program, x, 4, 11) if device != "reference" else in_stages(program, x, 4, 6)
    whole, *expected = program(x)
    np.testing.assert_array_equal(result, whole)
    assert place == expected[0] == ndimage.uniform_filter(x.astype("d"), 3, mode="nearest").round(4).argmax()
    np.testing.assert_allclose(total, x.sum(), rtol=1e-6)
    stages = program.footprint(x).stages
    assert [len(stage) for stage in stages] == [3, 1] and "over axis 0" in stages[1][0]


def test_complex_sums_and_means_are_stages():
    """Complex numbers are held as two; so are the parts that windows give."""

    @gp.pipeline
    def program(x):
        field = gp.ComplexField(x)
        return abs(field - field.mean()), field.sum(axis=0)

    x = (image(6, 5) + 1j * image(6, 5)[::-1]).astype(np.complex64)
    result, (sums,) = in_stages(program, x, 4, 3)
    np.testing.assert_allclose(result, abs(x - x.mean()), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums, x.sum(0), rtol=1e-6)


def test_what_reduces_tensors_alone_is_no_stage():
    x = np.stack([image(6, 5)] * 3, -1)
    program = gp.pipeline(lambda x: gp.VectorField(x).sum(-1))
    assert program.footprint(x).stages == ()
    result = program.window((6, 5), (2, 0), (4, 5))(x[2:4])
    np.testing.assert_allclose(result, x[2:4].sum(-1), rtol=1e-6)


def test_windows_of_one_shape_are_made_once_wherever_their_points_are(monkeypatch):
    """Reductions know the place of the points that count in a window, and nothing before them does."""
    results, window_program = [], grid_window.window_program
    monkeypatch.setattr(
        grid_window, "window_program", lambda *args: results.append(args[2].window) or window_program(*args)
    )
    program, x = gp.pipeline(lambda x: np.count_nonzero(blurred(gp.ScalarField(x)) > 0.5)), image(12, 8)
    with gp.use_device("reference"):
        needed = program.footprint(x)
        places = [(0, 5), (5, 9), (9, 12)]
        (count,) = needed.known(
            program.window(x.shape, (a, 0), (b, 8), stage=0)(x[slice(*needed.window((a, 0), (b, 8))[0])])
            for a, b in places
        )
    assert results == [(6, 8), (4, 8)]
    assert count == (ndimage.uniform_filter(x.astype("d"), 3, mode="nearest") > 0.5).sum()


def test_one_compilation_serves_reductions_in_windows_of_one_shape(device, monkeypatch):
    """Windows at the ends of the grid are as long as others, and what counts lies elsewhere in them."""
    compiled = []
    backend = type(current())
    make = backend.compile_all
    monkeypatch.setattr(backend, "compile_all", lambda self, kernels: compiled.extend(kernels) or make(self, kernels))
    x, weights = np.random.default_rng(3).integers(0, 3, (20, 18), np.int32), np.ones((3, 3), np.int32)

    @gp.pipeline
    def program(x):
        field = gpuop.ndimage.convolve(gp.ScalarField(x), weights)
        return field.max(axis=0), field.argmin(), np.count_nonzero(field > 7)

    needed = program.footprint(x)
    blocks, parts, once = GridBlocks(needed, ((5,) * 4, (6,) * 3)), [], 0
    for place in np.ndindex(4, 3):
        axes = blocks.at(place)
        wanted, computed = (
            [tuple(getattr(each, name)[k] for each in axes) for k in (0, 1)] for name in ("wanted", "computed")
        )
        window = program.window(x.shape, *wanted, stage=0, computed=computed)
        parts.append(window(x[tuple(slice(*each.window) for each in axes)]))
        once = once or len(compiled)
    whole = ndimage.convolve(x, weights)
    for result, expected in zip(needed.known(parts), (whole.max(0), whole.argmin(), (whole > 7).sum()), strict=True):
        np.testing.assert_array_equal(result, expected)
    assert once == len(compiled) > 0


def test_what_is_wanted_is_computed():
    program = gp.pipeline(lambda x: gp.ScalarField(x).max())
    for computed in (((3, 0), (6, 9)), ((2, 0), (5, 9)), ((2, 1), (6, 9))):
        with pytest.raises(
            SemanticError, match=r"from \(2, 0\) to \(6, 9\) are wanted, and not all of them are computed, from"
        ):
            program.window((9, 9), (2, 0), (6, 9), computed=computed)
    with pytest.raises(SemanticError, match="are not within the grid"):
        program.window((9, 9), (2, 0), (6, 9), computed=((0, 0), (10, 9)))


def test_what_is_computed_of_all_of_an_axis_counts_where_it_is_wanted():
    """Windows that are lengthened to all of an axis, each of which is to count its own points."""
    program, x = (
        gp.pipeline(lambda x: np.histogram(gp.ScalarField(x), 4, (0, 4))[0]),
        np.arange(12, dtype="f").reshape(3, 4) % 4,
    )
    needed = program.footprint(x)
    parts = [program.window((3, 4), (0, k), (3, k + 2), stage=0, computed=((0, 0), (3, 4)))(x) for k in (0, 2)]
    (result,) = needed.known(parts)
    np.testing.assert_array_equal(result, np.histogram(x, 4, (0, 4))[0])


def test_tables_that_are_shared_are_no_grid():
    """However many numbers a table has."""
    x, table = (
        np.random.default_rng(5).integers(0, 200, (4, 5, 6), np.int32),
        np.arange(200, dtype=np.int32)[::-1].copy(),
    )

    @gp.operator
    def looked_up(x, table):
        _writeTensor(_out0, _readTensor(table, _readTensor(x)))

    program = gp.pipeline(lambda x, table: looked_up(gp.ScalarField(x), gp.ScalarField(table)))
    out = np.zeros_like(x)
    gp.stream(program, (x, table), out, chunks=(2, 5, 6), shared="table", progress=False)
    np.testing.assert_array_equal(out, table[x])


def test_stages_are_asked_for_in_order():
    program, x = gp.pipeline(lambda x: gp.ScalarField(x) - gp.ScalarField(x).max()), image(6, 6)
    with pytest.raises(SemanticError, match=r"reduces over the grid: operator `max`.*as `known=`, 1 arrays"):
        program.window((6, 6), (0, 0), (3, 6))(x[:3])
    with pytest.raises(SemanticError, match="has 1 stages, and no stage 1"):
        program.window((6, 6), (0, 0), (3, 6), stage=1)(x[:3])
    part = program.window((6, 6), (0, 0), (3, 6), stage=0)(x[:3])
    column = gp.pipeline(lambda x: gp.ScalarField(x).max(axis=1))
    with pytest.raises(SemanticError, match="windows have given 3 of the 6 points of `max`"):
        column.footprint(x).known([column.window((6, 6), (0, 0), (3, 6), stage=0)(x[:3])])
    assert pickle.loads(pickle.dumps(part))[0].result() == x[:3].max()


def test_memory_is_used_again_once_no_array_has_it():
    shape, kind = (700, 301), np.dtype("float32")  # an extent of its own
    first = reused(shape, kind)
    rows, place = first[3:5], first.ctypes.data
    del first
    other = reused(shape, kind)
    assert not np.shares_memory(other, rows)
    rows[:] = 7
    other[:] = 3
    np.testing.assert_array_equal(rows, np.full((2, 301), 7))
    del rows
    again = reused((301, 700), np.dtype("int32"))
    assert again.ctypes.data == place and again.shape == (301, 700) and again.flags.c_contiguous
    del again
    let_go()
    assert reused((2, 3), kind).flags.owndata  # too little to be worth it
