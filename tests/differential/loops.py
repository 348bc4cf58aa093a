"""Eager programs as people write them: names bound again in loops, evaluation between, devices switched, parameters set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .choose import Maker
from .program import Env, Input, Show, Step, indented, perform
from .reductions import Reduce
from .values import Rejected, Val, array_of, array_text, numbers


def bodies(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Smaller bodies."""
    for k, step in enumerate(steps):
        yield steps[:k] + steps[k + 1 :]
        for other in step.smaller():
            yield steps[:k] + other + steps[k + 1 :]


class Nested(Step):
    """A step that has steps."""

    body: tuple[Step, ...]

    def above(self) -> dict[str, list[str]]:
        return {name: lines for step in self.body for name, lines in step.above().items()}

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        yield self.body
        for body in bodies(self.body):
            yield (replace(self, body=body),)  # type: ignore[type-var]


@dataclass(frozen=True)
class Loop(Nested):
    """`for _ in range(n):`"""

    turns: int
    body: tuple[Step, ...]

    def lines(self) -> list[str]:
        return [f"for _ in range({self.turns}):", *indented(self.body)]

    def run(self, env: Env) -> None:
        for _ in range(self.turns):
            for step in self.body:
                step.run(env)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if self.turns > 1:
            yield (replace(self, turns=self.turns - 1),)
        yield from super().smaller()


@dataclass(frozen=True)
class On(Nested):
    """`with gp.use_device(…):`"""

    device: str
    body: tuple[Step, ...]

    def lines(self) -> list[str]:
        return [f'with gp.use_device("{self.device}"):', *indented(self.body)]

    def run(self, env: Env) -> None:
        for step in self.body:
            step.run(env)


@dataclass(frozen=True)
class Evaluate(Step):
    """`u, v = gp.evaluate(u, v)`, or without taking what it returns."""

    names: tuple[str, ...]
    bound: bool = True

    def lines(self) -> list[str]:
        shown = ", ".join(self.names)
        return [f"{shown} = gp.evaluate({shown})" if self.bound else f"gp.evaluate({shown})"]

    def run(self, env: Env) -> None:
        if any(name not in env.values for name in self.names):
            raise Rejected("names")


@dataclass(frozen=True)
class Spoil(Step):
    """Change the array that `.numpy()` gives, which is the caller's."""

    name: str

    def lines(self) -> list[str]:
        return [f"own = {self.name}.numpy()", "own[...] = 1"]

    def run(self, env: Env) -> None:
        if self.name not in env.values:
            raise Rejected(self.name)


@dataclass(frozen=True)
class Set(Step):
    """`p.set(…)`: what depends on it is computed anew when it is looked at."""

    name: str
    values: tuple[Any, ...]

    def lines(self) -> list[str]:
        return [f"{self.name}.set(np.array({self.values[0]!r} if {len(self.values) == 1} else {list(self.values)!r}))"]

    def run(self, env: Env) -> None:
        old = env.values.get(self.name)
        if old is None:
            raise Rejected(self.name)
        env.values[self.name] = replace(old, array=array_of(self.values, old.dtype, old.array.shape))
        for step in env.history:
            if step.alternatives(env):
                step.run(env)


# --- programs -------------------------------------------------------------------------------------------------------------

VARIABLES = ("u", "v", "w")
CLOSED = (
    "add", "subtract", "multiply", "maximum", "minimum", "negative", "absolute", "and", "or", "xor", "invert", "square", "where",
    "floor_divide", "remainder", "divide", "less", "equal", "clip", "sqrt", "right_shift", "rint", "sign",
)  # fmt: skip


def rebinding(maker: Maker, other: str) -> Step:
    """A statement of a loop: mostly a variable bound again."""
    draw = maker.rng.random()
    name = maker.one_of(VARIABLES)
    if draw < 0.55:
        return maker.proposed(maker.one_of(CLOSED), maker.one_of((name, *VARIABLES)), name)
    if draw < 0.7:
        return Evaluate(tuple(sorted({name, maker.one_of(VARIABLES)})), maker.chance(0.5))
    if draw < 0.85:
        return Show((name,))
    if draw < 0.92:
        return On(other, (Show((name,)),))
    return Spoil(name) if maker.chance(0.3) else Reduce("r", name, maker.one_of(("sum", "max", "min", "argmax")))


def eager(maker: Maker, other: str = "reference") -> None:
    """Variables, and loops over statements."""
    dtype, tensor = (
        maker.one_of(("float32", "int32", "float64", "uint8", "int64", "bool")),
        maker.one_of(((), (), (3,), (5,))),
    )
    for name in VARIABLES:
        kind = dtype if maker.chance(0.8) else maker.dtype()
        maker.add(Input(name, numbers(maker.rng, kind, 7, 0.1), kind, maker.grid + tensor, len(tensor)))
    for _ in range(int(maker.rng.integers(3, 8))):
        body = tuple(rebinding(maker, other) for _ in range(int(maker.rng.integers(1, 4))))
        if maker.chance(0.5):
            maker.add(Loop(int(maker.rng.integers(2, 6)), body))
        else:
            for step in body:
                maker.add(step)
    if "r" in maker.env.values:
        maker.add(Show(("r",)))
    maker.add(Show(VARIABLES))


