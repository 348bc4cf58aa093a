"""Functions of arrays alone, by stable names: a pipeline with its constants, and the pulls and batches derived from it."""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import captures_with_gradients_refused, is_array
from gpuop.dsl.operators.arguments import contents
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.gradients.jvp import jvp
from gpuop.gradients.reverse import vjp
from gpuop.ir.types import FieldType
from gpuop.ops.create.computed_fields import filled
from gpuop.transforms.vmap import vmap

Spec = tuple[tuple[int, ...], np.dtype[Any]]  # the shape and the dtype of an array
TYPES_KEPT = 64  # of results, by types of arguments
_functions: dict[str, FrameworkFunction] = {}
_names: dict[Any, str] = {}  # of pipelines with constants, which stay as long as the process
_lock = threading.RLock()


class FrameworkFunction:
    """A pipeline of arrays alone, whose results are always a list.

    Frameworks pass its name through their graphs of operators, and find it again with `array_function`.

    Attributes:
        name: of the pipeline and its constants; of derived functions with what was derived: "blur|pull 11 1|map 101".
        count: how many arrays it takes.
        is_several: whether the pipeline returns a tuple; True once a call, or the types of one, have told.
    """

    def __init__(self, name: str, function: Pipeline, count: int) -> None:
        self.name, self.function, self.count = name, function, count
        self.is_several = False
        self._types: BoundedCache[Any, tuple[FieldType, ...]] = BoundedCache(TYPES_KEPT)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The results for arrays of one library, on the device in use."""
        with captures_with_gradients_refused():
            result = self.function(*arrays)
        self.is_several = isinstance(result, tuple)
        return list(result) if self.is_several else [result]

    def write(self, arrays: Sequence[Any], outs: Sequence[Any]) -> None:
        """Put the results for arrays of one library into other arrays; `is_several` has to be told before."""
        with captures_with_gradients_refused():
            self.function(*arrays, out=tuple(outs) if self.is_several else outs[0])

    def result_types(self, specs: Sequence[Spec]) -> tuple[FieldType, ...]:
        """The types of the results for arrays of these shapes and dtypes; nothing runs."""
        with _lock:
            return self._types.find(tuple(specs), lambda: self._traced_types(specs))

    def _traced_types(self, specs: Sequence[Spec]) -> tuple[FieldType, ...]:
        with captures_with_gradients_refused():
            kinds, self.is_several = self.function.result_types(*specs)
        return tuple(kinds)

    def pull(self, wanted: Sequence[bool], present: Sequence[bool]) -> FrameworkFunction:
        """The gradients by the wanted arrays: a function of the arrays, then of the cotangents of the results that have one."""
        return array_function(f"{self.name}|pull {_mask(wanted)} {_mask(present)}")

    def push(self, present: Sequence[bool]) -> FrameworkFunction:
        """The tangents of the results: a function of the arrays, then of the tangents of those that have one."""
        return array_function(f"{self.name}|push {_mask(present)}")

    def mapped(self, batched: Sequence[bool]) -> FrameworkFunction:
        """The function over one more leading axis of the batched arrays."""
        return array_function(f"{self.name}|map {_mask(batched)}")

    def narrowed(self) -> FrameworkFunction:
        """The function whose results have numbers of 32 bits instead of 64."""
        return array_function(f"{self.name}|narrow")

    def derived(self, name: str, what: str) -> FrameworkFunction:
        """The function that the last part of a name describes."""
        verb, *masks = what.split(" ")
        flags = [[digit == "1" for digit in mask] for mask in masks]
        like, more = self.function, sum(flags[-1]) if verb in ("pull", "push") else 0
        if verb == "map":
            function = vmap(like, tuple(0 if flag else None for flag in flags[0]))
        elif verb == "narrow":
            function = _narrowed(like)
        else:
            function = self._pull(*flags) if verb == "pull" else self._push(*flags)
        return FrameworkFunction(name, _pipeline(function, like, verb, self.count + more), self.count + more)

    def _pull(self, wanted: Sequence[bool], present: Sequence[bool]) -> Callable[..., tuple[Field, ...]]:
        function, count, positions = self.function, self.count, [n for n, flag in enumerate(wanted) if flag]

        def pull(*arrays: Any) -> tuple[Field, ...]:
            result, back = vjp(function, *arrays[:count])
            bars = iter(arrays[count:])
            outs = result if isinstance(result, tuple) else (result,)
            each = tuple(next(bars) if has else filled(of.type, 0) for of, has in zip(outs, present, strict=True))
            gradients = back(each if isinstance(result, tuple) else each[0])
            return tuple(gradients[n] for n in positions)

        return pull

    def _push(self, present: Sequence[bool]) -> Callable[..., Any]:
        function, count, positions = self.function, self.count, [n for n, flag in enumerate(present) if flag]

        def push(*arrays: Any) -> Any:
            def of_active(*active: Any) -> Any:
                values = dict(enumerate(arrays[:count])) | dict(zip(positions, active, strict=True))
                return function(*(values[n] for n in range(count)))

            slopes = jvp(of_active, tuple(arrays[n] for n in positions), arrays[count:])[1]
            several = isinstance(slopes, tuple)
            return tuple(slope for slope in slopes if slope is not None) if several else slopes

        return push


def _pipeline(function: Callable[..., Any], like: Pipeline, what: str, count: int) -> Pipeline:
    """A pipeline of `count` arrays, with the settings of the one that it is derived from."""

    def derived(*arrays: Any) -> Any:
        return function(*arrays)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    derived.__name__ = derived.__qualname__ = f"{what}_{like.name}"
    derived.__module__ = like.function.__module__  # what it captures is looked at, as of any function of that module
    derived.__signature__ = inspect.Signature([inspect.Parameter(f"array_{n}", kind) for n in range(count)])  # type: ignore[attr-defined]
    return pipeline(precision=like.precision, optimize=like.optimize)(derived)


NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}


def _narrowed(function: Pipeline) -> Callable[..., Any]:
    def narrow(*arrays: Any) -> Any:
        result = function(*arrays)
        if isinstance(result, tuple):
            return tuple(_narrow(each) for each in result)
        return _narrow(result)

    return narrow


def _narrow(field: Field) -> Field:
    return field.astype(NARROW[field.dtype]) if field.dtype in NARROW else field


def _mask(flags: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def array_function(name: str) -> FrameworkFunction:
    """The function with a name that `function_of` gave, or that is derived from one."""
    with _lock:
        if name not in _functions:
            base, bar, what = name.rpartition("|")
            if not bar:
                raise SemanticError(f"this process knows no function {name!r}; wrap its pipeline first")
            _functions[name] = array_function(base).derived(name, what)
        return _functions[name]


def function_of(
    wrapped: Pipeline, places: str, constants: tuple[Any, ...], names: tuple[str, ...]
) -> FrameworkFunction:
    """The function of arrays that a call of a pipeline means.

    Args:
        wrapped: the pipeline.
        places: for each argument of the call "1" if it is an array, else "0".
        constants: the other arguments, in their order.
        names: of the last arguments, which are present by name.

    Raises:
        SemanticError: a constant that can change unseen, as pipelines refuse it.
    """
    for value in constants:
        if is_array(value):
            raise SemanticError(
                f"pipeline `{wrapped.name}` gets {described(value)} beside arrays of the framework; convert it, as with "
                "`torch.from_numpy(array)` or `jax.numpy.asarray(array)`"
            )
    key = (
        id(wrapped),
        places,
        names,
        contents(f"pipeline `{wrapped.name}`", {str(n): value for n, value in enumerate(constants)}),
    )
    with _lock:
        name = _names.get(key)
        if name is None:
            name = _names[key] = _stable_name(wrapped, key[1:])
            _functions[name] = FrameworkFunction(name, _of_arrays(wrapped, places, constants, names), places.count("1"))
        return _functions[name]


def _stable_name(wrapped: Pipeline, of: tuple[Any, ...]) -> str:
    """A name that another process gives too; with a number behind where two pipelines have one name."""
    digest = hashlib.sha256(repr(of).encode()).hexdigest()[:12]
    name = f"{wrapped.function.__module__}.{wrapped.function.__qualname__}#{digest}".replace("|", "/")
    count = sum(other == name or other.startswith(f"{name}~") for other in _names.values())
    return f"{name}~{count}" if count else name


def _of_arrays(wrapped: Pipeline, places: str, constants: tuple[Any, ...], names: tuple[str, ...]) -> Pipeline:
    if not constants and not names:
        return wrapped

    def merged(*arrays: Any) -> Any:
        each = iter(arrays), iter(constants)
        values = [next(each[place == "0"]) for place in places]
        own = len(values) - len(names)
        return wrapped(*values[:own], **dict(zip(names, values[own:], strict=True)))

    return _pipeline(merged, wrapped, "call", places.count("1"))
