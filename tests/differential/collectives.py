"""Collective operations of work-groups, in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.conformance.test_collectives import FLOATS, INTEGERS, parts

from .choose import Maker
from .program import Env, Step
from .values import Rejected, Val

WORDS = ("reduce", "scan", "before", "select", "broadcast", "up", "down", "xor", "count", "any", "all", "ballot")
TEXT = {
    "reduce": '_reduceGroup(x, "{op}", over={over})', "scan": '_scanGroup(x, "{op}", over={over})',
    "before": '_scanGroup(x, "{op}", inclusive=False, over={over})', "select": "_selectGroup(x, {k}, over={over})",
    "broadcast": "_broadcastGroup(x, {k}, over={over})", "up": "_shuffleGroupUp(x, {k}, over={over})",
    "down": "_shuffleGroupDown(x, {k}, over={over})", "xor": "_shuffleGroupXor(x, {k}, over={over})",
    "count": "_countGroup(x > 1, over={over})", "any": "_anyGroup(x > 1, over={over})", "all": "_allGroup(x > 1, over={over})",
    "ballot": "_ballotGroup(x > 1, over={over})",
}  # fmt: skip
VOTES = {"count": "int32", "any": "bool", "all": "bool", "ballot": "uint32"}


@dataclass(frozen=True)
class Collective(Step):
    """An operator of one collective operation, in work-groups of this many rows and columns.

    Attributes:
        over: what the threads are that do it together, as of the words.
        k: the place, or the distance, that it takes.
    """

    name: str
    of: str
    word: str
    op: str
    group: tuple[int, ...]
    over: Any
    k: int

    def above(self) -> dict[str, list[str]]:
        text = TEXT[self.word].format(op=self.op, over=repr(self.over), k=self.k)
        body = [f"    _localThreads{self.group}", "    x = _readTensor(f)", f"    return {text}"]
        return {f"group_{self.name}": ["@gp.operator", f"def group_{self.name}(f):", *body]}

    def lines(self) -> list[str]:
        return [f"{self.name} = group_{self.name}({self.of})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if value.order or value.unorm or value.array.dtype == bool or len(value.grid) != len(self.group):
            raise Rejected("type")
        operations = FLOATS if value.array.dtype.kind == "f" else INTEGERS
        if self.op not in operations or (operations is FLOATS and self.op in ("add", "mul")):
            raise Rejected("rounds in an order of its own")
        if self.word == "ballot" and self._threads() > 32:
            raise Rejected("more threads than bits")
        rows = value.array.reshape((1,) * (2 - len(self.group)) + value.grid)
        group = (1,) * (2 - len(self.group)) + self.group
        array = np.empty(rows.shape, VOTES.get(self.word, rows.dtype))
        for part in parts(rows.shape, group, self.over):
            array.ravel()[part] = self._of_part(rows.ravel()[part], operations[self.op])
        free = array.dtype.kind == "f" and bool((array == 0).any())
        env.values[self.name] = Val(array.reshape(value.grid), ends=free)

    def _threads(self) -> int:
        rows, columns = (1,) * (2 - len(self.group)) + self.group
        return (
            self.over if isinstance(self.over, int) else {"row": rows, "column": columns}.get(self.over, rows * columns)
        )

    def _of_part(self, x: np.ndarray, ufunc: Any) -> Any:
        at = np.arange(len(x))
        places = {"up": at - self.k, "down": at + self.k, "xor": at ^ self.k}
        if self.word in places:
            expected = places[self.word]
            return x[np.where((expected >= 0) & (expected < len(x)), expected, at)]
        if self.word in VOTES:
            results = {"count": np.count_nonzero, "any": np.any, "all": np.all, "ballot": bits}
            return results[self.word](x > 1)
        if self.word in ("select", "broadcast"):
            return (np.sort(x) if self.word == "select" else x)[min(self.k, len(x) - 1)]
        if self.word == "reduce":
            return ufunc.reduce(x, dtype=x.dtype)
        scanned = ufunc.accumulate(x, dtype=x.dtype)
        return scanned if self.word == "scan" else np.append(_neutral(self.op, x.dtype), scanned[:-1])

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if self.over is not None:
            yield (replace(self, over=None),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


def bits(votes: np.ndarray) -> int:
    """The first one is the least bit."""
    return sum(1 << n for n in np.flatnonzero(votes).tolist())


def _neutral(op: str, dtype: np.dtype) -> np.ndarray:
    """The value that the first thread has before it."""
    ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    table = {"add": 0, "mul": 1, "or": 0, "xor": 0, "and": np.iinfo(dtype).max if dtype.kind == "u" else -1}
    result = table[op] if op in table else ends["min" in op]
    return np.array([result], dtype)


def a_collective(maker: Maker) -> bool:
    of = maker.field()
    value = maker.value(of)
    if value.order or len(value.grid) not in (1, 2) or value.array.dtype == bool or value.unorm:
        dtype = maker.one_of(("int32", "float32", "uint8", "int64", "int16", "float16", "float64", "uint32"))
        of = maker.input(dtype, (), maker.grid if len(maker.grid) in (1, 2) else (5, 33))
        value = maker.value(of)
    sizes = maker.one_of(((1, 7), (2, 16), (5, 12), (3, 32), (8, 8), (1, 64)))
    group = sizes if len(value.grid) == 2 else (sizes[0] * sizes[1],)
    divisors = [n for n in (1, 2, 4, 5, 7, 8, 12, 16) if sizes[0] * sizes[1] % n == 0]
    over = maker.one_of((None, None, maker.one_of(divisors), *(("row", "column") if len(group) == 2 else ())))
    operations = FLOATS if value.array.dtype.kind == "f" else INTEGERS
    ops = [op for op in operations if operations is INTEGERS or op not in ("add", "mul")]
    word = maker.one_of(WORDS)
    return maker.add(Collective(maker.name(), of, word, maker.one_of(ops), group, over, int(maker.rng.integers(0, 20))))
