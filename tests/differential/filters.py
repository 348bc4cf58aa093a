"""SciPy's filters, and operators that read at offsets and at constant places, of parts of fields and of fields in another order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.ndimage

from .choose import Maker
from .gathers import Gather, Place, Tap
from .layouts import Layout
from .program import Env, Input, Step
from .values import Rejected, Rng, Val

MODES = ("nearest", "wrap", "reflect", "mirror", "constant", "grid-wrap", "grid-mirror", "grid-constant")
BORDERS = ("clamp", "zero", "wrap", "reflect", "symmetric")
DTYPES = ("uint8", "uint8", "int16", "int32", "float32", "float32", "int8", "uint16")
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65)
MOST = 5000  # points of a grid


@dataclass(frozen=True)
class Filter(Step):
    """A call of SciPy's, whose sums are of whole numbers and exact.

    Attributes:
        arguments: Python's text of those behind the field.
    """

    name: str
    function: str
    of: str
    arguments: str

    def above(self) -> dict[str, list[str]]:
        return {"ndimage": ["from gpuop import ndimage"]}

    def lines(self) -> list[str]:
        return [f"{self.name} = ndimage.{self.function}({self.of}{self.arguments})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        if value.order or value.unorm or not value.array.size or value.dtype not in DTYPES:
            raise Rejected("type")
        wide = value.array.astype(np.float64)
        call, names = f"function(array{self.arguments})", {"np": np, "function": getattr(scipy.ndimage, self.function)}
        try:
            result, exact = eval(call, {**names, "array": value.array}), eval(call, {**names, "array": wide})
        except (ValueError, RuntimeError) as refused:
            raise Rejected(str(refused)) from None
        if not np.array_equal(result.astype(np.float64), exact) or np.abs(exact).max(initial=0) >= 2**20:
            raise Rejected("what the dtype does not hold")
        env.values[self.name] = Val(result, slack=np.zeros(result.shape))  # the signs of zeros are nobody's promise

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


def a_grid_of_filters(rng: Rng) -> tuple[int, ...]:
    while True:
        grid = tuple(int(n) for n in rng.choice(EXTENTS, int(rng.choice((1, 2, 2, 2, 2, 3, 3)))))
        if math.prod(grid) <= MOST:
            return grid


def a_view(maker: Maker, of: str) -> str:
    """The field's values, or some, in an order that may be another one."""
    count = len(maker.value(of).grid)
    axis = int(maker.rng.integers(count))
    text = maker.one_of((_sliced, _sliced, _sliced, _rolled, _turned))(maker, count, axis)
    name = maker.name()
    return name if maker.add(Layout(name, text, (of,), 0)) and maker.value(name).array.size else of


def _sliced(maker: Maker, count: int, axis: int) -> str:
    number = int(maker.rng.integers(1, 4))
    cuts = (f"{number}:", f":{-number}", f"{number}:{-number}", "::-1", "::2", "1::2", "::-2", "::-100", f"{number}:-100:-1",
            f"{number}:{number + 1}", "-1:")  # fmt: skip
    each = [maker.one_of(cuts) if k == axis or maker.chance(0.3) else ":" for k in range(count)]
    return f"{{}}[{', '.join(each)}]"


def _rolled(maker: Maker, count: int, axis: int) -> str:
    return f"np.roll({{}}, {int(maker.rng.integers(-9, 10))}, axis={axis})"


def _turned(maker: Maker, count: int, axis: int) -> str:
    return f"np.transpose({{}}, {tuple(int(a) for a in maker.rng.permutation(count))})"


# --- filters ------------------------------------------------------------------------------------------------------------


def a_filter(maker: Maker, of: str) -> str:
    function = maker.one_of(list(FUNCTIONS))
    name, count = maker.name(), len(maker.value(of).grid)
    arguments = FUNCTIONS[function](maker, count)
    return name if maker.add(Filter(name, function, of, arguments)) else of


def _mode(maker: Maker, count: int, each: bool = False) -> str:
    if each and count > 1 and maker.chance(0.3):
        return f", mode={tuple(maker.one_of(MODES[:5]) for _ in range(count))}"
    mode = maker.one_of((*MODES, "wrap", "wrap"))
    return f", mode={mode!r}" + (f", cval={maker.one_of((0, 3))}" if "constant" in mode else "")


def _along(maker: Maker, count: int) -> str:
    return f", axis={int(maker.rng.integers(-count, count))}"


def _weights(maker: Maker, count: int) -> str:
    shape = tuple(int(n) for n in maker.rng.choice((1, 1, 2, 3, 3, 5), count))
    return f", np.resize({[int(n) for n in maker.rng.integers(-1, 3, 7)]}, {shape})"


