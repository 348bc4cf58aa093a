"""Operators that put the points of a field in another order, by digits of their linear index."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .choose import Maker
from .program import Env, Step
from .values import Rejected, Val


@dataclass(frozen=True)
class Reblock(Step):
    """The points, counted by digits of these radices, with the digits in another order, on a grid of as many points.

    Attributes:
        scatters: a thread for each point of what is read, which writes it where it belongs.
    """

    name: str
    of: str
    radices: tuple[int, ...]
    order: tuple[int, ...]
    grid: tuple[int, ...]
    scatters: bool

    def above(self) -> dict[str, list[str]]:
        results = tuple(self.radices[k] for k in self.order)
        head = f"@gp.operator(outputs=lambda f: f.type.replace(field_shape={self.grid}), default=0)"
        if self.scatters:
            digits = ", ".join(f"digits[{k}]" for k in self.order)
            body = [
                "    _globalThreads(f)",
                f"    digits = _unravel(_index(), {self.radices})",
                f"    place = _ravel(({digits},), {results})",
                f"    _writeTensor(_out0, _readTensor(f), *_unravel(place, {self.grid}))",
            ]
        else:
            digits = ", ".join(f"digits[{self.order.index(k)}]" for k in range(len(self.order)))
            body = [
                f"    digits = _unravel(_index(), {results})",
                f"    place = _ravel(({digits},), {self.radices})",
                "    return _readTensor(f, *_unravel(place, f))",
            ]
        return {f"reblock_{self.name}": [head, f"def reblock_{self.name}(f):", *body]}

    def lines(self) -> list[str]:
        return [f"{self.name} = reblock_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        points = math.prod(value.grid)
        if not value.grid or math.prod(value.tensor) > 4 or points != math.prod(self.radices) or not points:
            raise Rejected("shape")
        digits = value.array.reshape(self.radices + value.tensor)
        axes = (*self.order, *range(len(self.order), digits.ndim))
        moved = np.ascontiguousarray(digits.transpose(axes)).reshape(self.grid + value.tensor)
        env.values[self.name] = Val(moved, value.order, value.unorm)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if self.scatters:
            yield (replace(self, scatters=False),)
        if self.order != tuple(range(len(self.order))):
            yield (replace(self, order=tuple(range(len(self.order)))),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


def a_reblocking(maker: Maker) -> bool:
    of = maker.field()
    points = math.prod(maker.value(of).grid)
    radices = _factors(maker, points, int(maker.rng.integers(1, 5)))
    order = tuple(int(k) for k in maker.rng.permutation(len(radices)))
    grid = _factors(maker, points, int(maker.rng.integers(1, 4)))
    return maker.add(Reblock(maker.name(), of, radices, order, grid, maker.chance(0.5)))


def _factors(maker: Maker, n: int, count: int) -> tuple[int, ...]:
    """So many numbers whose product is n."""
    results: list[int] = []
    for _ in range(count - 1):
        results.append(int(maker.one_of([d for d in range(1, n + 1) if n % d == 0] or [1])))
        n //= results[-1]
    return (*results, n)
