"""Constructs that have no derivative: refused at their line with what to write, and only where a derivative would pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

U = gp.ScalarField(np.array([1.0, 2.0, 3.0, -4.0], np.float32))
REMEDY = "`gp.stop_gradient` of the argument makes it a constant"


@gp.operator
def key(u):
    return _as_uint(_readTensor(u)) + 1


@gp.operator
def back(k):
    return _as_float(_readTensor(k))


@gp.operator
def bits(u):
    return _as_float(_as_int(_readTensor(u)) + 1)


@gp.operator
def as_numbers(u):
    return _convert_float(_as_int(_readTensor(u)))


@gp.operator(outputs=lambda u: u.type)
def greatest(u):
    _atomic_max(_pointerTo(_out0, _column / 2), _readTensor(u))


@gp.operator(outputs=lambda u: (u.type, u.type))
def before(u):
    _writeTensor(_out1, _atomic_add(_pointerTo(_out0, 0), _readTensor(u)))


@gp.operator
def of_vectors(u):
    x = _readTensor(u)
    return _reduceGroup(_float2(x, x), "max").x


BITS = (
    "makes a floating value of the bits of one that is differentiated, and bits have no derivative; write the function"
)
FORWARD: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "bits": (bits, f"`bits` {BITS}", "return _as_float(_as_int(_readTensor(u)) + 1)"),
    "bits as numbers": (as_numbers, f"`as_numbers` {BITS}", "return _convert_float(_as_int(_readTensor(u)))"),
    "bits in fields": (lambda u: back(key(u)), f"`back` {BITS}", "return _as_float(_readTensor(k))"),
    "atomic maximum": (
        greatest,
        "`greatest` cannot be differentiated here: `_atomic_max` has no derivative: add with `_atomic_add`",
        "_atomic_max(_pointerTo(_out0, _column / 2), _readTensor(u))",
    ),
    "atomic result": (
        lambda u: before(u)[1],
        "`before` cannot be differentiated here: `_atomic_add` whose result is used has no derivative",
        "_writeTensor(_out1, _atomic_add(_pointerTo(_out0, 0), _readTensor(u)))",
    ),
    "group of vectors": (
        of_vectors,
        "`of_vectors` cannot be differentiated here: `_reduceGroup` of vectors has no derivative: combine components one by one",
        'return _reduceGroup(_float2(x, x), "max").x',
    ),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(name: str) -> None:
    f, message, line = FORWARD[name]
    with pytest.raises(gp.SemanticError, match=re.escape(message)) as error:
        gp.jvp(f, (U,), (U,))
    assert REMEDY in error.value.message
    assert error.value.loc is not None and error.value.loc.text == line


@pytest.mark.parametrize("name", FORWARD)
def test_reverse_mode(name: str) -> None:
    """The same, refused by whichever mode finds it, and nowhere silently 0."""
    f, _, line = FORWARD[name]
    with pytest.raises(gp.SemanticError, match=r"gp\.stop_gradient") as error:
        gp.grad(lambda u: f(u).sum())(U)
    assert error.value.loc is not None and (error.value.loc.text == line or error.value.loc.text.startswith("def "))


def test_loops_without_a_bound_are_of_forward_mode() -> None:
    @gp.operator
    def halved(u):
        x = _var(_readTensor(u))
        with _while(x > 1):
            x @= x / 2
        return x

    with pytest.raises(gp.SemanticError, match=r"`gp\.jvp`"):
        gp.grad(lambda u: halved(u).sum())(U)
    np.testing.assert_array_equal(gp.jvp(halved, (U,), (U,))[1].numpy(), [1, 1, 0.75, -4])


def test_what_is_not_between_is_not_refused() -> None:
    """Bits that decide, and rows without a derivative that nothing smooth passes, are constants."""

    @gp.operator
    def signed(u):
        x = _readTensor(u)
        return _where((_as_uint(x) >> 31) != 0, -x, x * x) + _where(_lgamma(x) > 0, x, 0.0)

    x = U.numpy()
    slope = np.where(x < 0, -1, 2 * x) + np.array([0, 0, 1, 1])
    np.testing.assert_array_equal(gp.jvp(signed, (U,), (U,))[1].numpy(), slope * x)
    np.testing.assert_array_equal(gp.grad(lambda u: signed(u).sum())(U).numpy(), slope)
    assert not gp.grad(lambda u: back(key(gp.stop_gradient(u))).sum())(U).numpy().any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gp.jvp(np.sin, U, U), "jvp: the arguments are a tuple of Fields, as in `(u,)`, not a Field"),
        (lambda: gp.jvp(np.sin, (U,), (U, U)), "jvp: there is a tangent for each of 1 arguments, in a tuple, not 2"),
        (
            lambda: gp.jvp(np.sin, (U,), (U.sum(),)),
            "jvp: a tangent has the type of its argument, here of a 4 float32 field; it is",
        ),
        (lambda: gp.jvp(np.sin, (3,), (U,)), "jvp: argument 0 of `sin` is an int, not a Field"),
        (lambda: gp.jvp(lambda u: 3, (U,), (U,)), "jvp: `lambda` gives an int; it gives Fields"),
        (lambda: gp.stop_gradient(3), "stop_gradient is of a Field, not of an int"),
    ],
)
def test_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(gp.SemanticError, match=re.escape(message)):
        call()


READS: dict[str, Callable[[gp.Field], Any]] = {
    "numpy": lambda x: gp.ScalarField(x.numpy() ** 2).sum(),
    "asarray": lambda x: gp.ScalarField(np.asarray(x * 2)).sum(),
    "a number": lambda x: (x * float(x.max())).sum(),
    "item": lambda x: (x * (x + 1).sum().item()).sum(),
    "fetch": lambda x: gp.ScalarField(x.fetch().result()).sum(),
    "DLPack": lambda x: gp.ScalarField(np.from_dlpack(x + 1)).sum(),
    "evaluate": lambda x: gp.evaluate(x * x).sum(),
}


@pytest.mark.parametrize("name", READS)
def test_reads_of_values_that_have_a_derivative(name: str) -> None:
    function = READS[name]
    with gp.use_device("reference"):
        for word, call in (
            ("grad", lambda: gp.grad(function)(U)),
            ("vjp", lambda: gp.vjp(function, U)),
            ("jvp", lambda: gp.jvp(function, (U,), (U,))),
        ):
            with pytest.raises(
                gp.SemanticError, match=f"{word}: `lambda` reads values that depend on an argument, and"
            ) as e:
                call()
            assert "`gp.stop_gradient(x)` is a constant, which may be read" in str(e.value)
            assert "test_refusals.py:" in str(e.value)


def test_reads_of_constants_and_truths() -> None:
    """Conditions, integers, constants and fields that are no argument may be read."""

    def function(x):
        scale = float(gp.stop_gradient(x).max()) + float(U.min()) + int((x > 0).sum())
        return (x * scale if x.max() > 2 else x).sum()

    with gp.use_device("reference"):
        np.testing.assert_array_equal(gp.grad(function)(U).numpy(), [3 - 4 + 3] * 4)
