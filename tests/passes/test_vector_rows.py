"""Stencils in vectors, several rows a thread: NumPy's values at every size, border and dtype, and what has no vectors."""

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
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.cpu.vector_rows import VECTOR_ROWS, axis_of
from gpuop.runtime import devices
from tests.borders import CHECKED, away
from tests.conftest import Vectorized

rng = np.random.default_rng(23)
DTYPES = ("uint8", "int8", "uint16", "float16", "float32", "int32", "float64", "int64")
# a vector and what its neighbours need, fewer rows than a thread has, rows that vectors do not divide, a line, layers
SHAPES = [(1, 19), (3, 20), (6, 33), (40,), (2, 5, 24)]
TARGET = replace(Vectorized.target, backend="opencl")


@contextmanager
def vectors() -> Iterator[None]:
    """The device in use puts neighbours in vectors, however small the grid."""
    backend = devices.current()
    if backend.target.vector_length == 1:
        pytest.skip("it has no vectors")
    with mock.patch.object(backend, "target", replace(backend.target, least_threads=1)):
        yield


def kernel_of(*results: gp.Field) -> Kernel:
    (step,) = plan(program([result.node for result in results])).launches
    return replace(step.kernel, target=TARGET)


def data(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Small whole numbers, whose sums are exact."""
    return rng.integers(0, 9, shape).astype(dtype)


def own(f: gp.Field, *steps: int) -> tuple[object, ...]:
    axes = (_layer, _row, _column)[-len(f.field_shape) :]
    return tuple(a + k for a, k in zip(axes, (*[0] * (len(axes) - len(steps)), *steps), strict=True))


@pytest.mark.parametrize(
    ("shape", "border"),
    [*(((9, 70), b) for b in CHECKED), *((s, b) for s in SHAPES for b in ("reflect", "wrap", "zero"))],
    ids=str,
)
def test_sizes_and_borders(device, shape, border):
    x = data(shape)
    steps = ((-1, -1), (0, 3), (1, -2), (2, 0)) if len(shape) > 1 else ((-1,), (3,), (-2,))

    @gp.operator
    def stencil(f):
        return sum(_readTensor(f, *own(f, *s), border=border) * k for k, s in enumerate(steps, 1)) + _column

    want = sum(k * away(x, *s, border=border) for k, s in enumerate(steps, 1)) + np.arange(shape[-1])
    with vectors():
        assert not VECTOR_ROWS.refuse(kernel_of(stencil(gp.Field(x))))
        np.testing.assert_array_equal(stencil(gp.Field(x)).numpy(), want)


@pytest.mark.parametrize("border", CHECKED)
@pytest.mark.parametrize("shape", [(11, 3, 20), (1, 2, 33), (7, 1, 40)], ids=str)
def test_windows_along_layers_alone(device, shape, border):
    """A thread has rows of several layers, which share what they load."""
    x = data(shape)

    @gp.operator
    def stencil(f):
        taps = (_readTensor(f, _layer + k, _row, _column, border=border) * (k + 4) for k in range(-3, 3))
        return sum(taps) + _layer * 100 + _row

    layers, rows, _ = np.indices(shape)
    want = sum(away(x, k, 0, 0, border=border) * (k + 4) for k in range(-3, 3)) + layers * 100 + rows
    with vectors():
        assert axis_of(kernel_of(stencil(gp.Field(x)))) == "layer"
        np.testing.assert_array_equal(stencil(gp.Field(x)).numpy(), want)


def test_windows_of_many_layers_are_a_kernel_of_their_own():
    """The reads of rows of many layers are far in memory; those of a few are near enough to be read again."""

    @gp.operator
    def along(f, reach):
        return sum(_readTensor(f, _layer + k, _row, _column) for k in range(-reach, reach + 1))

    @gp.operator
    def down(f):
        return sum(_readTensor(f, _layer, _row + k, _column) for k in (-1, 0, 1))

    f = gp.Field(np.ones((64, 96, 128), np.float32))
    limits = Limits(target=TARGET)
    counts = [len(plan(program([down(along(f, reach)).node]), limits=limits).launches) for reach in (4, 5)]
    assert counts == [1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(device, dtype):
    """The difference between lanes may be a condition, a narrow integer, or a number that a row has in common with its lanes."""
    if dtype == "float64" and not devices.current().target.has_fp64:
        pytest.skip("no doubles")
    x = data((7, 50), dtype)

    @gp.operator
    def larger(f):
        best = _var(_readTensor(f))
        with _for(-1, 2) as k:
            there = _readTensor(f, _row + k, _column + k, border=3)
            with _if(there > best):
                best @= there
        return best + _readTensor(f, _row, 0)

    around = [away(x, k, k, border="zero", fill=3) for k in (-1, 0, 1)]
    with vectors():
        actual = larger(gp.Field(x)).numpy()
    np.testing.assert_array_equal(actual, np.maximum.reduce(around) + x[:, :1])


def test_several_fields_and_tensors(device):
    """Fields of other widths, tensors, parameters and functions, and two outputs."""
    image, wide, row = data((6, 40, 3)), data((6, 44)), data((40,))

    @gp.operator
    def mixed(f, g, r, gain):
        v = _readTensor(f, _row - 1, _column + 1)
        w = _readTensor(g, _row, _column + 6) + _readTensor(r, _column - 1)
        return v * gain, _sqrt(w) + v.y

    def results():
        return mixed(gp.Field(image, 1), gp.Field(wide), gp.Field(row), 2.5)

    v = np.stack([away(image[..., c], -1, 1) for c in range(3)], -1)
    w = wide[:, np.minimum(np.arange(40) + 6, 43)] + away(row, -1)
    with vectors():
        scaled, rooted = (r.numpy() for r in results())
    np.testing.assert_array_equal(scaled, v * np.float32(2.5))
    np.testing.assert_array_equal(rooted, np.sqrt(w) + v[..., 1])


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 100])
def test_rows_of_a_thread(device, rows):
    x = data((11, 37))

    @gp.operator
    def down(f):
        return _readTensor(f, _row - 1, _column) - _readTensor(f, _row + 1, _column - 1)

    with vectors(), gp.schedule("vector rows", rows=rows):
        np.testing.assert_array_equal(down(gp.Field(x)).numpy(), away(x, -1, 0) - away(x, 1, -1))


@gp.operator
def across(f):
    return _readTensor(f, _row - 1, _column - 1) + _readTensor(f, _row + 1, _column + 1)


@gp.operator
def down(f):
    return sum(_readTensor(f, _row + k, _column - 1, border="wrap") for k in (-1, 0, 1))


def test_text():
    """Loads are whole vectors, rows share them, and only vectors at the ends of rows have borders of columns."""
    kernel = kernel_of(down(gp.Field(data((64, 64)))))
    text = generate(kernel, TARGET).text
    inside, edge = text.split("\n    if (")[1].split("} else {")
    assert "f_columns" not in inside and inside.count("load_float8(&f[") == 4 + 2
    assert (
        edge.count("load_float8(&f[") == edge.count("float f_line") == 4 + 2
        and edge.count("load_private_float8(&f_line") == 3 * 4
    )
    assert schedules.schedule(kernel).domain.shape == (16, 8)


def test_far_columns_are_brought_alone(device):
    """Reads far beside the columns of a vector: lines are as long as vectors, not as the distance between them."""
    x = data((5, 700))
    far = gp.operator(lambda f, away: _readTensor(f, _row, _column - away, border="wrap"))
    for away_by in (300, -300, 65, -65):
        field = far(gp.ScalarField(x), away_by)
        text = generate(VECTOR_ROWS.apply(kernel_of(field), {"rows": 1}), TARGET).text
        assert [int(n) for n in re.findall(r"float f_line\[(\d+)\]", text)] == [8]
        with vectors(), gp.schedule("vector rows", rows=1):
            assert np.array_equal(field.numpy(), np.roll(x, away_by, axis=1))


@pytest.mark.parametrize("columns", [(64, 80), (61, 7, 35), (5, 300)], ids=str)
def test_rows_in_parts(device, columns):
    """Fields side by side, alone and with what others compute; in each part only one of them is read."""
    parts = [data((6, n)) for n in columns]
    fields = [gp.ScalarField(part) for part in parts]
    with vectors():
        joined = np.concatenate(fields, 1)
        assert not VECTOR_ROWS.refuse(kernel_of(joined))
        np.testing.assert_array_equal(joined.numpy(), np.concatenate(parts, 1))
        fused = np.concatenate([fields[0] * 2, np.roll(fields[-1], 3, 1)], 1)[:, 1:] - 1
        np.testing.assert_array_equal(
            fused.numpy(), np.concatenate([parts[0] * 2, np.roll(parts[-1], 3, 1)], 1)[:, 1:] - 1
        )
        framed = np.pad(fields[-1], ((1, 0), (3, 9)), constant_values=((1, 2), (3, 4)))
        np.testing.assert_array_equal(
            framed.numpy(), np.pad(parts[-1], ((1, 0), (3, 9)), constant_values=((1, 2), (3, 4)))
        )


def test_rows_that_repeat(device):
    """Columns that are divided by what is not much less than a row; beside another field, too, where vectors meet both."""
    x, y = data((3, 50)), data((5, 21), "uint8")
    with vectors():
        repeated = np.tile(gp.ScalarField(x), (2, 3))
        assert not VECTOR_ROWS.refuse(kernel_of(repeated))
        np.testing.assert_array_equal(repeated.numpy(), np.tile(x, (2, 3)))
        beside = np.concatenate([gp.ScalarField(y), np.tile(gp.ScalarField(y), (1, 2)) * 2], 1)
        np.testing.assert_array_equal(beside.numpy(), np.concatenate([y, np.tile(y, (1, 2)) * 2], 1))


def test_text_of_rows_in_parts():
    """Vectors that lie in one part load it at once; where they meet, each has a line of its own, as long as a vector."""
    joined = np.concatenate([gp.ScalarField(data((4, 1600))) for _ in range(2)], 1)
    text = generate(VECTOR_ROWS.apply(kernel_of(joined), {"rows": 1}), TARGET).text
    assert "if (t <= 1592)" in text and "else if (t >= 1600)" in text
    assert sorted(int(n) for n in re.findall(r"_line\w*\[(\d+)\] = \{", text)) == [8, 8]


@pytest.mark.parametrize("border", ["clamp", "reflect", "zero"])
def test_windows_in_parts_have_borders_at_ends_alone(device, border):
    """Vectors inside one part load their neighbours at once, as where a row has one part."""

    @gp.operator
    def parts(f):
        total = _var(
            _readTensor(f, _row, _column - 2, border=border) + _readTensor(f, _row, _column + 1, border=border)
        )
        with _if(_column < 40):
            total @= total * 2
        return total

    x = data((5, 300))
    result = parts(gp.ScalarField(x))
    text = generate(VECTOR_ROWS.apply(kernel_of(result), {"rows": 1}), TARGET).text
    inside = text[: text.index("// columns of several parts")].partition("columns and 1 rows")[2]
    assert inside.count("load_float8(") == 4 and "select(" not in inside and "_within_" not in text
    near = np.pad(x, ((0, 0), (2, 1)), {"clamp": "edge", "reflect": "reflect", "zero": "constant"}[border])
    total = near[:, :-3] + near[:, 3:]
    with vectors():
        np.testing.assert_array_equal(result.numpy(), np.where(np.arange(300) < 40, total * 2, total))


def test_what_all_lanes_have_in_common_is_chosen_once(device):
    """Rows outside are no question of lanes, whose masks take tens of times as long for bytes."""
    x = data((6, 300), "uint8")
    framed = np.pad(gp.ScalarField(x), 2, constant_values=7)
    inside = generate(VECTOR_ROWS.apply(kernel_of(framed), {"rows": 1}), TARGET).text.partition("// pad\n")[2]
    assert "? load_uchar" in inside.partition(";")[0] and "select(" not in inside.partition(";")[0]
    with vectors():
        np.testing.assert_array_equal(framed.numpy(), np.pad(x, 2, constant_values=7))


def test_rows_that_share_little_are_apart():
    def far(f):
        return _readTensor(f, _row - 1, _column) + _readTensor(f, _row + 1, _column) + beside(f)

    def beside(f):
        return sum(_readTensor(f, _row, _column + k) for k in range(-2, 3))

    field = gp.Field(data((64, 64)))
    assert VECTOR_ROWS.candidates(kernel_of(down(field)))[0]["rows"] == 4
    assert VECTOR_ROWS.candidates(kernel_of(gp.operator(far)(field)))[0]["rows"] == 1


def test_columns_at_computed_rows(device):
    """Lines whose rows a loop counts are not known before it: there, points at edges are computed one by one."""
    x = data((9, 53))

    @gp.operator
    def diagonal(f):
        total = _var(0.0)
        with _for(-2, 3) as k:
            total += _readTensor(f, _row + k, _column - k, border="reflect") * _convert_float(k + 5)
        return total

    want = sum((k + 5) * away(x, k, -k, border="reflect") for k in range(-2, 3))
    with vectors():
        assert not VECTOR_ROWS.refuse(kernel_of(diagonal(gp.Field(x))))
        np.testing.assert_array_equal(diagonal(gp.Field(x)).numpy(), want)


@gp.operator
def scattered(f):
    return _readTensor(f, _row, _columns - _column)


@gp.operator
def looked_up(f):
    return _readTensor(f, _row, _convert_int(_readTensor(f, _row, _column + 1)))


@gp.operator
def counted(f):
    n = _var(0.0)
    with _while(n < _readTensor(f, _row, _column + 1)):
        n @= n + 1
    return n


@gp.operator
def pointwise(f):
    return _readTensor(f) * 2


PLACED = "it reads at places that are not constant offsets from the own point"


@pytest.mark.parametrize(
    ("operator", "shape", "reason"),
    [
        (scattered, (8, 64), PLACED),
        (looked_up, (8, 64), PLACED),
        (counted, (8, 64), "the iterations of its loops differ between points"),
        (pointwise, (8, 64), "it reads no points but its own"),
        (across, (8, 7), "its rows are too short for vectors"),
    ],
)
def test_refusals(operator, shape, reason):
    assert VECTOR_ROWS.refuse(kernel_of(operator(gp.Field(data(shape))))) == reason


def test_a_thread_has_no_more_rows_than_compile_quickly():
    kernel = kernel_of(across(gp.Field(data((300, 64)))))
    assert VECTOR_ROWS.legalize(kernel, {"rows": 256}) == {"rows": 16}
    assert VECTOR_ROWS.apply(kernel, {"rows": 16}).domain.extent("row") == 19


def test_small_grids_and_other_devices_have_none():
    kernel = kernel_of(across(gp.Field(data((64, 64)))))
    assert VECTOR_ROWS.refuse(kernel) == ""
    small = replace(kernel, target=replace(TARGET, least_threads=65537))
    assert VECTOR_ROWS.refuse(small) == "its grid is small, and vectors take longer to compile"
    scalar = replace(kernel, target=replace(TARGET, widening="scalar"))
    assert VECTOR_ROWS.refuse(scalar) == "the device has no vectors"


def test_doubles_where_their_vectors_are_wrong():
    kernel = kernel_of(across(gp.Field(data((64, 64), "float64"))))
    kernel = replace(kernel, target=replace(TARGET, widening="functions"))
    assert VECTOR_ROWS.refuse(kernel) == "it computes with doubles"
