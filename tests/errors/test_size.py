"""Bodies that are larger than compilers take: refused with a sentence, or small enough to run on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion import legality
from gpuop.ir.analysis.size import MOST_NESTED
from gpuop.runtime.devices import current

from .wrong import SCALAR


def nested(kind: str, depth: int) -> Callable[[Any], Any]:
    """So many blocks in one another, in each of which the innermost statement runs once."""

    def inner(v: Any, left: int) -> None:
        which = kind if kind != "mixed" else ("if", "for", "while")[left % 3]
        if not left:
            v += 1
        elif which == "if":
            with _if(v > -left):
                inner(v, left - 1)
        elif which == "for":
            with _for(1):
                inner(v, left - 1)
        else:
            with _while(v < 1000 + left):
                inner(v, left - 1)
                _break()

    def body(f: Any) -> Any:
        v = _var(_readTensor(f))
        inner(v, depth)
        return v

    return body


def chained(depth: int) -> Callable[[Any], Any]:
    def body(f: Any) -> Any:
        v, out = _readTensor(f), _var(-1.0)
        with _if(v < 0):
            out @= 0
        for k in range(1, depth):
            with _elseif(v < k):
                out.assign(k)
        return out

    return body


KINDS = ("if", "for", "while", "mixed")


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_as_deep_as_they_may_be(device, kind):
    if "Portable" in current().description:
        pytest.skip("PoCL takes minutes for so many conditions")
    deepest = gp.operator(nested(kind, MOST_NESTED))(SCALAR).numpy()
    np.testing.assert_array_equal(deepest, SCALAR.numpy() + 1)


def test_branches_as_many_as_there_may_be(device):
    if "Portable" in current().description:
        pytest.skip("PoCL takes minutes for so many conditions")
    x = np.arange(-3, 90, dtype="f")
    actual = gp.operator(chained(MOST_NESTED))(gp.ScalarField(x)).numpy()
    np.testing.assert_array_equal(actual, np.where(x < 0, 0, np.where(x < MOST_NESTED - 1, np.floor(x) + 1, -1)))


@pytest.mark.parametrize("depth", [MOST_NESTED + 1, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_that_are_too_deep(kind, depth):
    message = r"blocks are nested more than 64 deep, which compilers do not take; join .*\n  at .*test_size"
    with pytest.raises(gp.SemanticError, match=message):
        gp.operator(nested(kind, depth))(SCALAR)


@pytest.mark.parametrize("depth", [MOST_NESTED + 1, 1000])
def test_too_many_branches(depth):
    message = (
        rf"branches of `_elseif` are nested {depth} deep, and compilers take 64; look values up .*\n  at .*test_size"
    )
    with pytest.raises(gp.SemanticError, match=message):
        gp.operator(chained(depth))(SCALAR)


def long(count: int) -> Callable[[Any], Any]:
    def body(f: Any) -> Any:
        x = _readTensor(f)
        for _ in range(count):
            x = x + 1
        return x

    return body


def test_too_many_statements():
    message = r"`body` has more than 10000 statements, .* \(`_for`\) .*\n  at .*test_size"
    with pytest.raises(gp.SemanticError, match=message) as caught:
        gp.operator(long(20_000))(SCALAR)
    assert str(caught.value).endswith("x = x + 1")


def test_many_statements(device):
    """Long chains of temporaries are no deep expressions."""
    count = 1000
    np.testing.assert_array_equal(gp.operator(long(count))(SCALAR).numpy(), SCALAR.numpy() + count)
    f = SCALAR
    for _ in range(count // 2):
        f = f + 1
    np.testing.assert_array_equal(f.numpy(), SCALAR.numpy() + count // 2)


def test_fusion_makes_no_kernels_that_are_too_large(monkeypatch):
    """Each of these operators compiles quickly."""
    monkeypatch.setattr(legality, "MOST_STATEMENTS", 1000)
    f, operator = SCALAR, gp.operator(long(300))
    with gp.ComputeGraph() as graph:
        for _ in range(7):
            f = operator(f)
        graph.probe(f)
    assert graph.kernel_count == 3 and "more than 1000 statements" in graph.explain()


def test_what_is_recomputed_makes_no_kernels_that_are_too_large():
    """A thread that reads 16 values, one after another in its text, would have 16 times the text of what makes them."""

    @gp.operator(outputs=gp.FieldType((64, 64)))
    def sixteen(f):
        return sum(_readTensor(f, _row, _column * 16 + k) for k in range(16))

    for count, kernels in ((50, 1), (400, 2)):
        with gp.ComputeGraph() as graph:
            field = gp.Sensor(gp.FieldType((64, 1024)), lambda: None)
            graph.probe(sixteen(gp.operator(long(count))(field)))
        assert graph.kernel_count == kernels
        assert ("with `body` at each of its 16 reads `sixteen` would be too large" in graph.explain()) == (kernels > 1)