def _size(maker: Maker, count: int) -> str:
    return f", size={tuple(int(n) for n in maker.rng.choice((1, 2, 3, 3, 4, 5), count))}"


def _length(maker: Maker) -> int:
    return int(maker.one_of((1, 2, 3, 5, 9, 21)))


FUNCTIONS = {
    "correlate": lambda m, n: _weights(m, n) + _mode(m, n),
    "convolve": lambda m, n: _weights(m, n) + _mode(m, n),
    "correlate1d": lambda m, n: f", {[int(k) for k in m.rng.integers(-1, 3, _length(m))]}{_along(m, n)}{_mode(m, n)}",
    "sobel": lambda m, n: _along(m, n) + _mode(m, n, True),
    "prewitt": lambda m, n: _along(m, n) + _mode(m, n, True),
    "laplace": lambda m, n: _mode(m, n, True),
    "median_filter": lambda m, n: _size(m, n) + _mode(m, n),
    "minimum_filter": lambda m, n: _size(m, n) + _mode(m, n, True),
    "maximum_filter": lambda m, n: _size(m, n) + _mode(m, n, True),
    "maximum_filter1d": lambda m, n: f", {_length(m)}{_along(m, n)}{_mode(m, n)}",
    "minimum_filter1d": lambda m, n: f", {_length(m)}{_along(m, n)}{_mode(m, n)}",
    "grey_erosion": lambda m, n: _size(m, n) + _mode(m, n),
    "grey_dilation": lambda m, n: _size(m, n) + _mode(m, n),
    "rank_filter": lambda m, n: f", {int(m.rng.integers(-1, 2))}{_size(m, n)}{_mode(m, n)}",
}


# --- operators ----------------------------------------------------------------------------------------------------------


def a_reader(maker: Maker, of: str) -> str:
    """Reads at offsets, some beyond all extents, at constant places, of halved and doubled coordinates, in other orders of axes."""
    value = maker.value(of)
    count = len(value.grid)
    kind = maker.one_of(("around", "around", "around", "far", "doubled", "halved", "turned"))
    grid, order = value.grid, list(range(count))
    times, over = [1] * count, [1] * count
    for axis in range(count):
        if kind == "doubled" and maker.chance(0.6):
            over[axis] = 2
        if kind == "halved" and maker.chance(0.6):
            times[axis] = 2
    if kind == "turned":
        order = [int(a) for a in maker.rng.permutation(count)]
    grid = tuple(max(value.grid[a] * over[a] // times[a], 1) for a in order)
    if math.prod(grid) > MOST:
        return of
    border = _borders(maker, count)
    taps = []
    for _ in range(int(maker.rng.integers(1, 5))):
        far = 70 if kind == "far" else 3
        offsets = [int(n) for n in maker.rng.integers(-far, far + 1, count)]
        fixed = [maker.chance(0.07) for _ in range(count)]
        places = tuple(
            Place(order.index(a), offsets[a], 0, 1)
            if fixed[a]
            else Place(order.index(a), offsets[a], times[a], over[a])
            for a in range(count)
        )
        taps.append(Tap(maker.one_of((1, 1, 2, 3)), places, _borders(maker, count) if maker.chance(0.15) else border))
    name = maker.name()
    return name if maker.add(Gather(name, of, tuple(taps), grid, maker.chance(0.1))) else of


def _borders(maker: Maker, count: int) -> str | tuple[str, ...]:
    if count > 1 and maker.chance(0.3):
        return tuple(maker.one_of(BORDERS) for _ in range(count))
    return maker.one_of((*BORDERS, "wrap"))


def a_chain(maker: Maker) -> None:
    """One or two filters or operators, of a field or of a view; and what reads one of them."""
    of = _small_numbers(maker)
    for _ in range(int(maker.rng.choice((0, 1, 1, 2)))):
        of = a_view(maker, of)
    left = int(maker.rng.choice((1, 1, 2, 2, 3)))
    while left > 0 or of == maker.steps[0].name:
        left -= 1
        draw = maker.rng.random()
        if draw < 0.5:
            of = a_filter(maker, of)
        elif draw < 0.85:
            of = a_reader(maker, of)
        else:
            of = a_view(maker, of)


def _small_numbers(maker: Maker) -> str:
    """A field of whole numbers which repeat after so many that neighbours in any direction differ."""
    dtype = maker.one_of(DTYPES)
    values = maker.rng.integers(0 if dtype.startswith("u") else -20, 21, 101)
    name = maker.name()
    maker.add(Input(name, tuple(float(n) if dtype == "float32" else int(n) for n in values), dtype, maker.grid))
    return name
