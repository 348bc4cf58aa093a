"""Stages whose rows a thread keeps: NumPy's values at every size, border and dtype, exact in corners, and what is not kept so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate
from gpuop.dsl import *
from gpuop.fusion.iteration import Iteration
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.analysis.stages import stages
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.nodes import Comment, For
from gpuop.ir.visit import walk
from gpuop.passes.schedules.cpu import circular_buffers
from gpuop.passes.schedules.cpu.line_buffers import LINE_BUFFERS, MOST_BYTES
from gpuop.runtime import devices
from tests.borders import CHECKED, away
from tests.conftest import Vectorized

rng = np.random.default_rng(29)
TARGET = replace(Vectorized.target, backend="opencl")
# a strip of less than two vectors, a field lower than its windows need, layers, and no rows
SHAPES = [(7, 24), (4, 41), (2, 9, 50), (150,)]


@contextmanager
def kept(**parameters: int) -> Iterator[None]:
    """The device in use keeps rows, however small the grid."""
    backend = devices.current()
    if backend.target.vector_length == 1:
        pytest.skip("it has no vectors")
    target = replace(backend.target, least_threads=1)
    limits = replace(backend.limits, target=target)
    with mock.patch.object(backend, "target", target), mock.patch.object(backend, "limits", limits):
        with gp.schedule("line buffers", **parameters):
            yield


def data(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Small whole numbers, whose sums are exact."""
    return rng.integers(0, 5, shape).astype(dtype)


def own(f: gp.Field, *steps: int) -> tuple[object, ...]:
    axes = (_layer, _row, _column)[-len(f.field_shape) :]
    return tuple(a + k for a, k in zip(axes, (*[0] * (len(axes) - len(steps)), *steps), strict=True))


def stencil(steps: tuple[tuple[int, int], ...], border: object = "clamp") -> gp.Operator:
    @gp.operator
    def weighted(f):
        return sum(_readTensor(f, *own(f, *s), border=border) * k for k, s in enumerate(steps, 1))

    return weighted


def expected(x: np.ndarray, steps: tuple[tuple[int, int], ...], border: str = "clamp", fill: float = 0) -> np.ndarray:
    return sum(k * away(x, *s, border=border, fill=fill) for k, s in enumerate(steps, 1)).astype(x.dtype)


def kernel_of(*results: gp.Field) -> Kernel:
    fused = plan(program([result.node for result in results]), limits=Limits(target=TARGET))
    (step,) = fused.launches
    return replace(step.kernel, target=TARGET)


FIRST = ((-1, -1), (0, 0), (1, 2))
SECOND = ((-2, 1), (0, -3), (1, 0), (2, -1))
LAYERS = ((-1, 0, 0), (0, 1, 2), (1, -1, -1))


@pytest.mark.parametrize(
    ("shape", "border"),
    [*(((37, 100), b) for b in CHECKED), *((s, b) for s in SHAPES for b in ("reflect", "zero", "wrap"))],
    ids=str,
)
def test_sizes_and_borders(device, shape, border):
    """The corner of the second stage is that of the first one's values, not of what it would compute beyond the edges."""
    x = data(shape)
    first, second = (tuple(s[-len(shape) :] for s in steps) for steps in (FIRST, SECOND))
    parameters = {"columns": 32, "rows": 5, "together": 2} if len(shape) > 1 else {"columns": 32}
    want = expected(expected(x, first, border), second, border)
    with kept(**parameters):
        out = stencil(second, border)(stencil(first, border)(gp.Field(x)))
        assert len(kernel_of(out).intermediates) == 1 and not LINE_BUFFERS.refuse(kernel_of(out))
        np.testing.assert_array_equal(out.numpy(), want)


