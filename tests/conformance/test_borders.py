"""Every row of the table of borders, far outside and near, against plain Python, and against numpy.pad where it has the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.nodes import Read
from gpuop.ir.target_expressions import GENERIC
from gpuop.ir.verify import VerifyError
from gpuop.passes.pipeline import lower
from gpuop.runtime.reference.interpreter import run
from tests.borders import CHECKED, MODES, PLACES

from .compare import all_same

rng = np.random.default_rng(29)
EXTENTS = (1, 2, 3, 7)
FAR = 23  # a few periods of these
NEAR = (-30, -3, -1, 0, 1, 2, 40)


def wanted(word: str, a: Any, at: range) -> Any:
    """The values at coordinates along the one axis of an array."""
    assert word in PLACES, f'tests/borders.py does not say what border="{word}" is'
    places = [PLACES[word](i, len(a)) for i in at]
    return np.array([0 if k is None else a[k] for k in places], a.dtype)


@pytest.mark.parametrize("word", CHECKED)
def test_borders(device: str, word: str) -> None:
    """At computed coordinates, whose range compilers do not know, and at known offsets."""
    arrays = [rng.standard_normal(n).astype(np.float32) for n in EXTENTS]
    kind, at = gp.FieldType(2 * FAR + EXTENTS[-1]), range(-FAR, FAR + EXTENTS[-1])
    fields = [gp.ScalarField(a) for a in arrays]

    def computed(far: gp.Field, *fields: gp.Field) -> Any:
        return tuple(_readTensor(f, _column - _readTensor(far), border=word) for f in fields)

    results = gp.operator(outputs=(kind,) * len(fields))(computed)(gp.Field(np.int32(FAR)), *fields)
    all_same(results, [wanted(word, a, at) for a in arrays])
    fixed = gp.operator(lambda f: tuple(_readTensor(f, _column + k, border=word) for k in NEAR))
    for a, field in zip(arrays, fields, strict=True):
        all_same(fixed(field), [wanted(word, a, range(k, k + len(a))) for k in NEAR])


def test_unchecked(device: str) -> None:
    """It lies inside, by promise."""
    a = np.arange(9, dtype=np.float32)
    all_same([gp.operator(lambda f: _readTensor(f, 8 - _column, border="unchecked"))(gp.ScalarField(a))], [a[::-1]])


@pytest.mark.parametrize("word", CHECKED)
def test_what_is_expected_is_numpys(word: str) -> None:
    for n in EXTENTS if word in MODES else ():
        padded = np.pad(np.arange(1, n + 1), FAR, mode=MODES[word][0])  # type: ignore[call-overload]
        np.testing.assert_array_equal(wanted(word, np.arange(1, n + 1), range(-FAR, n + FAR)), padded)


@pytest.mark.parametrize(
    "execute", [lambda kernel, fields: run(kernel, fields), lambda kernel, _: lower(kernel, GENERIC)]
)
def test_an_unknown_border_is_no_other_one(execute: Any) -> None:
    """Neither to the reference, which all devices are compared with, nor to the passes."""
    a = gp.ScalarField(np.arange(5, dtype=np.float32))
    kernel = gp.operator(lambda f: _readTensor(f, _column + 1))(a).node.call.kernel
    first, *others = kernel.body
    assert isinstance(first.value, Read)
    wrong = replace(kernel, body=(replace(first, value=replace(first.value, border="nonsense")), *others))
    planes = {param: np.zeros(5, np.float32) for param in (*kernel.inputs, *kernel.written)}
    execute(kernel, planes)
    with pytest.raises((KeyError, VerifyError), match="nonsense"):
        execute(wrong, planes)
