"""The pipelines that have gradients, and some that people train, as losses: the sum of the squares of their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop as gp
from benchmarks.pipelines.array_programs import Programs
from benchmarks.pipelines.catalogue import CATALOGUE, Arrays, Shape, smooth
from benchmarks.pipelines.pipeline import Pipeline, as_tuple
from gpuop.dsl import *

PLANE = {"cpu": (1024, 1024), "gpu": (4096, 4096)}
VOLUME = {"cpu": (96, 96, 96), "gpu": (256, 256, 256)}
OF_PIPELINES = (
    *("chain8", "conv3x3", "gauss2", "gauss5", "sobel", "median3x3", "harris", "unsharp", "bilateral5x5", "nlm"),
    *("mean_variance", "pyramid_blend", "gray_scott", "heat1", "heat2", "heat10", "sum", "row_sums", "column_sums"),
    "transpose",
)
STEPS = 8


# --- what is trained ---------------------------------------------------------------------------------------------------


@gp.operator
def diffused(u, edge):
    """A step of Perona and Malik."""
    own, limit, total = _readTensor(u), _readTensor(edge), 0.0
    for offset in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        d = _readTensor(u, offset=offset) - own
        total += d * _exp(-(d * d) * limit)
    return own + 0.2 * total


def perona_malik(u, edge):
    for _ in range(STEPS):
        u = diffused(u, edge)
    return u


@gp.operator
def correlated(image, weights):
    places = [(r, c) for r in range(5) for c in range(5)]
    return sum(_readTensor(weights, r, c) * _readTensor(image, _row + r - 2, _column + c - 2) for r, c in places)


@gp.operator
def variation(u):
    own = _readTensor(u)
    down, right = _readTensor(u, _row + 1, _column) - own, _readTensor(u, _row, _column + 1) - own
    return _sqrt(_sqrt(down * down + right * right + 1e-3))


@gp.operator
def moved(image, down, right):
    return _sampleTensor(image, _row + _readTensor(down), _column + _readTensor(right))


class Trained(Programs):
    """The same for libraries of whole arrays."""

    def perona_malik(self, u: Any, edge: Any) -> Any:
        for _ in range(STEPS):
            at = self.lib.window(u, 1, "edge")
            steps = [at(*offset) - u for offset in ((-1, 0), (1, 0), (0, -1), (0, 1))]
            u = u + 0.2 * sum(d * self.xp.exp(-(d * d) * edge) for d in steps)
        return u

    def correlated(self, image: Any, weights: Any) -> Any:
        at = self.lib.window(image, 2, "edge")
        return sum(weights[r, c] * at(r - 2, c - 2) for r in range(5) for c in range(5))

    def variation(self, u: Any) -> Any:
        at = self.lib.window(u, 1, "edge")
        down, right = at(1, 0) - u, at(0, 1) - u
        return self.xp.sqrt(self.xp.sqrt(down * down + right * right + 1e-3))

    def moved(self, image: Any, down: Any, right: Any) -> Any:
        rows, columns = image.shape
        y = self.xp.clip(self.lib.arange(image, rows)[:, None] + down, 0, rows - 1)
        x = self.xp.clip(self.lib.arange(image, columns) + right, 0, columns - 1)
        top, left = (self.xp.clip(self.lib.cast(v, "int32"), 0, n - 2) for v, n in ((y, rows), (x, columns)))
        a, b = y - top, x - left
        upper = (1 - b) * image[top, left] + b * image[top, left + 1]
        return (1 - a) * upper + a * ((1 - b) * image[top + 1, left] + b * image[top + 1, left + 1])


def picture_and_number(shape: Shape, rng: np.random.Generator) -> Arrays:
    return smooth(shape, rng), np.float32(0.3)[...]


def picture_and_weights(shape: Shape, rng: np.random.Generator) -> Arrays:
    return smooth(shape, rng), rng.random((5, 5), np.float32) / 25


def picture_and_moves(shape: Shape, rng: np.random.Generator) -> Arrays:
    return smooth(shape, rng), *(4 * rng.random(shape, np.float32) - 2 for _ in range(2))


TRAINED = (
    Pipeline("perona_malik", "Perona–Malik, 8 steps", perona_malik, np.copy, picture_and_number, PLANE),
    Pipeline("correlated", "5×5 correlation with weights", correlated, np.copy, picture_and_weights, PLANE),
    Pipeline("variation", "root of the total variation", variation, np.copy, shapes=PLANE),
    Pipeline("moved", "picture at places that move", moved, np.copy, picture_and_moves, PLANE),
)


@dataclass(frozen=True)
class Gradient(Pipeline):
    """A pipeline of the loss of another one, and its gradients by all arrays.

    Attributes:
        forward: the loss alone.
        count: of the arrays.
    """

    forward: Any = None
    count: int = 1


def gradient_of(pipeline: Pipeline) -> Gradient:
    shapes = VOLUME if len(pipeline.shapes["cpu"]) == 3 else PLANE
    count = len(pipeline.inputs((8,) * len(shapes["cpu"])))

    def loss(*fields: Any) -> Any:
        return sum((result * result).sum() for result in as_tuple(pipeline.make(*fields)))

    def both(*fields: Any) -> Any:
        value, gradients = gp.value_and_grad(loss, argnums=tuple(range(count)))(*fields)
        return value, *gradients

    common: dict[str, Any] = {"arrays": pipeline.arrays, "shapes": shapes, "tensor_order": pipeline.tensor_order}
    forward = Pipeline(pipeline.name, pipeline.title, loss, np.copy, **common)
    return Gradient(
        pipeline.name, pipeline.title, both, np.copy, **common, error=2e-4, share=2e-3, forward=forward, count=count
    )


def loss_of(program: Callable[..., Any]) -> Callable[..., Any]:
    """The same of a program of whole arrays."""
    return lambda *arrays: sum((result * result).sum() for result in as_tuple(program(*arrays)))


GRADIENTS = {p.name: gradient_of(p) for p in (*(CATALOGUE[name] for name in OF_PIPELINES), *TRAINED)}
