"""Arrays that are transformed alone, by the library of the device in use: as they lie, and into an array of its own."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.dsl.fields.arrays import Placeholder, is_array
from gpuop.dsl.fields.field import Field
from gpuop.fourier.host_library import host_library
from gpuop.ndimage.of_arrays import of_arrays
from gpuop.runtime.devices import current

Function = Callable[..., Any]
COSINES = ("dctn", "idctn", "dstn", "idstn")  # CuPy has but some of their types, and gpuop's kernels are as fast


def taking_arrays(function: Function, alone: Callable[..., Any]) -> Function:
    """Make of a transform of a field one that takes an array too.

    Args:
        function: its first parameter is `x`.
        alone: the result of an array of float32 or complex64, of the same arguments, where a library has it; else None.
    """
    signature, of_any = inspect.signature(function), of_arrays(narrow=True)(function)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given, found = bound.arguments, None
        if given["method"] is given.get("plan") is None and _is_alone(given["x"]):
            found = alone(**given)
        return of_any(*args, **kwargs) if found is None else found

    return called


def _is_alone(x: Any) -> bool:
    return is_array(x) and not isinstance(x, (Field, Placeholder)) and str(x.dtype) in ("float32", "complex64")


def _library_of(array: Any, name: str) -> Function | None:
    """The function of the library that has this array in the memory of the device in use."""
    target = current().target
    if type(array) is np.ndarray and target.device == "cpu" and target.has_arrays:
        module, options = host_library()
        return functools.partial(getattr(module, name), **options) if hasattr(module, name) else None
    if type(array).__module__.split(".")[0] == "cupy" and target.backend == "cuda" and name not in COSINES:
        return functools.partial(_of_cupy, name)
    return None


def _of_cupy(name: str, array: Any, **options: Any) -> Any:
    with array.device:
        return getattr(importlib.import_module("cupyx.scipy.fft"), name)(array, **options)


def transformed_alone(
    name: str, array: Any, lengths: Sequence[int], axes: Sequence[int], norm: str | None, **more: Any
) -> Any:
    """The array's transform; None where the device has no library for it.

    Args:
        name: of one axis.
        more: arguments that only cosine and sine transforms have.
    """
    function = _library_of(array, name + "n")
    return function and function(array, s=tuple(lengths), axes=tuple(axes), norm=norm, **more)
