"""Comparison of fields with expected values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.runtime.devices import current
from gpuop.testing.metrics import Array, both, difference, errors, ulps, values_of

NUMPYS = 1e-7  # the relative tolerance of numpy.testing.assert_allclose


@hinted
def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float = 0, max_ulps: float | None = None
) -> None:
    """Assert that values are close to expected ones: `numpy.testing.assert_allclose` for Fields, with the places that differ.

    A value is close if |a - e| <= atol + rtol·|e|, or if it is within `max_ulps`. NaN is close to NaN.

    Args:
        actual: a Field, which the device in use computes, or an array-like value.
        expected: the same; of the same shape, or one that broadcasts to it.
        rtol, atol: the tolerance; `rtol` is 1e-7 if neither it nor `max_ulps` is given, else 0.
        max_ulps: the tolerance of floats in units of the last place of the type of `actual`.

    Raises:
        AssertionError: with the first place that differs, the worst one, and the errors of the whole.
    """
    __tracebackhide__ = True
    result, want = values_of(actual), values_of(expected)
    title = _title(actual, result)
    if rtol is None:
        rtol = NUMPYS if max_ulps is None else 0.0
    try:
        spread = both(result, want)[0].shape
    except SemanticError:
        spread = ()
    if spread != result.shape:
        raise AssertionError(f"{title} is compared with values of shape {want.shape}")
    wrong = _wrong(result, np.broadcast_to(want, result.shape), rtol, atol, max_ulps)
    if wrong.any():
        limits = [f"rtol={rtol:g}", f"atol={atol:g}"] + ([] if max_ulps is None else [f"max_ulps={max_ulps:g}"])
        raise AssertionError(
            f"{title} is not close to what is expected ({', '.join(limits)})\n{_where(result, want, wrong)}"
        )


def _title(actual: Any, result: Array) -> str:
    if not isinstance(actual, Field):
        return f"an array of shape {result.shape} and dtype {result.dtype}"
    return f"{f'`{actual.name}`' if actual.name else 'a field'}, {actual.type}, on {current().name},"


def _wrong(result: Array, want: Array, rtol: float, atol: float, max_ulps: float | None) -> Array:
    off = difference(result, want)
    with np.errstate(all="ignore"):
        near = off <= atol + rtol * np.abs(want.astype(np.result_type(want, np.longdouble)))
    if max_ulps is not None and result.dtype.kind == "f":
        near |= ulps(result, want) <= max_ulps
    wrong: Array = (off > 0) & (~near | np.isinf(off))
    return wrong


def _where(result: Array, want: Array, wrong: Array) -> str:
    """The first place that differs, and the worst one."""
    want = np.broadcast_to(want, result.shape)
    first = tuple(int(n) for n in np.argwhere(wrong)[0])
    worst = errors(np.where(wrong, result, want), want).worst
    lines = [f"  at {int(wrong.sum()):,} of {result.size:,} places: {errors(result, want)}"]
    for what, place in (("first", first), ("worst", worst)):
        assert place is not None
        at = f"[{', '.join(map(str, place))}]" if place else "its one value"
        lines.append(f"  {what} at {at}: {result[place]}, not {want[place]}")
    return "\n".join(lines)
