"""Four bytes in a word, computed at once: NumPy's values of every expression, border and width, and what stays bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.kernel_statistics import before
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import layout_of
from gpuop.passes.schedules.methods import schedule
from gpuop.runtime import devices
from gpuop.runtime.reference.device import Reference
from tests.borders import away
from tests.codegen.nvrtc import compile_cuda
from tests.conftest import Widened
from tests.nightly import left_to_nightly

from .test_narrow import GPUOP, NUMPY, value

rng = np.random.default_rng(31)
NUMBERS = (0, 1, 2, 3, 5, 7, 29, 77, 100, 127, 128, 200, 254, 255, 256, 300, 4096)
OPS = ["+", "+", "+", "number", "number", "&", "|", "^", "min", "max", "shift", "shift", "where", "uint8", "less"]


@contextmanager
def packed() -> Iterator[None]:
    """The device in use runs kernels of GPUs, however small the grid, with intermediates."""
    backend = devices.current()
    if backend.target.widening != ("unrolled" if is_interpreted() else "vector"):
        pytest.skip("one interpreter and one driver will do")
    target = replace(backend.target, widening="unrolled", device="gpu", least_threads=1)
    limits = replace(backend.limits, target=target)
    with mock.patch.object(backend, "target", target), mock.patch.object(backend, "limits", limits):
        yield


def is_interpreted() -> bool:
    return isinstance(devices.current(), Reference)


def kernel_of(*results: gp.Field) -> Kernel:
    """The kernel as schedules see it."""
    (step,) = plan(program([result.node for result in results]), limits=Limits(target=Widened.target)).launches
    return before(replace(step.kernel, target=Widened.target), schedule)


def is_packed(kernel: Kernel) -> bool:
    return all(f.type.dtype == "uint32" for f in (*kernel.inputs, *kernel.written))


def tree(depth: int) -> tuple:
    """A random expression of numbers that are not negative."""
    if depth == 0 or rng.random() < 0.1:
        return ("at", int(rng.integers(-1, 2)), int(rng.integers(-6, 7)))
    op = str(rng.choice(OPS))
    if op == "number":
        return (
            str(rng.choice(["+", "*", "&", "|", "^", "min", "max"])),
            tree(depth - 1),
            ("number", int(rng.choice(NUMBERS))),
        )
    if op == "shift":
        return ("shift", tree(depth - 1), int(rng.integers(0, 9)))
    if op == "where":
        compared = tree(depth - 1) if rng.random() < 0.5 else ("number", int(rng.choice(NUMBERS)))
        chosen = [tree(depth - 1) if rng.random() < 0.5 else ("number", int(rng.choice(NUMBERS))) for _ in range(2)]
        return ("where", str(rng.choice(["<", "==", ">="])), tree(depth - 1), compared, *chosen)
    if op == "less":
        return ("-", ("number", 4096), ("&", tree(depth - 1), ("number", 1023)))
    return (op, tree(depth - 1)) if op == "uint8" else (op, tree(depth - 1), tree(depth - 1))


@pytest.mark.parametrize(("columns", "border"), [(16, "clamp"), (20, "wrap"), (24, 9), (68, "clamp"), (32, "zero")])
def test_expressions(device, columns, border):
    x = rng.integers(0, 256, (5, columns)).astype(np.uint8)
    x[rng.random(x.shape) < 0.3] = 0
    filled = {"border": "zero", "fill": border} if border == 9 else {"border": border}

    def there(row, column):
        return away(x.astype(np.int32), row, column, **filled)

    if not is_interpreted() and columns != 16:
        left_to_nightly("one width will do for drivers, which compile slowly")
    with packed():
        count = 0
        for _ in range(8 if is_interpreted() else 2):
            node = tree(3)

            @gp.operator
            def computed(f, node=node):
                def at(row, column):
                    return _convert_int(_readTensor(f, _row + row, _column + column, border=border))

                return _convert_uchar(value(node, at, GPUOP) & 255)

            want = (value(node, there, NUMPY) & 255).astype(np.uint8)
            np.testing.assert_array_equal(computed(gp.Field(x)).numpy(), want, err_msg=str(node))
            count += is_packed(kernel_of(computed(gp.Field(x))))
        assert count or not is_interpreted(), "all stay bytes"


def stencil_of(node: tuple, border: str, most: int) -> gp.Operator:
    @gp.operator
    def stage(f):
        def at(row, column):
            return _convert_int(_readTensor(f, _row + row, _column + column, border=border))

        found = value(node, at, GPUOP) & most
        return _convert_uchar(found) if most == 255 else found

    return stage


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16"])
def test_wrapping(device, dtype):
    """Sums of narrow types wrap in these, whatever computes them."""
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (6, 32)).astype(dtype)

    @gp.operator
    def wrapped(f):
        left, right = _readTensor(f, _row, _column - 1), _readTensor(f, _row + 1, _column + 1)
        return (left + right) + left * 3, ((left + right) << 1) >> 2, (left - right) ^ right, _max(left + right, left)

    left, right = away(x, 0, -1, border="clamp"), away(x, 1, 1, border="clamp")
    three = np.array(3, dtype)
    with np.errstate(over="ignore"):
        want = (
            (left + right) + left * three, ((left + right) << 1) >> 2, (left - right) ^ right, np.maximum(left + right, left),
        )  # fmt: skip
    for result, expected in zip(wrapped(gp.Field(x)), want, strict=True):
        assert result.numpy().dtype == dtype
        np.testing.assert_array_equal(result.numpy(), expected.astype(dtype))
    if is_interpreted():
        with packed():
            for k, expected in enumerate(want):
                np.testing.assert_array_equal(wrapped(gp.Field(x))[k].numpy(), expected.astype(dtype))


PINNED = (("roll", {"columns": 3, "rows": 5}), ("tile", {"rows": 4, "columns": 12}))


@pytest.mark.parametrize(("columns", "border"), [(100, "zero"), (148, "clamp")])
def test_chains(device, columns, border):
    """The value of a stage beyond an edge is that of the border, not that of the stage there."""
    if not is_interpreted():
        left_to_nightly("interpreters will do")
    x = rng.integers(0, 256, (12, columns)).astype(np.uint8)
    with packed():
        count = 0
        for most, (method, parameters) in zip((255, 1023, 255, 4095), PINNED * 2, strict=True):
            first, second = tree(2), tree(2)
            out = stencil_of(second, border, 255)(stencil_of(first, border, most)(gp.Field(x)))

            def there(row, column):
                return away(x.astype(np.int32), row, column, border=border)

            inner = (value(first, there, NUMPY) & most).astype(np.int32)

            def behind(row, column, inner=inner):
                return away(inner, row, column, border=border)

            want = value(second, behind, NUMPY) & 255
            np.testing.assert_array_equal(out.numpy(), want, err_msg=f"{first} {second}")
            with gp.schedule(method, **parameters):  # whose numbers are those of words then
                pinned = stencil_of(second, border, 255)(stencil_of(first, border, most)(gp.Field(x)))
                np.testing.assert_array_equal(pinned.numpy(), want, err_msg=f"{first} {second}")
            steps = plan(program([out.node]), limits=Limits(target=Widened.target)).launches
            count += any(step.kernel.intermediates and is_packed(kernel_of(out)) for step in steps if len(steps) == 1)
        assert count, "no stages were packed"


@gp.operator
def life(cells):
    """With any bytes, not only 0 and 1."""

    def at(row, column):
        return _convert_int(_readTensor(cells, _row + row, _column + column, border="wrap"))

    neighbours = sum(at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)
    return _convert_uchar((neighbours == 3) | ((neighbours == 2) & (at(0, 0) == 1)))


@pytest.mark.parametrize("shape", [(6, 32), (3, 5, 20)], ids=str)
def test_life(device, shape):
    x = np.where(rng.random(shape) < 0.9, rng.random(shape) < 0.4, rng.integers(0, 256, shape)).astype(np.uint8)
    wide = x.astype(int)
    steps = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1)]
    around = sum(np.roll(wide, (-r, -c), (-2, -1)) for r, c in steps) - wide

    @gp.operator
    def layered(cells):
        def at(row, column):
            return _convert_int(_readTensor(cells, _layer, _row + row, _column + column, border="wrap"))

        neighbours = sum(at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)
        return _convert_uchar((neighbours == 3) | ((neighbours == 2) & (at(0, 0) == 1)))

    with packed():
        out = (life if len(shape) == 2 else layered)(gp.Field(x))
        assert is_packed(kernel_of(out))
        np.testing.assert_array_equal(out.numpy(), (around == 3) | ((around == 2) & (wide == 1)))


@gp.operator
def grey(picture):
    red, green, blue = _convert_int3(_readTensor(picture))
    return _convert_uchar((77 * red + 150 * green + 29 * blue) >> 8)


def along(border: str) -> tuple[gp.Operator, gp.Operator]:
    @gp.operator
    def rows(image):
        return sum(
            w * _convert_int(_readTensor(image, _row, _column + k - 2, border=border))
            for k, w in enumerate((1, 4, 6, 4, 1))
        )

    @gp.operator
    def both(image):
        there = [
            _readTensor(image, _row + r, _column + c, border=border)
            for r, c in ((-2, 1), (-1, -1), (0, 0), (1, -2), (2, 5))
        ]
        blurred = (sum(w * t for w, t in zip((1, 4, 6, 4, 1), there, strict=True)) + 128) >> 8
        return _where(blurred > 128, _convert_uchar(255), _convert_uchar(0)), _convert_uchar(blurred)

    return rows, both


@pytest.mark.parametrize("border", ["clamp", "zero"])
@pytest.mark.parametrize("shape", [(7, 24), (40, 148)], ids=str)
def test_stages(device, shape, border):
    """The values of stages are bytes, or pairs of 16 bits."""
    x = rng.integers(0, 256, (*shape, 3)).astype(np.uint8)
    rows, both = along(border)
    if not is_interpreted() and (shape[0] > 7 or border != "clamp"):
        left_to_nightly("one shape will do for drivers, which compile slowly")
    luma = (x.astype(int) @ [77, 150, 29]) >> 8
    sums = sum(w * away(luma, 0, k - 2, border=border) for k, w in enumerate((1, 4, 6, 4, 1)))
    steps = ((-2, 1), (-1, -1), (0, 0), (1, -2), (2, 5))
    blurred = (sum(w * away(sums, *s, border=border) for s, w in zip(steps, (1, 4, 6, 4, 1), strict=True)) + 128) >> 8
    with packed():
        results = both(rows(grey(gp.VectorField(x))))
        kernel = kernel_of(*results)
        assert is_packed(kernel) and [f.type.planes for f in kernel.intermediates] == [1, 2]
        for result, want in zip(results, (255 * (blurred > 128), blurred), strict=True):
            np.testing.assert_array_equal(result.numpy(), want)


@gp.operator
def edges(picture, border, count):
    """Of all elements, of two points."""

    def at(row, column, k):
        return _convert_int(_readTensorElement(picture, _row + row, _column + column, k, border=border))

    total = sum((k + 1) * (at(-1, -1, k) + at(0, 0, k)) for k in range(count))
    return _convert_uchar((total + sum(at(1, 0, k) for k in range(count))) >> 5)


VIEWS = {  # of bytes in a row: the shape, the strides, where it begins, and whether it is read in words
    "three alternate": ((6, 20, 3), (60, 3, 1), 0, True),
    "three in longer rows": ((6, 20, 3), (72, 3, 1), 4, True),
    "two alternate": ((6, 20, 2), (40, 2, 1), 0, True),
    "four alternate": ((6, 20, 4), (80, 4, 1), 8, True),
    "five alternate": ((6, 16, 5), (80, 5, 1), 12, True),
    "planes in longer rows": ((6, 20, 3), (24, 1, 144), 4, True),
    "three begin anywhere": ((6, 20, 3), (60, 3, 1), 2, False),
    "rows begin anywhere": ((6, 20, 3), (61, 3, 1), 0, False),
    "every second point": ((6, 20, 1), (40, 2, 1), 0, False),
}


@pytest.mark.parametrize("view", VIEWS)
def test_arrays_of_users(device, view):
    shape, strides, behind, whole = VIEWS[view]
    if not is_interpreted() and view != "three alternate":
        left_to_nightly("one view will do for drivers, which compile slowly")
    memory = rng.integers(0, 256, 960).astype(np.uint8)
    array = np.lib.stride_tricks.as_strided(memory, shape, strides)
    border = "zero" if "three" in view else "clamp"
    with packed(), mock.patch("gpuop.passes.pack.GAIN", 2):
        backend = devices.current()
        what = program([edges(gp.Field(np.ascontiguousarray(array), 1), border, shape[-1]).node])
        ((leaf, node),) = what.leaves.items()
        layout = replace(layout_of(node.type, strides), behind=behind)
        buffer = backend.upload(gp.FieldType(memory.size, dtype="uint8"), memory.reshape(1, -1))
        prepared = evaluate.prepare(what, backend, None, layouts={leaf: layout})
        (output,) = what.results
        actual = backend.download(what.types[output], prepared.run({leaf: buffer})[output]).reshape(shape[:2])
        (launch,) = prepared.plan.launches
        assert is_packed(before(replace(launch.kernel, target=Widened.target), schedule)) == whole
    plain, rising = array.sum(-1, dtype=np.int64), array @ np.arange(1, shape[2] + 1)
    total = rising + away(rising, -1, -1, border=border) + away(plain, 1, 0, border=border)
    np.testing.assert_array_equal(actual, (total >> 5).astype(np.uint8))


def shifted(compute) -> gp.Operator:
    @gp.operator
    def stencil(f):
        return compute(_convert_int(_readTensor(f, _row, _column + 1)), _convert_int(_readTensor(f, _row + 1, _column)))

    return stencil


KEPT = {
    "may be negative": lambda x, y: _convert_uchar(x - y),
    "more than 16 bits": lambda x, y: _convert_uchar((x * 255 + y * 255) >> 8),
    "a product": lambda x, y: _convert_uchar((x * y) >> 8),
    "no bytes": lambda x, y: x + y,
    "a float": lambda x, y: _convert_uchar(x * 0.5 + y),
    "dearer than one by one": lambda x, y: _convert_uchar(_where(x < y, _where(x == 3, y, x), _where(y == 7, x, y))),
    "a position": lambda x, y: _convert_uchar((x + y + _column) & 255),
}


@pytest.mark.parametrize("compute", KEPT.values(), ids=KEPT)
def test_what_stays_bytes(compute):
    x = gp.Field(np.zeros((640, 640), np.uint8))
    assert not is_packed(kernel_of(shifted(compute)(x)))


@pytest.mark.parametrize("border", ["reflect", "symmetric"])
def test_mirrored_neighbours_stay_bytes(border):
    @gp.operator
    def mirrored(f):
        return _readTensor(f, _row, _column + 1, border=border)

    assert not is_packed(kernel_of(mirrored(gp.Field(np.zeros((640, 640), np.uint8)))))


@pytest.mark.parametrize("columns", [8, 641, 642])
def test_rows_that_are_no_words(columns):
    double = shifted(lambda x, y: _convert_uchar(x + y))
    assert is_packed(kernel_of(double(gp.Field(np.zeros((640, 640), np.uint8)))))
    assert not is_packed(kernel_of(double(gp.Field(np.zeros((640, columns), np.uint8)))))


def test_text_of_extremes():
    dilated = shifted(lambda x, y: _convert_uchar(_max(x, y)))(gp.Field(np.zeros((8192, 8192), np.uint8)))
    (step,) = plan(program([dilated.node])).launches
    text = generate(step.kernel, target_named("cuda")).text
    assert "max.u16x2" in text and "halves_max(" in text
    compile_cuda(text, "sm_90")
    compile_cuda(text, "sm_80")


def test_text():
    target = target_named("cuda")
    (step,) = plan(program([life(gp.Field(np.zeros((8192, 8192), np.uint8))).node])).launches
    text = generate(step.kernel, target).text
    assert "8192x8192 points, " in text and "// cells: 8192x8192 uint8, in 8192x2048 words\n" in text
    assert "rows of 8192x2048 words, " in text and "4 columns in a word" in text
    assert "0x01010101u" in text and "16843009" not in text
    assert "unsigned char" not in text
    compile_cuda(text, "sm_90")
