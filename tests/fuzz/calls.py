"""Random functions of arrays, called again and again as users call them: other sizes, layouts, numbers and results to write into.

A function is a list of steps that NumPy and SciPy do too, all exactly: integers, and floats whose sums have one order. A
pipeline of it is called with arrays of a library, laid out as users have them, so that each call meets the caches, tiers and
prepared calls of those before it. Some are mapped over a batch, in the pipeline or around it, along any axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from random import Random
from typing import Any

import numpy as np
from scipy import ndimage

import gpuop as gp
from gpuop.dsl import _column, _readTensor, _row

DTYPES = ("uint8", "int16", "int32", "int64", "float32")
SIZES = ((1, 1), (1, 7), (5, 1), (2, 3), (8, 16), (17, 33), (16, 48), (3, 100), (64, 64), (31, 257))
BORDERS = {"clamp": "edge", "wrap": "wrap", "zero": "constant", "reflect": "reflect"}  # with the modes of np.pad
# Axes of the two arguments that are mapped: in pipelines the first one, around them any; without, one entry.
BATCHES = (None, None, (0, 0), (0, None), (None, 0), (1, 0), (-1, None), (0, 2))
TIERS = ({}, {"dynamic": False}, {"dynamic": True}, {"optimize": False})
CALLS = 7
Array = np.ndarray[Any, Any]


# --- steps: functions of fields, and the same of arrays whose first two axes are the grid ---------------------------------


def cross_of(border: str) -> gp.Operator:
    @gp.operator
    def cross(a):
        below, right = (
            _readTensor(a, _row + 1, _column, border=border),
            _readTensor(a, _row, _column + 1, border=border),
        )
        return _readTensor(a, _row - 1, _column, border=border) - below + right

    return cross


CROSSES = {border: cross_of(border) for border in BORDERS}


def cross_in_numpy(border: str, a: Array) -> Array:
    mode = BORDERS[border]
    for axis in (0, 1):
        single = mode == "reflect" and a.shape[axis] == 1  # the only point is its own neighbour
        widths = [(1, 1) if each == axis else (0, 0) for each in range(a.ndim)]
        a = np.pad(a, widths, "edge" if single else mode)
    return a[:-2, 1:-1] - a[2:, 1:-1] + a[1:-1, 2:]


def planes(filtered: Callable[[Array], Array], a: Array) -> Array:
    """A filter of the grid, of each component by itself."""
    return np.stack([filtered(a[..., k]) for k in range(a.shape[2])], -1) if a.ndim == 3 else filtered(a)


@dataclass(frozen=True)
class Step:
    """A function of fields and its meaning in arrays: of `values` earlier ones, and of a number where it takes one."""

    values: int
    fields: Callable[..., Any]
    arrays: Callable[..., Any]
    number: bool = False


def alike(values: int, both: Callable[..., Any], number: bool = False) -> Step:
    return Step(values, both, both, number)


STEPS = {
    "sum": alike(2, lambda a, b: a + b),
    "difference": alike(2, lambda a, b: a - b),
    "least": alike(2, np.minimum),
    "greater": alike(2, lambda a, b: np.where(a > b, a, b)),
    "double": alike(1, lambda a: a + a),
    "absolute": alike(1, np.abs),
    "copied rows": alike(1, lambda a: np.roll(a, 3, 0)),
    "turned columns": alike(1, lambda a: np.roll(a, -2, 1)),
    "upside down": alike(1, lambda a: a[::-1]),
    "scaled": alike(1, lambda a, n: a * n, number=True),
    "raised": alike(1, lambda a, n: a + n, number=True),
    "at least": alike(1, np.maximum, number=True),
    **{f"cross, {border}": Step(1, CROSSES[border], partial(cross_in_numpy, border)) for border in BORDERS},
    "largest near": Step(
        1,
        lambda a: gp.ndimage.maximum_filter(a, 3, mode="nearest"),
        lambda a: planes(lambda plane: ndimage.maximum_filter(plane, 3, mode="nearest"), a),
    ),
    "median near": Step(
        1,
        lambda a: gp.ndimage.median_filter(a, 3, mode="reflect"),
        lambda a: planes(lambda plane: ndimage.median_filter(plane, 3, mode="reflect"), a),
    ),
}


# --- layouts --------------------------------------------------------------------------------------------------------------


def strided(a: Array) -> Array:
    base = np.zeros((2 * a.shape[0], 3 * a.shape[1], *a.shape[2:]), a.dtype)
    base[::2, 1::3] = a
    return base[::2, 1::3]


def at_an_odd_byte(a: Array) -> Array:
    """At an address that no vector of the dtype is aligned to."""
    memory = np.zeros(a.nbytes + a.itemsize, np.uint8)
    view = memory[a.itemsize :].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": strided,
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "unaligned": at_an_odd_byte,
    "planes": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -1, 0)), 0, -1),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
}
FOREIGN = ("rows", "columns", "strided")  # of libraries whose arrays have no others
LIBRARIES: dict[str, tuple[Callable[[Any, Array], Any], Callable[[Any], Array]]] = {
    "cupy": (lambda cupy, a: cupy.asarray(a), lambda a: a.get()),
    "torch": (lambda torch, a: torch.from_numpy(a).cuda(), lambda a: a.cpu().numpy()),
}


def laid(a: Array, layout: str, library: str) -> Any:
    if library == "numpy":
        return LAYOUTS[layout](a)
    into = LIBRARIES[library][0]
    if layout == "strided":
        return into(import_module(library), strided(a).base)[::2, 1::3]
    if layout == "columns":
        turned = into(import_module(library), np.ascontiguousarray(np.moveaxis(a, 0, 1)))
        return turned.swapaxes(0, 1)
    return into(import_module(library), np.ascontiguousarray(a))


def host(result: Any, library: str) -> Array:
    return result if library == "numpy" else LIBRARIES[library][1](result)


# --- programs ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One call: the size of its arrays, the layout of each, its number, and whether it writes into an array of the caller.

    Attributes:
        entries: of a batch.
    """

    size: tuple[int, int]
    layouts: tuple[str, str]
    number: int
    writes: bool
    entries: int = 1


