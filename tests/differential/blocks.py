"""Work-groups that load blocks of fields, and that read what they have written, in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.borders import CHECKED

from .choose import Maker
from .program import Env, Step
from .stencils import AXES, read
from .values import Rejected, Val

Ints = tuple[int, ...]


def local(axis: str) -> str:
    return f"_local{axis[1:].capitalize()}"


def group(axis: str) -> str:
    return f"_group{axis[1:].capitalize()}"


@dataclass(frozen=True)
class Tap:
    """One read of a block: a weight, and for every axis a factor of the thread's place in its group and an offset."""

    weight: int
    factors: Ints
    offsets: Ints

    def at(self, place: Ints, extents: Ints, halo: Ints) -> Ints:
        """The position in the block, which begins before its first point by the halo."""
        values = zip(place, self.factors, self.offsets, extents, halo, strict=True)
        return tuple((p * k + o) % (n + 2 * h) - h for p, k, o, n, h in values)

    def text(self, extents: Ints, halo: Ints) -> str:
        values = zip(AXES[3 - len(extents) :], self.factors, self.offsets, extents, halo, strict=True)
        index = ", ".join(f"({local(a)} * {k} + {o}) % {n + 2 * h} - {h}" for a, k, o, n, h in values)
        return f"{self.weight} * t[{index}]"


