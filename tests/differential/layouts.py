"""Functions that move the values of fields, as NumPy's: the text of a call is NumPy's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .choose import Maker
from .program import Env, Step
from .values import Rejected, Val

MOST = 3000  # values of a result


@dataclass(frozen=True)
class Layout(Step):
    """A call of NumPy's.

    Attributes:
        form: Python's text of it, with {} for each field.
        order: of the result's tensors.
    """

    name: str
    form: str
    of: tuple[str, ...]
    order: int

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.form.format(*self.of)}"]

    def run(self, env: Env) -> None:
        values = [env.usable(name) for name in self.of]
        if len({value.dtype for value in values}) > 1:
            raise Rejected("dtypes")
        names = [f"x{k}" for k in range(len(values))]
        try:
            result = eval(
                self.form.format(*names), {"np": np, **{n: v.array for n, v in zip(names, values, strict=True)}}
            )
        except (ValueError, IndexError, TypeError) as refused:
            raise Rejected(str(refused)) from None
        array = np.ascontiguousarray(result)
        if (
            array.size > MOST
            or array.ndim - self.order > 3
            or self.order > 2
            or 0 in array.shape[array.ndim - self.order :]
        ):
            raise Rejected("shape")
        slack = None if all(value.slack is None for value in values) else np.zeros(np.shape(result))
        env.values[self.name] = Val(array.reshape(np.shape(result)), self.order, values[0].unorm, slack=slack)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


Drawn = (
    tuple[str, int] | None
)  # the text of a call and the order of its result; None where there is none of such a field


def _axis(maker: Maker, count: int) -> int:
    return int(maker.rng.integers(-count, count))


def _permuted(value: Val, axes: list[int]) -> int:
    """The order of what has the axes in this order: a tensor's axis before one of the grid's is the grid's."""
    first = value.array.ndim - value.order
    return next((k for k, axis in enumerate(reversed(axes)) if axis < first), len(axes))


def roll(maker: Maker, value: Val) -> Drawn:
    axis = maker.one_of((None, _axis(maker, value.array.ndim)))
    return f"np.roll({{}}, {int(maker.rng.integers(-9, 10))}, axis={axis})", value.order


def flip(maker: Maker, value: Val) -> Drawn:
    return f"np.flip({{}}, axis={maker.one_of((None, _axis(maker, value.array.ndim)))})", value.order


def rot90(maker: Maker, value: Val) -> Drawn:
    if value.array.ndim - value.order < 2:
        return None
    axes = tuple(int(a) for a in maker.rng.permutation(value.array.ndim - value.order)[:2])
    return f"np.rot90({{}}, {int(maker.rng.integers(-3, 4))}, axes={axes})", value.order


def transpose(maker: Maker, value: Val) -> Drawn:
    axes = [int(a) for a in maker.rng.permutation(value.array.ndim)]
    return f"np.transpose({{}}, {tuple(axes)})", _permuted(value, axes)


def moveaxis(maker: Maker, value: Val) -> Drawn:
    count = value.array.ndim
    source, target = int(maker.rng.integers(count)), int(maker.rng.integers(count))
    axes = [a for a in range(count) if a != source]
    axes.insert(target, source)
    return f"np.moveaxis({{}}, {source}, {target})", _permuted(value, axes)


def repeat(maker: Maker, value: Val) -> Drawn:
    return f"np.repeat({{}}, {int(maker.rng.integers(1, 4))}, axis={_axis(maker, value.array.ndim)})", value.order


def tile(maker: Maker, value: Val) -> Drawn:
    reps = tuple(int(n) for n in maker.rng.integers(1, 3, value.array.ndim))
    return f"np.tile({{}}, {reps})", value.order


def pad(maker: Maker, value: Val) -> Drawn:
    widths = [tuple(int(n) for n in maker.rng.integers(0, 4, 2)) for _ in range(value.array.ndim - value.order)]
    widths += [(0, 0)] * value.order
    mode = maker.one_of(("edge", "reflect", "symmetric", "wrap", "constant"))
    return f'np.pad({{}}, {tuple(widths)}, mode="{mode}")', value.order


def take(maker: Maker, value: Val) -> Drawn:
    axis = int(maker.rng.integers(value.array.ndim - value.order)) if value.array.ndim > value.order else -1
    extent = value.array.shape[axis]
    if axis < 0 or not extent:
        return None
    at = [int(n) for n in maker.rng.integers(-extent, extent, maker.rng.integers(1, 8))]
    return f"np.take({{}}, {at}, axis={axis})", value.order


def diff(maker: Maker, value: Val) -> Drawn:
    if value.unorm or value.array.ndim == value.order:
        return None
    axis = int(maker.rng.integers(value.array.ndim - value.order))
    return f"np.diff({{}}, {int(maker.rng.integers(1, 3))}, axis={axis})", value.order


def part(maker: Maker, value: Val) -> Drawn:
    if value.array.ndim == value.order:
        return None
    count, axis = int(maker.rng.integers(1, 5)), int(maker.rng.integers(value.array.ndim - value.order))
    return f"np.array_split({{}}, {count}, axis={axis})[{int(maker.rng.integers(count))}]", value.order


def reshape(maker: Maker, value: Val) -> Drawn:
    if value.order:
        return None
    size = value.array.size
    first = int(maker.one_of([d for d in range(1, size + 1) if size % d == 0] or [1]))
    return f"{{}}.reshape({maker.one_of((f'{first}, -1', f'-1, {first}', '-1'))})" if size else "{}.reshape(-1)", 0


def expand(maker: Maker, value: Val) -> Drawn:
    if value.order:
        return None
    return f"np.expand_dims({{}}, {int(maker.rng.integers(value.array.ndim + 1))})", 0


def broadcast(maker: Maker, value: Val) -> Drawn:
    if value.order:
        return None
    return f"np.broadcast_to({{}}, {(int(maker.rng.integers(1, 4)), *value.array.shape)})", 0


ONE: tuple[Callable[[Maker, Val], Drawn], ...] = (
    roll, flip, rot90, transpose, moveaxis, repeat, tile, pad, take, diff, part, reshape, expand, broadcast,
)  # fmt: skip


def a_layout(maker: Maker) -> bool:
    of = maker.field()
    value = maker.value(of)
    if not value.array.ndim:
        return False
    if maker.chance(0.25):
        return _joined(maker, of, value)
    drawn = maker.one_of(ONE)(maker, value)
    return drawn is not None and maker.add(Layout(maker.name(), drawn[0], (of,), drawn[1]))


def _joined(maker: Maker, of: str, value: Val) -> bool:
    """With one or two others of its dtype, along an axis of the grid."""
    count = len(value.grid)
    if not count or math.prod(value.tensor) > 4:
        return False
    axis = int(maker.rng.integers(count))
    stacked = not value.order and maker.chance(0.4)
    grids: list[Any] = [value.grid] * int(maker.rng.integers(1, 3))
    if not stacked:
        grids = [(*g[:axis], int(maker.rng.integers(1, 6)), *g[axis + 1 :]) for g in grids]
    names = (of, *(maker.input(value.dtype, value.tensor, grid) for grid in grids))
    fields = ", ".join(["{}"] * len(names))
    if stacked:
        axis = int(maker.rng.integers(count + 1))
        return maker.add(Layout(maker.name(), f"np.stack([{fields}], axis={axis})", names, int(axis == count)))
    return maker.add(Layout(maker.name(), f"np.concatenate([{fields}], axis={axis})", names, value.order))
