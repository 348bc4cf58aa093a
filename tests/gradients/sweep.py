"""Every function of the library and every pipeline of the benchmarks as functions of float64 fields, with tiny arguments.

Arguments of the catalogue are arrays of 4×4 points; windows go over fields of 1, 2 and 3 points too, which are smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gpuop as gp
from benchmarks.library.catalogue import ROWS
from benchmarks.library.given import Arrays, is_data, tensor_order
from benchmarks.library.row import Row, leaves
from benchmarks.pipelines.catalogue import CATALOGUE
from gpuop.dsl import *

Case = tuple[Callable[..., Any], tuple[Any, ...]]  # a function of fields, and its arguments
MODULES = {name: getattr(gp, name) for name in ("ndimage", "linalg", "fft", "random")}
SIZE = 4
MODES = ("reflect", "constant", "nearest", "mirror", "wrap")  # the others are those by other names
GRIDS = ((1, 1), (2, 1), (3, 2))
BORDERS = (
    "clamp",
    "zero",
    "wrap",
    "reflect",
    "symmetric",
    0.7,
    ("clamp", "wrap"),
    ("reflect", "zero"),
    (0.5, "symmetric"),
)
WINDOWS = {"3×3": ((-1, 2), (-1, 2)), "row of 5": ((0, 1), (-2, 3)), "far": ((-3, -1), (1, 4))}
PLACES = np.array([[-0.6, 0.3, 1.2, 4.4], [0.1, 0.7, -1.3, 2.2]])
FILTERS: dict[str, Callable[..., Any]] = {
    "correlate1d": lambda x, **edge: gp.ndimage.correlate1d(x, [1.0, 2, -3, 4, 0.5], **edge),
    "correlate": lambda x, **edge: gp.ndimage.correlate(x, np.arange(1.0, 10).reshape(3, 3), **edge),
    "convolve, even": lambda x, **edge: gp.ndimage.convolve(x, np.arange(1.0, 9).reshape(2, 4), **edge),
    "gaussian_filter": lambda x, **edge: gp.ndimage.gaussian_filter(x, 1, **edge),
    "uniform_filter": lambda x, **edge: gp.ndimage.uniform_filter(x, 4, **edge),
    "uniform_filter, origin": lambda x, **edge: gp.ndimage.uniform_filter(x, 3, origin=1, **edge),
    "maximum_filter": lambda x, **edge: gp.ndimage.maximum_filter(x, 3, **edge),
    "minimum_filter, even": lambda x, **edge: gp.ndimage.minimum_filter(x, 4, **edge),
    "median_filter": lambda x, **edge: gp.ndimage.median_filter(x, 3, **edge),
    "rank_filter": lambda x, **edge: gp.ndimage.rank_filter(x, 1, 3, **edge),
    "grey_closing": lambda x, **edge: gp.ndimage.grey_closing(x, 3, **edge),
    "sobel": lambda x, **edge: gp.ndimage.sobel(x, 0, **edge),
    "laplace": lambda x, **edge: gp.ndimage.laplace(x, **edge),
    "gradient magnitude": lambda x, **edge: gp.ndimage.gaussian_gradient_magnitude(x, 1, **edge),
    "shift": lambda x, **edge: gp.ndimage.shift(x, 0.4, **edge),
    "zoom": lambda x, **edge: gp.ndimage.zoom(x, 1.7, order=2, **edge),
    "rotate": lambda x, **edge: gp.ndimage.rotate(x, 30, order=1, **edge),
    "map_coordinates": lambda x, **edge: gp.ndimage.map_coordinates(x, PLACES, **edge),
}


@gp.operator
def window(u, rows, columns, border):
    total, k = _var(_convert_double(0)), 0
    for i in range(*rows):
        for j in range(*columns):
            k += 1
            value = _readTensor(u, _row + i, _column + j, border=border)
            total @= total + value * value * (0.3 * k + 1)
    return total * _readTensor(u)


def cases() -> dict[str, Callable[[], Case]]:
    """The cases by their names, each made when it is called."""
    rows = [row for row in ROWS.values() if row.module != "random" and _fields(row)]
    return {
        **{row.key: lambda row=row: of_row(row) for row in rows},
        **{f"pipeline {name}": lambda name=name: of_pipeline(name) for name in CATALOGUE},
        **dict(_windows()),
        **dict(_filters()),
    }


def _windows() -> Iterator[tuple[str, Callable[[], Case]]]:
    for border in BORDERS:
        for name, (rows, columns) in WINDOWS.items():
            for grid in GRIDS:
                arguments = rows, columns, border, grid
                yield f"window {name}, border {border}, {grid}", lambda a=arguments: _window(*a)


def _window(rows: Any, columns: Any, border: Any, grid: tuple[int, ...]) -> Case:
    return lambda u: window(u, rows, columns, border), (gp.Field(distinct(grid)),)


def _filters() -> Iterator[tuple[str, Callable[[], Case]]]:
    for name in FILTERS:
        for mode in MODES:
            for grid in GRIDS:
                yield f"{name}, mode {mode}, {grid}", lambda a=(name, mode, grid): _filter(*a)


def _filter(name: str, mode: str, grid: tuple[int, ...]) -> Case:
    edge = {"mode": mode, **({"cval": 0.45} if mode == "constant" else {})}
    return lambda x: FILTERS[name](x * x, **edge), (gp.Field(distinct(grid)),)


def distinct(shape: tuple[int, ...]) -> Any:
    """Numbers from 0.4 to 1.3, of which no two are close to equal."""
    count = int(np.prod(shape))
    return np.random.default_rng(count).permutation(np.linspace(0.4, 1.3, count)).reshape(shape)


# --- functions of the catalogue -----------------------------------------------------------------------------------------


class Tiny(Arrays):
    """The arrays of the catalogue, small also where these are not."""

    blobs = np.array([[1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 0]], bool)
    labels = np.array([[1, 1, 0, 0], [1, 0, 0, 2], [0, 0, 2, 2], [0, 0, 2, 0]], np.int32)
    holes = np.array(
        [[0.3, np.nan, 0.7, 0.2], [0.9, 0.1, 0.5, 0.8], [0.4, 0.6, 0.15, np.nan], [0.25, 0.35, 0.55, 0.65]]
    )
    window = np.arange(1.0, 10).reshape(3, 3)
    rectangle, line = (np.random.default_rng(n).random(shape) for n, shape in ((9, (5, 3)), (10, 5)))
    matrices = np.random.default_rng(4).random((2, 3, 3)) + 2 * np.eye(3)
    positive = matrices @ matrices.swapaxes(1, 2)
    vectors, other_vectors, columns = np.random.default_rng(5).random((3, 2, 3))
    many = np.arange(1.0, 26).reshape(5, 5)


GIVEN = Tiny(SIZE)
CALLS = {"numpy.delete": "np.delete(image, [0, 2], 1)", "ndimage.rank_filter": "ndimage.rank_filter(image, 2, size=3)"}
CALLS |= {f"ndimage.{n}": f"ndimage.{n}(image)" for n in ("spline_filter", "spline_filter1d")}
CALLS |= {
    f"ndimage.{n}": f"ndimage.{n}(image, {a})" for n, a in (("median_filter", 3), ("percentile_filter", "30, size=3"))
}


def _fields(row: Row) -> list[str]:
    """The names of the arguments of floating numbers."""
    return [n for n in row.names() if is_data(n) and np.asarray(getattr(GIVEN, n)).dtype.kind in "fc"]


def field(name: str) -> Any:
    array = np.asarray(getattr(GIVEN, name))
    wide = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype)
    return gp.Field(array.astype(wide), tensor_order(name))


def of_row(row: Row) -> Case:
    """A call of the catalogue as a function of its floating arguments."""
    active = _fields(row)
    scope: dict[str, Any] = {"np": np, **MODULES}
    for name in row.names():
        if hasattr(GIVEN, name) and name not in active:
            scope[name] = field(name) if is_data(name) else getattr(GIVEN, name)
    call = eval(f"lambda {', '.join(active)}: {CALLS.get(row.key, row.call)}", scope)
    return call, tuple(map(field, active))


def of_pipeline(name: str) -> Case:
    """A pipeline of floating arrays; one of integers has no argument."""
    pipeline = CATALOGUE[name]
    volume = len(pipeline.shapes["cpu"]) == 3 and not pipeline.tensor_order and name.startswith("heat")
    shape = (3, 4, 4) if volume else (8, 8)
    arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in pipeline.inputs(shape)]
    fields = [gp.Field(a, pipeline.tensor_order) for a in arrays]
    active = [n for n, a in enumerate(arrays) if a.dtype.kind == "f"]

    def of_active(*args: Any) -> Any:
        given = dict(zip(active, args, strict=True))
        return pipeline.make(*(given.get(n, each) for n, each in enumerate(fields)))

    return of_active, tuple(fields[n] for n in active)


def smooth(f: Callable[..., Any]) -> Callable[..., Any]:
    """The floating results of a function alone: a tuple, or the only one."""

    def of(*args: Any) -> Any:
        results = [r for r in leaves(f(*args)) if isinstance(r, gp.Field) and r.type.storage.kind == "f"]
        return results[0] if len(results) == 1 else tuple(results)

    return of
