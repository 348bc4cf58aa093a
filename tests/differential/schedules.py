"""Stencils, transposes, pictures halved and doubled, histograms and sums of columns, looked at under a schedule that is pinned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.borders import CHECKED

from .choose import Maker
from .gathers import UPDATES, Gather, Place, Scatter, Tap
from .program import Env, Show, Step
from .reductions import REDUCTIONS, Reduce
from .values import Val

PINS: dict[str, dict[str, tuple[int, ...]]] = {  # methods, with parameters to try
    "plain": {},
    "roll": {"columns": (1, 2, 4, 8), "rows": (1, 3, 8, 64), "turn": (1, 2, 3), "width": (32, 128)},
    "layers": {"columns": (1, 2, 4, 8), "layers": (1, 3, 64), "width": (1, 8, 32)},
    "transpose": {
        "size": (1, 16, 24, 64), "lanes": (1, 2, 3, 16), "rows": (1, 4, 7, 64), "columns": (1, 4, 16), "align": (1, 4, 8),
    },
    "tile": {"rows": (1, 5, 8, 32), "columns": (1, 8, 20, 64), "tall": (1, 3, 8, 16), "lanes": (1, 2, 4, 8)},
    "line buffers": {
        "columns": (1, 16, 40, 128, 999), "rows": (1, 2, 5, 16), "layers": (1, 2, 9), "together": (1, 2, 3, 4),
    },
    "interchange": {"vectors": (1, 2, 5, 64)},
    "group lanes": {"vectors": (1, 2, 3, 4)},
    "resample": {"rows": (1, 2, 3, 4, 8)},
    "vector rows": {"rows": (1, 2, 3, 4, 8)},
    "privatize": {"strips": (1, 3, 16, 999), "copies": (1, 2, 3, 4, 9), "lanes": (1, 4, 16), "points": (1, 3, 16, 128)},
    "shifted rows": {"columns": (1, 2, 5, 16)},
    "ragged words": {"columns": (1, 16)},
}  # fmt: skip

OF_GPUS = ("plain", "roll", "layers", "transpose", "tile", "shifted rows", "ragged words")


@dataclass(frozen=True)
class Pinned(Step):
    """Look at fields under a schedule."""

    shown: Show
    method: str
    parameters: tuple[tuple[str, int], ...]

    def lines(self) -> list[str]:
        values = "".join(f", {name}={value}" for name, value in self.parameters)
        return [f'with gp.schedule("{self.method}"{values}):', *(f"    {line}" for line in self.shown.lines())]

    def run(self, env: Env) -> None:
        self.shown.run(env)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        yield (self.shown,)
        for k in range(len(self.parameters)):
            yield (replace(self, parameters=self.parameters[:k] + self.parameters[k + 1 :]),)
        for (less,) in self.shown.smaller():
            if isinstance(less, Show):
                yield (replace(self, shown=less),)


def a_pin(maker: Maker, method: str, names: tuple[str, ...]) -> bool:
    values = tuple((name, maker.one_of(choices)) for name, choices in PINS[method].items() if maker.chance(0.5))
    return maker.add(Pinned(Show(names), method, values))


def suited(maker: Maker, method: str, border: Any) -> bool:
    """A step that the method is for."""
    return MADE_FOR.get(method, a_near_stencil)(maker, border)


def a_near_stencil(maker: Maker, border: Any) -> bool:
    """A read of one of the last fields, mostly with one border rule in a program, along one axis or around the point."""
    of = maker.field()
    value = maker.value(of)
    if value.dtype == "bool" or math.prod(value.tensor) > 4 or value.grid != maker.grid:
        of = maker.input(maker.one_of(NUMBERS), ())
        value = maker.value(of)
    axes = range(len(value.grid))
    only = int(maker.rng.integers(len(value.grid))) if maker.chance(0.5) else None
    return _gathered(
        maker, of, lambda: tuple(Place(k, _offset(maker) if only in (None, k) else 0) for k in axes), border
    )


def a_stencil_of_bytes(maker: Maker, border: Any) -> bool:
    of, axes = maker.input("uint8", ()), range(len(maker.grid))
    return _gathered(maker, of, lambda: tuple(Place(k, _offset(maker)) for k in axes), border, 2)


def a_transpose(maker: Maker, border: Any) -> bool:
    """A read of values that lie on the grid with its axes in another order, and may have been computed there."""
    last, *others = (int(k) for k in maker.rng.permutation(len(maker.grid)))
    order = (*others, last) if last + 1 < len(maker.grid) else (last, *others)
    of = maker.input(maker.one_of(NUMBERS), (), tuple(maker.grid[k] for k in order))
    of = _perhaps_computed(maker, "add", of)
    near = maker.chance(0.1)
    return _gathered(maker, of, lambda: tuple(Place(k, _offset(maker) if near else 0) for k in order), border, 2)


def _perhaps_computed(maker: Maker, op: str, of: str) -> str:
    """The field, or one computed of it, unless its tensors are big then: the other operand may be a matrix."""
    if maker.chance(0.5) and maker.add(maker.proposed(op, of, maker.name())):
        last = list(maker.env.values)[-1]
        return last if math.prod(maker.value(last).tensor) <= 4 else of
    return of


def a_resampling(maker: Maker, border: Any) -> bool:
    """A picture of other columns, and often of other rows."""
    kinds = [maker.one_of(((2, 1), (1, 2), (4, 1), (3, 1), (1, 1))) for _ in maker.grid[:-1]]
    kinds.append(maker.one_of(((2, 1), (1, 2), (2, 1), (1, 2), (4, 1), (3, 1), (1, 4))))
    grid = tuple(max(n * times // over, 1) for n, (times, over) in zip(maker.grid, kinds, strict=True))
    of = maker.input(maker.one_of(NUMBERS), (), grid)
    places = lambda: tuple(Place(k, _offset(maker), *kind) for k, kind in enumerate(kinds))  # noqa: E731
    return _gathered(maker, of, places, border)


def a_shift(maker: Maker, border: Any) -> bool:
    """A read of a field that may be larger or smaller."""
    grid = tuple(max(n + int(maker.rng.integers(-2, 5)), 1) for n in maker.grid)
    of = maker.input(maker.one_of(NUMBERS), (), grid)
    return _gathered(maker, of, lambda: tuple(Place(k, _offset(maker)) for k in range(len(grid))), border, 3)


def _gathered(maker: Maker, of: str, places: Callable[[], tuple[Place, ...]], border: Any, most: int = 5) -> bool:
    value = maker.value(of)
    taps = tuple(_tap(maker, value, places(), border) for _ in range(int(maker.rng.integers(1, most + 1))))
    return maker.add(Gather(maker.name(), of, taps, maker.grid, maker.chance(0.3)))


def _tap(maker: Maker, value: Val, places: tuple[Place, ...], border: Any) -> Tap:
    weight = maker.one_of((1, 1, 2, 3) if value.number.dtype.kind == "u" else (1, 1, 2, -1, -3))
    border = maker.one_of((*CHECKED, 7)) if maker.chance(0.1) else border
    return Tap(weight, places, "zero" if value.unorm and border == 7 else border)


def _offset(maker: Maker, distances: tuple[int, ...] = (1, 1, 2, 2, 5)) -> int:
    most = maker.one_of(distances)
    return int(maker.rng.integers(-most, most + 1))


def a_scatter(maker: Maker, border: Any) -> bool:
    of = maker.input(maker.one_of(("uint8", "int32", "int16", "uint8")), ())
    of = _perhaps_computed(maker, maker.one_of(("add", "minimum")), of)
    how, bins = maker.one_of(list(UPDATES)), int(maker.one_of((1, 5, 40, 256, 3000)))
    dtype, start = maker.one_of(("int32", "uint32")), int(maker.one_of((0, 0, 7)))
    return maker.add(Scatter(maker.name(), of, how, bins, dtype, start))


def a_column_reduction(maker: Maker, border: Any) -> bool:
    of = maker.field()
    if len(maker.value(of).grid) < 2:
        return False
    return maker.add(Reduce(maker.name(), of, maker.one_of(REDUCTIONS), len(maker.value(of).grid) - 2))


def a_row_reduction(maker: Maker, border: Any) -> bool:
    of = maker.field()
    if not maker.value(of).grid:
        return False
    return maker.add(Reduce(maker.name(), of, maker.one_of(REDUCTIONS), len(maker.value(of).grid) - 1))


def a_stencil_of_a_stencil(maker: Maker, border: Any) -> bool:
    """Along layers and rows both."""
    of, axes = maker.input(maker.one_of(("float32", "int32")), ()), range(len(maker.grid))
    places = lambda: tuple(Place(k, _offset(maker, (0, 1))) for k in axes)  # noqa: E731
    return _gathered(maker, of, places, border) and _gathered(maker, list(maker.env.values)[-1], places, border)


NUMBERS = ("float32", "float32", "uint8", "int32", "int16", "float16", "float64")
MADE_FOR = {
    "transpose": a_transpose, "resample": a_resampling, "privatize": a_scatter, "interchange": a_column_reduction,
    "group lanes": a_row_reduction, "layers": a_stencil_of_a_stencil, "shifted rows": a_shift,
    "ragged words": a_stencil_of_bytes,
}  # fmt: skip


def a_ragged_grid(rng: np.random.Generator, method: str) -> tuple[int, ...]:
    """Extents about the lengths of vectors, groups and tiles, and down to 1; often some that the method is for."""
    count = 3 if method == "layers" else int(rng.choice((1, 2, 2, 2, 2, 3)))
    columns = int(rng.choice((1, 2, 3, 8, 15, 16, 17, 31, 33, 40, 64, 67, 130)))
    others = [int(n) for n in rng.choice((1, 2, 3, 4, 5, 7, 9, 16, 18), count - 1)]
    if rng.random() < 0.8:
        if method in ("resample", "group lanes"):
            columns = int(rng.choice((150, 171, 320, 333)))
        elif method == "ragged words":
            columns = int(rng.choice((130, 131, 145, 333)))
        elif method == "layers":
            columns = int(rng.choice((4, 12, 32, 68, 132)))
        elif method in ("transpose", "interchange"):
            others[-1:] = [int(rng.choice((17, 33, 64, 70, 131)))]
    return (*others, columns)
