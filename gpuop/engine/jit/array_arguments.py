"""Functions of fields that take arrays of any library in their places, and then give arrays of the same library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder, is_array
from gpuop.dsl.guards.function_wrapper import bind_of_library
from gpuop.dsl.recorder.value import Value
from gpuop.engine.jit.pipeline import pipeline
from gpuop.ir.types import is_integer
from gpuop.ops.call_cache import DATA, CallCache, New

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_arrays(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that runs a function of fields as a pipeline when it is called with arrays.

    Traces are cached by the types of the arrays and by all other arguments.

    Args:
        names: of the arguments that may be fields or arrays; lists become NumPy arrays; integers and None stay.
    """

    def decorated(function: Function) -> Function:
        signature, run = inspect.signature(function), pipeline(function)
        before = CallCache(signature, dict.fromkeys(names, DATA))

        def anew(args: tuple[Any, ...], kwargs: dict[str, Any]) -> New:
            bound = bind_of_library(function.__name__, signature, args, kwargs)
            fields = {name: bound.arguments[name] for name in names if name in bound.arguments}
            if any(isinstance(value, (Field, Placeholder)) for value in fields.values()):
                return function(*args, **kwargs), None, ()
            arrays = {name: _array(value) for name, value in fields.items()}
            bound.arguments.update(arrays)
            if any(map(is_array, arrays.values())):
                return run.anew(bound.args, bound.kwargs)
            return function(*bound.args, **bound.kwargs), None, ()

        return before.calling(function, anew)

    return decorated


def _array(value: Any) -> Any:
    return value if value is None or is_array(value) or is_integer(value) else an_array(value)


def an_array(value: Any) -> Any:
    """A value as a NumPy array; SemanticError for a value that is recorded in a kernel."""
    if isinstance(value, Value):
        raise SemanticError(
            "gpuop's library takes whole fields, and a recorded value is that of one point: give it the field, and read what it "
            "makes, as in `_readTensor(gp.ndimage.gaussian_filter(f, 1))`; of what a body computes it takes the operator's result"
        )
    return np.asarray(value)


def as_field(value: Any, tensor_order: int = 0) -> Field:
    """The field, or one of an array whose last axes are the tensor's, with the array's own dtype."""
    if isinstance(value, Field):
        return value
    array = value if isinstance(value, Placeholder) or is_array(value) else an_array(value)
    return Field(array, tensor_order, array.dtype)
