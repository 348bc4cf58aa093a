"""Expected cotangents: central differences of functions in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop as gp

STEP = 1e-6
Function = Callable[..., Any]


def slope(function: Function, args: Sequence[Any], weights: Sequence[Any], number: int) -> Any:
    """The derivative of the weighted sum of a function's results, by each element of an argument."""
    result = np.zeros(args[number].shape)

    def total(value: Any) -> float:
        given = [value if n == number else arg for n, arg in enumerate(args)]
        results = function(*given)
        results = results if isinstance(results, tuple) else (results,)
        return float(sum(np.sum(r * w) for r, w in zip(results, weights, strict=True)))

    for place in np.ndindex(result.shape):
        high, low = np.array(args[number]), np.array(args[number])
        high[place] += STEP
        low[place] -= STEP
        result[place] = (total(high) - total(low)) / (2 * STEP)
    return result


def check(fields: Function, arrays: Function, *args: Any, make: Function = gp.Field, atol: float = 1e-8) -> None:
    """Compare the pulled cotangents of a function of fields with differences of the same function of arrays."""
    args = tuple(np.asarray(arg, np.float64) for arg in args)
    out, pull = gp.vjp(fields, *map(make, args))
    outs = out if isinstance(out, tuple) else (out,)
    expected = arrays(*args)
    for own, value in zip(outs, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(own.numpy(), value, rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(7)
    weights = [rng.standard_normal(each.type.array_shape) for each in outs]
    bars = [gp.Field(w, len(o.tensor_shape)) for w, o in zip(weights, outs, strict=True)]
    pulled = pull(tuple(bars) if isinstance(out, tuple) else bars[0])
    for number, field in enumerate(pulled):
        differences = slope(arrays, args, weights, number)
        assert field.type.array_shape == args[number].shape
        np.testing.assert_allclose(
            field.numpy(), differences, rtol=1e-6, atol=atol * max(1.0, np.abs(differences).max())
        )
