"""Random calls of NumPy's functions that move values: for arrays, and for fields that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

import gpuop as gp

DTYPES = (
    "bool",
    "int8",
    "uint8",
    "uint16",
    "int32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "complex64",
    "complex128",
)
EXTENTS = st.sampled_from((1, 2, 3, 4, 5, 6, 0))
TENSOR = st.integers(1, 5)
MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@dataclass
class Call:
    """A function, the arrays that it takes, how many of their axes are the tensor's, and its arguments."""

    name: str
    arrays: list[np.ndarray]
    order: int
    args: tuple[Any, ...]
    options: dict[str, Any]
    several: bool = False

    def of(self, values: list[Any]) -> Any:
        return getattr(np, self.name)(values if self.several else values[0], *self.args, **self.options)

    def of_fields(self) -> Any:
        return self.of([gp.Field(a, self.order) for a in self.arrays])


def values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    numbers = np.random.default_rng(seed).integers(0, 120, shape)
    return np.asarray(numbers + 1j * numbers[..., ::-1] if dtype[0] == "c" and shape else numbers).astype(dtype)


def axis(n: int) -> st.SearchStrategy[int]:
    return st.integers(-n, n - 1) if n else st.just(0)


def axes(n: int, least: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Distinct ones, counted from either end."""
    turned = st.lists(st.booleans(), min_size=n, max_size=n)
    chosen = st.lists(st.sampled_from(range(max(n, 1))), unique=True, min_size=min(least, n), max_size=n)
    return st.tuples(chosen, turned).map(lambda both: tuple(a - n if both[1][a] else a for a in both[0] if a < n))


@st.composite
def shapes_of(draw: Callable[..., Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Another shape of as many values."""
    factors: list[int] = []
    for n in shape:
        parts = [d for d in range(1, n + 1) if n % d == 0] or [n]
        part = draw(st.sampled_from(parts))
        factors += [part, n // max(part, 1)] if n and draw(st.booleans()) else [n]
    factors = draw(st.permutations(factors)) if draw(st.booleans()) else factors
    while len(factors) > 3 or (len(factors) > 1 and draw(st.booleans())):
        at = draw(st.integers(0, len(factors) - 2))
        factors[at : at + 2] = [factors[at] * factors[at + 1]]
    if factors and 0 not in factors and draw(st.booleans()):
        factors[draw(st.integers(0, len(factors) - 1))] = -1
    return tuple(factors)


SMALL = st.integers(0, 3)
Draw = Callable[..., Any]
Shape = tuple[int, ...]


def transpose(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    return draw(st.sampled_from(((), (draw(axes(len(shape), len(shape))),))))


def two_axes(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    return draw(axis(len(shape))), draw(axis(len(shape)))


def flip(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    return (draw(st.sampled_from((None, draw(axis(len(shape))), draw(axes(len(shape)))))),)


def rot90(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    return draw(st.integers(-3, 5)), draw(axes(len(shape), len(shape)))[:2] if len(shape) > 1 else (0, 1)


def roll(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    shift, (one, two) = draw(st.integers(-9, 9)), two_axes(draw, shape)
    return draw(st.sampled_from(((shift,), (shift, one), ((shift, 1), (one, two)))))


def expand_dims(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    n = len(shape) + 1
    return (draw(st.sampled_from((draw(axis(n)), (0, draw(st.integers(1, n)))))),)


def broadcast_to(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    wide = [draw(st.sampled_from((0, 1, 4))) if e == 1 else e for e in shape]
    return ((*draw(st.lists(SMALL, max_size=2)), *wide),)


def pad(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    widths = [draw(st.tuples(st.sampled_from((0, 1, 8)), SMALL)) if e else (0, 0) for e in shape]
    return widths or 1, draw(st.sampled_from(MODES[1:]))


def take(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    at = draw(st.sampled_from((None, draw(axis(len(shape))))))
    most = prod(shape) if at is None else shape[at] if shape else 1
    indices = st.integers(-most, max(most - 1, -most))
    many = np.array(draw(st.lists(indices, max_size=4)) if most else [], int)
    return draw(indices) if most and draw(st.booleans()) else many, at


def repeat(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    one = draw(axis(len(shape)))
    extent = shape[one] if shape else 1
    return draw(st.sampled_from((2, draw(SMALL), draw(st.lists(SMALL, min_size=extent, max_size=extent))))), one


def tile(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    return (draw(st.sampled_from((2, 1, (2, 1), (1, 2), (2, 3, 1)))),)


def split(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    return draw(st.sampled_from((1, 2, 3, [1, 2], [0, 3, -1], [5]))), draw(axis(len(shape)))


def nothing(draw: Draw, shape: Shape) -> tuple[Any, ...]:
    return ()


ARGUMENTS = {
    "transpose": transpose, "swapaxes": two_axes, "moveaxis": two_axes, "flip": flip, "fliplr": nothing, "flipud": nothing,
    "rot90": rot90, "roll": roll, "reshape": lambda draw, shape: (draw(shapes_of(shape)),), "ravel": nothing, "squeeze": nothing,
    "expand_dims": expand_dims, "broadcast_to": broadcast_to, "pad": pad, "take": take, "repeat": repeat, "tile": tile,
    "diff": lambda draw, shape: (draw(SMALL), draw(axis(len(shape)))), "split": split, "array_split": split,
    "zeros_like": nothing, "ones_like": nothing,
}  # fmt: skip
JOINING = ("concatenate", "stack", "vstack", "hstack", "dstack")
NAMES = (*ARGUMENTS, *JOINING)


def options_of(draw: Draw, name: str, first: np.ndarray) -> dict[str, Any]:
    """Numbers at the sides: a pair for each axis, or one number."""
    number = st.integers(0, 1).map(first.dtype.type)
    if name == "diff":
        return draw(st.sampled_from(({}, {"prepend": draw(number)}, {"append": draw(number)}))) if first.ndim else {}
    if name == "pad" and first.ndim and draw(st.booleans()):
        sides = [(draw(number), draw(number)) for _ in first.shape]
        return {"mode": "constant", "constant_values": draw(st.sampled_from((sides, draw(number))))}
    return {}


@st.composite
def calls(draw: Callable[..., Any], names: tuple[str, ...] = NAMES) -> Call:
    name = draw(st.sampled_from(names))
    grid = tuple(draw(st.lists(EXTENTS, max_size=3)))
    tensor = tuple(draw(st.sampled_from(((), (), (draw(TENSOR),), (draw(TENSOR), draw(TENSOR))))))
    shape, dtype, seed = grid + tensor, draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99))
    first = values(shape, dtype, seed)
    if name not in JOINING:
        args, options = ARGUMENTS[name](draw, shape), options_of(draw, name, first)
        return Call(name, [first], len(tensor), args[:1] if "mode" in options else args, options)
    count = draw(st.integers(0, 3))
    along = draw(axis(len(shape) + (name == "stack")))
    arrays = [first]
    for n in range(count):
        other = list(shape)
        if name == "concatenate" and shape:
            other[along] = draw(st.integers(1, 4))
        arrays.append(values(tuple(other), dtype, seed + n + 1))
    return Call(name, arrays, len(tensor), (along,) if name in ("concatenate", "stack") else (), {}, True)


CHAINED = tuple(name for name in ARGUMENTS if name not in ("split", "array_split", "zeros_like", "ones_like"))


@st.composite
def chains(draw: Draw) -> tuple[np.ndarray, int, list[tuple[str, tuple[Any, ...]]]]:
    """An array, how many of its axes are tensors', and functions with arguments, one after another."""
    grid = draw(st.lists(st.integers(1, 6), min_size=1, max_size=2))
    tensor = draw(st.sampled_from(((), (), (3,), (2, 2))))
    first = values((*grid, *tensor), draw(st.sampled_from(("int32", "uint8", "int16"))), draw(st.integers(0, 99)))
    steps, array = list[tuple[str, tuple[Any, ...]]](), first
    for _ in range(draw(st.integers(2, 5))):
        name = draw(st.sampled_from(CHAINED))
        args = ARGUMENTS[name](draw, array.shape)
        try:
            after = getattr(np, name)(array, *args)
        except (ValueError, IndexError):
            continue
        if 0 < after.size < 5000 and 0 < after.ndim < 4:
            steps.append((name, args))
            array = after
    return first, len(tensor), steps
