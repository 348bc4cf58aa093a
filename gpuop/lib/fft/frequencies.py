"""What belongs to transforms: frequencies, the middle of spectra, and lengths that are fast."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.lib.fft.kernels.axes import fast_length
from gpuop.lib.ndimage.array_arguments import of_arrays
from gpuop.lib.ndimage.filter_arguments import axes_of, rank
from gpuop.ops.layout.roll import roll


def fftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Numbers:
    """scipy.fft.fftfreq: the frequencies of a transform, a NumPy array.

    Args:
        n: how many values are transformed.
        d: how far they are apart.
        xp, device: SciPy's; the array is NumPy's.
    """
    return np.fft.fftfreq(n, d)


def rfftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Numbers:
    """scipy.fft.rfftfreq: the frequencies of a transform of real numbers, a NumPy array; arguments as of `fftfreq`."""
    return np.fft.rfftfreq(n, d)


@of_arrays()
def fftshift(x: Any, axes: Any = None) -> Any:
    """scipy.fft.fftshift: frequency 0 comes to the middle of a spectrum.

    Args:
        x: a Field, or an array.
        axes: those along which values are moved; by default all of the grid.

    Returns:
        A lazy Field, read at other places by whatever takes it; of an array, an array of the same library.
    """
    return _shifted(x, axes, 1)


@of_arrays()
def ifftshift(x: Any, axes: Any = None) -> Any:
    """scipy.fft.ifftshift: the inverse of `fftshift`; arguments as of it."""
    return _shifted(x, axes, -1)


def _shifted(x: Field, axes: Any, sign: int) -> Field:
    numbers = axes_of(axes, rank(x))
    return roll(x, tuple(sign * (x.field_shape[a] // 2) for a in numbers), numbers) if numbers else x


@functools.lru_cache(typed=True)
def next_fast_len(target: int, real: bool = False) -> int:
    """scipy.fft.next_fast_len: the least length from this one on whose transforms are fast: with factors 2, 3 and 5.

    Args:
        target: a length of 1 or more.
        real: SciPy's; nothing depends on it.
    """
    count = operator.index(target)
    if count < 1:
        raise ArgumentError(f"Target length must be positive, and is {count}")
    return fast_length(count)


@functools.lru_cache(typed=True)
def prev_fast_len(target: int, real: bool = False) -> int:
    """scipy.fft.prev_fast_len: the greatest length up to this one with factors 2, 3 and 5; arguments as of `next_fast_len`."""
    count = operator.index(target)
    if count < 1:
        raise ArgumentError(f"Target length must be positive, and is {count}")
    return next(n for n in range(count, 0, -1) if fast_length(n) == n)
