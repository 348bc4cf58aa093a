"""Slopes at whole numbers, zeros and equal operands, where functions choose by equality: those of one-sided differences of NumPy.

Where a function is smooth, both sides agree, and so does the slope; at a kink it lies between them; at a jump it is that of the
side that the value belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

POINTS = np.array([-2.0, -1, -0.5, 0, 0.5, 1, 2, 3])
POSITIVE = np.array([0.25, 0.5, 1, 2, 3])
STEP, STEEP = 1e-7, 1e4  # a steeper side is that of a jump
NOT_THERE = {"log", "log2", "log10", "log1p", "sqrt", "arccosh"}
ONE = (
    "absolute arcsinh arctan cbrt ceil cos cosh deg2rad exp exp2 expm1 fabs fix floor nan_to_num negative positive rint sign sin "
    "sinc sinh square tan tanh trunc log log10 log1p log2 reciprocal sqrt"
)
TWO = (
    "add arctan2 copysign divide floor_divide fmax fmin fmod heaviside hypot logaddexp logaddexp2 maximum minimum multiply power "
    "remainder subtract"
)
MODULO = ("fmod", "remainder", "divmod", "floor_divide")
OF_ZERO = (*MODULO, "arctan2", "angle")  # they have no slope by 0, or at the origin
KNOTS, VALUES = np.array([-1.0, 0, 0.5, 2]), np.array([1.0, 3, 2, 7])
NAMED: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (ONE + " " + TWO).split()},
    "clip": lambda x: np.clip(x, -1, 1),
    "interp": lambda x: np.interp(x, KNOTS, VALUES),
    "interp of a period": lambda x: np.interp(x, KNOTS, VALUES, period=3.5),
    "divmod": lambda x, y: np.divmod(x, y)[1],
    "modf": lambda x: np.modf(x)[0],
    "angle": lambda x, y: np.angle(x + 1j * y),
}
ARGUMENTS = {"clip": 1, "interp": 1, "interp of a period": 1, "modf": 1, **dict.fromkeys(ONE.split(), 1)}


def args_of(name: str) -> list[Any]:
    points = POSITIVE if name in (*NOT_THERE, "power", "reciprocal") else POINTS
    count = ARGUMENTS.get(name, 2)
    return [axis.ravel() for axis in np.meshgrid(*[points] * count, indexing="ij")]


def sides(f: Callable[..., Any], args: list[Any], number: int, step: Any = STEP) -> list[Any]:
    """The slopes from both sides; NaN where a side has none."""
    results = []
    with np.errstate(all="ignore"):
        here = f(*args)
        for sign in (1, -1):
            moved = [arg + sign * step if n == number else arg for n, arg in enumerate(args)]
            slope = (f(*moved) - here) / (sign * abs(step))
            results.append(np.where(np.abs(slope) < STEEP, slope, np.nan))
    return results


def check_between(slope: Any, sides: list[Any], poles: Any) -> None:
    """Compare slopes with those of both sides, or of the one that there is."""
    right, left = sides
    known = ~(np.isnan(right) & np.isnan(left) | poles)
    low, high = np.fmin(right, left), np.fmax(right, left)
    room = 1e-5 * (1 + np.abs(high) + np.abs(low))
    wrong = known & ~((slope >= low - room) & (slope <= high + room))
    assert not wrong.any(), f"{slope[wrong]} is not between {low[wrong]} and {high[wrong]} at {np.flatnonzero(wrong)}"


@pytest.mark.parametrize("name", NAMED)
def test_real_functions(name: str) -> None:
    f, args = NAMED[name], args_of(name)
    fields = [gp.Field(arg) for arg in args]
    poles = (args[-1] == 0) & (name in OF_ZERO) & ((args[0] == 0) | (name in MODULO))
    with gp.use_device("reference"), np.errstate(all="ignore"):
        _, pull = gp.vjp(f, *fields)
        pulled = [bar.numpy() for bar in pull(gp.Field(np.ones(args[0].shape)))]
        for number, slope in enumerate(pulled):
            check_between(slope, sides(f, args, number), poles)
            seeds = [gp.Field(np.full(args[0].shape, float(n == number))) for n in range(len(args))]
            finite = np.isfinite(slope) & ~poles
            np.testing.assert_allclose(gp.jvp(f, fields, seeds)[1].numpy()[finite], slope[finite], 1e-12, 1e-12)


COMPLEX = np.array([0, 1, -1, 1j, -1j, 0.5, 2, -0.5j, 0.6 + 0.8j, 1 + 1j, -1 - 1j, 3 + 0j, -2 + 1e-3j])
HOLOMORPHIC = (
    "exp log sqrt square sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh conjugate absolute angle "
    "reciprocal expm1 log1p log2 log10 sign"
)
POLES = {
    0: ("sqrt", "log", "log2", "log10", "angle", "fractional power", "reciprocal"),
    1: ("arcsin", "arccos", "arccosh", "arctanh"),
    -1: ("arcsin", "arccos", "arccosh", "arctanh", "log1p"),
    1j: ("arcsinh", "arctan"),
    -1j: ("arcsinh", "arctan"),
}
OF_COMPLEX: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in HOLOMORPHIC.split()},
    "power": lambda z: z**3,
    "fractional power": lambda z: z**0.5,
    "complex power": lambda z: np.power(2 + z * 0, z),
    "quotient": lambda z: 1 / (z + 0.25),
}


@pytest.mark.parametrize("name", OF_COMPLEX)
@pytest.mark.parametrize("part", ["real", "imag"])
def test_complex_functions(name: str, part: str) -> None:
    def f(z: Any) -> Any:
        result = OF_COMPLEX[name](z)
        return getattr(result, part) if "complex" in str(result.dtype) else result

    with gp.use_device("reference"), np.errstate(all="ignore"):
        slope = gp.grad(lambda z: f(z).sum())(gp.ComplexField(COMPLEX, dtype="complex128")).numpy()
        poles = np.isin(COMPLEX, [pole for pole, names in POLES.items() if name in names])
        check_between(slope.real, sides(f, [COMPLEX], 0), poles)
        check_between(-slope.imag, sides(f, [COMPLEX], 0, 1j * STEP), poles)


@gp.operator
def words(z):
    x, y = _readTensorElement(z, 0), _readTensorElement(z, 1)
    value = _vector(x, y)
    total = _complexExp(value) + _complexSqrt(value) + _complexLog(value) + _complexDiv(_double2(1.0, 0.0), value)
    return total.x + 2 * total.y


def test_complex_words_of_kernels_on_the_axes(device: str) -> None:
    """Their derivatives are those of holomorphic functions."""
    z = np.array([1, 2, 0.5, 1j, -2j, -1 + 1j])
    slope = np.exp(z) + 0.5 / np.sqrt(z) + 1 / z - 1 / z**2
    by_parts = gp.grad(lambda z: words(z).sum())(gp.VectorField(np.stack([z.real, z.imag], 1))).numpy()
    np.testing.assert_allclose(by_parts, np.stack([slope.real + 2 * slope.imag, 2 * slope.real - slope.imag], 1), 1e-12)


def curvature(f: Callable[[Any], Any], x: list[float]) -> Any:
    u = gp.Field(np.array(x, float))
    return gp.hvp(lambda u: f(u).sum(), (u,), (gp.Field(np.ones(len(x))),)).numpy()


def test_second_derivatives_where_text_chooses() -> None:
    with gp.use_device("reference"):
        np.testing.assert_allclose(curvature(np.sinc, [0, 1]), [-(np.pi**2) / 3, 2], 1e-12)
        p = 1 / (1 + np.exp(-2))
        np.testing.assert_allclose(curvature(lambda x: np.logaddexp(x, 1.0), [1, 3]), [0.25, p * (1 - p)], 1e-12)
        q = 1 / (1 + 2.0**-2)
        expected = np.array([0.25, q * (1 - q)]) * np.log(2)
        np.testing.assert_allclose(curvature(lambda x: np.logaddexp2(x, 1.0), [1, 3]), expected, 1e-12)


def test_infinite_operands() -> None:
    x, y = gp.Field(np.array([-np.inf, np.inf, 0.0])), gp.Field(np.array([0.0, 0.0, -np.inf]))
    with gp.use_device("reference"):
        by_x, by_y = gp.grad(lambda x, y: np.logaddexp(x, y).sum(), (0, 1))(x, y)
        assert (by_x.numpy().tolist(), by_y.numpy().tolist()) == ([0, 1, 1], [1, 0, 0])


def test_values_of_a_flat_table() -> None:
    """Equal neighbours have their shares by the place between them."""
    x, table = np.array([0.25, 1.0, 1.5]), np.zeros(3)
    with gp.use_device("reference"):
        slope = gp.grad(lambda values: np.interp(gp.Field(x), np.arange(3.0), values).sum())(gp.Field(table)).numpy()
    np.testing.assert_allclose(slope, [0.75, 0.25 + 1 + 0.5, 0.5], 1e-15)
