"""Equality of an integer between limits with one of them is an order; PTXAS of CUDA 13 has another value for it."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.ir import nodes as ir
from gpuop.ir.visit import expressions
from gpuop.passes.pipeline import lower

NUMBERS = np.r_[np.arange(-12, 13), -(2**31), 2**31 - 1].astype(np.int32)
# the forms of equality that are orders, of a number and a limit of 7 that a kernel does not know
ORDERS = {
    "upper": lambda x, n, low, high: high(low(x, 7), 0) == 7,
    "upper, the other way": lambda x, n, low, high: low(high(x, 0), 7) == 7,
    "lower": lambda x, n, low, high: high(low(x, 7), 0) == 0,
    "lower, the other way": lambda x, n, low, high: low(high(x, 0), 7) == 0,
    "not": lambda x, n, low, high: high(low(x, 7), 0) != 7,
    "not the lower": lambda x, n, low, high: high(low(x, 7), 0) != 0,
    "limit first": lambda x, n, low, high: high(7, low(x, 7)) == 7,
    "one limit": lambda x, n, low, high: low(x, 7) == 7,
    "moved": lambda x, n, low, high: high(low(x, 7), 0) + 1 == 8,
    "moved twice": lambda x, n, low, high: high(low(x, 7), 0) + 3 - 1 != 9,
    "negative": lambda x, n, low, high: high(low(x, -1), -9) == -1,
    "three": lambda x, n, low, high: low(high(low(x, 7), 0), 9) == 7,
    "unknown": lambda x, n, low, high: high(low(x, high(n, 0)), 0) == high(n, 0),
    "unknown, the other way": lambda x, n, low, high: low(high(x, low(n, 9)), 9) == low(n, 9),
    "unknown limits that may cross": lambda x, n, low, high: high(low(x, n), 0) == n,
    "unknown, not": lambda x, n, low, high: high(low(x, n), 0) != n,
    "unknown, upside down": lambda x, n, low, high: low(high(x, n), 5) == n,
    "unknown, upside down, not": lambda x, n, low, high: low(high(x, n), 5) != n,
}
OTHERS = {
    "unknown and unknown": lambda x, n, low, high: high(low(x, n), n - 3) == n - 3,
    "inside": lambda x, n, low, high: high(low(x, 7), 0) == 5,
    "limits that cross": lambda x, n, low, high: high(low(x, 2), 5) == 2,
    "limits that cross, the other": lambda x, n, low, high: high(low(x, 2), 5) == 5,
    "overflow": lambda x, n, low, high: high(x, 2147483640) + 7 == -2147483642,
}
FORMS = ORDERS | OTHERS


def compared(name: str, limit: int = 7):
    @gp.operator
    def chosen(f, limit):
        x = _readTensor(f)
        equal = FORMS[name](x, limit, _min, _max)
        return _where(equal, 3, x)

    return chosen(gp.ScalarField(NUMBERS), gp.Parameter(np.int32(limit)))


def test_values(device: str) -> None:
    """Of all forms each day: a form alone may be wrong."""
    for name, form in FORMS.items():
        for limit in (7, 0, -3) if "unknown" in name else (7,):
            equal = form(NUMBERS, np.int32(limit), np.minimum, np.maximum)
            np.testing.assert_array_equal(compared(name, limit).numpy(), np.where(equal, 3, NUMBERS), f"{name} {limit}")


@pytest.mark.parametrize("name", ORDERS)
def test_no_equality_is_left(name: str) -> None:
    body = lower(compared(name).node.call.kernel, target_named("cuda")).body
    assert not [e for e in expressions(body) if isinstance(e, ir.Apply) and e.op in ("eq", "ne")]
