"""Dead code, which no output or effect needs: among it loops with early exits and arrays that feed themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.build import constant
from gpuop.ir.dead_code import restricted, without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Const, Declare, For, Let, Load, Store, Var, While, Wide, Write
from gpuop.ir.types import FLOAT, INT, Type
from gpuop.ir.visit import expressions, walk
from tests.as_gpus import used

x = np.random.default_rng(3).integers(0, 9, (7, 21)).astype(np.int32)


def broken(value: Any, n: Any) -> None:
    with _for(1, value) as i:
        with _if(n > 5):
            _break()
        n += i


def continued(value: Any, n: Any) -> None:
    with _for(value) as i:
        with _if(i % 2 == 0):
            with _if(n < 40):
                n += 1
                _continue()
        n += i


def nested(value: Any, n: Any) -> None:
    left = _intVar(value)
    with _while(left > 0):
        with _for(3) as i:
            with _if(left + i == 4):
                _break()
            n += 1
        left -= 1


def of_an_array(value: Any, n: Any) -> None:
    held = _intArray(4)
    with _for(4) as k:
        held[k] = 3 * k
    with _for(value) as i:
        held[i & 3] = held[(i + 1) & 3] + 1
        with _if(held[0] > 20):
            _break()
        n += held[i & 3]


def expected(make: Callable[..., None], value: int) -> int:
    n = 0
    if make is broken:
        for i in range(1, value):
            if n > 5:
                break
            n += i
    elif make is continued:
        for i in range(value):
            n += 1 if i % 2 == 0 and n < 40 else i
    elif make is nested:
        for left in range(value, 0, -1):
            n += next((i for i in range(3) if left + i == 4), 3)
    else:
        values = [0, 3, 6, 9]
        for i in range(value):
            values[i & 3] = values[(i + 1) & 3] + 1
            if values[0] > 20:
                break
            n += values[i & 3]
    return n


MADE = (broken, continued, nested, of_an_array)


@gp.operator(outputs=lambda f, value, back: (f.type, f.type), dynamic=False)
def with_loops(f, made, back):
    """A value, and what loops make of one beside it."""
    _writeTensor(_out0, _readTensor(f) + 1)
    n = _intVar(0)
    made(_readTensor(f, _row, _column - back, border="clamp"), n)
    _writeTensor(_out1, n)


@pytest.mark.parametrize("value", MADE)
def test_loops_of_which_nothing_is_wanted_go(value):
    kernel = with_loops(gp.Field(x, 0), value, 1)[0].node.call.kernel
    plain, looping = (restricted(kernel, (output,)) for output in kernel.outputs)
    assert not [stmt for stmt in walk(plain.body) if isinstance(stmt, (For, While, Declare, Store))]
    assert not [e for e in expressions(plain.body) if isinstance(e, Load)]
    assert len(looping.body) == len(without_dead_code(looping).body)
    kinds = [type(stmt) for stmt in walk(looping.body)]
    for kind in (For, While, Declare, Store):
        assert kinds.count(kind) == [type(stmt) for stmt in walk(kernel.body)].count(kind)


@pytest.mark.parametrize("arg", MADE)
def test_loops_of_which_something_is_wanted_compute_it(device, arg):
    plain, looping = (field.numpy() for field in with_loops(gp.Field(x, 0), arg, 2))
    np.testing.assert_array_equal(plain, x + 1)
    before = x[:, np.maximum(np.arange(x.shape[1]) - 2, 0)]
    np.testing.assert_array_equal(looping, np.vectorize(lambda value: expected(arg, int(value)))(before))


@pytest.mark.parametrize("arg", MADE)
def test_stages_have_no_loops_of_others(arg):
    """The second operator reads the first one's values in local memory, where the first one's threads of a halo have none."""
    with used("reference:sm_90 as a gpu"), gp.schedule("tile"):
        f = gp.Field(x, 0) * 3 + 1
        fused = with_loops(with_loops(f, arg, 4)[0], arg, 3)
        results = [field.numpy() for field in fused]
    first = x * 3 + 2
    np.testing.assert_array_equal(results[0], first + 1)
    before = first[:, np.maximum(np.arange(x.shape[1]) - 3, 0)]
    np.testing.assert_array_equal(results[1], np.vectorize(lambda value: expected(arg, int(value)))(before))


def test_lanes_that_nothing_uses_are_not_loaded():
    kernel = (gp.Field(x.astype(np.float32), 0) + 1).node.call.kernel
    (field,) = kernel.inputs
    array, other = Array("lanes", Type(FLOAT), (4,)), Array("others", Type(FLOAT), (4,))
    zero = constant(0, INT)
    loads = (Declare(array), Wide(field, array, True, (zero,)))
    value = Var("value", Type(FLOAT))
    feeding = (
        Let(value, Load(array, (zero,), Type(FLOAT))),
        Declare(other),
        Store(other, (zero,), Const(1.0, Type(FLOAT))),
    )
    result: Kernel = replace(kernel, body=(*loads, *feeding, *kernel.body))
    assert without_dead_code(result).body == kernel.body
    write = Write(kernel.outputs[0].param, Load(array, (zero,), Type(FLOAT)))
    assert without_dead_code(replace(kernel, body=(*loads, write))).body == (*loads, write)
