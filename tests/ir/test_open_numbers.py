"""Numbers that become arguments, those whose bits would change and stay, and what is known of the arguments."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.open_numbers import OpenNumbers
from gpuop.ir.text import show


@gp.operator
def numbered(f):
    value = _readTensor(f)
    return value * 0.375 + _pow(value, 0.625) + _convert_float(_column * 12 - (_row + 34))


def numbers() -> OpenNumbers:
    field = gp.ScalarField(np.zeros((5, 7), np.float32))
    return OpenNumbers.of(numbered(field).node.call.kernel)


def test_operands_of_what_is_not_correctly_rounded_stay_in_the_text():
    """A compiler may compute the power of a number that it knows otherwise than that of an argument."""
    assert [const.value for const in numbers().numbers] == [0.375, 12, 34]
    assert numbers().extents == (5, 7) * 3


def test_positive_integers_have_bounds_as_arguments():
    """Products of them are then known to fit, as those of the numbers were."""
    text = show(numbers().opened([[0], [1], [2]], {}).kernel)
    assert text.count("min(numbers%2.0, 1073741824:int)") == text.count("min(numbers%2.1, 1073741824:int)") == 1
    assert text.count("1:int)") == 2 and "0.625:float" in text
