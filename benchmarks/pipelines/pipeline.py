"""A pipeline to measure: a function of fields, arrays to run it on, and the results of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gpuop as gp

from .comparing import Array, compared

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
        photo: whether gpuop is measured as peers are, given arrays of NumPy as they lie and writing into such: what is interleaved
            is taken apart, and put together, in the time that counts.
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
    photo: bool = False

    @property
    def program(self) -> str:
        """By which peers know it, whose arrays are interleaved anyway."""
        return self.name.removeprefix("photo_")

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

    def differs(self, found: tuple[Array, ...], expected: tuple[Array, ...], crop: int = 0) -> tuple[str, bool]:
        """Larger differences from the expected results than allowed, within so many points of the edges, or nothing;
        and whether their bits are the same."""
        if len(found) != len(expected):
            return f"{len(found)} results, not {len(expected)}", False
        bits = True
        for a, b in zip(found, expected, strict=True):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{a.dtype} {a.shape}, not {b.dtype} {b.shape}", False
            inner = tuple(slice(crop, n - crop) for n in a.shape[: a.ndim - self.tensor_order]) if crop else ...
            difference = compared(a[inner], b[inner], self.error)
            bits &= difference.bits
            if difference.far > self.share:
                return f"{difference.far:.2%} of the points differ", False
        return "", bits


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
