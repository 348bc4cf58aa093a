"""Operators that take one of the values around every point: by its rank among them, or by an index; or add them by a window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.borders import CHECKED, PLACES

from .choose import Maker
from .program import Env, Step
from .values import INTEGERS, Rejected, Val

Offsets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Around(Step):
    """A value of the values at some offsets, along whose axes borders may differ.

    Attributes:
        how: "select" the value of the rank, "sort" all and take it, or "switch" by the column plus that number.
    """

    name: str
    of: str
    offsets: Offsets
    borders: tuple[str, ...]
    how: str
    rank: int

    def above(self) -> dict[str, list[str]]:
        border = repr(self.borders if len(set(self.borders)) > 1 else self.borders[0])
        result = {
            "select": f"_select(values, {self.rank})",
            "sort": f"_sort(values)[{self.rank}]",
            "switch": f"_switch(_column + {self.rank}, [lambda k=k: values[k] for k in range(len(values))])",
        }[self.how]
        read = f"    values = [_readTensor(f, offset=offset, border={border}) for offset in {self.offsets}]"
        return {f"around_{self.name}": ["@gp.operator", f"def around_{self.name}(f):", read, f"    return {result}"]}

    def lines(self) -> list[str]:
        return [f"{self.name} = around_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        array, count = value.number, len(value.grid)
        if count != len(self.borders) or not count or 0 in value.grid or math.prod(value.tensor) > 4:
            raise Rejected("shape")
        unordered = array.dtype.kind == "f" and bool((np.isnan(array) | ((array == 0) & np.signbit(array))).any())
        if value.dtype == "bool" or (unordered and self.how != "switch"):
            raise Rejected("dtype")
        values = np.stack([self._moved(array, offset) for offset in self.offsets])
        if self.how == "switch":
            columns = np.arange(array.shape[count - 1]) + self.rank
            places = np.clip(columns, 0, len(values) - 1).reshape(-1, *(1,) * (array.ndim - count))
            result = np.take_along_axis(values, np.broadcast_to(places, array.shape)[None], 0)[0]
        else:
            result = np.sort(values, 0)[self.rank]
        env.values[self.name] = Val(result, value.order)

    def _moved(self, array: Any, offset: tuple[int, ...]) -> Any:
        for axis, (step, border) in enumerate(zip(offset, self.borders, strict=True)):
            places = [PLACES[border](i + step, array.shape[axis]) for i in range(array.shape[axis])]
            outside = np.reshape([p is None for p in places], (-1, *(1,) * (array.ndim - axis - 1)))
            array = np.where(outside, array.dtype.type(0), np.take(array, [p or 0 for p in places], axis))
        return array

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


def a_rank(maker: Maker, of: str = "") -> bool:
    of = of or maker.field()
    if maker.value(of).dtype == "bool" or not maker.value(of).grid:
        of = maker.input(maker.one_of((*INTEGERS, "float32", "unorm8")), maker.one_of(((), (), (3,))))
    axes = len(maker.value(of).grid)
    if not axes:
        return False
    count, border = int(maker.rng.integers(2, 10)), maker.one_of(CHECKED)
    offsets = tuple(tuple(int(maker.rng.integers(-2, 3)) for _ in range(axes)) for _ in range(count))
    borders = tuple(maker.one_of(CHECKED) if maker.chance(0.3) else border for _ in range(axes))
    how = maker.one_of(("select", "sort", "switch"))
    rank = int(maker.rng.integers(-4, 3) if how == "switch" else maker.rng.integers(count))
    return maker.add(Around(maker.name(), of, offsets, borders, how, rank))
