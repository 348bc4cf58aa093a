"""Slices, in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .choose import Maker
from .program import Env, Step
from .values import Rejected


def index_text(index: Any) -> str:
    if isinstance(index, slice):
        parts = ["" if p is None else str(p) for p in (index.start, index.stop)]
        return ":".join(parts) + ("" if index.step is None else f":{index.step}")
    return "..." if index is Ellipsis else str(index)


@dataclass(frozen=True)
class Slice(Step):
    name: str
    of: str
    index: tuple[Any, ...]

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.of}[{', '.join(map(index_text, self.index)) or '...'}]"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        try:
            array = np.asarray(value.array[self.index])
        except IndexError:
            raise Rejected("index") from None
        whole = list(self.index)
        dots = [k for k, i in enumerate(whole) if i is Ellipsis]
        missing = [slice(None)] * (value.array.ndim - len(whole) + len(dots))
        at = dots[0] if dots else len(whole)
        whole[at : at + len(dots)] = missing
        order = sum(isinstance(i, slice) for i in whole[value.array.ndim - value.order :])
        result = replace(value, array=array.copy(), order=order, exact=None, slack=None)  # its bits are certain
        if 0 in result.tensor:
            raise Rejected("a tensor without elements")
        env.values[self.name] = result

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for k, i in enumerate(self.index):
            if isinstance(i, slice) and i != slice(None):
                yield (replace(self, index=(*self.index[:k], slice(None), *self.index[k + 1 :])),)


def a_slice(maker: Maker) -> bool:
    of = maker.field()
    shape = maker.value(of).array.shape
    if not shape:
        return False
    index: list[Any] = [_cut(maker, n) for n in shape[: int(maker.rng.integers(1, len(shape) + 1))]]
    if maker.chance(0.3):
        at = int(maker.rng.integers(0, len(index) + 1))
        tail = [_cut(maker, n) for n in shape[len(shape) - (len(index) - at) :]] if at < len(index) else []
        index = [*index[:at], Ellipsis, *tail]
    return maker.add(Slice(maker.name(), of, tuple(index)))


def _cut(maker: Maker, n: int) -> Any:
    """An index, or a slice, of an axis."""
    if n and maker.chance(0.25):
        return int(maker.rng.integers(-n, n))
    ends = [None if maker.chance(0.4) else int(maker.rng.integers(-n - 2, n + 3)) for _ in range(2)]
    return slice(*ends, maker.one_of((None, None, 1, 2, 3, -1, -1, -2, -5)))
