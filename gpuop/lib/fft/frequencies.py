"""Helpers of Fourier transforms: frequencies, centred spectra and fast lengths."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.lib.fft.kernels.axes import fast_length
from gpuop.lib.ndimage.filter_arguments import axes_of, rank
from gpuop.ops.layout.reorder import roll


def fftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Numbers:
    """scipy.fft.fftfreq: the frequencies of a transform, a NumPy array.

    Args:
        n: the number of values.
        d: their spacing.
        xp, device: accepted as in SciPy and ignored.
    """
    return np.fft.fftfreq(n, d)


def rfftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Numbers:
    """scipy.fft.rfftfreq: the frequencies of a transform of real numbers, a NumPy array; arguments as of `fftfreq`."""
    return np.fft.rfftfreq(n, d)


@takes_arrays()
def fftshift(x: Any, axes: Any = None) -> Any:
    """scipy.fft.fftshift: a spectrum with frequency 0 in the middle.

    Args:
        x: a Field, or an array.
        axes: axes along which values are shifted; by default all of the grid.

    Returns:
        A lazy Field, which fuses with its consumers as shifted reads; for an array, an array of the same library.
    """
    return _shifted(x, axes, 1)


@takes_arrays()
def ifftshift(x: Any, axes: Any = None) -> Any:
    """scipy.fft.ifftshift: the inverse of `fftshift`, with the same arguments."""
    return _shifted(x, axes, -1)


def _shifted(x: Field, axes: Any, sign: int) -> Field:
    numbers = axes_of(axes, rank(x))
    return roll(x, tuple(sign * (x.field_shape[a] // 2) for a in numbers), numbers) if numbers else x


@hinted
@functools.lru_cache(typed=True)
def next_fast_len(target: int, real: bool = False) -> int:
    """scipy.fft.next_fast_len: the least fast length from `target` on: its prime factors are 2, 3 and 5.

    Args:
        target: a length of 1 or more.
        real: accepted as in SciPy and ignored.
    """
    count = operator.index(target)
    if count < 1:
        raise ArgumentError(f"Target length must be positive, and is {count}")
    return fast_length(count)


@hinted
@functools.lru_cache(typed=True)
def prev_fast_len(target: int, real: bool = False) -> int:
    """scipy.fft.prev_fast_len: the greatest fast length up to `target`; arguments as of `next_fast_len`."""
    count = operator.index(target)
    if count < 1:
        raise ArgumentError(f"Target length must be positive, and is {count}")
    return next(n for n in range(count, 0, -1) if fast_length(n) == n)
