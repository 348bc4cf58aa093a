"""Warnings of kernels that compute what hardly anybody means, as text, at the user's line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

UNSIGNED = {
    "uint8": ("uchar", 255),
    "uint16": ("ushort", 65535),
    "uint32": ("uint", 2**32 - 1),
    "uint64": ("ulong", 2**64 - 1),
}
COMPARISONS = [
    (lambda v, most: v < 0, "never", "less than 0"),
    (lambda v, most: v < 0, "never", "less than 0"),
    (lambda v, most: v >= 0, "always", "at least 0"),
    (lambda v, most: v > most, "never", "greater than {most}"),
    (lambda v, most: v <= most, "always", "at most {most}"),
    (lambda v, most: v == -0.5, "never", "equal to -0.5"),
    (lambda v, most: v != 2.5, "always", "other than 2.5"),
]


def recorded(body, *arrays):
    """What is warned of while a body is recorded."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        gp.operator(outputs=gp.FieldType((3, 4)))(body)(*map(gp.ScalarField, arrays))
    return [(each.category, str(each.message), each.filename, each.lineno) for each in found]


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("case", range(len(COMPARISONS)))
def test_comparisons_that_a_type_decides(dtype: str, case: int) -> None:
    test, said, how = COMPARISONS[case]
    kind, most = UNSIGNED[dtype]

    def body(f):
        _writeTensor(_out0, _where(test(_readTensor(f), most), 1.0, 2.0))

    ((category, message, file, line),) = recorded(body, np.zeros((3, 4), dtype))
    assert category is gp.KernelWarning and file == __file__ and line == test.__code__.co_firstlineno
    assert message == (
        f"this comparison is {said} true, whatever the value: {kind} is from 0 to {most}, so it is {said} "
        f"{how.format(most=most)}; what is computed in {kind} wraps around at these ends, as in C: convert before you compute, "
        "as `_convert_int(x)` and `_convert_float(x)` do, or leave the comparison out"
    )


def test_what_depends_is_not_warned_of() -> None:
    def body(f, g):
        v, w = _readTensor(f), _readTensor(g)
        _writeTensor(_out0, _where((v < 1) | (v == 255) | (w < 0) | (w == -128) | (v != w) | (v > 254.5), 1.0, 2.0))

    assert recorded(body, np.zeros((3, 4), "uint8"), np.zeros((3, 4), "int8")) == []


def quotient():
    _globalThreads(3, 4)
    return _row / _rows


QUOTIENTS = {
    "written": lambda: _writeTensor(_out0, quotient()),
    "beside a number": lambda: _writeTensor(_out0, quotient() * 1.5),
    "beside a float": lambda: _writeTensor(_out0, quotient() + _convert_float(_column)),
}


@pytest.mark.parametrize("case", QUOTIENTS)
def test_a_quotient_of_integers_that_becomes_a_float(case: str) -> None:
    ((category, message, file, _),) = recorded(lambda: QUOTIENTS[case]())
    assert category is gp.KernelWarning and file == __file__
    assert message == (
        "`/` of two integers is an integer in kernels, as in C, and becomes a float only here: 1 / 2 is 0; write "
        "`_convert_float(a) / b` for the quotient of floats, or `a // b` where an integer is meant"
    )


def test_a_variable_that_a_quotient_is_assigned_to() -> None:
    def body():
        _globalThreads(3, 4)
        share = _var(0.0)
        share @= _row / _rows
        _writeTensor(_out0, share)

    assert [category for category, *_ in recorded(body)] == [gp.KernelWarning]


def test_quotients_that_are_meant_are_not_warned_of() -> None:
    def body():
        _globalThreads(3, 4)
        _writeTensor(_out0, _row // _rows + _convert_float(_row) / _rows + _convert_float(_row / 2))

    assert recorded(body) == []


def test_a_line_warns_once() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for shape in ((3, 4), (5, 6)):

            @gp.operator
            def negative(f):
                return _where(_readTensor(f) < 0, 1, 2)

            negative(gp.ScalarField(np.zeros(shape, "uint8")))
    assert len(found) == 1
