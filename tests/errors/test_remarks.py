"""Warnings of kernels that compute what hardly anybody means, as text, at the user's line."""

from __future__ import annotations

import operator
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
    """The warnings of the recording of a body."""
    with warnings.catch_warnings(record=True) as result:
        warnings.simplefilter("always")
        gp.operator(outputs=gp.FieldType((3, 4)))(body)(*map(gp.ScalarField, arrays))
    return [(each.category, str(each.message), each.filename, each.lineno) for each in result]


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("case", range(len(COMPARISONS)))
def test_comparisons_that_a_type_decides(dtype: str, case: int) -> None:
    test, text, how = COMPARISONS[case]
    kind, most = UNSIGNED[dtype]

    def body(f):
        _writeTensor(_out0, _where(test(_readTensor(f), most), 1.0, 2.0))

    ((category, message, file, line),) = recorded(body, np.zeros((3, 4), dtype))
    assert category is gp.KernelWarning and file == __file__ and line == test.__code__.co_firstlineno
    assert message == (
        f"this comparison is {text} true, whatever the value: {kind} is from 0 to {most}, so it is {text} "
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
    with warnings.catch_warnings(record=True) as result:
        warnings.simplefilter("default")
        for shape in ((3, 4), (5, 6)):

            @gp.operator
            def negative(f):
                return _where(_readTensor(f) < 0, 1, 2)

            negative(gp.ScalarField(np.zeros(shape, "uint8")))
    assert len(result) == 1


# --- integers that wrap around and become floats ------------------------------------------------------------------------

read = _readTensor
EXAMPLES = {
    "-": {"uint8": "1 - 2 is 255", "uint16": "1 - 2 is 65535", "uint32": f"1 - 2 is {2**32 - 1}",
          "uint64": f"1 - 2 is {2**64 - 1}"},
    "+": {"uint8": "255 + 1 is 0", "uint16": "65535 + 1 is 0", "int8": "127 + 1 is -128", "int16": "32767 + 1 is -32768"},
    "*": {"uint8": "16 * 16 is 0", "uint16": "256 * 256 is 0", "int8": "16 * 16 is 0", "int16": "256 * 256 is 0"},
}  # fmt: skip
KINDS = {
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong", "int8": "char", "int16": "short", "int32": "int",
    "int64": "long",
}  # fmt: skip
OPERATORS = {"-": operator.sub, "+": operator.add, "*": operator.mul}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("sign", OPERATORS)
def test_an_integer_that_wraps_around_and_becomes_a_float(sign: str, dtype: str) -> None:
    """The examples of the message are what NumPy computes."""

    def body(f, g):
        a, b = read(f), read(g)
        result = {"-": lambda: a - b, "+": lambda: a + b, "*": lambda: a * b}[sign]()
        _writeTensor(_out0, result * 0.5)

    warned, line = recorded(body, *[np.zeros((3, 4), dtype)] * 2), body.__code__.co_firstlineno + 2
    if dtype not in EXAMPLES[sign]:
        assert warned == []
        return
    kind, example = KINDS[dtype], EXAMPLES[sign][dtype]
    a, _, b, _, result = example.split()
    with np.errstate(over="ignore"):
        numbers = [np.array(n, dtype) for n in (a, b)]
        assert str(OPERATORS[sign](*numbers)) == result
    message = (
        f"`{sign}` of {kind}s is {kind} in kernels and wraps around, as in C: {example}; what it gives becomes a float in line "
        f"{line + 1}; convert before you compute, as in `_convert_float(a) {sign} b`"
    )
    assert warned == [(gp.KernelWarning, message, __file__, line)]


def through_a_variable(a, b):
    d = _var(a - b)
    d += 2
    return d / 2.0


def in_a_branch(a, b):
    d = _ucharVar()
    with _if(_row > 1):
        d @= a + b
    return _convert_float(d)


def after_another(a, b):
    squared = (a - b) * 2
    return _sqrt(_convert_float(squared))


def added_up(a, b):
    total = _var(a)
    total += b
    return total * 0.5


BECOME_FLOATS = {
    "written": lambda a, b: a - b,
    "converted": lambda a, b: _convert_float(a - b),
    "converted by name": lambda a, b: _convert(a - b, "float32"),
    "beside a number": lambda a, b: (a - b) * 0.5,
    "beside a float": lambda a, b: (a - b) + _convert_float(a),
    "as an argument": lambda a, b: _pow(a - b, 2.0),
    "its magnitude": lambda a, b: abs(a - b) / 2.0,
    "half of a sum": lambda a, b: (a + b) // 2,
    "a choice": lambda a, b: _where(_row > 1, a - b, 0) * 0.5,
    "as an int": lambda a, b: _convert_int(a - b) * 0.5,
    "a vector": lambda a, b: _convert_float2(_uchar2(a, b) - _uchar2(b, a)).x,
    "a number more": lambda a, b: (a + 100) * 0.5,
    "through a variable": through_a_variable,
    "in a branch": in_a_branch,
    "after another": after_another,
    "added up": added_up,
}


@pytest.mark.parametrize("case", BECOME_FLOATS)
def test_ways_to_become_a_float(case: str) -> None:
    def body(f, g):
        _writeTensor(_out0, BECOME_FLOATS[case](read(f), read(g)))

    ((category, message, file, _),) = recorded(body, *[np.zeros((3, 4), "uint8")] * 2)
    assert category is gp.KernelWarning and file == __file__ and " of uchars is uchar in kernels" in message


def guarded(a, b):
    result = _var(0.0)
    with _if(a >= b):
        result @= a - b
    return result


def reassigned(a, b):
    d = _var(a - b)
    d @= a & b
    return d / 2.0


MEANT = {
    "converted before": lambda a, b: _convert_float(a) - b,
    "an int before": lambda a, b: (_convert_int(a) - b) * 0.5,
    "the distance, chosen": lambda a, b: _convert_float(_where(a > b, a - b, b - a)),
    "the distance, by extremes": lambda a, b: _convert_float(_max(a, b) - _min(a, b)),
    "not less": lambda a, b: _convert_float(_max(a, b) - b),
    "not more": lambda a, b: _convert_float(a - _min(a, b)),
    "guarded": guarded,
    "guarded by a number": lambda a, b: _where(a > 16, a - 16, 0) * 0.5,
    "low bits": lambda a, b: _convert_float((a - b) & 15),
    "a remainder": lambda a, b: _convert_float((a + b) % 8),
    "compared": lambda a, b: _where(a - b > 3, 1.0, 2.0),
    "from the greatest": lambda a, b: (255 - a) * 0.5,
    "parts of a byte": lambda a, b: ((a & 15) + (a >> 4)) * 0.5,
    "without a part": lambda a, b: _convert_float(a - a % 10) + (a - (a & 15)) * 0.5,
    "truths": lambda a, b: (_convert_uchar(a > 3) + _convert_uchar(b > 5)) * 0.5,
    "counted": lambda a, b: _convert_float((a & 1) + 1),
    "reassigned": reassigned,
}


@pytest.mark.parametrize("case", MEANT)
def test_integers_that_cannot_wrap_or_are_meant_to_are_not_warned_of(case: str) -> None:
    def body(f, g):
        _writeTensor(_out0, MEANT[case](read(f), read(g)))

    assert recorded(body, *[np.zeros((3, 4), "uint8")] * 2) == []


def test_integers_that_stay_integers_are_not_warned_of() -> None:
    def body(f, g):
        _writeTensor(_out0, read(f) - read(g) + read(f) * read(g))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp.operator(body, outputs=gp.FieldType((3, 4), dtype="uint8"))(*[gp.ScalarField(np.zeros((3, 4), "uint8"))] * 2)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32"])
def test_the_library_does_not_warn_of_itself(dtype: str) -> None:
    x = gp.ScalarField(np.arange(1, 13).reshape(3, 4).astype(dtype))
    calls = [
        np.std,
        np.var,
        np.mean,
        np.gradient,
        np.median,
        gp.ndimage.gaussian_filter1d,
        gp.ndimage.sobel,
        gp.ndimage.laplace,
    ]
    for call in calls:
        call(x, 1) if call is gp.ndimage.gaussian_filter1d else call(x)
    assert np.array_equal((x / 2 - x).numpy(), x.numpy() / np.float32(2) - x.numpy())
