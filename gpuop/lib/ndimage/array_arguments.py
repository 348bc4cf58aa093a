"""Decorator that lets functions of fields take arrays of other libraries; results are arrays of the same kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from gpuop.base.errors import ArgumentError, UnsupportedError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder, is_array
from gpuop.dsl.guards.function_wrapper import bind_of_library
from gpuop.engine.interop import numpy_dtype
from gpuop.engine.jit.array_arguments import an_array, as_field
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.lib.ndimage.filter_arguments import DTypeOfArray, is_swapped, refuse_swapped
from gpuop.lib.ndimage.scalar_arguments import ManyNumbers, frozen
from gpuop.ops.call_cache import CONSTANT, DATA, RESULT, CallCache, New
from gpuop.runtime.devices import current

Function = TypeVar("Function", bound=Callable[..., Any])
Library = Callable[[inspect.BoundArguments], "Callable[[Any], Any] | None"]
_NO_OUTPUT = "no output"  # default of functions without `output=`
_of_arrays = ContextVar("of_arrays", default=False)


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A call of a function of a vendor's library on a device."""

    function: Callable[[Any], Any]
    device: str

    def holds(self) -> bool:
        """Return whether the device is in use."""
        return current().name == self.device

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """Call the function with the array."""
        return self.function(inputs[0])


def is_of_an_array() -> bool:
    """Return whether the function that is traced got an array: nothing fuses with its result, no window of it is read."""
    return _of_arrays.get()


def of_arrays(also: str = "", narrow: bool = False, library: Library | None = None) -> Callable[[Function], Function]:
    """Let a function of a field take an array too: it runs as a pipeline, which is cached by the array's type and the arguments.

    `output=` is that of SciPy: a dtype, or for arrays an array of the same library, which is filled and returned.

    Args:
        also: name of a second argument that is a field or None.
        narrow: take complex128, which no field has, as complex64.
        library: takes the arguments of a call with an array, and returns a vendor's function that computes it, if there is one.
    """

    def decorated(function: Function) -> Function:
        signature, name = inspect.signature(function), function.__name__.strip("_")
        first = next(iter(signature.parameters))
        usual = signature.parameters["output"].default if "output" in signature.parameters else _NO_OUTPUT

        field_of = _field_of(function, also)
        run = pipeline(_named(_traced_with_array(field_of), name))
        before = CallCache(signature, {first: DATA, also or first: DATA, "output": RESULT}, CONSTANT)

        def anew(args: tuple[Any, ...], kwargs: dict[str, Any]) -> New:
            bound = bind_of_library(name, signature, args, kwargs)
            fields = dict(bound.arguments)
            array, other, output = fields.pop(first), fields.pop(also, None), fields.pop("output", usual)
            into = output if output is not None and is_array(output) else None
            rest = {n: frozen(ManyNumbers.of(v)) for n, v in fields.items()}
            if isinstance(array, (Field, Placeholder)):
                if into is not None:
                    raise UnsupportedError(f"ndimage.{name}: of a Field `output=` is a dtype; its result is a Field")
                refuse_swapped(name, output)
                return field_of(array, other, _with_output(rest, output), False), None, ()
            if library is not None and (alone := library(bound)) is not None:
                return alone(array), LibraryCall(alone, current().name), [array]
            names = _with_output(rest, _name_of(output, into))
            arguments = _array(array, narrow), _array(other), names, into is not None
            return _swapped(name, run(*arguments), output) if is_swapped(output) else _run(run, arguments, into)

        return before.calling(function, anew)

    return decorated


def named(function: Callable[..., Any], name: str, about: str, also: str = "") -> Callable[..., Any]:
    """Return a function of scipy.ndimage, which a factory has made, that takes arrays too as by `of_arrays`."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.ndimage.{name}: {about}"
    return of_arrays(also)(function)


def _field_of(function: Callable[..., Field], also: str) -> Callable[..., Field]:
    """Return the function of an array, a second one, the other arguments, and whether `output=` is an array."""

    def field_of(array: Any, other: Any, rest: tuple[Any, ...], into: bool) -> Field:
        fields = {also: _other_field(other)} if also else {}
        options = {n: DTypeOfArray(v) if into and n == "output" else v for n, v in rest}
        return function(as_field(array), **fields, **options)

    return field_of


def _traced_with_array(field_of: Callable[..., Field]) -> Callable[..., Field]:
    """Return a function in which `is_of_an_array` is true."""

    def traced(array: Any, other: Any, rest: tuple[Any, ...], into: bool) -> Field:
        token = _of_arrays.set(True)
        try:
            return field_of(array, other, rest, into)
        finally:
            _of_arrays.reset(token)

    return traced


def _name_of(output: Any, into: Any) -> Any:
    """Return the name of the dtype that `output=` asks for."""
    if into is not None:
        return numpy_dtype(into).name
    if output is None or output is _NO_OUTPUT:
        return output
    try:
        return np.dtype(output).name
    except TypeError:
        raise UnsupportedError(f"`output` is a dtype or an array, not {output!r}") from None


def _with_output(rest: dict[str, Any], output: Any) -> tuple[Any, ...]:
    return tuple(rest.items()) if output is _NO_OUTPUT else (*rest.items(), ("output", output))


def _run(run: Pipeline, arguments: tuple[Any, ...], into: Any) -> New:
    """Run a pipeline; with `output=` an array, of either byte order, the result is written to it."""
    if isinstance(into, np.ndarray) and not into.dtype.isnative:
        np.copyto(into, run(*arguments))
        return into, None, ()
    return run.anew(arguments, {"out": into})


def _swapped(name: str, result: Any, output: Any) -> New:
    """Return a NumPy result in the other byte order."""
    if not isinstance(result, np.ndarray):
        refuse_swapped(name, output)
    return result.astype(result.dtype.newbyteorder()), None, ()


def _other_field(other: Any) -> Any:
    """Return a second argument as a field, or a sequence of them as fields."""
    if isinstance(other, (tuple, list)) and any(isinstance(each, Field) for each in other):
        return [as_field(each) for each in other]
    return None if other is None else as_field(other)


def _array(fields: Any, narrow: bool = False) -> Any:
    array = fields if fields is None or is_array(fields) else an_array(fields)
    return array.astype(np.complex64) if narrow and getattr(array, "dtype", None) == np.complex128 else array


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    return function


def with_more(function: Callable[..., Any], arguments: Any, keywords: Any) -> Callable[..., Any]:
    """Return a user function with its extra arguments bound, arrays among them.

    Raises:
        ArgumentError: it is not callable; a ValueError.
    """
    if not callable(function):
        raise ArgumentError(f"the function is a callable, not {described(function)}")
    if not arguments and not keywords:
        return function
    return lambda *values: function(*values, *arguments, **(keywords or {}))
