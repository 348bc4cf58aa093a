"""Checked execution: integers of 8 and 16 bits that wrap around in operators of the user's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.dsl import *

from .planted import Bugs, Program, arrays, check_right, check_wrong, checked

bugs = Bugs()
KINDS = {"int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort"}
PIXELS = gp.ScalarField(np.uint8([[7, 9, 9], [9, 9, 8]]))
SHORTS = gp.ScalarField(np.int16([3, 200, -200, 181]))


def wrapped(computed: str, exact: int, dtype: str, lanes: str = "") -> str:
    """The message about a result."""
    info = np.iinfo(dtype)
    around = (exact - int(info.min)) % 2**info.bits + int(info.min)
    return (
        f"{computed} is {exact}, which {KINDS[dtype]} ({info.min} to {info.max}) does not hold: it wraps around to {around}; "
        f"convert before you compute, as `_convert_int{lanes}(x)` does, or take the low bits by name, as "
        f"`& {info.max if info.min == 0 else -1}` does, where they are meant"
    )


@bugs.add(f"thread (row 1, column 2) of `rises`: {wrapped('8 - 9', -1, 'uint8')}")
def difference(right: bool) -> Any:
    @gp.operator(outputs=lambda f: f.type.replace(dtype="int32"))
    def rises(f):
        here, before = _readTensor(f), _readTensor(f, _row, _column - 1)
        if right:
            here, before = _convert_int(here), _convert_int(before)
        return here - before  # here

    return rises(PIXELS)


@bugs.add(f"thread (column 1) of `faded`: {wrapped('1 - 2', -1, 'uint8').replace('_convert_int(', '_convert_int3(')}")
def colours(right: bool) -> Any:
    @gp.operator(outputs=lambda f: f.type.replace(dtype="int32"))
    def faded(f):
        colour = _readTensor(f)
        return (_convert_int3(colour) if right else colour) - 2  # here

    return faded(gp.VectorField(np.uint8([[5, 6, 7], [4, 1, 3]])))


@bugs.add(f"thread (column 1) of `squares`: {wrapped('200 * 200', 40000, 'int16')}")
def square(right: bool) -> Any:
    @gp.operator
    def squares(f):
        x, result = _readTensor(f), _var(np.int16(0))
        with _if(_abs(x) < (190 if right else 300)):
            result @= x * x  # here
        return result

    return squares(SHORTS)


@bugs.add(f"thread (column 2) of `sums`: {wrapped('120 + 30', 150, 'int8')}")
def sum_in_a_loop(right: bool) -> Any:
    @gp.operator
    def sums(f):
        total = _var(_readTensor(f))
        with _for(4 if right else 5):
            total += 30  # here
        return total

    return sums(gp.ScalarField(np.int8([-100, -50, 0, -128])))


@bugs.add(f"thread (column 0) of `chosen`: {wrapped('2 - 5', -3, 'uint8')}")
def choice(right: bool) -> Any:
    """Values that are not chosen may wrap around."""

    @gp.operator
    def chosen(a, b):
        x, y = _readTensor(a), _readTensor(b)
        return _where(x > y if right else x < y, x - y, y - x)  # here

    return chosen(gp.ScalarField(np.uint8([2, 5])), gp.ScalarField(np.uint8([5, 2])))


@bugs.add(f"thread (column 1) of `low`: {wrapped('200 + 100', 300, 'uint8')}")
def mask(right: bool) -> Any:
    """Low bits that are taken by name are right."""

    @gp.operator
    def low(f):
        total = _readTensor(f) + 100  # here
        return total & 255 if right else total

    return low(gp.ScalarField(np.uint8([155, 200])))


@bugs.add(f"thread (column 1) of `second`: {wrapped('250 + 6', 256, 'uint8', '2')}")
def component(right: bool) -> Any:
    """The other component may wrap around."""

    @gp.operator(outputs=gp.FieldType(2, (), "uint8"))
    def second(f):
        pair = _readTensor(f) + 6  # here
        return pair.x if right else pair.y

    return second(gp.VectorField(np.uint8([[1, 2], [3, 250]])))


@bugs.add(f"thread (column 0) of `wraps`: {wrapped('255 + 1', 256, 'uint8')}")
def before_another_operator(right: bool) -> Any:
    """The operator that wraps around is named, not the one that is fused behind it."""

    @gp.operator
    def wraps(f):
        return _readTensor(f) + (0 if right else 1)  # here

    @gp.operator
    def halves(f):
        return _readTensor(f) / 2

    return halves(wraps(gp.ScalarField(np.uint8([255, 1]))))


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_wrong(program: Program, message: str) -> None:
    check_wrong(program, message)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_right(program: Program, message: str) -> None:
    check_right(program)


OPERATIONS = {
    "{} + {}": lambda x, y: x + y,
    "{} - {}": lambda x, y: x - y,
    "{} * {}": lambda x, y: x * y,
    "{} << {}": lambda x, y: x << y,
    "-({})": lambda x, y: -x,
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("text", OPERATIONS)
def test_each_operation(text: str, dtype: str) -> None:
    """Values at the ends of the type, one after the other: Python's integers say which results fit."""
    info, compute = np.iinfo(dtype), OPERATIONS[text]
    ends = [int(info.min), int(info.min) + 1, 0, 1, 2, 11, int(info.max) // 2, int(info.max)]
    seconds = [0, 1, 2, 7] if "<<" in text else ends[:1] if "-(" in text else ends

    @gp.operator
    def computed(f, g):
        return compute(_readTensor(f), _readTensor(g))

    for x in ends:
        for y in seconds:
            exact = compute(x, y)
            fields = [gp.ScalarField(np.array([v], dtype)) for v in (x, y)]
            with checked():
                if info.min <= exact <= info.max:
                    assert computed(*fields).numpy() == [exact]
                    continue
                with pytest.raises(gp.SemanticError) as caught:
                    computed(*fields).numpy()
            assert (
                caught.value.message == f"thread (column 0) of `computed`: {wrapped(text.format(x, y), exact, dtype)}"
            )


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_wide_integers_are_left_alone(dtype: str) -> None:
    """Hashes are made of them."""

    @gp.operator
    def hashed(f):
        x = _readTensor(f)
        return (x * 0x45D9F3B + (x << 13)) * x - 7

    values = np.arange(1, 2**31, 2**27).astype(dtype)
    with checked():
        assert np.array_equal(
            hashed(gp.ScalarField(values)).numpy(), (values * 0x45D9F3B + (values << 13)) * values - 7
        )


def test_functions_that_wrap_around_on_purpose() -> None:
    """Steps of the library's functions, and its arithmetic of fields, which is NumPy's."""
    x = np.uint8([0, 1, 5, 128, 200, 255])
    s = x.view(np.int8)

    @gp.operator
    def functions(f, g):
        x, y = _readTensor(f), _readTensor(g)
        return (
            _rotate(x, 3),
            _add_sat(x, 100),
            _sub_sat(x, 100),
            _abs_diff(x, 100),
            _hadd(x, 201),
            _rhadd(x, 201),
            _abs(y),
        )

    wide = x.astype(int)
    expected = [
        (wide << 3 | wide >> 5) & 255, np.minimum(wide + 100, 255), np.maximum(wide - 100, 0), abs(wide - 100),
        (wide + 201) >> 1, (wide + 202) >> 1, abs(s.astype(int)),
    ]  # fmt: skip
    with checked():
        for result, want in zip(functions(gp.ScalarField(x), gp.ScalarField(s)), expected, strict=True):
            assert np.array_equal(result.numpy(), want)
        field = gp.ScalarField(x)
        assert np.array_equal((field * 3 - 7).numpy(), x * np.uint8(3) - np.uint8(7))
        assert np.array_equal((-field).numpy(), -x)


@pytest.mark.parametrize("dtype", KINDS)
def test_operators_of_the_library_that_are_fused_and_called_again(dtype: str) -> None:
    """Kernels and lines that are remembered stay the library's, and a user's operator among them the user's."""
    values = np.array([[120, 7], [100, 127]], dtype) * np.array(1 if dtype.endswith("8") else 250, dtype)
    three = values.dtype.type(3)

    @gp.operator
    def copied(f):
        return _readTensor(f)

    with checked():
        for _ in range(3):
            field = gp.ScalarField(values)
            assert np.array_equal((field + field - field * 3).numpy(), values + values - values * three)
            assert np.array_equal((copied(field * 3) - field).numpy(), values * three - values)
            top = gp.ndimage.white_tophat(field, 2).numpy()
            assert np.array_equal(top, scipy.ndimage.white_tophat(values, 2))


def test_writing_saturates() -> None:
    """So it loses no bits that nobody asked about: 300 is 255 in bytes, as the language says."""

    @gp.operator(outputs=gp.FieldType(2, (), "uint8"))
    def written(f):
        return _readTensor(f)

    with checked():
        assert arrays(written(gp.ScalarField(np.int32([300, -5]))))[0].tolist() == [255, 0]
