"""What workers do: windows are put together of pieces of chunks, and computed image after image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuop.pipelines.pipeline import Pipeline

Slices = tuple[slice, ...]


@dataclass(frozen=True)
class BlockPlace:
    """A block of the result.

    Attributes:
        start, stop: the points that are computed; None where the function computes the whole grid.
        inner: those of them that are wanted.
        images: how many there are along each axis that counts them.
        shapes: of what each argument is put together to.
        places: for each argument, where its pieces go.
    """

    start: tuple[int, ...] | None
    stop: tuple[int, ...]
    inner: Slices
    images: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    places: tuple[tuple[Slices, ...], ...]


@dataclass(frozen=True)
class BlockProgram:
    """A pipeline that computes blocks. Workers get it once, so that each compiles once.

    Attributes:
        grid: the extents of the whole.
        names: of the arguments that are arrays.
        counted: those of them that have images.
        shared: those that are given whole.
        device: where workers compute, if that is not their choice.
        constants: the other arguments.
    """

    pipeline: Pipeline
    grid: tuple[int, ...]
    names: tuple[str, ...]
    counted: frozenset[str]
    shared: tuple[str, ...]
    device: Any = None
    constants: dict[str, Any] = field(default_factory=dict)

    def block(self, place: BlockPlace, *given: Sequence[Any]) -> Any:
        """A block of the result, or of each.

        Args:
            given: the pieces of each argument.
        """
        arrays = dict(zip(self.names, map(assembled, given, place.places, place.shapes), strict=True))
        made: list[Any] = []
        for image in np.ndindex(*place.images):
            results = self._image(place, {n: a[image] if n in self.counted else a for n, a in arrays.items()})
            if not made:
                made = [np.empty_like(r, shape=(*place.images, *r.shape)) for r in results]
            for whole, result in zip(made, results, strict=True):
                whole[image] = result
        return tuple(made) if len(made) > 1 else made[0]

    def _image(self, place: BlockPlace, arrays: dict[str, Any]) -> list[Any]:
        options = {} if self.device is None else {"device": self.device}
        if place.start is None:
            results = self.pipeline(**arrays, **self.constants, **options)
            return list(results) if isinstance(results, tuple) else [results]
        window = self.pipeline.window(self.grid, place.start, place.stop, self.shared)
        results = window(**arrays, **self.constants, **options)
        return [each[place.inner] for each in (results if isinstance(results, tuple) else (results,))]


def assembled(pieces: Sequence[Any], places: Sequence[Slices], shape: tuple[int, ...]) -> Any:
    """One array of pieces, of their library; a piece that is all of it stays where it is."""
    if len(pieces) == 1:
        return (
            pieces[0]
            if isinstance(pieces[0], np.ndarray) or hasattr(pieces[0], "__dlpack__")
            else np.asarray(pieces[0])
        )
    whole = np.empty_like(pieces[0], shape=shape)
    for piece, place in zip(pieces, places, strict=True):
        whole[place] = piece
    return whole


def block_of(program: BlockProgram, place: BlockPlace, *given: Sequence[Any]) -> Any:
    """A task."""
    return program.block(place, *given)
