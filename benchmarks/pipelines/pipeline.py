"""What is measured: a function of fields, arrays to run it on, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gpuop as gp

Array = np.ndarray[Any, Any]
PLANE = {"cpu": (4096, 4096), "gpu": (16384, 16384)}
VOLUME = {"cpu": (256, 256, 256), "gpu": (512, 512, 512)}


@dataclass(frozen=True)
class Pipeline:
    """A pipeline of small operators.

    Attributes:
        name: on the command line.
        title: what it computes.
        make: fields to a field, or several; what a user writes.
        arrays: a shape of the grid, and random numbers, to the arrays that `make` is given as fields.
        expected: the same arrays to what comes out, in NumPy.
        shapes: grids large enough for memory to count, for CPUs and for GPUs.
        tensor_order: of the fields.
        error: how far a value may be from the expected one; relative to the largest where that is above 1.
        share: of points that may be farther: those where rounding decides between two classes.
    """

    name: str
    title: str
    make: Callable[..., Any]
    expected: Callable[..., Any]
    arrays: Callable[[tuple[int, ...], np.random.Generator], tuple[Array, ...]] = field(
        default=lambda shape, rng: (rng.random(shape, np.float32),)
    )
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: PLANE)
    tensor_order: int = 0
    error: float = 2e-6
    share: float = 0.0

    def inputs(self, shape: tuple[int, ...]) -> tuple[Array, ...]:
        """The same arrays each time."""
        return self.arrays(shape, np.random.default_rng(len(self.name)))

    def graph(self, arrays: tuple[Array, ...], **options: Any) -> gp.ComputeGraph:
        """A graph that computes everything at each step, as it does for a camera whose frame happens to stay the same."""
        with gp.ComputeGraph(**options) as graph:
            fields = [gp.Sensor(kind_of(a, self.tensor_order), frames(a)) for a in arrays]
            for number, result in enumerate(as_tuple(self.make(*fields))):
                graph.probe(result, f"result{number}")
        return graph

    def differs(self, found: tuple[Array, ...], expected: tuple[Array, ...], crop: int = 0) -> str:
        """How results differ from the expected ones, more than they may, within so many points of the edges; or nothing."""
        if len(found) != len(expected):
            return f"{len(found)} results, not {len(expected)}"
        return next(filter(None, map(self._differs, found, expected, [crop] * len(found))), "")

    def _differs(self, found: Array, expected: Array, crop: int) -> str:
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return f"{found.dtype} {found.shape}, not {expected.dtype} {expected.shape}"
        inner = tuple(slice(crop, n - crop) for n in found.shape[: found.ndim - self.tensor_order]) if crop else ...
        far = distance(found[inner], expected[inner], self.error)
        return f"{far:.2%} of the points differ" if far > self.share else ""


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def kind_of(array: Array, tensor_order: int) -> gp.FieldType:
    """The type of a field of an array."""
    grid = array.ndim - tensor_order
    return gp.FieldType(array.shape[:grid], array.shape[grid:], array.dtype.name)


def frames(array: Array) -> Callable[[], Array | None]:
    """A sensor's source: the array, and from then on nothing new."""
    given = iter((array,))
    return lambda: next(given, None)


def distance(found: Array, expected: Array, error: float) -> float:
    """The share of values that are farther from the expected ones than `error`; 1 where one is no number."""
    if found.size == 0:
        return 0.0
    allowed = error * max(1.0, float(np.abs(expected).max(initial=0)))
    near = np.abs(np.subtract(found, expected, dtype=np.float64 if found.dtype != np.float32 else None)) <= allowed
    return 1.0 - float(np.count_nonzero(near)) / found.size
