"""Iterations on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .algebra import Let, Num
from .choose import Maker
from .loops import CLOSED, Nested, bodies
from .program import Env, Step, indented
from .reductions import Reduce
from .stencils import a_stencil
from .values import Rejected, Val


@dataclass(frozen=True)
class Iterate(Nested):
    """`gp.iterate(turn, states, times=…, until=…, every=…)`.

    Attributes:
        names: of the results.
        states: what it starts from; the names of the turn's arguments too.
        results: what the turn returns.
        test: steps that make `end` of the states; none where only `times` counts.
    """

    names: tuple[str, ...]
    states: tuple[str, ...]
    body: tuple[Step, ...]
    results: tuple[str, ...]
    times: int
    test: tuple[Step, ...] = ()
    every: int = 1

    def above(self) -> dict[str, list[str]]:
        return super().above() | {name: lines for step in self.test for name, lines in step.above().items()}

    def lines(self) -> list[str]:
        turn, several = f"turn_{self.names[0]}", len(self.states) > 1
        arguments, one = ", ".join(self.states), self.states[0]
        results = [f"def {turn}({arguments}):", *indented(self.body), f"    return {', '.join(self.results)}"]
        more = f"times={self.times}"
        if self.test:
            results += [f"def test_{self.names[0]}({arguments}):", *indented(self.test), "    return end"]
            more += f", until=test_{self.names[0]}, every={self.every}"
        shown = f"({arguments})" if several else one
        return [*results, f"{', '.join(self.names)} = gp.iterate({turn}, {shown}, {more})"]

    def run(self, env: Env) -> None:
        states = [env.usable(name) for name in self.states]
        for k in range(1, self.times + 1):
            states = self._turn(env, states)
            if self.test and k % self.every == 0 and self._ends(env, states):
                break
        for name, state in zip(self.names, states, strict=True):
            env.values[name] = state

    def _inner(self, env: Env, states: list[Val], steps: tuple[Step, ...]) -> Env:
        inner = Env(env.values | dict(zip(self.states, states, strict=True)))
        for step in steps:
            step.run(inner)
        return inner

    def _turn(self, env: Env, states: list[Val]) -> list[Val]:
        inner = self._inner(env, states, self.body)
        following = [inner.usable(name) for name in self.results]
        if any(a.type != b.type for a, b in zip(states, following, strict=True)):
            raise Rejected("types")
        return following

    def _ends(self, env: Env, states: list[Val]) -> bool:
        end = self._inner(env, states, self.test).usable("end")
        if end.array.ndim:
            raise Rejected("0D")
        return bool(end.array)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if self.times > 1:
            yield (replace(self, times=self.times - 1),)
        if self.test:
            yield (replace(self, test=()),)
        for body in bodies(self.body):
            yield (replace(self, body=body),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {n: env.values[n] for n in self.names if n in env.values}


def an_iteration(maker: Maker) -> bool:
    """One or two states, each turn's values made of the turn's before, of the same types."""
    first = maker.field()
    if maker.value(first).dtype == "unorm8":
        return False
    kind = maker.value(first)
    states = [first]
    if maker.chance(0.4):
        states.append(maker.input(kind.dtype, kind.tensor, kind.grid))
    inner = Maker(maker.rng, maker.grid, 0.05, Env(dict(maker.env.values)), names=maker.names + 20)
    results = [_next(inner, name) for name in states]
    if None in results:
        return False
    maker.names = inner.names
    times = int(maker.one_of((0, 1, 2, 3, 4, 7)))
    names = tuple(maker.name() for _ in states)
    step = Iterate(names, tuple(states), tuple(inner.steps), tuple(r for r in results if r is not None), times)
    if kind.array.size and maker.chance(0.4):
        limit = Num(int(maker.rng.integers(0, 20)), "")
        limit = replace(limit, text=repr(limit.value))
        test = (Reduce("most", states[0], "max"), Let("end", "greater", ("most", limit)))
        step = replace(step, test=test, every=int(maker.one_of((1, 1, 2, 3))))
    return maker.add(step)


def _next(inner: Maker, state: str) -> str | None:
    """A value of the state's type, of a stencil or of algebra over it."""
    expected = inner.value(state)
    for _ in range(12):
        with np.errstate(all="ignore"):
            if inner.chance(0.2) and expected.dtype != "bool" and expected.grid and np.prod(expected.tensor) <= 4:
                result = a_stencil(inner, state)
            else:
                step = inner.proposed(inner.one_of(CLOSED), state, inner.name())
                result = inner.add(step)
        if result:
            name = list(inner.env.values)[-1]
            actual = inner.env.values[name]
            if actual.type == expected.type and not actual.ends:
                return name
            inner.steps.pop()
            del inner.env.values[name]
    return None
