"""numpy.pad: constants, and the modes that are borders of reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.fill_values import fill_of
from gpuop.ops.layout.axes import Axis, a_field, axes_of, type_of, whole_number
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.reorder import AlongAxis, along

BORDERS = {"edge": "clamp", "wrap": "wrap", "reflect": "reflect", "symmetric": "symmetric"}  # by NumPy name
Pair = tuple[Any, Any]  # before and after


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Field:
    """numpy.pad, in the modes "constant", "edge", "reflect", "symmetric" and "wrap"."""
    field = a_field("pad", array)
    if mode != "constant" and mode not in BORDERS:
        raise SemanticError(
            f"pad: of a Field the modes are constant, {', '.join(BORDERS)}, not {mode!r}; for others "
            "write an operator with a larger `outputs=`"
        )
    allowed = {"constant": {"constant_values"}, "reflect": {"reflect_type"}, "symmetric": {"reflect_type"}}.get(
        mode, set()
    )
    if (unknown := set(kwargs) - allowed) or kwargs.get("reflect_type", "even") != "even":
        what = ", ".join(sorted(unknown)) or f"reflect_type={kwargs['reflect_type']!r}"
        raise SemanticError(f"pad: mode {mode!r} of a Field does not take {what}")
    widths = [(int(low), int(high)) for low, high in _pairs(field, pad_width, "pad_width")]
    if min(map(min, widths), default=0) < 0:
        raise SemanticError(f"pad: widths are 0 or more, not {pad_width!r}; slices remove points")
    if not any(map(any, widths)):
        return field
    if mode == "constant":
        return _with_constants(field, widths, _pairs(field, kwargs.get("constant_values", 0), "constant_values"))
    for axis, (n, width) in enumerate(zip(field.type.array_shape, widths, strict=True)):
        if not n and any(width):
            raise SemanticError(f'pad: axis {axis} of a {field.type} field is empty: only mode "constant" pads it')
    return _padded(field, widths, BORDERS[mode], mode)


def _pairs(field: Field, arg: Any, what: str) -> list[Pair]:
    """Return the padding before and after each axis: from one number, a pair, or a pair for each."""
    count = len(field.type.array_shape)
    if isinstance(arg, (dict, Field)):
        raise SemanticError(f"pad: `{what}` is a number, a pair, or a pair for each axis, not {described(arg)}")
    try:
        pairs = np.broadcast_to(np.asarray(arg), (count, 2)).tolist()
    except ValueError:
        raise SemanticError(
            f"pad: `{what}` is a number, a pair, or a pair for each of the {count} axes, not {arg!r}"
        ) from None
    if what == "pad_width":
        pairs = [[whole_number(width, "a width") for width in pair] for pair in pairs]
    return [(before, after) for before, after in pairs]


def _padded(field: Field, widths: Sequence[Pair], border: Any, mode: Any) -> Field:
    """Return the field padded by a border; tensor axes as NumPy pads their numbers."""

    def row(n: int, width: Pair) -> AlongAxis:
        low = width[0]
        return AlongAxis(sum(width) + n, lambda at: at - low, lambda numbers: np.pad(numbers, width, mode))

    shape = field.type.array_shape
    rows = {axis: row(shape[axis], width) for axis, width in enumerate(widths) if any(width)}
    return along("pad", field, rows, (tuple(widths), type(border).__name__, repr(border)), border)


def _with_constants(field: Field, widths: list[Pair], numbers: list[Pair]) -> Field:
    """Return the field padded with numbers: one number for all sides is a border of reads."""
    values = [tuple(_held_number(field, v) for v in pair) for pair in numbers]
    used = [v for pair, width in zip(values, widths, strict=True) for v, w in zip(pair, width, strict=True) if w]
    alike = all(repr(v) == repr(used[0]) for v in used)
    if alike and not any(map(any, widths[len(field.field_shape) :])) and 0 not in field.field_shape:
        return _padded(field, widths, used[0], "constant")
    return _by_sides(field, widths, values)


def _held_number(field: Field, value: Any) -> Any:
    """Return the number in the field's dtype."""
    stored = fill_of(field.type, value, "constant_values")[0].value
    return stored if field.type.element.kind in "iu" else value


def _by_sides(field: Field, widths: Sequence[Pair], values: Sequence[Sequence[Any]]) -> Field:
    """Pad with a number for each side of each axis; corners have that of the last axis, as NumPy pads axis after axis."""
    shape, axes, grid = field.type.array_shape, axes_of(field.type), len(field.field_shape)
    out = type_of(
        "pad", [Axis(at.extent + sum(w), at.tensor, at.name) for at, w in zip(axes, widths, strict=True)], field.dtype
    )

    def value(at: Place, read: Reading) -> Any:
        inside = [c - low for c, (low, _) in zip(at, widths, strict=False)]
        padded_value: Any = None
        if 0 not in shape:
            clamped = [
                _inside(c, n) if axis >= grid else c for axis, (c, n) in enumerate(zip(inside, shape, strict=False))
            ]
            padded_value = read.at(field, clamped, "clamp")
        for c, n, pair, width in zip(inside, shape, values, widths, strict=False):
            for test, number, wide in zip((c < 0, c >= n), pair, width, strict=True):
                if wide:
                    padded_value = _either(test, read.number(number, field.type), padded_value)
        return padded_value

    whole = not any(map(any, widths[grid:]))
    return gathered("pad", out, [field], value, (tuple(widths), repr(values)), whole)


def _inside(at: Any, extent: int) -> Any:
    """Return an element inside the tensor."""
    return min(max(at, 0), extent - 1) if isinstance(at, int) else k._min(k._max(at, 0), extent - 1)


def _either(test: Any, number: Any, value: Any) -> Any:
    """Return the number if the test holds; tests of integers are decided during tracing."""
    if isinstance(test, bool):
        return number if test else value
    return number if value is None else k._where(test, number, value)
