"""Functions of fields that take arrays of any library in their places, and then return arrays of the same library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from gpuop.base.errors import SemanticError, UnsupportedError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.fields.from_arrays import Placeholder, is_array
from gpuop.dsl.guards.function_wrapper import bind_of_library
from gpuop.dsl.recorder.value import Value
from gpuop.engine.interop import numpy_dtype
from gpuop.engine.jit.constant_arguments import constant
from gpuop.engine.jit.pipeline import pipeline
from gpuop.engine.parameter_numbers import FollowedParameters, Values, parameters_among, with_values
from gpuop.ir.bfloat16 import BFLOAT16, is_bfloat16
from gpuop.ir.dtype_names import dtype_name
from gpuop.ir.types import is_integer
from gpuop.ops.call_cache import CONSTANT, DATA, LISTS, RESULT, CallCache, New
from gpuop.runtime.devices import current

Function = TypeVar("Function", bound=Callable[..., Any])
Library = Callable[[Mapping[str, Any]], Callable[[Any], Any] | None]
LAZY = (Field, Placeholder)
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


def takes_arrays(*names: str, library: Library | None = None) -> Callable[[Function], Function]:
    """Return a decorator that runs a function of fields as a pipeline when it is called with arrays.

    Traces are cached by the types of the arrays and by all other arguments. With a field the function returns fields; arrays and
    lists beside it become fields. `output=` is that of SciPy: a dtype, or for arrays an array of the same library, which is
    filled and returned.

    Args:
        names: of the arguments that the function gets as fields: fields, arrays, lists of numbers or of fields, numbers, and None
            where it is the default. Without names it is the first argument.
        library: takes the arguments of a call with an array, and returns a vendor's function that computes it, if there is one.
    """

    def decorated(function: Function) -> Function:
        signature = inspect.signature(function)
        data = names or tuple(signature.parameters)[:1]
        anew = _Calls(function, signature, data, library).anew
        return CallCache(signature, dict.fromkeys(data, DATA) | {"output": RESULT}, CONSTANT).calling(function, anew)

    return decorated


class _Calls:
    """Calls of a function that are not cached.

    Args:
        data: the arguments that the function gets as fields.
        library: as of `takes_arrays`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: inspect.Signature,
        data: Sequence[str],
        library: Library | None,
    ) -> None:
        self.name, self.signature, self.data = function.__name__.strip("_"), signature, data
        self.library = library
        places = tuple(n for n, name in enumerate(signature.parameters) if name in data)
        self.of_fields = _with_fields(function, places)
        self.run = pipeline(_traced_with_array(self.of_fields, self.name, signature))

    def anew(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> New:
        """Run the function with fields; or its pipeline, or the vendor's function, with arrays."""
        bound = bind_of_library(self.name, self.signature, args, kwargs)
        bound.apply_defaults()
        numbers = {n: v for n, v in bound.arguments.items() if n not in (*self.data, "output")}
        parameters = list(parameters_among(numbers.values()))
        return self._following(bound, numbers, parameters) if parameters else self._called(bound)

    def _following(self, bound: inspect.BoundArguments, numbers: dict[str, Any], parameters: list[Parameter]) -> New:
        """Call the function with the values of Parameters: with arrays those of now, with fields whatever they are."""
        follows = FollowedParameters(self.name, parameters)
        data = {name: bound.arguments[name] for name in self.data}
        lazy = any(map(_is_lazy, data.values()))
        if lazy:
            data = {name: _fields(self._data(name, value)) for name, value in data.items()}

        def result(values: Values) -> Any:
            arguments = {name: with_values(value, values) for name, value in numbers.items()}
            filled = inspect.BoundArguments(self.signature, bound.arguments | data | arguments)
            return self._called(filled)[0]

        if not lazy:
            return result(follows.values()[0]), None, ()
        fields = [each for value in data.values() for each in (value if type(value) in LISTS else (value,))]
        inputs = [each.node for each in fields if isinstance(each, Field)]
        return follows.field(result, inputs), None, ()

    def _called(self, bound: inspect.BoundArguments) -> New:
        arguments = bound.arguments
        output = arguments.get("output")
        into = output if output is not None and is_array(output) else None
        for name, value in arguments.items():
            if name in self.data:
                arguments[name] = self._data(name, value)
            elif name != "output":
                arguments[name] = constant(value)
        if any(map(_is_lazy, map(arguments.__getitem__, self.data))):
            if into is not None:
                raise UnsupportedError(f"ndimage.{self.name}: of a Field `output=` is a dtype; its result is a Field")
            refuse_swapped(self.name, output)
            return self.of_fields(*bound.args, **bound.kwargs), None, ()
        if self.library is not None and (alone := self.library(arguments)) is not None:
            array = arguments[self.data[0]]
            return alone(array), LibraryCall(alone, current().name), [array]
        if "output" in arguments:
            arguments["output"] = _name_of(output, into)
        return self._run(bound, output, into)

    def _data(self, name: str, value: Any) -> Any:
        """Return an argument that the function gets as a field; integers stay, which are constants of the pipeline."""
        if _is_lazy(value) or is_integer(value) or (value is None and self.signature.parameters[name].default is None):
            return value
        return value if is_array(value) else an_array(value)

    def _run(self, bound: inspect.BoundArguments, output: Any, into: Any) -> New:
        """Run the pipeline; with `output=` an array, of either byte order, the result is written to it."""
        if is_swapped(output):
            result = self.run(*bound.args, **bound.kwargs)
            if not isinstance(result, np.ndarray):
                refuse_swapped(self.name, output)
            return result.astype(result.dtype.newbyteorder()), None, ()
        if isinstance(into, np.ndarray) and not into.dtype.isnative:
            np.copyto(into, self.run(*bound.args, **bound.kwargs))
            return into, None, ()
        return self.run.anew(bound.args, bound.kwargs | {"out": into})


def _with_fields(function: Callable[..., Any], places: Container[int]) -> Callable[..., Any]:
    """Return a function that converts its arguments at these places to fields."""

    def of_fields(*args: Any, **kwargs: Any) -> Any:
        return function(*(_fields(arg) if n in places else arg for n, arg in enumerate(args)), **kwargs)

    return of_fields


def _traced_with_array(of_fields: Callable[..., Any], name: str, signature: inspect.Signature) -> Callable[..., Any]:
    """Return a function in which `is_of_an_array` is true."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        token = _of_arrays.set(True)
        try:
            return of_fields(*args, **kwargs)
        finally:
            _of_arrays.reset(token)

    traced.__name__ = traced.__qualname__ = name
    traced.__signature__ = signature  # type: ignore[attr-defined]
    return traced


def _is_lazy(value: Any) -> bool:
    return isinstance(value, LAZY) or (type(value) in LISTS and any(isinstance(each, LAZY) for each in value))


def _fields(value: Any) -> Any:
    """Return an argument as a field, a list that has fields as fields, and None unchanged."""
    if type(value) in LISTS and _is_lazy(value):
        return [as_field(each) for each in value]
    return None if value is None else as_field(value)


def an_array(value: Any) -> Any:
    """A value as a NumPy array; SemanticError for a value that is recorded in a kernel."""
    if isinstance(value, Value):
        raise SemanticError(
            "functions of gpuop take whole fields, and a recorded value is that of one point: call them with the field, and "
            "read the result, as in `_readTensor(gp.ndimage.gaussian_filter(f, 1))`; for values that a body computes, call "
            "them with the result of the operator"
        )
    return np.asarray(value)


def as_field(value: Any) -> Field:
    """The field, or one of an array, with the array's own dtype."""
    if isinstance(value, Field):
        return value
    array = value if isinstance(value, Placeholder) or is_array(value) else an_array(value)
    return Field(array, 0, array.dtype)


# --- `output=` of SciPy -------------------------------------------------------------------------------------------------


class DTypeOfArray(str):
    """Dtype of an array that a result goes into."""


def is_swapped(output: Any) -> bool:
    """Return whether `output=` is a dtype of the other byte order, which no field has."""
    says = isinstance(output, np.dtype) or (isinstance(output, str) and output.startswith(("<", ">")))
    return says and not np.dtype(output).isnative


def refuse_swapped(name: str, output: Any) -> None:
    """Raise an UnsupportedError for a dtype of the other byte order."""
    if is_swapped(output):
        native = np.dtype(output).name
        raise UnsupportedError(
            f"ndimage.{name}: a result of {np.dtype(output).str!r} has the other byte order, which no field has; give "
            f"`output={native!r}`, and convert NumPy's array of it"
        )


def _name_of(output: Any, into: Any) -> Any:
    """Return the name of the dtype that `output=` asks for."""
    if into is not None:
        return DTypeOfArray(dtype_name(numpy_dtype(into)))
    try:
        is_known = output is None or is_bfloat16(output) or (isinstance(output, str) and output == BFLOAT16)
        return output and dtype_name(output) if is_known else np.dtype(output).name
    except TypeError:
        raise UnsupportedError(f"`output` is a dtype or an array, not {output!r}") from None