@pytest.mark.parametrize(
    ("shape", "border", "parameters"),
    [
        ((7, 9, 40), "clamp", (1024, 4, 3, 2)),
        ((5, 11, 96), "wrap", (32, 4, 4, 1)),
        ((3, 2, 33), "symmetric", (1024, 2, 40, 1)),
    ],
    ids=str,
)
def test_layers(device, shape, border, parameters):
    """Threads walk along layers, and keep a block of rows of each."""
    x = data(shape)
    want = expected(expected(x, LAYERS, border), LAYERS, border)
    with kept(**dict(zip(("columns", "rows", "layers", "together"), parameters, strict=True))):
        out = stencil(LAYERS, border)(stencil(LAYERS, border)(gp.Field(x)))
        assert "layers" in LINE_BUFFERS.candidates(kernel_of(out))[0]
        np.testing.assert_array_equal(out.numpy(), want)


def test_rows_and_columns_wrap_in_several_strips(device):
    """Reads of a field at the other end go through the border of the field there."""
    x = data((9, 160))
    with kept(columns=32, rows=8, together=2):
        out = stencil(SECOND, "wrap")(stencil(FIRST)(gp.Field(x)))
        np.testing.assert_array_equal(out.numpy(), expected(expected(x, FIRST), SECOND, "wrap"))


@pytest.mark.parametrize(
    "parameters", [(1024, 32, 4), (16, 1, 1), (48, 4, 3), (64, 100, 1), (16, 7, 7)], ids=lambda p: "-".join(map(str, p))
)
def test_strips_and_blocks(device, parameters):
    columns, rows, together = parameters
    x = data((33, 150))
    want = expected(expected(x, SECOND, "reflect"), FIRST, "symmetric")
    with kept(columns=columns, rows=rows, together=together):
        out = stencil(FIRST, "symmetric")(stencil(SECOND, "reflect")(gp.Field(x)))
        np.testing.assert_array_equal(out.numpy(), want)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "int32", "float64"])
def test_dtypes(device, dtype):
    """Three stages, of which the last reads the first one too, and numbers stand outside."""
    if dtype == "float64" and devices.current().target.widening == "functions":
        pytest.skip("its vectors of doubles are wrong")
    x = data((14, 70), dtype)
    steps = ((0, -1), (1, 1))

    @gp.operator
    def last(f, g):
        return _readTensor(f, _row, _column - 2, border=1) + _readTensor(g, _row - 1, _column) + _readTensor(g)

    first = expected(x, ((-1, 0),))
    second = expected(first, steps, "zero", 2)
    want = away(first, 0, -2, border="zero", fill=1) + away(second, -1, 0) + second
    with kept(columns=32, rows=6, together=2):
        a = stencil(((-1, 0),))(gp.Field(x))
        np.testing.assert_array_equal(last(a, stencil(steps, 2)(a)).numpy(), want)


def test_counters_positions_and_several_outputs(device):
    x = data((21, 80))

    @gp.operator
    def placed(f):
        return _readTensor(f) + _row - _column

    @gp.operator
    def summed(f):
        total = _var(0.0)
        with _for(-3, 4) as k:
            total += _readTensor(f, _row + k, _column - k, border="reflect")
        return total, _readTensor(f, _row, _column + 1)

    p = x + np.arange(21, dtype=np.float32)[:, None] - np.arange(80, dtype=np.float32)
    total = sum(away(p, k, -k, border="reflect") for k in range(-3, 4))
    with kept(columns=32, rows=8, together=4):
        first, second = summed(placed(gp.Field(x)) + 0)
        np.testing.assert_array_equal(first.numpy(), total)
        np.testing.assert_array_equal(second.numpy(), away(p, 0, 1))


def test_columns_wrap_in_whole_rows(device):
    x = data((9, 60))
    with kept(columns=64):
        out = stencil(((0, -2), (0, 1)), "wrap")(stencil(((1, 0), (-1, 0)))(gp.Field(x)))
        want = expected(expected(x, ((1, 0), (-1, 0))), ((0, -2), (0, 1)), "wrap")
        np.testing.assert_array_equal(out.numpy(), want)


LONG = tuple((0, k) for k in range(-4, 5))


