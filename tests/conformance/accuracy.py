"""Arguments for the functions of `functions`, their results on the device in use, and the distance to exact ones."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *
from gpuop.dsl.builtins import functions as table
from gpuop.testing import ulps

from .compare import has_denormals
from .functions import BINARY, IN_STEPS, LGAMMA, TERNARY, UNARY, WITH_INTEGER, Exact

ENTRIES = {e.name.lstrip("_"): e for e in table.table()}
TABLES: dict[str, dict[str, Exact]] = {
    "one": UNARY,
    "two": BINARY,
    "integer": WITH_INTEGER,
    "three": TERNARY | IN_STEPS,
}
POWERS = [0, 1, 2, 3, -1, -2, -3, 4, 5, 10, 31, -20, 149, -149, 1073, 99991, -99991, 2**31 - 1, -(2**31)]


def denormals(dtype: str) -> bool:
    return has_denormals("double" if dtype == "float64" else "single")


def grid(dtype: str, with_denormals: bool, few: bool = False) -> Any:
    """Signed zeros, denormals, infinities, NaN, the largest values, integers, halves, and some of every magnitude."""
    info, rng = np.finfo(dtype), np.random.default_rng(23)
    some = [0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 7, 100.3, math.inf, float(info.max), float(info.tiny)]
    if with_denormals:
        some += [float(info.smallest_subnormal), float(info.tiny) / 2]
    if few:
        spread: Any = []
    else:
        some += [1e4, 1e5, 12345.678, 1e10, 1e30, 0.7071, math.pi, 1e-3, 1e-5, 1e-10, 1e-30, 20.5, 88.5, 170.5, 700.5]
        logarithms = rng.uniform(math.log(float(info.tiny)), math.log(float(info.max)), 60)
        spread = np.concatenate(
            [
                rng.uniform(-1, 1, 60),
                rng.uniform(-10, 10, 60),
                rng.standard_normal(60) * 10.0 ** rng.uniform(-4, 4, 60),
                np.exp(logarithms) * rng.choice([-1, 1], 60),
            ]
        )
    with np.errstate(over="ignore"):
        corners = [s * v for v in some for s in (1, -1)] + [math.nan]
        return np.append(np.array(corners, np.float64), spread).astype(dtype)


@cache
def arguments(kind: str, dtype: str, with_denormals: bool) -> tuple[Any, ...]:
    """Arguments for the functions of a table."""
    rng = np.random.default_rng(23)
    if kind == "one":
        return (grid(dtype, with_denormals),)
    if kind == "integer":
        x = np.repeat(grid(dtype, with_denormals), 2)
        return x, rng.choice(POWERS, x.size).astype(np.int32)
    if kind == "three":
        return tuple(rng.standard_normal((3, 300)).astype(dtype))
    corners = grid(dtype, with_denormals, few=True)
    scatter = (rng.standard_normal((2, 300)) * 10.0 ** rng.uniform(-2, 2, (2, 300))).astype(dtype)
    x, y = np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2).T
    return np.append(x, scatter[0]), np.append(y, scatter[1])


def exact(kind: str, name: str, arrays: tuple[Any, ...]) -> Any:
    """The expected result of a function."""
    with np.errstate(all="ignore"):
        if name in IN_STEPS:
            return TABLES[kind][name](*arrays).astype(np.longdouble)
        return TABLES[kind][name](*(a.astype(np.longdouble) if a.dtype.kind == "f" else a for a in arrays))


@cache
def expected(kind: str, name: str, dtype: str, with_denormals: bool) -> Any:
    return exact(kind, name, arguments(kind, dtype, with_denormals))


def bound(name: str, dtype: str) -> float:
    """The most ULP that a function may be off; what is rounded is off by half of one."""
    entry = ENTRIES[name]
    ulp = entry.double if dtype == "float64" else entry.ulp
    if name == "lgamma":
        ulp = LGAMMA
    if ulp == 0 or name in IN_STEPS:
        return 0.5
    return 2 if dtype == "float16" else ulp  # half: float's, rounded, and rounded constants


def errors(name: str, actual: Any, exact: Any) -> Any:
    """The distance in ULP."""
    off = ulps(actual, exact, not denormals(str(actual.dtype)))
    if name == "lgamma":
        with np.errstate(all="ignore"):
            absolute = np.abs(actual.astype(np.longdouble) - exact) / np.finfo(actual.dtype).eps
        off = np.where(np.abs(exact) < 1, absolute, off)
    return off


def function(name: str) -> Any:
    return getattr(dsl, f"_{name}")


def packed(functions: list[Any], *fields: gp.Field, lanes: int = 1) -> list[Any]:
    """The results of many functions in few kernels: four scalar results go into one output, ten outputs into one kernel."""
    width = 4 // lanes
    results: list[Any] = []
    for first in range(0, len(functions), 10 * width):
        part = functions[first : first + 10 * width]

        def body(*fields, part=tuple(part)):
            values = [function(*map(_readTensor, fields)) for function in part]
            return tuple(_vector(*values[k : k + width]) for k in range(0, len(values), width))

        outputs = gp.operator(body)(*fields)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        gp.evaluate(*outputs)
        arrays = [o.numpy().reshape(len(o.numpy()), -1) for o in outputs]
        results += [a[:, k : k + lanes] for a in arrays for k in range(0, a.shape[1], lanes)]
    return [r[:, 0] if lanes == 1 else r for r in results]


def measured(kind: str, dtype: str) -> dict[str, tuple[Any, Any, Any]]:
    """Result, expected result and error of each function of a table, on the device in use."""
    flag = denormals(dtype)
    names = list(TABLES[kind])
    results = packed([function(n) for n in names], *map(gp.Field, arguments(kind, dtype, flag)))
    want = [expected(kind, n, dtype, flag) for n in names]
    return {n: (actual, e, errors(n, actual, e)) for n, actual, e in zip(names, results, want, strict=True)}
