"""Operators that update some of their arguments: threads read what they wrote."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import machine as m
from .bodies import Writer
from .choose import Maker
from .kernels import places, written
from .nodes import Node, Thread
from .program import Env, Step
from .statements import Body, For, If, Stmt, parts
from .values import Rejected, Val


@dataclass(frozen=True)
class Put(Stmt):
    """A write of a field that is updated: its tensor, or one element."""

    field: str
    value: Node
    element: int | None = None

    def text(self) -> list[str]:
        if self.element is None:
            return [f"_writeTensor({self.field}, {self.value.text()})"]
        return [f"_writeTensorElement({self.field}, {self.value.text()}, {self.element})"]

    def run(self, thread: Thread) -> None:
        old = thread.fields[self.field]
        value = self.value.value(thread)
        cell = written(old.array, value, self.value.type, old.dtype, self.element)
        thread.fields[self.field] = replace(old, array=cell)

    def smaller(self) -> Iterator[Body]:
        for v in self.value.smaller():
            yield (replace(self, value=v),)


@dataclass(frozen=True)
class Update(Step):
    """An operator with `inout=`, applied to fields: a name for each that is updated."""

    names: tuple[str, ...]
    fields: tuple[str, ...]
    updated: tuple[str, ...]
    body: Body

    def above(self) -> dict[str, list[str]]:
        called = f"update_{self.names[0]}"
        head = [f"@gp.operator(inout={self.updated!r})", f"def {called}({', '.join(self.fields)}):"]
        return {called: head + [f"    {line}" for s in self.body for line in s.text()]}

    def lines(self) -> list[str]:
        return [f"{', '.join(self.names)} = update_{self.names[0]}({', '.join(self.fields)})"]

    def run(self, env: Env) -> None:
        fields = {name: env.usable(name) for name in self.fields}
        text = "\n".join(line for s in self.body for line in s.text())
        if any(f"_writeTensor({n}," not in text and f"_writeTensorElement({n}," not in text for n in self.updated):
            raise Rejected("never written")
        grid = fields[self.updated[0]].grid
        results = {name: fields[name].array.copy() for name in self.updated}
        for at in np.ndindex(grid):
            thread = Thread(places(at, grid), fields | {name: own(fields[name], at) for name in self.updated})
            for s in self.body:
                s.run(thread)
            for name, array in results.items():
                array[at] = thread.fields[name].array
        for name, result in zip(self.updated, self.names, strict=True):
            env.values[result] = Val(results[name], fields[name].order, fields[name].unorm)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for body in parts(self.body):
            yield (replace(self, body=body),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {n: env.values[n] for n in self.names if n in env.values}


def own(field: Val, at: tuple[int, ...]) -> Val:
    """A thread's part of a field: a tensor on a grid of no dimensions."""
    return replace(field, array=np.asarray(field.array[at]))


def an_update(maker: Maker) -> bool:
    fit = [n for n in maker.usable() if maker.value(n).grid == maker.grid and math.prod(maker.value(n).tensor) <= 4]
    if 0 in maker.grid:
        return False
    fit += [maker.input("", maker.one_of(((), (), (2,), (3,))), maker.grid)]
    updated = tuple(dict.fromkeys((fit[-1], maker.one_of(fit))))
    others = tuple(n for n in dict.fromkeys((maker.one_of(fit), maker.input())) if n not in updated)
    options: dict[str, Any] = {n: maker.value(n) for n in others if 0 not in maker.value(n).grid}
    first = (0,) * len(maker.grid)
    writer = Writer(maker, maker.grid, options | {n: own(maker.value(n), first) for n in updated})
    body = [writer.binding(), *writer.statements(2)]
    for name in (*updated, maker.one_of(updated)):
        body += [_put(writer, name), *writer.statements(1)]
        if maker.chance(0.4):
            body.append(If(((writer.condition(2), (_put(writer, name),)),)))
        if maker.chance(0.2):
            body.append(For("turn_", (Node("number", ("int", 1), (), 3),), 1, (_put(writer, name),)))
    return maker.add(Update(tuple(maker.name() for _ in updated), (*options, *updated), updated, tuple(body)))


def _put(writer: Writer, name: str) -> Put:
    field = writer.fields[name]
    t, count = m.OF_NUMPY[field.dtype], math.prod(field.tensor)
    if count > 1 and writer.maker.chance(0.3):
        return Put(name, writer.expression((t, 1), 2), int(writer.maker.rng.integers(count)))
    return Put(name, writer.expression(("int" if t == "bool" and count > 1 else t, count), 3))
