"""Operators that read around every point, at every border, also of fields smaller than the window."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.borders import CHECKED, PLACES

from .choose import Maker
from .program import Env, Step
from .values import FLOATS, INTEGERS, Rejected, Val

AXES = ("_layer", "_row", "_column")


def read(array: np.ndarray, dimensions: int, at: tuple[int, ...], border: Any) -> np.ndarray:
    """A tensor of a field's array at a point."""
    place = PLACES["zero" if not isinstance(border, str) else border]
    places = [place(i, n) for i, n in zip(at, array.shape[:dimensions], strict=True)]
    if None in places:
        fill = 0 if border == "zero" else border
        return np.full(array.shape[dimensions:], fill, array.dtype)
    return np.asarray(array[tuple(p for p in places if p is not None)])


@dataclass(frozen=True)
class Tap:
    """One read: a weight, and for every axis a factor of the coordinate and an offset; `apart` where `offset=` says it."""

    weight: Any
    factors: tuple[int, ...]
    offsets: tuple[int, ...]
    border: Any
    apart: bool = False

    def coordinates(self, names: tuple[str, ...]) -> str:
        if self.apart:
            return f"offset={self.offsets}"
        shown = []
        for name, factor, offset in zip(names, self.factors, self.offsets, strict=True):
            scaled = name if factor == 1 else f"{factor} * {name}"
            shown.append(f"{scaled} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else scaled)
        return ", ".join(shown)


@dataclass(frozen=True)
class Stencil(Step):
    """Σ weight · read, from the first tap on, every step rounded to the field's dtype."""

    name: str
    of: str
    taps: tuple[Tap, ...]
    dimensions: int
    dynamic: bool = False

    def above(self) -> dict[str, list[str]]:
        names = AXES[3 - self.dimensions :]
        reads = [f"{t.weight} * _readTensor(f, {t.coordinates(names)}, border={t.border!r})" for t in self.taps]
        body = [f"    total = {reads[0]}", *(f"    total = total + {r}" for r in reads[1:]), "    return total"]
        return {
            f"stencil_{self.name}": [f"@gp.operator(dynamic={self.dynamic})", f"def stencil_{self.name}(f):", *body]
        }

    def lines(self) -> list[str]:
        return [f"{self.name} = stencil_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if len(value.grid) != self.dimensions or not self.dimensions or math.prod(value.tensor) > 4:
            raise Rejected("shape")
        if value.dtype == "bool" or any(not isinstance(t.border, str) and value.unorm for t in self.taps):
            raise Rejected("dtype")
        array = value.number
        total: Any = None
        for tap in self.taps:
            term = array.dtype.type(tap.weight) * self._shifted(array, tap)
            total = term if total is None else total + term
        env.values[self.name] = Val(total, value.order)

    def _shifted(self, array: np.ndarray, tap: Tap) -> np.ndarray:
        result = np.empty_like(array)
        for at in np.ndindex(array.shape[: self.dimensions]):
            where = tuple(f * i + o for i, f, o in zip(at, tap.factors, tap.offsets, strict=True))
            result[at] = read(array, self.dimensions, where, tap.border)
        return result

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if self.dynamic:
            yield (replace(self, dynamic=False),)
        for k, tap in enumerate(self.taps):
            if len(self.taps) > 1:
                yield (replace(self, taps=self.taps[:k] + self.taps[k + 1 :]),)
            if tap.weight != 1:
                yield (replace(self, taps=(*self.taps[:k], replace(tap, weight=1), *self.taps[k + 1 :])),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


def a_stencil(maker: Maker, of: str = "") -> bool:
    of = of or maker.field()
    value = maker.value(of)
    if value.dtype == "bool" or math.prod(value.tensor) > 4 or not value.grid:
        of = maker.input(maker.one_of((*INTEGERS, *FLOATS, "float32", "unorm8")), maker.one_of(((), (), (3,), (2, 2))))
        value = maker.value(of)
    if not value.grid or 0 in value.grid:
        return False
    taps = tuple(_tap(maker, value) for _ in range(int(maker.rng.integers(1, 5))))
    return maker.add(Stencil(maker.name(), of, taps, len(value.grid), maker.chance(0.3)))


def _tap(maker: Maker, value: Val) -> Tap:
    kind = value.number.dtype.kind
    weight = maker.one_of((1, 1, 2, 3)) if kind == "u" else maker.one_of((1, 1, 2, -1, -3))
    if kind == "f" and maker.chance(0.5):
        weight = maker.one_of((0.5, -0.25, 1.5))
    far = maker.chance(0.2)
    offsets = tuple(int(maker.rng.integers(-40, 41) if far else maker.rng.integers(-3, 4)) for _ in value.grid)
    factors = tuple(int(maker.one_of((1, 1, 1, 1, 1, -1, 2, 0))) for _ in value.grid)
    border = maker.one_of(CHECKED)
    if not value.unorm and maker.chance(0.15):
        border = maker.one_of((7, 1) if kind != "f" else (7, -2.5, 0.5))
    return Tap(weight, factors, offsets, border, set(factors) == {1} and maker.chance(0.4))


# --- between points -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample(Step):
    """`_sampleTensor` at the coordinates scale · point + offset: of small whole numbers and quarters, so it is exact."""

    name: str
    of: str
    scale: float
    offsets: tuple[float, ...]
    border: Any

    def above(self) -> dict[str, list[str]]:
        names = AXES[3 - len(self.offsets) :]
        where = ", ".join(f"{self.scale} * _convert_float({n}) + {o}" for n, o in zip(names, self.offsets, strict=True))
        body = f"    return _sampleTensor(f, {where}, border={self.border!r})"
        return {f"sample_{self.name}": ["@gp.operator", f"def sample_{self.name}(f):", body]}

    def lines(self) -> list[str]:
        return [f"{self.name} = sample_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        array = value.array
        if len(value.grid) != len(self.offsets) or math.prod(value.tensor) > 4 or value.unorm:
            raise Rejected("shape")
        if (
            array.dtype.kind == "f"
            and not (np.isfinite(array) & (np.abs(array) <= 8) & (array * 8 == np.floor(array * 8))).all()
        ):
            raise Rejected("rounds")
        if array.dtype.kind != "f" and (np.abs(array.astype(np.float64)) > 1000).any():
            raise Rejected("rounds")
        dtype = array.dtype if array.dtype.kind == "f" else np.dtype("float32")
        result = np.empty(array.shape, np.float64)
        for at in np.ndindex(value.grid):
            where = [self.scale * i + o for i, o in zip(at, self.offsets, strict=True)]
            result[at] = self._at(array.astype(np.float64), (), where)
        env.values[self.name] = Val(result.astype(dtype), value.order, ends=bool((result == 0).any()))

    def _at(self, array: np.ndarray, settled: tuple[int, ...], rest: list[float]) -> np.ndarray:
        if not rest:
            return read(array, len(self.offsets), settled, self.border)
        low = math.floor(rest[0])
        part = rest[0] - low
        first = self._at(array, (*settled, low), rest[1:])
        return first if part == 0 else first + (self._at(array, (*settled, low + 1), rest[1:]) - first) * part


def a_sample(maker: Maker) -> bool:
    of = maker.input(
        maker.one_of(("float32", "float32", "float64", "int32", "uint8", "float16", "bool")), maker.one_of(((), (3,)))
    )
    grid = maker.value(of).grid
    if not grid or 0 in grid:
        return False
    offsets = tuple(float(maker.rng.integers(-12, 13)) / 4 for _ in grid)
    border = maker.one_of((*CHECKED, *([1] * (maker.value(of).dtype != "bool"))))
    return maker.add(Sample(maker.name(), of, maker.one_of((1.0, 0.5, 0.25, -1.0, 2.0)), offsets, border))
