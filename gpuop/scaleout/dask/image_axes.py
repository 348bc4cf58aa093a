"""The axes of an array: those of the function, and those that count images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpuop.base.errors import SemanticError
from gpuop.ir.types import is_integer


@dataclass(frozen=True)
class ImageAxes:
    """The axes of the first array: the image axes, and the function's axes, in its order."""

    batch: tuple[int, ...]
    image: tuple[int, ...]

    @property
    def first(self) -> tuple[int, ...]:
        """The axis order with the image axes first."""
        return (*self.batch, *self.image)

    def in_front(self, array: Any) -> Any:
        """Return the array with its image axes first. Arrays of other dimensions have none."""
        return array.transpose(self.first) if array.ndim == len(self.first) else array

    def back(self, ndim: int) -> tuple[int, ...]:
        """Return the transposition that moves the axes of a result back to the order of the first array, if it has as many axes."""
        places = range(ndim)
        return tuple(sorted(places, key=self.first.__getitem__) if ndim == len(self.first) else places)


def image_axes(ndim: int, batch: Any, axes: Any, names: Sequence[str] = ()) -> ImageAxes:
    """Parse `batch=` and `axes=` for an array.

    Args:
        names: the names of its dimensions, if it has some.

    Raises:
        SemanticError: they do not fit the array, or both are passed.
    """
    if not is_integer(batch) or not 0 <= batch <= ndim:
        raise SemanticError(f"`batch=` is how many leading axes count images, from 0 to {ndim}, not {batch!r}")
    if axes is None:
        return ImageAxes(tuple(range(batch)), tuple(range(batch, ndim)))
    if batch:
        raise SemanticError("`axes=` are those that the function gets, and all others count images: leave out `batch=`")
    listed = axes if isinstance(axes, Iterable) and not isinstance(axes, str) else (axes,)
    image = tuple(_axis(each, ndim, names) for each in listed)
    if len(set(image)) < len(image):
        raise SemanticError(f"`axes=` has an axis twice: {axes!r}")
    return ImageAxes(tuple(a for a in range(ndim) if a not in image), image)


def _axis(axis: Any, ndim: int, names: Sequence[str]) -> int:
    if axis in names:
        return names.index(axis)
    if not is_integer(axis) or not -ndim <= axis < ndim:
        there = f"{', '.join(map(repr, names))}, or " if names else ""
        raise SemanticError(f"`axes=` are axes of the first array: {there}numbers below {ndim}, not {axis!r}")
    return int(axis) % ndim


def labelled(like: Any, array: Any, axes: ImageAxes, own: int) -> Any:
    """Return a result as an xarray array; coordinates along axes of other extents are left out.

    Args:
        own: the number of its axes that are axes of the first array, image axes first; tensor axes may be, too.
    """
    order = axes.back(array.ndim)
    dims = [""] * array.ndim
    for place, axis in enumerate(order):
        same = axis < own or (array.ndim == like.ndim and array.shape[place] == like.shape[axes.first[axis]])
        dims[place] = like.dims[axes.first[axis]] if same else f"dim_{place}"
    sizes = dict(zip(dims, array.shape, strict=True))
    coords = {name: each for name, each in like.coords.items() if all(sizes.get(d) == like.sizes[d] for d in each.dims)}
    return type(like)(array, coords=coords, dims=dims, name=like.name, attrs=like.attrs)
