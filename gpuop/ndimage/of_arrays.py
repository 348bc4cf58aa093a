"""Functions of fields that take arrays of other libraries too, and then give arrays of the same kind."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gpuop.dsl.fields.arrays import Placeholder, is_array
from gpuop.dsl.fields.field import Field
from gpuop.errors import UnsupportedError
from gpuop.interop import numpy_dtype
from gpuop.ndimage.filter_arguments import DTypeOfArray, frozen
from gpuop.pipelines.pipeline import pipeline

Function = TypeVar("Function", bound=Callable[..., Any])


def of_arrays(also: str = "", narrow: bool = False) -> Callable[[Function], Function]:
    """Make of a function of a field one that takes an array too: then it is a pipeline, kept for the array's type and all else.

    `output=` is SciPy's: a dtype, or for arrays an array of the same library that the result goes into, which is returned.

    Args:
        also: another argument that is a field or None, beside the first one.
        narrow: complex128, which no field has, is taken as complex64.
    """

    def decorated(function: Function) -> Function:
        signature, name = inspect.signature(function), function.__name__
        has_output = "output" in signature.parameters
        first = next(iter(signature.parameters))

        def field_of(array: Any, other: Any, rest: tuple[Any, ...]) -> Field:
            given = {also: None if other is None else as_field(other)} if also else {}
            return function(as_field(array), **given, **dict(rest))  # type: ignore[no-any-return]

        run = pipeline(_named(field_of, name))

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            given = dict(signature.bind(*args, **kwargs).arguments)
            array, other, output = given.pop(first), given.pop(also, None), given.pop("output", None)
            rest = {n: frozen(v) for n, v in given.items()}
            if isinstance(array, (Field, Placeholder)):
                if output is not None and is_array(output):
                    raise UnsupportedError(f"ndimage.{name}: of a Field `output=` is a dtype; its result is a Field")
                return field_of(array, other, tuple((rest | ({"output": output} if has_output else {})).items()))
            into = output if output is not None and is_array(output) else None
            dtype = DTypeOfArray(numpy_dtype(into).name) if into is not None else output and np.dtype(output).name
            rest |= {"output": dtype} if has_output else {}
            result = run(_array(array, narrow), _array(other), tuple(rest.items()), out=into)
            return result if into is None else into

        return called  # type: ignore[return-value]

    return decorated


def _array(given: Any, narrow: bool = False) -> Any:
    array = given if given is None or is_array(given) else np.asarray(given)
    return array.astype(np.complex64) if narrow and getattr(array, "dtype", None) == np.complex128 else array


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    return function


def as_field(array: Any) -> Field:
    """A field of scalars with the array's own dtype."""
    return array if isinstance(array, Field) else Field(array, 0, array.dtype)
