"""The results of a stream that are not on the grid: reductions, and computed tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuop.fusion.windows.footprint import Place
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array


class ImageValues:
    """The results on other grids, for each image.

    Args:
        lead: the extents of the image axes.
        kinds: the types of an image's results.
        inside: whether each result is on the grid; those are left out here.

    Attributes:
        arrays: an array for each other result, over all images.
        left: the images without values so far.
    """

    def __init__(self, lead: Place, kinds: Sequence[FieldType], inside: Sequence[bool]) -> None:
        self.others = [n for n, on_grid in enumerate(inside) if not on_grid]
        self.arrays = [np.empty((*lead, *kinds[n].array_shape), kinds[n].array_dtype) for n in self.others]
        self.left: set[Place] = set(np.ndindex(*lead)) if self.others else set()

    def put(self, image: Place, results: Sequence[Array]) -> list[Array]:
        """Store the values of an image from its results: any of its windows has the same. Return them; () if they were stored."""
        if image not in self.left:
            return []
        values = [results[n] for n in self.others]
        self.take(image, values)
        return values

    def take(self, image: Place, values: Sequence[Array]) -> None:
        """Store the values of an image."""
        self.left.discard(image)
        for array, value in zip(self.arrays, values, strict=True):
            array[image] = value
