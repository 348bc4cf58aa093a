"""Branches and blocks: what runs, in which order, and when conditions are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same

N = 40
START = np.arange(N, dtype=np.int32) - 12  # what each thread begins with


def each(function: Callable[[int], Any], values: Any = START) -> Any:
    return np.array([function(int(v)) for v in values], np.int32)


def run(*bodies: Callable[[Any], Any]) -> list[Any]:
    """The results of bodies that take x and return a value, as outputs of one operator."""
    results = gp.operator(lambda f: tuple(body(_readTensor(f)) for body in bodies))(gp.Field(START))
    return [results] if isinstance(results, gp.Field) else list(results)


def test_chains(device: str) -> None:
    def chain(x):
        y = _intVar()
        with _if(x < -3):
            y @= 1
        with _elseif(x < 2):
            y @= 2
        with _elseif(x == 7):
            y @= 3
        with _else():
            y @= 4
        return y

    def no_else(x):
        y = _var(x)
        with _if(x % 2 == 0):
            y += 100
            with _if(x > 5):
                y *= 2
            with _else():
                y -= 1
        with _if(y > 100):
            y @= -y
        with _elseif(x):
            y += 1000
        return y

    def in_python(v: int) -> int:
        y = v
        if v % 2 == 0:
            y += 100
            y = y * 2 if v > 5 else y - 1
        return -y if y > 100 else y + 1000 if v else y

    all_same(
        run(chain, no_else), (each(lambda v: 1 if v < -3 else 2 if v < 2 else 3 if v == 7 else 4), each(in_python))
    )


def test_names_in_following_blocks(device: str) -> None:
    """A Python name made in one block may be made again in the next; so may a loop's counter."""

    def body(x):
        y = _intVar()
        with _if(x > 0):
            part = x * 3
            y @= part
        with _else():
            part = x * 5
            y @= part
        with _for(3) as i:
            y += i
        with _for(2) as i:
            part = i + 1
            y += part
        return y

    all_same(run(body), [each(lambda v: (3 if v > 0 else 5) * v + 6)])


def test_elseif_reads_when_it_is_reached(device: str) -> None:
    """The condition's reads and variables belong to the branch: they see what is true then."""

    def body(field):
        x = _readTensor(field)
        y, z = _intVar(), _var(x)
        with _if(x < 0):
            y @= 1
        with _elseif(_readTensor(field, _column - 20) < x - 19):
            y @= 2
        with _elseif((z + 3) * 2 > 20):
            y @= 3
        with _else():
            y @= 4
        return y

    def in_python(c: int) -> int:
        x = START[c]
        return 1 if x < 0 else 2 if START[max(c - 20, 0)] < x - 19 else 3 if (x + 3) * 2 > 20 else 4

    same(gp.operator(body)(gp.Field(START)), each(in_python, range(N)))


def test_blocks_in_element_loops(device: str) -> None:
    """Conditions and loops inside `_forEachTensorElement`, of small and of big tensors."""
    for count in (3, 4, 6):
        a = (np.arange(5 * count) % 7).astype(np.float32).reshape(5, count)

        def body(field):
            with _forEachTensorElement(field.tensor_shape):
                x = _tensorElementVar(field)
                x @= _readTensorElement(field)
                with _if(x > 2):
                    with _for(_tensorElement) as k:
                        x += k
                with _elseif(_tensorElement == 0):
                    x @= -1
                _writeTensorElement(_out0, x + 10 * _tensorElements, _tensorElement)

        e = np.broadcast_to(np.arange(count, dtype=np.float32), a.shape)
        expected = np.where(a > 2, a + e * (e - 1) / 2, np.where(e == 0, -1, a)) + np.float32(10 * count)
        same(gp.operator(body)(gp.VectorField(a)), expected.astype(np.float32))


def test_writes_in_blocks(device: str) -> None:
    def body(field):
        x = _readTensor(field)
        with _if(x > 0):
            with _for(3) as i:
                _writeTensor(_out0, x * i)
        with _else():
            _writeTensor(_out0, -x)
        with _for(4) as i:
            with _if(i + x == 2):
                _writeTensor(_out1, i)
                _break()

    kind = gp.FieldType(N, (), "int32")
    results = gp.operator(outputs=(kind, kind), default=-7)(body)(gp.Field(START))
    all_same(results, (each(lambda v: 2 * v if v > 0 else -v), each(lambda v: 2 - v if 0 <= 2 - v < 4 else -7)))
