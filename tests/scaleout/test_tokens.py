"""Dask's tokens: the same for the same, another one for another. (In other processes: `test_pickle.py: test_a_pool`.)"""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

dask_base = pytest.importorskip("dask.base")
GAIN = 2.0
TABLE = np.arange(5.0)


def turned(value):
    return value * GAIN + len({"a", "b", "c"})


@gp.operator
def shifted(f):
    return turned(_readTensor(f, _column + 1)) * TABLE[2]


@gp.pipeline
def path(x, k=3):
    return shifted(gp.ScalarField(x)) * k + LEVEL


LEVEL = gp.Parameter(1.0)


def smoothing(sigma):
    return gp.pipeline(lambda x: gp.ndimage.gaussian_filter(gp.ScalarField(x), sigma))


def things():
    field = gp.ScalarField(np.arange(3.0))
    return [
        shifted, path, smoothing(1.0), smoothing(2.0), LEVEL, field, field * 2, field.type, gp.Shape(2, 3), gp.device("reference"),
        gp.operator(turned), gp.operator(turned, precision="fast"), gp.FieldType((2, 3), (), "float32", "y:x"), _row, _column,
        _out0, gp.devices()[-1],
    ]  # fmt: skip


def tokens():
    with gp.use_device("reference"):
        return [dask_base.tokenize(each, ensure_deterministic=True) for each in things()]


def test_tokens_tell_things_apart():
    first = tokens()
    assert first == tokens() and len(set(first)) == len(first)


def test_tokens_follow_what_is_captured(monkeypatch):
    token = dask_base.tokenize
    before = token(path)
    with gp.use_device("reference"):
        path(np.ones(3, "f"))
    assert token(path) == before  # use changes nothing
    tokens = {before}
    for change in (
        lambda: LEVEL.set(5.0),
        lambda: monkeypatch.setitem(globals(), "GAIN", 3.0),
        lambda: TABLE.__setitem__(2, 7.0),
        lambda: monkeypatch.setattr(turned, "__code__", (lambda value: value * GAIN - 1).__code__),
        lambda: monkeypatch.setattr(path.function, "__defaults__", (4,)),
    ):
        change()
        tokens.add(token(path))
    assert len(tokens) == 6
    LEVEL.set(1.0)
    TABLE[2] = 2.0


class Opaque:
    def __getattr__(self, name):
        return GAIN


OPAQUE = Opaque()


def test_what_cannot_be_known_is_told_by_how_it_pickles():
    result = gp.operator(lambda f: _readTensor(f) * OPAQUE.gain)
    assert dask_base.tokenize(result) != dask_base.tokenize(gp.operator(lambda f: _readTensor(f) * OPAQUE.other))
