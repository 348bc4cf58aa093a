"""What a stream gives besides results on the grid: reductions, and tables that are computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuop.fusion.windows.footprint import Place
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array


class ImageValues:
    """Results of other grids, of each image.

    Args:
        lead: the extents of the axes that count images.
        kinds: the types of an image's results.
        inside: which of them are on the grid, and none of these.

    Attributes:
        arrays: of each of the others for all images.
        left: the images of which they are not known.
    """

    def __init__(self, lead: Place, kinds: Sequence[FieldType], inside: Sequence[bool]) -> None:
        self.others = [n for n, on_grid in enumerate(inside) if not on_grid]
        self.arrays = [np.empty((*lead, *kinds[n].array_shape), kinds[n].array_dtype) for n in self.others]
        self.left: set[Place] = set(np.ndindex(*lead)) if self.others else set()

    def put(self, image: Place, results: Sequence[Array]) -> list[Array]:
        """What an image gives, of its results: any of its windows gives the same. Empty if it was known, or it gives none."""
        if image not in self.left:
            return []
        found = [results[n] for n in self.others]
        self.take(image, found)
        return found

    def take(self, image: Place, found: Sequence[Array]) -> None:
        """What an image has given."""
        self.left.discard(image)
        for array, value in zip(self.arrays, found, strict=True):
            array[image] = value
