"""Linear interpolation between the points of a field, recorded as ordinary reads and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuop.base.errors import SemanticError, article
from gpuop.base.records import dataclass
from gpuop.dsl.builtins.access import _readTensor
from gpuop.dsl.builtins.access_arguments import _field, _kind, _moved, _shown
from gpuop.dsl.builtins.dimensions import by_name, coordinates
from gpuop.dsl.recorder.recorder import current
from gpuop.dsl.recorder.value import Operand, Value, apply, convert, integer, literal_atom
from gpuop.ir.nodes import Expr
from gpuop.ir.types import DOUBLE, FLOAT, INT, SMALL_TENSOR, DType, FieldType, Type, promote


@dataclass(frozen=True)
class Taps:
    """The two points around a coordinate, how far it is from the first, and whether it is the first."""

    low: Value
    high: Value
    fraction: Value
    whole: Value


def _sampleTensor(field: Operand, *point: Operand, border: Any = "clamp", offset: Any = None, **dims: Operand) -> Value:
    """The tensor of a field between its points: (bi-, tri-)linear interpolation at `[layer, [row,]] column`.

    Coordinates are as scipy.ndimage.map_coordinates(order=1) has them: k is exactly point k, whatever its neighbours
    hold, and k + t lies between the points k and k + 1, `a + (b - a) * t`. They are scalars of any type of numbers;
    integers take one point instead of two. Those that int does not hold, infinity too, count as its ends; NaN gives NaN.

    Args:
        field: a Field of small tensors (up to 4 elements); one that is 0D takes no coordinates.
        border: of the points taken, as in `_readTensor`. "unchecked" takes none but k at a coordinate k.
        offset: how far from the thread's own point, as in `_readTensor`, and between points too: `offset=_readTensor(flow)`.
        dims: coordinates by name, as in `_readTensor`.

    Returns:
        A scalar or vector: float, but double of a double field and half of a half field, which is rounded once.
    """
    recorder = current("`_sampleTensor`")
    param = _field(recorder, field)
    name, kind = _shown(recorder, param), _kind(field)
    point = _moved(recorder, field, point, dims, offset)
    if dims:
        point, _ = by_name(recorder, name, kind, point, dims)
    _check(name, kind, point)
    between = DOUBLE if param.type.element is DOUBLE else FLOAT

    def read(*at: Value) -> Value:
        value = _readTensor(field, *at, border=border)
        return Value(convert(value, value.type.of(between)))

    def sampled() -> Expr:
        value = _blend(read, [_axis(x, f"a coordinate of {name}", between) for x in point])
        kind = param.type.element if param.type.element.kind == "f" else FLOAT
        return convert(value, value.type.of(kind))

    return Value(recorder.steps(sampled))


def _check(name: str, kind: FieldType, point: tuple[Operand, ...]) -> None:
    grid = kind.field_shape
    if kind.planes > SMALL_TENSOR:
        raise SemanticError(
            f"{name} has big tensors ({kind.planes} elements), and `_sampleTensor` takes whole small ones; read "
            "elements at the points around with `_readTensorElement(f, …, element)` and blend them with `_mix(a, b, t)`"
        )
    if len(point) != len(grid):
        remedy = f"({coordinates(kind)})" if grid else "no coordinates"
        raise SemanticError(f"{name} is {len(grid)}D: give {remedy}, not {len(point)}")


def _axis(coordinate: Operand, what: str, between: DType) -> Taps | Value:
    """The points around a coordinate; the one point that an integer is."""
    expr = literal_atom(coordinate)
    if expr.type.lanes > 1:
        raise SemanticError(
            f"{what} is a scalar, not {article(str(expr.type))}; give its components one by one, as in "
            "`_sampleTensor(f, v.x, v.y)`"
        )
    if expr.type.kind == "b":
        raise SemanticError(f"{what} is a number, not a bool; convert with `_convert_float(x)`")
    if expr.type.integer:
        return Value(integer(coordinate, what))
    x = Value(convert(coordinate, Type(promote(expr.type.dtype, FLOAT))))
    low = apply("floor", x)
    first, second = (Value(convert(end, Type(INT))) for end in (low, apply("ceil", x)))
    return Taps(first, second, Value(convert(x - low, Type(between))), low == x)


def _blend(read: Callable[..., Value], axes: list[Taps | Value], at: tuple[Value, ...] = ()) -> Value:
    """The value at the axes' coordinates, those `at` being settled."""
    if not axes:
        return read(*at)
    axis, rest = axes[0], axes[1:]
    if isinstance(axis, Value):
        return _blend(read, rest, (*at, axis))
    low, high = (_blend(read, rest, (*at, end)) for end in (axis.low, axis.high))
    # chosen, not multiplied by 0: an infinite neighbour does not count
    return apply("choose", axis.whole, low, apply("mix", low, high, axis.fraction))
