"""Kernels as steps of programs: recorded by gpuop, and run here thread by thread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import machine as m
from .nodes import Thread, Type, converted
from .program import Env, Step
from .statements import Body, parts
from .values import Rejected, Val

PLACES = ("_layer", "_row", "_column")


@dataclass(frozen=True)
class Out:
    """An output: dtype and tensor; the default that it starts from, None where none is declared."""

    dtype: str
    tensor: tuple[int, ...] = ()
    default: Any = None


@dataclass(frozen=True)
class Kernel(Step):
    """An operator with a body, applied to fields: a name for each output."""

    names: tuple[str, ...]
    fields: tuple[str, ...]
    grid: tuple[int, ...]
    outs: tuple[Out, ...]
    body: Body

    @property
    def called(self) -> str:
        return f"kernel_{self.names[0]}"

    def above(self) -> dict[str, list[str]]:
        types = [f'gp.FieldType({self.grid}, {o.tensor}, "{o.dtype}")' for o in self.outs]
        defaults = [o.default for o in self.outs]
        shown = types[0] if len(types) == 1 else f"({', '.join(types)})"
        if any(d is not None for d in defaults):
            shown += f", default={defaults[0] if len(defaults) == 1 else tuple(defaults)!r}"
        head = [f"@gp.operator(outputs={shown})", f"def {self.called}({', '.join(self.fields)}):"]
        return {self.called: head + [f"    {line}" for s in self.body for line in s.text()]}

    def lines(self) -> list[str]:
        return [f"{', '.join(self.names)} = {self.called}({', '.join(self.fields)})"]

    def run(self, env: Env) -> None:
        fields = {name: env.usable(name) for name in self.fields}
        results = [self._filled(o) for o in self.outs]
        reached = [np.zeros(a.shape, bool) for a in results]
        for at in np.ndindex(self.grid):
            thread = Thread(places(at, self.grid), fields)
            writes: list[Any] = []
            thread.arrays["_writes"] = writes
            for s in self.body:
                s.run(thread)
            for out, value, kind, where, element in writes:
                self._write(results[out], reached[out], self.outs[out], value, kind, tuple(where) or at, element)
        for array, mask, out, name in zip(results, reached, self.outs, self.names, strict=True):
            if out.default is None and not mask.all():
                raise Rejected("not written")
            env.values[name] = Val(array, len(out.tensor), out.dtype == "unorm8")

    def _filled(self, out: Out) -> np.ndarray:
        if out.dtype == "unorm8":
            return np.full(self.grid + out.tensor, _unorm(float(out.default or 0)), "uint8")
        return np.full(self.grid + out.tensor, out.default or 0, out.dtype)

    def _write(
        self, array: np.ndarray, mask: np.ndarray, out: Out, value: Any, kind: Type, at: tuple[int, ...], element: Any
    ) -> None:
        """Convert and store; what is outside is dropped."""
        if any(not 0 <= i < n for i, n in zip(at, self.grid, strict=True)):
            return
        array[at] = written(array[at], value, kind, out.dtype, element)
        mask[at] = True

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for body in parts(self.body):
            yield (replace(self, body=body),)
        if len(self.outs) > 1:
            used = _written(self.body)
            for k in range(len(self.outs)):
                if k not in used and k == len(self.outs) - 1:
                    yield (replace(self, outs=self.outs[:k], names=self.names[:k]),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {n: env.values[n] for n in self.names if n in env.values}


def places(at: tuple[int, ...], grid: tuple[int, ...]) -> dict[str, int]:
    """Values that tell a thread its place."""
    own = (0,) * (3 - len(at)) + at
    extents = (1,) * (3 - len(at)) + grid
    counts = dict(zip(("_layers", "_rows", "_columns"), extents, strict=True))
    return dict(zip(PLACES, own, strict=True)) | counts | {"_tensorElement": 0}


def written(tensor: np.ndarray, value: Any, kind: Type, dtype: str, element: Any = None) -> np.ndarray:
    """A tensor of a field after a value of a type is written to it, or to an element of it."""
    count = math.prod(tensor.shape) if element is None else 1
    stored = converted(value, kind, (m.OF_NUMPY[dtype], count))
    values = stored if isinstance(stored, tuple) else (stored,)
    if dtype == "unorm8":
        values = tuple(_unorm(x) for x in values)
    cell = np.array(tensor).reshape(-1)
    cell[slice(None) if element is None else element] = values if element is None else values[0]
    return cell.reshape(tensor.shape)


def _written(body: Body) -> set[int]:
    text = "\n".join(line for s in body for line in s.text())
    return {k for k in range(10) if f"_out{k}," in text}


def _unorm(x: Any) -> int:
    """Clamped and rounded to nearest; ties, and what one rounding makes a tie, are left out."""
    if np.isnan(x):
        raise Rejected("NaN as a colour")
    scaled = min(max(float(x), 0.0), 1.0) * 255
    if abs(scaled - math.floor(scaled) - 0.5) < 1e-4:
        raise Rejected("a tie")
    return round(scaled)
