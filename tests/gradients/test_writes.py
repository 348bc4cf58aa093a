"""Cotangents of writes at other places than the thread's own, against differences in NumPy; and which of them are refused."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import SemanticError
from gpuop.dsl import *
from tests.gradients.differences import check


def random(*shape: int):
    return np.random.default_rng(sum(shape) + 5).random(shape) + 0.3


@gp.operator(outputs=lambda u: u.type)
def mirrored(u):
    value = _readTensor(u)
    _writeTensor(_out0, value * value, _row, _columns - 1 - _column)


@gp.operator(outputs=lambda u: u.type.replace(field_shape=(3 * u.field_shape[0],)))
def tripled(u):
    _globalThreads(u.field_shape[0])
    value = _readTensor(u)
    for n in range(3):
        _writeTensor(_out0, value * value * (n + 1.0), 3 * _column + n)


@gp.operator(outputs=lambda u: u.type, default=2)
def further(u):
    _writeTensor(_out0, _readTensor(u) * _readTensor(u, _row, _column + 1), _row + 2, _column)


@gp.operator(outputs=lambda u: (u.type, u.type.replace(field_shape=u.field_shape[::-1])))
def turned(u):
    value = _readTensor(u)
    _writeTensor(_out0, _exp(value))
    _writeTensor(_out1, value * value, _column, _row)


def moved_down(a):
    products = a * np.append(a[:, 1:], a[:, -1:], 1)
    return np.concatenate([np.full((2, a.shape[1]), 2.0), products])[: a.shape[0]]


CASES = {
    "mirrored": (mirrored, lambda a: (a * a)[:, ::-1], (3, 4)),
    "three places each": (tripled, lambda a: np.outer(a * a, np.arange(1.0, 4)).ravel(), (5,)),
    "outside": (further, moved_down, (5, 3)),
    "two outputs": (turned, lambda a: (np.exp(a), (a * a).T), (3, 4)),
}


@pytest.mark.daily
@pytest.mark.parametrize("case", CASES)
def test_places_of_threads_alone(device, case):
    function, arrays, shape = CASES[case]
    check(function, arrays, random(*shape))


@gp.operator(outputs=lambda u: u.type, default=0)
def twice_each(u):
    _writeTensor(_out0, _readTensor(u), _row, _column // 2)


@gp.operator(outputs=lambda u: u.type, default=0)
def overlapping(u):
    _writeTensor(_out0, _readTensor(u), _row, 2 * _column)
    _writeTensor(_out0, _readTensor(u) * 2.0, _row, 2 * _column + 4)


@gp.operator(outputs=lambda u: u.type, default=0)
def in_one_row(u):
    _writeTensor(_out0, _readTensor(u), 0, _column)


@gp.operator(outputs=lambda u: u.type, default=0)
def by_data(u):
    _writeTensor(_out0, _readTensor(u), _row, _convert_int(_readTensor(u)))


@pytest.mark.daily
@pytest.mark.parametrize("function", [twice_each, overlapping, in_one_row, by_data], ids=lambda f: f.name)
def test_places_of_several_threads_are_refused(function):
    lines, first = inspect.getsourcelines(function.function)
    line = first + max(n for n, text in enumerate(lines) if "_writeTensor" in text)
    sentence = f"`{function.name}` has no gradient: two threads may write one place of `_?out0`.*\n *at .*test_writes.py:{line}"
    with pytest.raises(SemanticError, match=sentence):
        gp.grad(lambda u: function(u).sum())(gp.ScalarField(random(3, 6)))
