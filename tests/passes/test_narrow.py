"""Integers of few bits, computed in few bits: NumPy's values of every expression, and what stays as wide as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import LEAST
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.runtime import devices
from gpuop.runtime.reference.device import Reference
from tests.borders import away
from tests.conftest import Vectorized

from .test_line_buffers import kept
from .test_vector_rows import vectors

rng = np.random.default_rng(29)
DTYPES = ("uint8", "int8", "uint16", "int16")
TARGET = replace(Vectorized.target, backend="opencl")
NUMPY = {
    "min": np.minimum, "max": np.maximum, "where": np.where,
    "uint8": lambda x: np.clip(x, 0, 255), "int8": lambda x: np.clip(x, -128, 127),
    "uint16": lambda x: np.clip(x, 0, 65535), "int16": lambda x: np.clip(x, -32768, 32767),
}  # fmt: skip
GPUOP = {
    "min": _min, "max": _max, "where": _where,
    "uint8": lambda x: _convert_int(_convert_uchar(x)), "int8": lambda x: _convert_int(_convert_char(x)),
    "uint16": lambda x: _convert_int(_convert_ushort(x)), "int16": lambda x: _convert_int(_convert_short(x)),
}  # fmt: skip
OPERATORS = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "&": lambda x, y: x & y,
    "|": lambda x, y: x | y, "^": lambda x, y: x ^ y,
}  # fmt: skip


def tree(depth: int) -> tuple:
    """A random expression: leaves are neighbours and numbers."""
    if depth == 0 or rng.random() < 0.1:
        return ("at", int(rng.integers(-1, 2)), int(rng.integers(-2, 3)))
    op = rng.choice(
        ["+", "-", "*", "&", "|", "^", "min", "max", "number", "shift", "where", "convert", "invert", "rest"]
    )
    if op == "number":
        number = int(rng.choice([0, 1, 2, 7, 77, 128, 150, 255, 256, 300, 4096, 65535, -1, -3, -128, -300]))
        return (str(rng.choice(list(OPERATORS))), tree(depth - 1), ("number", number))
    if op == "shift":
        return ("shift", tree(depth - 1), int(rng.integers(0, 18)))
    if op == "where":
        return ("where", str(rng.choice(["<", "==", ">="])), *(tree(depth - 1) for _ in range(4)))
    if op == "convert":
        return (str(rng.choice(DTYPES)), tree(depth - 1))
    if op in ("invert", "rest"):
        return (str(op), tree(depth - 1))
    return (str(op), tree(depth - 1), tree(depth - 1))


def value(node: tuple, at, functions: dict):
    op, *args = node
    if op == "at":
        return at(*args)
    if op == "number":
        return args[0]
    if op == "where":
        x, y, a, b = (value(n, at, functions) for n in args[1:])
        return functions["where"](x < y if args[0] == "<" else x == y if args[0] == "==" else x >= y, a, b)
    if op == "shift":
        return value(args[0], at, functions) >> args[1]
    if op == "invert":
        return ~value(args[0], at, functions)
    if op == "rest":
        return (value(args[0], at, functions) & 1023) % 9 + (value(args[0], at, functions) & 1023) // 9
    operands = [value(n, at, functions) for n in args]
    return OPERATORS[op](*operands) if op in OPERATORS else functions[op](*operands)


@pytest.mark.parametrize(
    ("dtype", "columns"), [("uint8", 67), ("uint8", 2), ("int8", 19), ("uint16", 64), ("int16", 33)]
)
def test_expressions(device, dtype, columns):
    slow = devices.current().target.widening == "functions"
    if not isinstance(devices.current(), Reference) and (slow or dtype != "int16"):
        pytest.skip("one type will do for drivers, which compile slowly")
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max + 1, (5, columns)).astype(dtype)
    x.flat[:2] = info.min, info.max
    trees = [tree(4) for _ in range(6)]

    @gp.operator
    def several(f):
        def at(row, column):
            return _convert_int(_readTensor(f, _row + row, _column + column))

        return tuple(value(node, at, GPUOP) + 0 * at(0, 0) for node in trees)

    def there(row, column):
        return away(x.astype(np.int32), row, column, border="clamp")

    with vectors(), np.errstate(over="ignore"):
        for node, result in zip(trees, several(gp.Field(x)), strict=True):
            want = value(node, there, NUMPY).astype(np.int32)
            np.testing.assert_array_equal(result.numpy(), want, err_msg=str(node))


SHIFTS = 7, 8, 9, 15, 16, 17


def test_shifts_by_a_width_and_more(device):
    """Of an int, in which nothing is left but signs; a narrow type would shift by less."""
    for dtype in ("int8", "int16"):
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max + 1, (3, 33)).astype(dtype)

        @gp.operator
        def shifted(f):
            return tuple(_convert_int(_readTensor(f, _row, _column + 1)) >> n for n in SHIFTS)

        with vectors():
            for n, result in zip(SHIFTS, shifted(gp.Field(x)), strict=True):
                want = away(x, 0, 1, border="clamp").astype(np.int32) >> n
                np.testing.assert_array_equal(result.numpy(), want, f"{dtype} >> {n}")


@pytest.mark.parametrize("fill", [0, -1, 70000])
def test_stages(device, fill):
    """The values of stages are narrow too, unless those beyond its edges are not."""
    x = rng.integers(0, 256, (9, 70)).astype(np.uint8)

    @gp.operator
    def sums(f):
        return sum(_convert_int(_readTensor(f, _row, _column + k)) for k in (-1, 0, 1))

    @gp.operator
    def differences(f):
        return _readTensor(f, _row + 1, _column, border=fill) - _readTensor(f, _row - 1, _column, border=fill)

    rows = sum(away(x.astype(np.int32), 0, k, border="clamp") for k in (-1, 0, 1))
    want = away(rows, 1, 0, border="zero", fill=fill) - away(rows, -1, 0, border="zero", fill=fill)
    with kept(columns=32, rows=5, together=2):
        np.testing.assert_array_equal(differences(sums(gp.Field(x))).numpy(), want)


COMPARED = {
    "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_sums_that_are_compared(device, dtype):
    """Saturated sums compare as sums do, with numbers on both sides of what their types hold."""
    most = int(np.iinfo(dtype).max)
    if devices.current().target.widening == "functions":
        pytest.skip("one driver will do, which compiles fast")
    numbers = [most] if device.startswith("opencl") else [0, most - 1, most, most + 1]
    near = np.array([0, 1, 2, 3, most // 3, most // 3 + 1, most // 2, most - 1, most], dtype)
    x = near[rng.integers(0, len(near), (7, 67))]

    def flags(at, number, convert):
        """Of each comparison with a sum of its own."""
        totals = [at(k - 6) + at(k - 5) + at(k - 4) for k in range(2 * len(COMPARED))]
        results = [test(total, number) for test, total in zip(COMPARED.values(), totals[::2], strict=True)]
        results += [test(number, total) for test, total in zip(COMPARED.values(), totals[1::2], strict=True)]
        return sum(convert(flag) << k for k, flag in enumerate(results))

    @gp.operator
    def tests(f, number):
        return flags(lambda k: _convert_int(_readTensor(f, _row, _column + k)), number, _convert_int)

    with vectors():
        for number in numbers:
            want = flags(lambda k: away(x.astype(np.int64), 0, k, border="clamp"), number, np.int32)
            np.testing.assert_array_equal(tests(gp.Field(x), number).numpy(), want, err_msg=str(number))


def test_sums_of_bytes_in_bytes():
    """Sums that are only compared with bytes are bytes; a sum with another use, or of values that may be negative, is whole."""
    x = gp.Field(np.zeros((64, 640), np.uint8))

    def around(f):
        return [_convert_int(_readTensor(f, _row, _column + k)) for k in (-1, 0, 1)]

    @gp.operator
    def compared(f):
        total = sum(around(f))
        return _convert_uchar((total == 3) | (total >= 250))

    @gp.operator
    def compared_with_more(f):
        return _convert_uchar(sum(around(f)) == 255)

    @gp.operator
    def read(f):
        total = sum(around(f))
        return _convert_uchar(_where(total < 3, total >> 1, 0))

    @gp.operator
    def with_differences(f):
        a, b, c = around(f)
        return _convert_uchar(a + c + (a - b) < 3)

    assert "short" not in text_of(compared(x)) and "ushort16" in text_of(compared_with_more(x))
    assert "ushort8" in text_of(read(x)) and " short16" in text_of(with_differences(x))


def test_truth_values_in_bytes(device):
    """The least of several, and how many hold."""
    x = rng.random((7, 67)) < 0.4

    @gp.operator
    def least(f):
        held = [_convert_int(_readTensor(f, _row, _column + k, border=0)) for k in (-1, 0, 1)]
        return _convert(_min(_min(held[0], held[1]), held[2]), "int64") != 0

    @gp.operator
    def most(f):
        return sum(_convert_int(_readTensor(f, _row + k, _column)) for k in (-1, 0, 1)) >= 2

    def at(row, column, border):
        return away(x.astype(int), row, column, border=border)

    with vectors():
        np.testing.assert_array_equal(
            least(gp.Field(x)).numpy(), np.min([at(0, k, "zero") for k in (-1, 0, 1)], 0) == 1
        )
        np.testing.assert_array_equal(most(gp.Field(x)).numpy(), sum(at(k, 0, "clamp") for k in (-1, 0, 1)) >= 2)
    wide = gp.Field(np.zeros((64, 640), bool))
    assert "int8" not in text_of(least(wide)) and "long" not in text_of(least(wide)) and "uchar" in text_of(least(wide))


def text_of(*results: gp.Field) -> str:
    limits = replace(LEAST, target=TARGET)
    return "".join(
        generate(step.kernel, TARGET).text for step in plan(program([r.node for r in results]), limits=limits).launches
    )


def test_types_of_vectors():
    """Three bytes times 77 fit 16 bits; products of sums do not, and positions are no pixels."""
    x = gp.Field(np.zeros((64, 640), np.uint8))

    @gp.operator
    def weighted(f):
        return _convert_uchar(sum(85 * _convert_int(_readTensor(f, _row, _column + k)) for k in (-1, 0, 1)) >> 8)

    @gp.operator
    def squared(f):
        total = sum(_convert_int(_readTensor(f, _row, _column + k)) for k in (-1, 0, 1))
        return total * total

    @gp.operator
    def placed(f):
        return _convert_int(_readTensor(f, _row, _column + 1)) + _column

    assert (
        "ushort16" in text_of(weighted(x))
        and " int8" not in text_of(weighted(x))
        and "_sat" not in text_of(weighted(x))
    )
    assert " int8" in text_of(squared(x)) and "ushort8" in text_of(squared(x))
    assert "ushort" not in text_of(placed(x))


def test_rows_that_stages_keep():
    @gp.operator
    def sums(f):
        return sum(_convert_int(_readTensor(f, _row, _column + k)) for k in (-1, 0, 1))

    @gp.operator
    def beside(f):
        return _convert_uchar(sum(_readTensor(f, _row + k, _column) for k in (-1, 0, 1)) >> 4)

    text = text_of(beside(sums(gp.Field(np.zeros((640, 640), np.uint8)))))
    assert "ushort sums_rows" in text, text