def test_rows_that_share_nothing_are_computed_one_by_one(device):
    """Sums along rows, whose products compilers keep otherwise until the sums before have been computed; at edges too."""
    x = data((13, 70))
    with kept(columns=32, rows=8, together=4):
        out = stencil(LONG, "reflect")(stencil(FIRST)(gp.Field(x)))
        kernel = kernel_of(out)
        parameters = LINE_BUFFERS.legalize(kernel, {"columns": 32, "rows": 8, "together": 4})
        loops = (
            s for s in walk(LINE_BUFFERS.apply(kernel, parameters).body) if isinstance(s, For) and s.var.hint == "k"
        )
        assert sum(any(isinstance(s, For) and s.lanes for s in walk(loop.body)) for loop in loops) == 1 + 4
        np.testing.assert_array_equal(out.numpy(), expected(expected(x, FIRST), LONG, "reflect"))


def test_text():
    """Vectors are loaded from the kept rows, and all that a thread keeps is less than what caches hold."""
    kernel = kernel_of(stencil(SECOND)(stencil(FIRST)(gp.Field(data((64, 4096))))))
    text = generate(kernel, TARGET).text
    assert "float weighted_rows[" in text and "load_private_float8(&weighted_rows[" in text
    assert "store_private_float8(" in text and "vload" not in text
    (parameters, *_) = LINE_BUFFERS.candidates(kernel)
    assert 5 * (parameters["columns"] + 4) * 4 <= MOST_BYTES


def test_refusals():
    staged = kernel_of(stencil(SECOND)(stencil(FIRST)(gp.Field(data((64, 64))))))
    assert LINE_BUFFERS.refuse(staged) == ""
    assert LINE_BUFFERS.refuse(kernel_of(stencil(FIRST)(gp.Field(data((64, 64)))))) == "it has no stages"
    scalar = replace(staged, target=replace(TARGET, widening="scalar"))
    assert LINE_BUFFERS.refuse(scalar) == "the device has no vectors"
    large = replace(staged, target=replace(TARGET, least_threads=1 << 20))
    assert LINE_BUFFERS.refuse(large) == "its grid is small, and vectors take longer to compile"


def test_what_is_not_kept_goes_through_memory(device):
    """Rows shorter than windows, and intermediates of which only some wrap around."""
    x, wide = data((20, 25)), ((0, 30), (0, -30))
    with kept():
        far = stencil(wide)(stencil(FIRST)(gp.Field(x))).numpy()
        mixed = stencil(SECOND, "wrap")(stencil(FIRST)(stencil(FIRST)(gp.Field(x)))).numpy()
    np.testing.assert_array_equal(far, expected(expected(x, FIRST), wide))
    np.testing.assert_array_equal(mixed, expected(expected(expected(x, FIRST), FIRST), SECOND, "wrap"))


def test_a_kernel_is_taken_apart_seldom_however_much_may_be_tried(monkeypatch):
    field = gp.ScalarField(data((1021, 517)))
    kernel = kernel_of(stencil(((-1, 0), (1, 0)))(stencil(((0, -1), (0, 1)))(field)))
    buffers: list[Kernel] = []
    monkeypatch.setattr(circular_buffers, "stages", lambda k: buffers.append(k) or stages(k))
    assert len(LINE_BUFFERS.candidates(replace(kernel, name="another"))) > 4
    assert len(buffers) == 1


def test_stages_compute_no_more_rows_at_a_time_than_compile_quickly() -> None:
    kernel = kernel_of(blurred(blurred(gp.ScalarField(np.zeros((256, 300), np.float32)))))
    most, more = (LINE_BUFFERS.legalize(kernel, {"columns": 128, "rows": 64, "together": n}) for n in (16, 64))
    assert most == more


@gp.operator
def blurred(u):
    """A mean of neighbours along each axis."""
    axes = len(u.field_shape)
    steps = [tuple(k * (a == b) for a in range(axes)) for b in range(axes) for k in (-1, 1)]
    return sum(_readTensor(u, *own(u, *step), border="wrap") for step in steps) / len(steps)


