"""`gp.testing.check_grads` and `gp.hvp`: what is right passes, and what is not is named with both numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.testing import check_grads

rng = np.random.default_rng(17)


def field(*shape: int, dtype: str = "float64") -> Any:
    return gp.ScalarField((rng.random(shape) + 0.2).astype(dtype))


@gp.operator
def sharpened(u, amount):
    around = _readTensor(u, _column - 1, border="wrap") + _readTensor(u, _column + 1, border="wrap")
    return _exp(_readTensor(amount) * (2 * _readTensor(u) - around))


def test_two_orders_of_both_modes(device: str) -> None:
    check_grads(sharpened, (field(7), gp.Parameter(np.float64(0.3))), order=2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "complex128"])
def test_dtypes(device: str, dtype: str) -> None:
    numbers = rng.random(6) + 0.5
    if dtype.startswith("complex"):
        z = gp.ComplexField(numbers + 1j * numbers[::-1], dtype=dtype)
        check_grads(lambda z: np.exp(z) * np.conj(z) + abs(z), (z,))
    else:
        check_grads(lambda x: (np.sqrt(x) * x, x.sum()), (gp.ScalarField(numbers, dtype=dtype),))


def wrong(x: Any) -> Any:
    """x², with a gradient that is right, and a tangent that is not."""

    def pull(inputs, value, cotangent):
        return [cotangent * inputs[0] * 2]

    return with_rule(x * x, "wrong", [x], pull, lambda inputs, value, tangents: tangents[0])


def test_what_is_wrong_is_named(device: str) -> None:
    x = gp.ScalarField(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(AssertionError, match=re.escape("jvp: the tangent of result 0 by argument 0 is ")):
        check_grads(wrong, (x,))
    check_grads(wrong, (x,), modes=("rev",))
    with pytest.raises(AssertionError) as error:
        check_grads(lambda y, x: x * gp.stop_gradient(x), (x, x), modes=("rev",))
    shown = str(error.value)
    assert re.match(
        r"vjp: the gradient by argument 1 is -?[\d.]+ at \[0\], and differences say -?[\d.]+ \(rtol=1e-05", shown
    )
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", shown)[:2]]
    assert numbers[1] == pytest.approx(2 * numbers[0])  # by one factor of two


def test_arguments_are_checked() -> None:
    x = field(3)
    for call, message in (
        (lambda: check_grads(np.sin, x), "check_grads: the arguments are a tuple of Fields, as in `(u,)`, not a Field"),
        (
            lambda: check_grads(np.sin, (gp.ScalarField([1, 2]),)),
            "integers have no derivatives; let the function capture it",
        ),
        (lambda: check_grads(np.sin, (x,), order=0), "check_grads: `order=` is 1 or more, not 0"),
        (lambda: check_grads(np.sin, (x,), modes="fwd"), '`modes=` is a tuple of "fwd" and "rev", not \'fwd\''),
    ):
        with pytest.raises(gp.SemanticError, match=re.escape(message)):
            call()


def test_hvp(device: str) -> None:
    x, d = field(5), field(5)
    curved = gp.hvp(lambda x: (x**3).sum() * x.sum(), (x,), (d,)).numpy()
    a, b = x.numpy(), d.numpy()
    expected = 6 * a * b * a.sum() + 3 * a**2 * b.sum() + (3 * a**2 * b).sum()
    np.testing.assert_allclose(curved, expected, 1e-12)
    pushed = gp.hvp(lambda x, y: (x * x * y).sum(), (x, x), (d, d))
    np.testing.assert_allclose(pushed[0].numpy(), 4 * a * b, 1e-12)
    np.testing.assert_allclose(pushed[1].numpy(), 2 * a * b, 1e-12)
