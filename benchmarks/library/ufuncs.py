"""NumPy's ufuncs on fields."""

from __future__ import annotations

from collections.abc import Iterable

from .row import Row

CALLS = {  # what they are called with: their names
    "signed": "absolute arcsinh arctan cbrt ceil conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor isfinite isinf isnan "
    "negative positive rad2deg radians rint sign signbit sin sinh square tan tanh trunc",
    "image": "arccos arcsin arctanh",
    "other": "log log10 log1p log2 reciprocal sqrt",
    "other + 1": "arccosh",
    "signed, other": "add arctan2 copysign divide equal floor_divide fmax fmin fmod greater greater_equal heaviside hypot less "
    "less_equal logaddexp logaddexp2 maximum minimum multiply nextafter not_equal remainder subtract true_divide",
    "other, image": "power",
    "whole": "bitwise_count invert",
    "whole, more": "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift",
    "mask": "logical_not",
    "mask, other_mask": "logical_and logical_or logical_xor",
}
METHODS = {
    "image, axis=1": "add.reduce multiply.reduce maximum.reduce minimum.reduce fmax.reduce fmin.reduce",
    "mask, axis=1": "logical_and.reduce logical_or.reduce",
    "image, axis=1 ": "add.accumulate multiply.accumulate maximum.accumulate minimum.accumulate",
    "row[:size], other_row[:size]": "multiply.outer",
    "signed, other": "divmod",
    "signed": "modf",
}


def _rows(calls: dict[str, str], torch: bool) -> Iterable[Row]:
    for arguments, names in calls.items():
        for name in names.split():
            call = f"{name}({arguments.strip()})"
            yield Row("numpy", name, f"np.{call}", torch=f"torch.{call}" if torch else "")


ROWS = [*_rows(CALLS, True), *_rows(METHODS, False)]