@pytest.mark.parametrize("shape", [(96, 97, 98), (48, 65, 66), (655, 717), (1000, 1001)])
def test_blocks_compute_few_points_that_others_compute_too(shape: tuple[int, ...]) -> None:
    """Rows and layers around the block of a stage that one other reads, and blocks that overlap: not half as many again."""
    kernel = kernel_of(blurred(blurred(gp.ScalarField(np.zeros(shape, np.float32)))))
    best = LINE_BUFFERS.candidates(kernel)[0]
    blocks = {axis: -(-n // best[axis]) for axis, n in zip(("rows", "layers"), shape[-2::-1], strict=False)}
    computed = [best[axis] * count for axis, count in blocks.items()]
    around = [(best[axis] + 2) * count for axis, count in blocks.items()]
    assert np.prod(list(blocks.values())) >= 16
    assert np.prod(computed) + np.prod(around) < 1.5 * 2 * np.prod(shape[:-1])


def test_small_grids_are_not_shared_out_among_cores_unless_points_take_long() -> None:
    """Blocks of few rows would compute most of their stages for one another."""

    @gp.operator
    def slow(u):
        total = _var(_readTensor(u, _row - 1, _column, border="wrap"))
        with _for(1000):
            total @= total * 0.5 + _readTensor(u)
        return total

    field = gp.ScalarField(np.zeros((64, 100), np.float32))
    quick, late = (LINE_BUFFERS.candidates(kernel_of(body(blurred(field))))[0]["rows"] for body in (blurred, slow))
    assert (quick, late) == (64, 4)


@pytest.mark.parametrize("shape", [(96, 97, 98), (48, 65, 700), (255, 317), (1000, 1001), (40, 1700), (3001,)])
def test_the_parameters_are_what_threads_have(shape: tuple[int, ...]) -> None:
    """Not what was asked for before strips and blocks were made as large as one another."""
    kernel = kernel_of(blurred(blurred(gp.ScalarField(np.zeros(shape, np.float32)))))
    for parameters in LINE_BUFFERS.candidates(kernel)[:3]:
        title = next(stmt.text for stmt in LINE_BUFFERS.apply(kernel, parameters).body if isinstance(stmt, Comment))
        message = {axis: int(count) for count, axis in re.findall(r"(\d+) (column|row|layer)s", title)}
        assert message == {axis: parameters[f"{axis}s"] for axis in message}
        assert len(message) == len(shape)


@pytest.mark.parametrize(
    ("shape", "turns"), [((300, 400), 1), ((1400, 1801), 1), ((1500, 1801), 2), ((140, 140, 141), 2)]
)
def test_turns_are_launched_in_pairs_where_fields_are_larger_than_caches(shape: tuple[int, ...], turns: int) -> None:
    limits = Limits(target=TARGET)
    result = gp.iterate(blurred, gp.ScalarField(np.zeros(shape, np.float32)), times=9)
    (step,) = plan(program([result.node]), limits=limits).launches
    assert isinstance(step.kernel, Iteration)
    assert step.kernel.together(limits)[1] == turns
    pinned = replace(limits, pin=Pin("line buffers", ()))
    assert step.kernel.together(pinned)[1] == 2


def test_turns_of_bytes_are_launched_one_by_one() -> None:
    @gp.operator
    def spread(u):
        return _convert_uchar(_readTensor(u, _row - 1, _column) | _readTensor(u, _row + 1, _column))

    limits = Limits(target=TARGET)
    result = gp.iterate(spread, gp.ScalarField(np.zeros((2000, 2001), np.uint8)), times=9)
    (step,) = plan(program([result.node]), limits=limits).launches
    assert isinstance(step.kernel, Iteration)
    assert step.kernel.together(limits)[1] == 1
    assert step.kernel.together(replace(limits, pin=Pin("line buffers", ())))[1] == 2
