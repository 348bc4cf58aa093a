"""Mistakes planted in gpuop, one at a time: how many random programs it takes to find each.

    python -m tests.differential.plants [NAME …]

On the reference; a process for each, as what a mistake has recorded stays in caches.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.sources import Adjustable
from gpuop.engine.graphs.bound_graph import BoundGraph
from gpuop.engine.graphs.sensors import Frames
from gpuop.ir import numpy_semantics
from gpuop.ir.borders import BORDERS
from gpuop.ir.ops import OPS
from gpuop.ops.elementwise import algebra, numpy_functions
from gpuop.ops.layout import slicing
from gpuop.ops.reduce import reducers

from .kinds import KINDS, program
from .program import failure

MOST = 1500  # programs of all kinds
Patch = AbstractContextManager[Any]
Function = Callable[..., Any]


def row(name: str, meant: Function) -> Patch:
    """A wrong meaning of an operator of kernels."""
    return mock.patch.dict(OPS, {name: replace(OPS[name], numpy=meant)})


def of_fields(name: str, body: Function) -> Patch:
    """A wrong recording of a function of fields."""
    return mock.patch.dict(numpy_functions.EVERY, {name: (numpy_functions.EVERY[name][0], body)})


def instead(owner: Any, name: str, wrong: Callable[[Function], Any]) -> Patch:
    """Something else, made of what is right."""
    return mock.patch.object(owner, name, wrong(getattr(owner, name)))


def border(rule: str, index: Callable[[Any, int], Any]) -> Patch:
    """A wrong meaning of a border."""
    return mock.patch.dict(BORDERS, {rule: replace(BORDERS[rule], numpy=index)})


def reflected(at: Any, n: int) -> Any:
    m = at % (2 * n - 1)
    return np.where(m < n, m, 2 * n - 2 - m)


def unsigned_shift(x: Any, y: Any) -> Any:
    bits = f"u{x.itemsize}"
    return (x.view(bits) >> y.view(bits)).view(x.dtype)


def floored(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return a / b
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(a.dtype)


def narrow(right: Function) -> Function:
    """C's rank order, which keeps 8 bits."""

    def common(name: str, operands: Any) -> str:
        result = right(name, operands)
        dtypes = {str(o.dtype) for o in operands if isinstance(o, algebra.Field)}
        return "uint8" if result == "int16" and dtypes == {"int8", "uint8"} else result

    return common


def forgetful(right: Function) -> Function:
    """The guard of a last share leaves its last value out."""
    return lambda reducer, load, at, count: right(reducer, load, k._min(at, count - 2) if count > 2 else at, count)


def early(right: Function) -> Function:
    def cut(index: Any, n: int, axis: int) -> Any:
        result = right(index, n, axis)
        return replace(result, start=max(result.start - 1, 0)) if result.step < 0 and result.count else result

    return cut


def late(right: Function) -> Function:
    """Stale values: a second read returns the first one's value, although there is a new one."""

    def read(self: BoundGraph, number: int) -> Any:
        before = self.__dict__.setdefault("_late", {})
        result = right(self, number)
        old = before.get(number)
        before[number] = result
        return result if old is None else old

    return read


def unnoticed(right: Function) -> Function:
    def set_(self: Adjustable, value: Any) -> None:
        version = self.state[0]
        right(self, value)
        self.state = (version, self.state[1])

    return set_


def blank(right: Any) -> Any:
    def planes(self: Frames) -> Any:
        value = right.fget(self)
        kind = self.kind
        return np.zeros((kind.planes, kind.field_shape.points), kind.memory_dtype) if value is None else value

    return property(planes)


def without_nan(right: Function) -> Function:
    return lambda self, a, b: a >= b if self.name == "max" else right(self, a, b)


def last(right: Function) -> Function:
    return lambda self, a, b: a > b if self.name == "argmax" else right(self, a, b)


def wrapping(right: Function) -> Function:
    return lambda x, target, saturate: right(x, target, saturate and x.dtype.kind == "f")


PLANTS: dict[str, Callable[[], Patch]] = {
    "reflect is off by one": lambda: border("reflect", reflected),
    "symmetric reflects": lambda: border("symmetric", BORDERS["reflect"].numpy),
    "% of fields truncates": lambda: of_fields("remainder", lambda x, y: x % y),
    "// of fields truncates": lambda: of_fields("floor_divide", lambda x, y: x / y if x.type.kind != "f" else x // y),
    ">> loses the sign": lambda: row("shr", unsigned_shift),
    "/ of kernels floors": lambda: row("div", floored),
    "conversions wrap": lambda: instead(numpy_semantics, "convert", wrapping),
    "uint8 and int8 make uint8": lambda: instead(algebra, "_common", narrow),
    "long and ulong compare as one type": lambda: of_fields("less", lambda x, y: x < y),
    "maximum forgets NaN": lambda: of_fields("maximum", lambda x, y: k._where(x >= y, x, y)),
    "max forgets NaN": lambda: instead(reducers.Reducer, "_before", without_nan),
    "argmax takes the last": lambda: instead(reducers.Reducer, "_before", last),
    "a reduction forgets the last value": lambda: instead(reducers, "_guarded", forgetful),
    "negative steps start one early": lambda: instead(slicing, "_cut", early),
    "a state is read late": lambda: instead(BoundGraph, "read", late),
    "a parameter counts one step late": lambda: instead(BoundGraph, "_follow", lambda right: lambda self: None),
    "a set parameter is not noticed": lambda: instead(Adjustable, "set", unnoticed),
    "no frame is an empty frame": lambda: instead(Frames, "planes", blank),
}


def found(name: str) -> tuple[int, str]:
    """The number of programs, of all kinds in rotation, until a mistake is detected; 0 if the limit is not enough."""
    with PLANTS[name]():
        for number in range(MOST):
            kind = tuple(KINDS)[number % len(KINDS)]
            failed = failure(program(kind, number // len(KINDS)), "reference")
            if failed is not None:
                assert failed.what in ("values", "type"), failed  # and no mistake of the plant's
                return number + 1, kind
    return 0, ""


def main(names: list[str]) -> int:
    """The number of missed mistakes: one name runs here, several run in a process each."""
    if len(names) == 1:
        count, kind = found(names[0])
        print(f"{names[0]:40} {f'found by program {count}, {kind}' if count else 'not found'}", flush=True)
        return not count
    command = [sys.executable, "-m", "tests.differential.plants"]
    return sum(subprocess.run([*command, name], check=False).returncode for name in names or PLANTS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