@dataclass(frozen=True)
class Program:
    """A function of two arrays and a number, and its calls.

    Attributes:
        steps: names of steps, with the values that they take: 0 and 1 are the arguments.
        components: of each point, or 0 for arrays of numbers.
        options: of the pipeline.
        batch: one of BATCHES.
        inside: whether the pipeline is one of a mapped function, or mapped itself.
    """

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    dtype: str
    components: int
    options: tuple[tuple[str, Any], ...]
    calls: tuple[Call, ...]
    batch: tuple[int | None, int | None] | None = None
    inside: bool = False


def drawn(seed: int) -> Program:
    random = Random(seed)
    steps = []
    for position in range(random.randint(1, 6)):
        name = random.choice(list(STEPS))
        recent = (position + 1, random.randrange(position + 2))
        steps.append((name, recent[: STEPS[name].values]))
    sizes = random.sample(SIZES, random.randint(1, 4))  # some come again
    options = tuple(random.choice(TIERS).items())
    dtype, components = random.choice(DTYPES), random.choice((0, 0, 3, 4, 2))
    calls = [
        Call(
            random.choice(sizes), tuple(random.choices(list(LAYOUTS), k=2)), random.randint(0, 3), random.random() < 0.3
        )
        for _ in range(CALLS)
    ]
    batch = random.choice(BATCHES)
    calls = [replace(call, entries=random.randint(1, 3)) for call in calls]
    inside = batch is not None and {*batch} <= {0, None} and random.random() < 0.5
    return Program(tuple(steps), dtype, components, options, tuple(calls), batch, inside)


def applied(program: Program, values: list[Any], number: int, fields: bool) -> Any:
    for name, arguments in program.steps:
        step = STEPS[name]
        function = step.fields if fields else step.arrays
        values.append(function(*(values[v] for v in arguments), *((number,) if step.number else ())))
    return values[-1]


def over(program: Program) -> Callable[[Any], Any]:
    return partial(gp.vmap, in_axes=(*program.batch, None))


def batched(program: Program, entries: list[list[Array]]) -> tuple[list[Array], list[list[Array]]]:
    """The arrays of a call, and those of each entry, which has the first one's where they are not mapped."""
    if program.batch is None:
        return entries[0], entries[:1]
    entries = [[e[k] if axis is not None else entries[0][k] for k, axis in enumerate(program.batch)] for e in entries]
    arrays = [
        entries[0][k] if axis is None else np.stack([entry[k] for entry in entries], axis)
        for k, axis in enumerate(program.batch)
    ]
    return arrays, entries


def check(program: Program, library: str = "numpy") -> int:
    """Compare each call with NumPy, bit for bit; return their number."""
    kind = gp.VectorField if program.components else gp.ScalarField

    def of_one(a, b, number):
        return applied(program, [kind(a), kind(b)], number, fields=True)

    function, make = of_one, gp.pipeline(**dict(program.options))
    for step in [make] if program.batch is None else [over(program), make] if program.inside else [make, over(program)]:
        function = step(function)
    rng = np.random.default_rng(len(program.steps))
    for turn, call in enumerate(program.calls):
        shape = (*call.size, program.components) if program.components else call.size
        entries = [[rng.integers(0, 30, shape).astype(program.dtype) for _ in range(2)] for _ in range(call.entries)]
        layouts = call.layouts if library == "numpy" else [FOREIGN[len(each) % 3] for each in call.layouts]
        arrays, entries = batched(program, entries)
        with np.errstate(all="ignore"):
            results = [applied(program, list(entry), call.number, fields=False) for entry in entries]
        expected = results[0] if program.batch is None else np.stack(results)
        inputs = [laid(a, layout, library) for a, layout in zip(arrays, layouts, strict=True)]
        options = {"out": laid(np.zeros_like(expected), "rows", library)} if call.writes else {}
        result = host(function(*inputs, call.number, **options), library)
        message = f"call {turn}, {library}: {program}"
        assert result.dtype == expected.dtype, f"{result.dtype}, not {expected.dtype}: {message}"
        np.testing.assert_array_equal(result, expected, err_msg=message)
        for a, given in zip(arrays, inputs, strict=True):
            np.testing.assert_array_equal(host(given, library), a, err_msg=f"an argument has changed: {message}")
    return len(program.calls)
