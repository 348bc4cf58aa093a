"""Chains of stencils at constant distances, looked at under a schedule that is pinned."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.borders import CHECKED, PLACES

from .choose import Maker
from .program import Env, Show, Step
from .stencils import Stencil, Tap
from .values import Val

PINS: dict[str, dict[str, tuple[int, ...]]] = {  # methods, with parameters to try
    "plain": {},
    "roll": {"rows": (1, 3, 8, 64), "columns": (1, 2, 4, 8), "turn": (1, 2, 3), "width": (32, 128)},
    "tile": {"rows": (1, 5, 8, 32), "columns": (1, 8, 20, 64), "tall": (1, 3, 8, 16), "lanes": (1, 2, 4, 8)},
    "vector rows": {"rows": (1, 2, 3, 4, 8)},
}


class Near(Stencil):
    """A stencil whose taps are all at constant distances: whole arrays at once, as such fields are larger."""

    def _shifted(self, array: np.ndarray, tap: Tap) -> np.ndarray:
        place = PLACES["zero" if not isinstance(tap.border, str) else tap.border]
        found: list[list[Any]] = [
            [place(i + offset, n) for i in range(n)]
            for n, offset in zip(array.shape[: self.dimensions], tap.offsets, strict=True)
        ]
        inside = np.ix_(*([i if i is not None else 0 for i in axis] for axis in found))
        made = array[inside]
        for k, axis in enumerate(found):
            outside = np.array([i is None for i in axis])
            if outside.any():
                fill = 0 if tap.border == "zero" else tap.border
                made[(slice(None),) * k + (outside,)] = array.dtype.type(fill)
        return np.asarray(made)


@dataclass(frozen=True)
class Pinned(Step):
    """Look at fields under a schedule."""

    shown: Show
    method: str
    parameters: tuple[tuple[str, int], ...]

    def lines(self) -> list[str]:
        given = "".join(f", {name}={value}" for name, value in self.parameters)
        return [f'with gp.schedule("{self.method}"{given}):', *(f"    {line}" for line in self.shown.lines())]

    def run(self, env: Env) -> None:
        self.shown.run(env)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        yield (self.shown,)
        for k in range(len(self.parameters)):
            yield (replace(self, parameters=self.parameters[:k] + self.parameters[k + 1 :]),)
        for (less,) in self.shown.smaller():
            if isinstance(less, Show):
                yield (replace(self, shown=less),)


def a_pin(maker: Maker, names: tuple[str, ...]) -> bool:
    method = maker.one_of(list(PINS))
    given = tuple((name, maker.one_of(choices)) for name, choices in PINS[method].items() if maker.chance(0.5))
    return maker.add(Pinned(Show(names), method, given))


def a_near_stencil(maker: Maker, border: Any) -> bool:
    """Of one of the last fields, mostly with one border rule in a program, along one axis or around the point."""
    of = maker.field()
    given = maker.value(of)
    if given.dtype == "bool" or math.prod(given.tensor) > 4 or given.grid != maker.grid:
        of = maker.input(maker.one_of(("float32", "float32", "uint8", "int32", "int16", "float16", "float64")), ())
        given = maker.value(of)
    only = int(maker.rng.integers(len(given.grid))) if maker.chance(0.5) else None
    taps = tuple(_tap(maker, given, only, border) for _ in range(int(maker.rng.integers(1, 6))))
    return maker.add(Near(maker.name(), of, taps, len(given.grid)))


def _tap(maker: Maker, given: Val, only: int | None, border: Any) -> Tap:
    most = maker.one_of((1, 1, 2, 2, 5))
    offsets = tuple(
        int(maker.rng.integers(-most, most + 1)) if only in (None, axis) else 0 for axis in range(len(given.grid))
    )
    weight = maker.one_of((1, 1, 2, 3) if given.number.dtype.kind == "u" else (1, 1, 2, -1, -3))
    border = maker.one_of((*CHECKED, 7)) if maker.chance(0.1) else border
    return Tap(weight, (1,) * len(given.grid), offsets, "zero" if given.unorm and border == 7 else border)


def a_ragged_grid(maker_rng: np.random.Generator) -> tuple[int, ...]:
    """Extents about the lengths of vectors, groups and tiles, and down to 1."""
    count = int(maker_rng.choice((1, 2, 2, 2, 2, 3)))
    columns = int(maker_rng.choice((1, 2, 3, 8, 15, 16, 17, 31, 33, 40, 64, 67, 130)))
    others = tuple(int(n) for n in maker_rng.choice((1, 2, 3, 4, 5, 7, 9, 16, 18), count - 1))
    return (*others, columns)
