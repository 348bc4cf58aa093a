"""Arrays that are transformed alone, by the library of the device in use: as they lie, and into an array of its own."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.runtime.devices import current


def host_library() -> tuple[Any, dict[str, Any]]:
    """SciPy's transforms with all cores, or NumPy's where there is no SciPy."""
    if importlib.util.find_spec("scipy") is None:
        return importlib.import_module("numpy.fft"), {}
    return importlib.import_module("scipy.fft"), {"workers": os.cpu_count()}


def library_of(array: Any) -> Callable[[str], Callable[..., Any]] | None:
    """The functions of the library that has this array in the memory of the device in use, by names."""
    target = current().target
    if type(array) is np.ndarray and target.device == "cpu" and target.has_arrays:
        module, options = host_library()
        return lambda name: functools.partial(getattr(module, name), **options)
    if type(array).__module__.split(".")[0] == "cupy" and target.backend == "cuda":
        return lambda name: functools.partial(_of_cupy, name)
    return None


def _of_cupy(name: str, array: Any, **options: Any) -> Any:
    with array.device:
        return getattr(importlib.import_module("cupyx.scipy.fft"), name)(array, **options)


def transformed_alone(name: str, array: Any, lengths: Sequence[int], axes: Sequence[int], norm: str | None) -> Any:
    """The array's transform, of float32 and complex64; None where the device has no library for it.

    Args:
        name: fft, ifft, rfft or irfft.
    """
    if str(array.dtype) not in ("float32", "complex64") or not (functions := library_of(array)):
        return None
    return functions(name + "n")(array, s=tuple(lengths), axes=tuple(axes), norm=norm)