@dataclass(frozen=True)
class Block(Step):
    """Σ weight · value of a block, from the first tap on, every step rounded to the field's dtype; on a grid of its own.

    Attributes:
        group: the threads of a work-group along each axis.
        extents, halo, border: of the block.
        first: where the block of a group begins: its number times a factor, and an offset; None: as `_tile` has it.
    """

    name: str
    of: str
    grid: Ints
    group: Ints
    extents: Ints
    halo: Ints
    border: Any
    first: tuple[tuple[int, int], ...] | None
    taps: tuple[Tap, ...]

    def above(self) -> dict[str, list[str]]:
        names = AXES[3 - len(self.grid) :]
        more = f", halo={self.halo!r}, border={self.border!r}"
        if self.first is not None:
            places = (f"{group(a)} * {k} + {o}" for a, (k, o) in zip(names, self.first, strict=True))
            more += f", at=({', '.join(places)},)"
        taps = " + ".join(tap.text(self.extents, self.halo) for tap in self.taps)
        tile = f"_tile(f, {', '.join(map(str, self.extents))}{more})"
        dtype = '"float32" if f.dtype == "unorm8" else f.type.dtype'
        head = f"@gp.operator(outputs=lambda f: f.type.replace(field_shape={self.grid}, dtype={dtype}))"
        body = [f"    _localThreads{self.group!r}", f"    t = {tile}", f"    return {taps}"]
        return {f"block_{self.name}": [head, f"def block_{self.name}(f):", *body]}

    def lines(self) -> list[str]:
        return [f"{self.name} = block_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if len(value.grid) != len(self.grid) or 0 in value.array.shape or np.prod(value.tensor) > 4:
            raise Rejected("shape")
        if value.dtype == "bool" or (value.unorm and not isinstance(self.border, str)):
            raise Rejected("dtype")
        array = value.number
        result = np.empty(self.grid + value.tensor, array.dtype)
        for at in np.ndindex(self.grid):
            number = tuple(i // n for i, n in zip(at, self.group, strict=True))
            place = tuple(i % n for i, n in zip(at, self.group, strict=True))
            first = self.first or tuple((n, 0) for n in self.extents)
            begin = tuple(i * k + o for i, (k, o) in zip(number, first, strict=True))
            total = None
            for tap in self.taps:
                there = tuple(np.add(begin, tap.at(place, self.extents, self.halo)).tolist())
                term = array.dtype.type(tap.weight) * read(array, len(self.grid), there, self.border)
                total = term if total is None else total + term
            result[at] = total
        env.values[self.name] = Val(result, value.order)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for k in range(len(self.taps)):
            if len(self.taps) > 1:
                yield (replace(self, taps=self.taps[:k] + self.taps[k + 1 :]),)
        if self.first is not None:
            yield (replace(self, first=None),)
        if any(self.halo):
            yield (replace(self, halo=(0,) * len(self.halo)),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


@dataclass(frozen=True)
class ReadBack(Step):
    """Two outputs that a work-group writes in turns, each of what it reads of the other after a barrier.

    Attributes:
        turns: factors and offsets of the places within the group that are read, for each axis.
    """

    names: tuple[str, str]
    of: str
    group: Ints
    turns: tuple[tuple[tuple[int, int], ...], ...]

    def above(self) -> dict[str, list[str]]:
        names = AXES[3 - len(self.group) :]
        body = [f"    _localThreads{self.group!r}", "    _writeTensor(_out0, _readTensor(f))"]
        body += [f"    first{a} = {group(a)} * {n}" for a, n in zip(names, self.group, strict=True)]
        body += [f"    count{a} = _min({a}s - first{a}, {n})" for a, n in zip(names, self.group, strict=True)]
        for turn, axes in enumerate(self.turns):
            there = ", ".join(
                f"first{a} + ({local(a)} * {k} + {o}) % count{a}" for a, (k, o) in zip(names, axes, strict=True)
            )
            body += ["    _syncThreadsGlobal()", f"    x = _readTensor(_out{turn % 2}, {there})"]
            body += [f"    _writeTensor(_out{1 - turn % 2}, x)"]
        head = ["@gp.operator(outputs=lambda f: (f.type, f.type))", f"def back_{self.names[0]}(f):"]
        return {f"back_{self.names[0]}": head + body}

    def lines(self) -> list[str]:
        return [f"{', '.join(self.names)} = back_{self.names[0]}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if len(value.grid) != len(self.group) or np.prod(value.tensor) > 4:
            raise Rejected("shape")
        outs = [value.array.copy(), value.array.copy()]
        for turn, axes in enumerate(self.turns):
            for at in np.ndindex(value.grid):
                there = []
                for i, n, size, (k, o) in zip(at, value.grid, self.group, axes, strict=True):
                    first = i - i % size
                    there.append(first + (i % size * k + o) % min(n - first, size))
                outs[1 - turn % 2][at] = outs[turn % 2][tuple(there)]
        for name, array in zip(self.names, outs, strict=True):
            env.values[name] = replace(value, array=array, exact=None, slack=None)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if len(self.turns) > 1:
            yield (replace(self, turns=self.turns[:-1]),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {n: env.values[n] for n in self.names if n in env.values}


def a_group(maker: Maker, dimensions: int) -> Ints:
    groups = {1: ((7,), (16,), (64,)), 2: ((1, 7), (2, 16), (5, 3), (8, 8)), 3: ((1, 2, 8), (2, 2, 3), (3, 1, 4))}
    return tuple(maker.one_of(groups[dimensions]))


def _operand_name(maker: Maker) -> str:
    """A field with a grid, of small tensors."""
    fit = [n for n in maker.usable() if maker.value(n).grid and np.prod(maker.value(n).tensor) <= 4]
    if fit and maker.chance(0.7):
        return str(maker.one_of(fit))
    return maker.input("", maker.one_of(((), (), (2,), (3,))), maker.grid)


def a_block(maker: Maker) -> bool:
    of = _operand_name(maker)
    grid = maker.value(of).grid if maker.chance(0.7) else tuple(max(n - 1, 1) for n in maker.value(of).grid)
    axes, rng = len(grid), maker.rng
    extents = tuple(int(n) for n in rng.integers(1, 9, axes))
    halo = tuple(int(n) for n in rng.integers(0, 3, axes)) if maker.chance(0.6) else (0,) * axes
    first = None
    if maker.chance(0.4):
        first = tuple(
            (int(k), int(o)) for k, o in zip(rng.integers(0, 6, axes), rng.integers(-3, 4, axes), strict=True)
        )
    taps = tuple(_tap(maker, axes) for _ in range(int(rng.integers(1, 4))))
    border = maker.one_of((*CHECKED, 7))
    return maker.add(Block(maker.name(), of, grid, a_group(maker, axes), extents, halo, border, first, taps))


def _tap(maker: Maker, axes: int) -> Tap:
    factors, offsets = (tuple(int(n) for n in maker.rng.integers(0, most, axes)) for most in (4, 9))
    return Tap(int(maker.rng.integers(1, 4)), factors, offsets)


def what_is_read_back(maker: Maker) -> bool:
    of = _operand_name(maker)
    axes = len(maker.value(of).grid)
    turns = tuple(
        tuple((int(maker.rng.integers(0, 4)), int(maker.rng.integers(0, 9))) for _ in range(axes))
        for _ in range(int(maker.rng.integers(1, 4)))
    )
    return maker.add(ReadBack((maker.name(), maker.name()), of, a_group(maker, axes), turns))
