"""Transforms of single arrays by the library of the device in use: without copies, into a new array."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder, is_array
from gpuop.engine.jit.array_arguments import Library
from gpuop.ir.dtype_names import PARTS
from gpuop.lib.fft.kernels.vendor_library import host_library
from gpuop.runtime.devices import current

Function = Callable[..., Any]
ALONE = ("float32", "float64", *PARTS)
COSINES = ("dct", "idct", "dst", "idst")  # CuPy lacks some of their types, and gpuop kernels are as fast


def by_default(alone: Callable[..., Any]) -> Library:
    """Return a function for `library=` of `takes_arrays`: the library's where neither `method=` nor `plan=` is given.

    Args:
        alone: takes the arguments of a transform of `x`, and returns the library function for such arrays of floats or
            complex numbers, or None.
    """

    def library(args: Mapping[str, Any]) -> Function | None:
        return alone(**args) if args["method"] is args.get("plan") is None and _is_alone(args["x"]) else None

    return library


def _is_alone(x: Any) -> bool:
    if not is_array(x) or isinstance(x, (Field, Placeholder)):
        return False
    return str(x.dtype).removeprefix("torch.") in ALONE


def _library_of(array: Any, name: str, **options: Any) -> Function | None:
    """The transform of the library whose arrays are in the memory of the device in use; None if there is none."""
    target = current().target
    if type(array) is np.ndarray and target.device == "cpu" and target.has_arrays:
        module, more = host_library()
        return functools.partial(getattr(module, name), **options, **more) if hasattr(module, name) else None
    library = type(array).__module__.split(".")[0]
    if target.backend != "cuda" or name.rstrip("n") in COSINES:
        return None
    if library == "cupy":
        return functools.partial(_of_cupy, getattr(importlib.import_module("cupyx.scipy.fft"), name), options)
    if library == "torch" and array.is_cuda:
        dim = options.pop("axis" if "axis" in options else "axes")
        return functools.partial(getattr(importlib.import_module("torch.fft"), name), dim=dim, **options)
    return None


def _of_cupy(function: Function, options: dict[str, Any], array: Any) -> Any:
    with array.device:
        return function(array, **options)


def transforming_alone(
    name: str, array: Any, lengths: Sequence[int], axes: Sequence[int], norm: str | None, **more: Any
) -> Function | None:
    """The library function for such an array; None if the device has none.

    Args:
        name: the name of the transform along one axis.
        more: arguments of cosine and sine transforms.
    """
    if len(axes) == 1:
        return _library_of(array, name, n=lengths[0], axis=axes[0], norm=norm, **more)
    return _library_of(array, name + "n", s=tuple(lengths), axes=tuple(axes), norm=norm, **more)
