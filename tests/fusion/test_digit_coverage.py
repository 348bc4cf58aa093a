"""Re-blockings write each place of their output once, so nothing is filled before; nearly the same that leave places are filled."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .test_coverage import fills

EMPTY = -7.0


def reordered(seed: int) -> tuple[gp.Field, np.ndarray, bool]:
    """Digits of a thread's index in another order, each time with another fault; what is written, and whether that must be seen."""
    rng = random.Random(seed)
    radices = [rng.choice((1, 2, 3, 4, 5, 6)) for _ in range(rng.choice((2, 3, 4, 5)))]
    order = rng.sample(range(len(radices)), len(radices))
    fault = rng.choice((None, None, "twice", "wider", "fewer threads", "far", "short"))
    read, written, n = list(radices), [radices[k] for k in order], math.prod(radices)
    if fault == "wider":
        written[rng.randrange(len(written))] += 1
    if fault == "short":
        read[rng.randrange(len(read))] += 1
    split = rng.random() < 0.5
    rows = rng.choice([d for d in range(1, n + 1) if n % d == 0]) if split else 0
    grid, threads = (rows, n // rows) if split else (n,), n - (fault == "fewer threads")
    twice = rng.randrange(len(order)) if fault == "twice" else -1

    @gp.operator(outputs=gp.FieldType(grid, (), "float32"), default=EMPTY)
    def blocked(f):
        _globalThreads(f)
        at = _index()
        digits = _unravel(at, read)
        places = [digits[0 if k == twice else order[k]] for k in range(len(order))]
        place = _ravel(places, written) + (1 if fault == "far" else 0)
        _writeTensor(_out0, _readTensor(f), *(_unravel(place, grid) if split else (place,)))

    values = np.random.default_rng(seed).random(threads, np.float32) if threads else np.zeros(0, "f")
    index, digits = np.arange(threads), []
    for radix in read[:0:-1]:
        index, digit = np.divmod(index, radix)
        digits.insert(0, digit)
    digits.insert(0, index)
    place = np.full(threads, int(fault == "far"))
    for k in range(len(written)):
        place = place + digits[0 if k == twice else order[k]] * math.prod(written[k + 1 :])
    in_rows = not split or n // rows in {math.prod(written[k:]) for k in range(len(written) + 1)}
    return blocked(gp.ScalarField(values)), place, fault is None and in_rows


@pytest.mark.parametrize("seed", range(80))
def test_only_what_is_all_written_is_not_filled(seed):
    field, place, right = reordered(seed)
    n = math.prod(field.field_shape)
    whole = set(range(n)) <= set(place.tolist())
    filled = fills(field)
    assert whole or filled == [EMPTY]
    assert not (right and filled), "a re-blocking whose digits are not divided between rows"
    assert whole >= right


def test_values_of_what_is_not_filled(device):
    values = np.random.default_rng(1).random((6, 4, 5), np.float32)

    @gp.operator(outputs=gp.FieldType((4, 30), (), "float32"), default=EMPTY)
    def blocked(f):
        _globalThreads(f)
        outer, inner, row, column = _unravel(_index(), (2, 3, 4, 5))
        _writeTensor(_out0, _readTensor(f), row, _ravel((column, inner, outer), (5, 3, 2)))

    field = blocked(gp.ScalarField(values))
    assert fills(field) == []
    want = values.reshape(2, 3, 4, 5).transpose(2, 3, 1, 0).reshape(4, 30)
    assert np.array_equal(field.numpy(), want)


@gp.operator(outputs=gp.FieldType(24), default=EMPTY)
def floored(f):
    _writeTensor(_out0, _readTensor(f), _column % 4 * 6 + _column // 4)


@gp.operator(outputs=gp.FieldType(24), default=EMPTY)
def conditional(f):
    with _if(_readTensor(f) > 0):
        _writeTensor(_out0, _readTensor(f), _column % 4 * 6 + _column / 4)


@gp.operator(outputs=gp.FieldType(24), default=EMPTY)
def overlapping(f):
    _writeTensor(_out0, _readTensor(f), _column % 4 * 6 + _column / 2 % 6)


@gp.operator(outputs=gp.FieldType(24), default=EMPTY)
def wrapping(f):
    _writeTensor(_out0, _readTensor(f), _column * 65536 * 65536 / 65536 / 65536)


@gp.operator(outputs=gp.FieldType(24), default=EMPTY)
def rest_of_a_sum(f):
    _writeTensor(_out0, _readTensor(f), (_column % 4 * 6 + _column / 4) % 13)


@gp.operator(outputs=gp.FieldType((2, 12)), default=EMPTY)
def beyond_rows(f):
    _globalThreads(f)
    _writeTensor(_out0, _readTensor(f), _column / 24, _column % 4 * 6 + _column / 4)


SINGLE = {
    floored: True,
    conditional: False,
    overlapping: False,
    wrapping: False,
    rest_of_a_sum: False,
    beyond_rows: False,
}


@pytest.mark.parametrize("operator", SINGLE)
def test_single_kernels(operator):
    assert fills(operator(gp.ScalarField(np.ones(24, "f")))) == ([] if SINGLE[operator] else [EMPTY])
