"""Statements of kernels: their text, and what they do for one thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import machine as m
from .nodes import Node, Thread, Type, converted, lanes, named, typed
from .values import Rejected


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Stmt:
    def text(self) -> list[str]:
        raise NotImplementedError

    def run(self, thread: Thread) -> None:
        raise NotImplementedError

    def smaller(self) -> Iterator[tuple[Stmt, ...]]:
        return iter(())


Body = tuple[Stmt, ...]


def block(head: str, body: Body) -> list[str]:
    return [head, *(f"    {line}" for s in body for line in s.text())] + ([] if body else ["    pass"])


def parts(body: Body) -> Iterator[Body]:
    """Smaller bodies."""
    for k, s in enumerate(body):
        yield body[:k] + body[k + 1 :]
        for other in s.smaller():
            yield body[:k] + other + body[k + 1 :]


@dataclass(frozen=True)
class Bind(Stmt):
    """`name = e`, or a variable: `name = _var(e)`, `name = _intVar(e)`."""

    name: str
    type: Type
    value: Node
    how: str = ""

    def text(self) -> list[str]:
        return [f"{self.name} = {self.how}({self.value.text()})" if self.how else f"{self.name} = {self.value.text()}"]

    def run(self, thread: Thread) -> None:
        thread.values[self.name] = converted(self.value.value(thread), self.value.type, self.type)
        thread.types[self.name] = self.type

    def smaller(self) -> Iterator[Body]:
        for v in self.value.smaller():
            if self.how or v.op != "name":  # another name of a variable would be the variable
                yield (replace(self, value=v),)


@dataclass(frozen=True)
class Assign(Stmt):
    """`x @= e`, `x += e`, `x.y = e`."""

    name: str
    value: Node
    op: str = "@"
    part: str = ""

    def text(self) -> list[str]:
        if self.part:
            return [f"{self.name}.{self.part} = {self.value.text()}"]
        return [f"{self.name} {self.op}= {self.value.text()}"]

    def run(self, thread: Thread) -> None:
        if self.name not in thread.values:
            raise Rejected(self.name)
        t = thread.types[self.name]
        if self.part:
            old = list(thread.values[self.name])
            old["xyzw".index(self.part)] = converted(self.value.value(thread), self.value.type, (t[0], 1))
            thread.values[self.name] = tuple(old)
            return
        value = self.value
        if self.op != "@":
            common = t if self.op in ("<<", ">>") else (m.promoted(t[0], value.type[0]), t[1])
            value = Node(self.op, common, (Node("name", t, (), self.name), value))
        thread.values[self.name] = converted(value.value(thread), value.type, t)

    def smaller(self) -> Iterator[Body]:
        for v in self.value.smaller():
            yield (replace(self, value=v),)


@dataclass(frozen=True)
class Array(Stmt):
    """`a = _intArray(n)`, zeroed."""

    name: str
    type: Type
    size: int

    def text(self) -> list[str]:
        return [f"{self.name} = _{named(self.type)}Array({self.size})"]

    def run(self, thread: Thread) -> None:
        zero = typed(0, self.type[0])
        thread.arrays[self.name] = [lanes(zero, self.type[1]) if self.type[1] > 1 else zero] * self.size
        thread.types[self.name] = self.type


@dataclass(frozen=True)
class Store(Stmt):
    """`a[i] = e`."""

    name: str
    index: Node
    value: Node

    def text(self) -> list[str]:
        return [f"{self.name}[{self.index.text()}] = {self.value.text()}"]

    def run(self, thread: Thread) -> None:
        if self.name not in thread.arrays:
            raise Rejected(self.name)
        at = self.index.value(thread)
        thread.arrays[self.name][at] = converted(self.value.value(thread), self.value.type, thread.types[self.name])

    def smaller(self) -> Iterator[Body]:
        for v in self.value.smaller():
            yield (replace(self, value=v),)


@dataclass(frozen=True)
class If(Stmt):
    """`with _if`, `_elseif`, `_else`: conditions with bodies, the last one may have none."""

    cases: tuple[tuple[Node | None, Body], ...]

    def text(self) -> list[str]:
        results = []
        for k, (c, body) in enumerate(self.cases):
            head = f"_{'if' if k == 0 else 'elseif'}({c.text()})" if c is not None else "_else()"
            results += block(f"with {head}:", body)
        return results

    def run(self, thread: Thread) -> None:
        for c, body in self.cases:
            if c is None or c.value(thread):
                for s in body:
                    s.run(thread)
                return

    def smaller(self) -> Iterator[Body]:
        for _, body in self.cases:
            yield body
        if len(self.cases) > 1:
            yield (If(self.cases[:-1]),)
        for k, (c, body) in enumerate(self.cases):
            for other in parts(body):
                yield (If((*self.cases[:k], (c, other), *self.cases[k + 1 :])),)
            for d in c.smaller() if c is not None else ():
                yield (If((*self.cases[:k], (d, body), *self.cases[k + 1 :])),)


def turn(body: Body, thread: Thread) -> bool:
    """One turn of a loop; False where it breaks."""
    try:
        for s in body:
            s.run(thread)
    except Break:
        return False
    except Continue:
        pass
    return True


@dataclass(frozen=True)
class For(Stmt):
    """Several rounds are a dimension around it, which `_break` leaves too."""

    name: str
    bounds: tuple[Node, ...]
    step: int
    body: Body
    rounds: int = 1

    def text(self) -> list[str]:
        shown, step = [b.text() for b in self.bounds], [str(self.step)] if self.step != 1 else []
        if self.rounds == 1:
            return block(f"with _for({', '.join([*shown, *step])}) as {self.name}:", self.body)
        bounds = [f"({first}, {b})" for first, b in zip([*[0] * (len(shown) - 1), self.rounds], shown, strict=True)]
        steps = [f"(1, {n})" for n in step]
        return block(f"with _for({', '.join([*bounds, *steps])}) as ({self.name}r, {self.name}):", self.body)

    def run(self, thread: Thread) -> None:
        ends = [b.value(thread) for b in self.bounds]
        start, stop = (0, ends[0]) if len(ends) == 1 else ends
        for i in [*range(start, stop, self.step)] * self.rounds:
            thread.values[self.name], thread.types[self.name] = i, ("int", 1)
            if not turn(self.body, thread):
                break

    def smaller(self) -> Iterator[Body]:
        if self.rounds > 1:
            yield (replace(self, rounds=1),)
        for other in parts(self.body):
            yield (replace(self, body=other),)


@dataclass(frozen=True)
class While(Stmt):
    """So many turns, and while a condition holds."""

    name: str
    turns: int
    condition: Node | None
    body: Body

    def text(self) -> list[str]:
        more = "" if self.condition is None else f", {self.condition.text()}"
        head = f"with _while(_and({self.name} > 0{more})):" if more else f"with _while({self.name} > 0):"
        inner = block(head, self.body)
        return [f"{self.name} = _intVar({self.turns})", inner[0], f"    {self.name} -= 1", *inner[1:]]

    def run(self, thread: Thread) -> None:
        thread.types[self.name] = ("int", 1)
        for left in range(self.turns, 0, -1):
            thread.values[self.name] = left
            if self.condition is not None and not self.condition.value(thread):
                return
            thread.values[self.name] = left - 1
            if not turn(self.body, thread):
                return

    def smaller(self) -> Iterator[Body]:
        for other in parts(self.body):
            yield (replace(self, body=other),)


@dataclass(frozen=True)
class Leave(Stmt):
    """`_break()` or `_continue()` where a condition holds."""

    word: str
    condition: Node

    def text(self) -> list[str]:
        return [f"with _if({self.condition.text()}):", f"    {self.word}()"]

    def run(self, thread: Thread) -> None:
        if self.condition.value(thread):
            raise Break if self.word == "_break" else Continue


@dataclass(frozen=True)
class Each(Stmt):
    """`with _forEachTensorElement(shape)`."""

    shape: tuple[int, ...]
    body: Body

    def text(self) -> list[str]:
        return block(f"with _forEachTensorElement({self.shape}):", self.body)

    def run(self, thread: Thread) -> None:
        for k in range(int(np.prod(self.shape))):
            thread.at["_tensorElement"] = k
            for s in self.body:
                s.run(thread)

    def smaller(self) -> Iterator[Body]:
        for other in parts(self.body):
            yield (replace(self, body=other),)


@dataclass(frozen=True)
class Write(Stmt):
    """A write of an output, at the thread's own point or at a computed one, whole or of one element."""

    out: int
    value: Node
    where: tuple[Node, ...] = ()
    element: Any = None

    def text(self) -> list[str]:
        function = "_writeTensor" if self.element is None else "_writeTensorElement"
        places = [w.text() for w in self.where] + ([] if self.element is None else [str(self.element)])
        return [f"{function}({', '.join([f'_out{self.out}', self.value.text(), *places])})"]

    def run(self, thread: Thread) -> None:
        writes: Any = thread.arrays["_writes"]
        element = thread.at["_tensorElement"] if self.element == "_tensorElement" else self.element
        writes.append(
            (self.out, self.value.value(thread), self.value.type, [w.value(thread) for w in self.where], element)
        )

    def smaller(self) -> Iterator[Body]:
        for v in self.value.smaller():
            yield (replace(self, value=v),)
