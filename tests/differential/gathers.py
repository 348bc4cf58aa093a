"""Operators that read at places which each follow from one coordinate: stencils, transposes, pictures halved and doubled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.borders import PLACES

from .program import Env, Step
from .values import Rejected, Val

AXES = ("_layer", "_row", "_column")


@dataclass(frozen=True)
class Place:
    """A coordinate of what is read: (times · i + offset) // over, where i is the point's along an axis of the grid; 0 times: the
    offset, at all points."""

    axis: int
    offset: int = 0
    times: int = 1
    over: int = 1

    def text(self, names: tuple[str, ...]) -> str:
        if not self.times:
            return str(self.offset // self.over)
        name = names[self.axis]
        scaled = name if self.times == 1 else f"{self.times} * {name}"
        moved = f"{scaled} {'-' if self.offset < 0 else '+'} {abs(self.offset)}" if self.offset else scaled
        return moved if self.over == 1 else f"({moved}) // {self.over}"

    def of(self, count: int) -> list[int]:
        return [(self.times * i + self.offset) // self.over for i in range(count)]


@dataclass(frozen=True)
class Tap:
    """One read: a weight, a place for each axis of what is read, and a border, or one for each axis."""

    weight: Any
    places: tuple[Place, ...]
    border: Any


@dataclass(frozen=True)
class Gather(Step):
    """Σ weight · read, from the first tap on, every step rounded to the field's dtype; on a grid of its own."""

    name: str
    of: str
    taps: tuple[Tap, ...]
    grid: tuple[int, ...]
    dynamic: bool = False

    def above(self) -> dict[str, list[str]]:
        names = AXES[3 - len(self.grid) :]
        reads = [
            f"{t.weight} * _readTensor(f, {', '.join(p.text(names) for p in t.places)}, border={t.border!r})"
            for t in self.taps
        ]
        body = [f"    total = {reads[0]}", *(f"    total = total + {r}" for r in reads[1:]), "    return total"]
        dtype = '"float32" if f.dtype == "unorm8" else f.type.dtype'
        head = f"@gp.operator(outputs=lambda f: f.type.replace(field_shape={self.grid}, dtype={dtype}), dynamic={self.dynamic})"
        return {f"gather_{self.name}": [head, f"def gather_{self.name}(f):", *body]}

    def lines(self) -> list[str]:
        return [f"{self.name} = gather_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if any(len(t.places) != len(value.grid) for t in self.taps):
            raise Rejected("shape")
        if value.dtype == "bool" or any(not isinstance(t.border, (str, tuple)) and value.unorm for t in self.taps):
            raise Rejected("dtype")
        array, total = value.number, None
        for tap in self.taps:
            term = array.dtype.type(tap.weight) * self._read(array, tap)
            total = term if total is None else total + term
        slack = None if value.slack is None else np.zeros(np.shape(total))
        env.values[self.name] = Val(np.asarray(total), value.order, slack=slack)

    def _read(self, array: np.ndarray, tap: Tap) -> np.ndarray:
        """The values that a tap reads at all points."""
        borders = tap.border if isinstance(tap.border, tuple) else (tap.border,) * len(tap.places)
        index: list[np.ndarray] = []
        outside = np.zeros(self.grid, bool)
        for at, n, border in zip(tap.places, array.shape[: len(tap.places)], borders, strict=True):
            place = PLACES["zero" if not isinstance(border, str) else border]
            results = [place(i, n) for i in at.of(self.grid[at.axis])]
            along = [-1 if axis == at.axis else 1 for axis in range(len(self.grid))]
            index.append(np.reshape([i or 0 for i in results], along))
            outside = outside | np.reshape([i is None for i in results], along)
        result = array[tuple(np.broadcast_to(i, self.grid) for i in index)]
        result[outside] = array.dtype.type(0 if isinstance(tap.border, (str, tuple)) else tap.border)
        return np.asarray(result)

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


@dataclass(frozen=True)
class Scatter(Step):
    """A histogram: every point updates the element of an output that its value names; those outside of it are dropped."""

    name: str
    of: str
    how: str
    bins: int
    dtype: str
    start: int

    def above(self) -> dict[str, list[str]]:
        head = f'@gp.operator(outputs=gp.FieldType({self.bins}, (), "{self.dtype}"), default={self.start})'
        update = f"_atomic_{self.how}(_pointerTo(_out0, _convert_int(value)), _convert_{C[self.dtype]}({self._added}))"
        body = ["    _globalThreads(f)", "    value = _readTensor(f)", f"    {update}"]
        return {f"scatter_{self.name}": [head, f"def scatter_{self.name}(f):", *body]}

    @property
    def _added(self) -> str:
        return "_convert_int(value) + 3" if self.how != "add" else "1"

    def lines(self) -> list[str]:
        return [f"{self.name} = scatter_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if value.tensor or not value.grid or value.array.dtype.kind not in "iu" or value.unorm:
            raise Rejected("type")
        if (np.abs(value.array.astype(np.float64)) > 2**30).any():
            raise Rejected("a place that saturates")
        places = value.array.astype(np.int64).ravel()
        places = places[(places >= 0) & (places < self.bins)]
        array = np.full(self.bins, self.start, self.dtype)
        values = np.ones_like(places) if self.how == "add" else places + 3
        UPDATES[self.how].at(array, places, values.astype(self.dtype))
        env.values[self.name] = Val(array)


UPDATES = {"add": np.add, "max": np.maximum, "min": np.minimum, "or": np.bitwise_or, "xor": np.bitwise_xor}
C = {"int32": "int", "uint32": "uint"}
