"""Choosing operands: which fields go together, new ones where none do, numbers among them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .algebra import EXACT, OPS, Arg, Let, Num
from .program import Env, Input, Step, perform
from .values import COMMON, DTYPES, Rejected, Rng, Val, a_tensor, numbers

NAMES = "abcdefghijklmnpqrstuvwxyz"


@dataclass
class Maker:
    """A program in the making: its steps, run as they are added.

    Attributes:
        wild: how often remarkable numbers come.
    """

    rng: Rng
    grid: tuple[int, ...]
    wild: float = 0.3
    env: Env = field(default_factory=Env)
    steps: list[Step] = field(default_factory=list)
    names: int = 0

    def add(self, step: Step) -> bool:
        """Run the step and keep it; False if what it does is not defined."""
        before = dict(self.env.values), len(self.env.seen)
        try:
            with np.errstate(all="ignore"):
                perform(self.env, step)
        except Rejected:
            self.env.values = before[0]
            del self.env.seen[before[1] :]
            return False
        self.steps.append(step)
        return True

    def name(self) -> str:
        self.names += 1
        return f"{NAMES[self.names % len(NAMES)]}{self.names}"

    def one_of(self, choices: tuple | list):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def dtype(self) -> str:
        return self.one_of(DTYPES if self.chance(0.5) else COMMON)

    def input(self, dtype: str = "", tensor: tuple[int, ...] | None = None, grid: tuple[int, ...] | None = None) -> str:
        """A new field of given values."""
        dtype = dtype or self.dtype()
        tensor = a_tensor(self.rng) if tensor is None else tensor
        grid = self.grid if grid is None else grid
        values = numbers(self.rng, dtype, int(self.one_of((1, 3, 7, 11, 13))), self.wild)
        name = self.name()
        self.add(Input(name, values, dtype, grid + tensor, len(tensor)))
        return name

    def usable(self) -> list[str]:
        return [n for n, v in self.env.values.items() if not v.ends]

    def value(self, name: str) -> Val:
        return self.env.values[name]

    def field(self) -> str:
        """A field that is there, late ones more often."""
        names = self.usable()
        if not names or (len(names) < 8 and self.chance(0.2)):
            return self.input()
        return names[-1 - min(int(self.rng.exponential(3)), len(names) - 1)]

    def beside(self, first: str) -> Arg:
        """Operands that may stand beside a field."""
        kind = self.value(first)
        if self.chance(0.25):
            return self.number(kind.dtype)
        fit = [n for n in self.usable() if _fits(self.value(n), kind)]
        if fit and self.chance(0.7):
            return self.one_of(fit)
        dtype = kind.dtype if self.chance(0.35) else self.dtype()
        tensor = kind.tensor if self.chance(0.8) else ()
        return self.input(dtype, tensor, kind.grid if self.chance(0.8) else ())

    def number(self, dtype: str) -> Num:
        """A number that goes with the dtype, in Python's or NumPy's text."""
        kind = "float32" if dtype == "unorm8" else dtype
        if self.chance(0.15):
            kind = self.one_of(("float32", "int32", "bool"))
        value = numbers(self.rng, kind, 1, 0.1)[0]
        if isinstance(value, float) and not np.isfinite(value):
            value = 2.5
        shown = repr(value)
        if self.chance(0.2):
            shown = f"np.{kind}({value})" if kind != "bool" else f"np.bool({value})"
        return Num(value, shown)

    def proposed(self, op: str, first: str, name: str) -> Let:
        """A function of a field and of what goes with it."""
        if op == "where" and self.value(first).dtype != "bool" and self.chance(0.7):
            first = self.one_of([n for n in self.usable() if self.value(n).dtype == "bool"] or [first])
        args: list[Arg] = [first]
        while len(args) < OPS[op].arity:
            args.append(self.beside(first))
        if self.chance(0.2) and op not in ("where", "clip"):
            args.reverse()
        return Let(name, op, tuple(args))

    def let(self, op: str = "") -> bool:
        """One more function of fields."""
        return self.add(self.proposed(op or self.one_of(list(EXACT)), self.field(), self.name()))


def _fits(a: Val, b: Val) -> bool:
    return (a.grid == b.grid or not a.grid or not b.grid) and (a.tensor == b.tensor or not a.tensor or not b.tensor)
