"""The arrays that calls of the catalogue name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft
import scipy.ndimage

Array = np.ndarray[Any, Any]
TILE = 4096  # along an axis; larger images are a multiple of it
NEAR = np.array([[0.99, 0.1], [-0.1, 0.99]])


class Arrays:
    """Arrays of a size: images of `size`², rows of as many numbers, and matrices of as many numbers or fewer.

    Args:
        size: rows and columns of an image.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.shape = (size, size)

    def _noise(self, seed: int, *shape: int) -> Array:
        return np.random.default_rng(seed).random(shape or self.shape, np.float32)

    @cached_property
    def image(self) -> Array:
        return self._noise(0)

    @cached_property
    def other(self) -> Array:
        return self._noise(1) + np.float32(0.01)

    @cached_property
    def signed(self) -> Array:
        return 4 * self._noise(0) - 2

    @cached_property
    def holes(self) -> Array:
        return np.where(self.image < 0.01, np.float32(np.nan), self.image)

    @cached_property
    def bytes(self) -> Array:
        return (self.image * 256).astype(np.uint8)

    @cached_property
    def whole(self) -> Array:
        return (self.other * 1000).astype(np.int32)

    @cached_property
    def more(self) -> Array:
        return (self.image * 30).astype(np.int32) + 1

    @cached_property
    def mask(self) -> Array:
        return self.image > 0.5

    @cached_property
    def other_mask(self) -> Array:
        return self.other > 0.5

    @cached_property
    def blobs(self) -> Array:
        """Large images have the same blobs again and again: SciPy takes long."""
        tile = min(self.size, TILE)
        blobs = scipy.ndimage.gaussian_filter(self.image[:tile, :tile], 6) > 0.5
        return np.tile(blobs, (self.size // tile,) * 2)

    @cached_property
    def labels(self) -> Array:
        return scipy.ndimage.label(self.blobs)[0]  # type: ignore[no-any-return]

    @cached_property
    def index(self) -> Array:
        return np.arange(1, self.labels.max() + 1)

    @cached_property
    def waves(self) -> Array:
        waves = np.empty(self.shape, np.complex64)
        waves.real, waves.imag = self.image, self.other
        return waves

    @cached_property
    def spectrum(self) -> Array:
        return scipy.fft.rfft2(self.image, workers=-1)  # type: ignore[no-any-return]

    @cached_property
    def line_spectra(self) -> Array:
        return scipy.fft.rfft(self.image, workers=-1)  # type: ignore[no-any-return]

    @cached_property
    def row(self) -> Array:
        return self.image.reshape(-1)

    @cached_property
    def other_row(self) -> Array:
        return self.other.reshape(-1)

    @cached_property
    def numbers(self) -> Array:
        return self.whole.reshape(-1)

    @cached_property
    def order(self) -> Array:
        tile = min(self.size, TILE)
        return np.tile(np.argsort(self.image[:tile], axis=-1), (self.size // tile, 1))

    @cached_property
    def square(self) -> Array:
        return self._noise(2, self.size // 2, self.size // 2) - 0.5

    @cached_property
    def other_square(self) -> Array:
        return self._noise(3, self.size // 2, self.size // 2) - 0.5

    @cached_property
    def matrices(self) -> Array:
        return self._noise(4, self.size**2 // 32, 4, 4) + 2 * np.eye(4, dtype="f")

    @cached_property
    def positive(self) -> Array:
        return self.matrices @ self.matrices.swapaxes(1, 2)

    @cached_property
    def vectors(self) -> Array:
        return self._noise(5, self.size**2 // 4, 3)

    @cached_property
    def other_vectors(self) -> Array:
        return self._noise(6, self.size**2 // 4, 3)

    @cached_property
    def columns(self) -> Array:
        return self._noise(7, self.size**2 // 32, 4)

    @cached_property
    def rectangle(self) -> Array:
        return self._noise(9, 24, 6)

    @cached_property
    def line(self) -> Array:
        return self._noise(10, 24)

    # Numbers and small arrays of the host's.

    @cached_property
    def places(self) -> Array:
        y, x = np.meshgrid(*(np.arange(self.size, dtype="f"),) * 2, indexing="ij")
        return np.stack([y + 5 * np.sin(x / 50), x + 5 * np.cos(y / 40)])

    @cached_property
    def picks(self) -> Array:
        return np.arange(0, self.size, 2)

    cross = scipy.ndimage.generate_binary_structure(2, 1)
    ring = np.array([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 0]], bool)
    taps = np.linspace(-1, 2, 9, dtype="f") ** 3
    window = np.random.default_rng(8).random((5, 5)).astype("f")
    many = np.random.default_rng(11).random((41, 41)).astype("f")
    near = NEAR
    offset = (3.0, 5.0)
    bins = np.linspace(0, 1, 257, dtype="f")
    values = np.sin(9 * bins)


ORDERS = {"matrices": 2, "positive": 2, "vectors": 1, "other_vectors": 1, "columns": 1}  # of tensors; of others 0
CONSTANTS = (
    "size",
    "shape",
    "index",
    "picks",
    "places",
    "cross",
    "ring",
    "taps",
    "window",
    "many",
    "near",
    "offset",
    "bins",
    "values",
)


def tensor_order(name: str) -> int:
    return ORDERS.get(name, 0)


def is_data(name: str) -> bool:
    """Return whether a name of an expression is an array that becomes a field."""
    return hasattr(Arrays, name) and name not in CONSTANTS


def scope_of(
    names: tuple[str, ...], given: Arrays, made: Callable[[str, Array], Any], small: Callable[[Any], Any]
) -> Any:
    """The values of the names of an expression.

    Args:
        made: of the name of an array that becomes a field, and the array.
        small: of what stays with the host in gpuop's calls.
    """
    found = {name: getattr(given, name) for name in names if name in CONSTANTS or is_data(name)}
    return {n: made(n, v) if is_data(n) else small(v) if isinstance(v, np.ndarray) else v for n, v in found.items()}
