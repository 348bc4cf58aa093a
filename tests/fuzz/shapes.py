"""Small nests of integer operators: the shapes of expressions that compilers rewrite, and at times wrongly.

A shape is text, which Python evaluates twice: on the values of a kernel, and on NumPy's arrays, which say what is right. Both
wrap, and both keep the type of the variables beside a number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ONE = (
    "-{}", "~{}", "abs({})", "({} << 1)", "({} >> 1)", "({} >> last)", "({} & 7)", "({} ^ least)", "({} + 1)", "({} - 1)",
    "(ones - {})", "(0 - {})", "({} * ones)",
    "narrow({})", "wide({})", "flip({})", "cut({})", "clip({}, 0, 7)", "maximum({}, 0)", "minimum({}, 7)", "({} + most)",
    "where({} < 0, ones, 1)",
)  # fmt: skip
TWO = (
    "maximum({}, {})", "minimum({}, {})", "({} + {})", "({} - {})", "({} * {})", "({} & {})", "({} | {})", "({} ^ {})",
    "where({0} < {1}, {0}, {1})", "where({0} >= {1}, {0}, {1})", "where({0} == {1}, {0}, {1})",
    "where({0} < {1}, {1} - {0}, {0} - {1})", "({} << ({} & 7))", "where({} < {}, ones, 1)", "where({} == {}, ones, 1)",
    "clip({}, {}, 7)", "clip({}, 0, {})",
)  # fmt: skip
THREE = ("clip({}, {}, {})", "where({} < {}, {}, 7)", "maximum(maximum({}, {}), {})", "minimum(minimum({}, {}), {})",
         "minimum(maximum({}, {}), {})", "maximum(minimum({}, {}), {})", "(({} + {}) - {})", "(({} & {}) | {})",
         "where(where({} > {}, ones, 0) == 0, {}, 1)")  # fmt: skip

# Shapes that a compiler has got wrong, and relatives of theirs.
KNOWN = (
    "maximum(x, ~y)", "minimum(x, ones - x)", "maximum(~x, ~(y ^ z))", "minimum(~(x ^ y), x & y)", "clip(clip(x, y, 7), 0, ~z)",
    "maximum(maximum(-x, -y), -z)", "minimum(minimum(-x, -y), -z)", "maximum(-maximum(x, y), 0 - z)",
    "maximum(maximum(maximum(-x, y * ones), -z), x)",
    "where(clip(x, 0, 7) == 7, ones, 1)", "where(minimum(x, 7) == 7, ones, 1)", "where(maximum(x, 9) == 9, ones, 1)",
    "where(clip(x, y, 7) < 7, ones, 1)",
    "minimum(abs(x), 0)", "where(abs(x) < 0, ones, 1)", "(abs(x) >> 1)", "abs((-x) >> 1)", "where(-x < 0, ones, 1)",
    "(-x >> last)", "where((0 - x) >= 0, ones, 1)",
    "where(((ones - x) + 1) < 0, ones, 1)", "where(wide(-x) < 0, ones, 1)", "where((x - y) < 0, ones, 1)",
    "where(cut(x - y) > 0, ones, 1)",
)  # fmt: skip


def pairs() -> Iterator[str]:
    """Every operator of two of every operator of one, and what one operator makes of those of two."""
    leaves = ("{}", *ONE)
    for outer, left, right in itertools.product(TWO, leaves, leaves):
        yield outer.format(left.format("x"), right.format("y"))
    for outer, inner, left in itertools.product(ONE, TWO, leaves):
        yield outer.format(inner.format(left.format("x"), "y"))
    for outer, inner, third in itertools.product(TWO, TWO, leaves):
        yield outer.format(inner.format("x", "y"), third.format("z"))
        yield outer.format(third.format("x"), inner.format("x", "y"))


def triples() -> Iterator[str]:
    """Operators of three of every operator of one, thrice the same or two of three."""
    leaves = ("{}", *ONE)
    for outer, a, b in itertools.product(THREE, leaves, leaves):
        yield outer.format(a.format("x"), a.format("y"), b.format("z"))
        yield outer.format(b.format("x"), a.format("y"), a.format("z"))
        yield outer.format(a.format("x"), b.format("y"), a.format("x"))
    for outer, inner, a in itertools.product(ONE, THREE, leaves):
        yield outer.format(inner.format(*(a.format(v) for v in "xyz")))
    for outer, inner, last in itertools.product(ONE, ONE, ONE):
        yield outer.format(inner.format(last.format("x")))


def table() -> list[str]:
    return list(dict.fromkeys(itertools.chain(pairs(), triples())))


# --- what is right ----------------------------------------------------------------------------------------------------


def numbers(dtype: str) -> dict[str, int]:
    info = np.iinfo(dtype)
    return {
        "last": info.bits - 1,
        "least": int(info.min),
        "most": int(info.max),
        "ones": -1 if info.min < 0 else int(info.max),
    }


def _narrower(dtype: str) -> str:
    size = np.dtype(dtype).itemsize
    return f"{'int' if dtype[0] == 'i' else 'uint'}{8 * max(size // 2, 1)}"


def _wider(dtype: str) -> str:
    return f"int{min(16 * np.dtype(dtype).itemsize, 64)}"


def _flipped(dtype: str) -> str:
    return dtype[1:] if dtype[0] == "u" else f"u{dtype}"


def _saturated(x: Any, dtype: str) -> Any:
    info, own = np.iinfo(dtype), np.iinfo(x.dtype)
    return np.clip(x, max(info.min, own.min), min(info.max, own.max)).astype(dtype)


def expected(shape: str, dtype: str, x: Any, y: Any, z: Any) -> Any:
    """The result of NumPy for a shape."""
    there_and_back = lambda to: lambda v: _saturated(_saturated(v, to), dtype)  # noqa: E731
    names = {
        "x": x, "y": y, "z": z, "maximum": np.maximum, "minimum": np.minimum,
        "clip": lambda v, low, high: np.minimum(np.maximum(v, low), high),
        "where": lambda c, a, b: np.where(c, *(np.asarray(v, dtype) for v in (a, b))), "narrow": there_and_back(_narrower(dtype)),
        "wide": lambda v: _saturated(v.astype(_wider(dtype)) if dtype != "uint64" else _saturated(v, "int64"), dtype),
        "flip": there_and_back(_flipped(dtype)), "cut": lambda v: v.astype(_narrower(dtype)).astype(dtype), **numbers(dtype),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return np.asarray(eval(shape, names), dtype)


def values(dtype: str, count: int) -> list[Any]:
    """Three arrays of corners and random numbers, whose first triples are of corners alone."""
    info = np.iinfo(dtype)
    corners = [0, 1, info.min, info.max, 7, 2, *((-1, -7, -8) if info.min < 0 else (8, 9, 255))]
    rng = np.random.default_rng(5)
    small, large = (
        rng.integers(max(info.min, -20), 20, (3, count)),
        rng.integers(info.min, info.max, (3, count), dtype, True),
    )
    chosen = rng.choice(np.array(corners, dtype), (3, count))
    kind = rng.integers(0, 4, (3, count))
    result = np.where(kind < 2, chosen, np.where(kind == 2, small.astype(dtype), large))
    result[:, :9] = [np.roll(np.array(corners, dtype), k)[: result[:, :9].shape[1]] for k in (0, 0, 3)]
    return list(result)


# --- what gpuop computes ----------------------------------------------------------------------------------------------


def value(shape: str, dtype: str, x: Any, y: Any, z: Any) -> Any:
    """A shape in a kernel."""
    there_and_back = lambda to: lambda v: _convert(_convert(v, to), dtype)  # noqa: E731
    names = {
        "x": x, "y": y, "z": z, "maximum": _max, "minimum": _min, "clip": _clamp,
        "where": lambda c, a, b: _where(c, _convert(a, dtype), _convert(b, dtype)), "narrow": there_and_back(_narrower(dtype)),
        "wide": there_and_back(_wider(dtype)), "flip": there_and_back(_flipped(dtype)),
        "cut": lambda v: _cut(v, dtype), **numbers(dtype),
    }  # fmt: skip
    return eval(shape, names)


def _cut(v: Any, dtype: str) -> Any:
    """The low half of the bits, sign-extended."""
    low = 4 * np.dtype(dtype).itemsize
    return v if low == 4 else (v << low) >> low


MOST_VALUES = 4161  # after which they are those again


@gp.operator(outputs=lambda shapes, dtype, x, y, z: x.type, default=0)
def apart(shapes, dtype, x, y, z):
    """Each shape in the layer of its own: a block that reads, computes and writes."""
    for k, shape in enumerate(shapes):
        with _if(_layer == k):
            _writeTensor(_out0, value(shape, dtype, *map(_readTensor, (x, y, z))))


@gp.operator(outputs=lambda shapes, dtype, x, y, z: (x.type,) * len(shapes))
def together(shapes, dtype, x, y, z):
    """An output for each of at most ten shapes."""
    read = [_readTensor(v) for v in (x, y, z)]
    for shape, out in zip(shapes, OUTS, strict=False):
        _writeTensor(out, value(shape, dtype, *read))


OUTS = (_out0, _out1, _out2, _out3, _out4, _out5, _out6, _out7, _out8, _out9)


def wrong(
    shapes: Sequence[str], dtype: str, grid: tuple[int, ...], tensor: int = 1, blocks: bool = True
) -> dict[str, str]:
    """The faults of the device in use.

    Args:
        grid: of rows and columns; threads of the last groups are masked where it does not fill them.
        tensor: components.
        blocks: each shape in a block of its own; otherwise all are computed side by side, in lanes if the grid is large.
    """
    count = int(np.prod(grid)) * tensor
    arrays = [np.resize(a, count) for a in values(dtype, min(count, MOST_VALUES))]
    layers = (len(shapes),) if blocks else ()
    whole = [np.broadcast_to(a.reshape(*grid, tensor), (*layers, *grid, tensor)) for a in arrays]
    fields = [gp.Field(a if tensor > 1 else a[..., 0], int(tensor > 1)) for a in whole]
    result = apart(tuple(shapes), dtype, *fields) if blocks else together(tuple(shapes), dtype, *fields)
    if isinstance(result, gp.Field):
        results = list(result.numpy().reshape(len(shapes), -1))
    else:
        results = [np.ravel(field.numpy()) for field in gp.evaluate(*result)]
    cases = {}
    for shape, actual in zip(shapes, results, strict=True):
        want = np.broadcast_to(expected(shape, dtype, *arrays), actual.shape)
        bad = np.flatnonzero(actual != want)
        if bad.size:
            x, y, z = (a[bad[0]] for a in arrays)
            cases[shape] = (
                f"{actual[bad[0]]} for {want[bad[0]]} where x, y, z = {x}, {y}, {z} ({bad.size} of {actual.size})"
            )
    return cases