def parameters(maker: Maker) -> None:
    """Values that depend on parameters, looked at before and after these are set."""
    names = []
    for k in range(int(maker.rng.integers(1, 3))):
        dtype = maker.one_of(("float32", "int32", "float64", "bool", "uint8"))
        shape = maker.one_of(((), (), (3,)))
        name = f"p{k}_"
        if maker.add(Input(name, numbers(maker.rng, dtype, max(sum(shape), 1), 0.05), dtype, shape, parameter=True)):
            names.append(name)
    results: list[str] = []
    for _ in range(int(maker.rng.integers(3, 9))):
        if maker.let():
            results.append(list(maker.env.values)[-1])
        late = [n for n in results if n in maker.env.values][-3:]
        if late and maker.chance(0.5):
            maker.add(Show((maker.one_of(late),)) if maker.chance(0.7) else Evaluate((maker.one_of(late),), False))
        if maker.chance(0.4):
            name = maker.one_of(names)
            kind = maker.value(name)
            values = numbers(maker.rng, kind.dtype, kind.array.size, 0.05)
            maker.add(Set(name, values))
    for name in results[-4:]:
        maker.add(Show((name,)))


# --- functions of arrays ------------------------------------------------------------------------------------------------

HOST = {
    "flipped": ("np.flip(a)", lambda a: np.flip(a)), "doubled": ("a + a", lambda a: a + a),
    "running": ("np.cumsum(a, axis=0, dtype=a.dtype)", lambda a: np.cumsum(a, axis=0, dtype=a.dtype)),
    "sorted_": ("np.sort(a, axis=None).reshape(a.shape)", lambda a: np.sort(a, axis=None).reshape(a.shape)),
}  # fmt: skip


@dataclass(frozen=True)
class Host(Step):
    """A host operator of one field, or a device operator."""

    name: str
    of: str
    how: str
    device: bool = False

    def above(self) -> dict[str, list[str]]:
        return {self.how: [f"def {self.how}(a):", f"    return {HOST[self.how][0]}"]}

    def lines(self) -> list[str]:
        if self.device:
            values = f"lambda a, out: np.copyto(out, {self.how}(a))"
            return [f"{self.name} = gp.DeviceOperator({values}, {self.of}, outputs={self.of}.type)"]
        return [f"{self.name} = gp.HostOperator({self.how}, {self.of}, outputs={self.of}.type)"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if not value.array.ndim or value.array.dtype.kind == "b":
            raise Rejected("0D")
        if value.array.dtype.kind == "f" and (self.how != "flipped" and not np.isfinite(value.array).all()):
            raise Rejected("sorts, adds")
        if value.array.dtype.kind == "f" and self.device and self.how == "running":
            raise Rejected("libraries add in orders of their own")
        array = np.ascontiguousarray(HOST[self.how][1](value.array))
        env.values[self.name] = replace(value, array=array, exact=None, slack=None)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


@dataclass(frozen=True)
class Calls(Nested):
    """A pipeline, and calls of it with arrays, whose results are looked at."""

    name: str
    given: tuple[tuple[str, int], ...]
    body: tuple[Step, ...]
    results: tuple[str, ...]
    calls: tuple[tuple[Input, ...], ...]

    def lines(self) -> list[str]:
        arguments = ", ".join(f"{n}_array" for n, _ in self.given)
        fields = [f"    {n} = gp.Field({n}_array, {order})" for n, order in self.given]
        results = ["@gp.pipeline", f"def {self.name}({arguments}):", *fields, *indented(self.body)]
        results.append(f"    return {', '.join(self.results)}")
        for call in self.calls:
            arrays = ", ".join(array_text(i.values, i.dtype, i.shape) for i in call)
            results.append(f"seen.{'append' if len(self.results) == 1 else 'extend'}({self.name}({arrays}))")
        return results

    def run(self, env: Env) -> None:
        for call in self.calls:
            inner = Env(dict(env.values))
            for (name, _), value in zip(self.given, call, strict=True):
                inner.values[name] = value.value()
            for step in self.body:
                perform(inner, step)
            if any(name not in inner.values for name in self.results):
                raise Rejected("results")
            env.seen += [inner.values[name] for name in self.results]

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for k in range(len(self.calls)):
            if len(self.calls) > 1:
                yield (replace(self, calls=self.calls[:k] + self.calls[k + 1 :]),)
        for name in self.results:
            if len(self.results) > 1:
                yield (replace(self, results=tuple(n for n in self.results if n != name)),)
        for body in bodies(self.body):
            yield (replace(self, body=body),)
