"""`gp.vmap`: a function of fields or arrays over one more axis of its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gpuop.base.errors import SemanticError, described, naming_arguments
from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.from_arrays import Placeholder, is_array
from gpuop.dsl.guards.function_wrapper import BY_POSITION, FunctionWrapper
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.ir.types import is_integer
from gpuop.transforms.entries import Batch, in_words

CONTAINERS = (tuple, list)
KEPT = 16  # pipelines of one function, for calls with other places of arguments
Axes = Any  # an integer, None, or a tuple or list of these


OPTIONS = ("out", "device")  # of calls with arrays, as pipelines have them


class Mapped(FunctionWrapper):
    """A function over one more axis of its arguments.

    Args:
        function, in_axes, out_axes: as of `gp.vmap`.
    """

    recorded_by = (*FunctionWrapper.recorded_by, "in_axes", "out_axes")

    def __init__(self, function: Callable[..., Any], in_axes: Axes, out_axes: Axes) -> None:
        named = hasattr(function, "__name__") or isinstance(function, functools.partial)
        super().__init__(function, None if named else type(function).__name__)
        self.in_axes, self.out_axes = in_axes, out_axes
        self._pipelines: BoundedCache[Any, Pipeline] = BoundedCache(KEPT)

    @property
    def as_function(self) -> Callable[..., Any]:
        """A function of Python, which pipelines can be made of."""

        def mapped(*args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        return self._like(mapped, self.signature)

    def _like(self, function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
        """A function with the names of the mapped one, in the module of that: so what it captures is looked at."""
        function.__name__, function.__qualname__, function.__doc__ = self.name, self.name, self.__doc__
        function.__module__ = self.function.__module__
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        options = {n: kwargs.pop(n) for n in OPTIONS if n in kwargs and n not in self.signature.parameters}
        axes = self._axes(args)
        if any(is_array(value) and not isinstance(value, Placeholder) for value in _leaves([*args, *kwargs.values()])):
            return self._of_arrays(args, kwargs, axes, options)
        if options:
            raise SemanticError(
                f"vmap of `{self.name}` gives Fields for Fields: leave out `{next(iter(options))}=`, which is of calls with arrays"
            )
        return self._of_entries(args, kwargs, axes)

    def _axes(self, args: Sequence[Any]) -> tuple[Axes, ...]:
        """The axis of each argument by position."""
        if not isinstance(self.in_axes, CONTAINERS):
            return (self.in_axes,) * len(args)
        if len(self.in_axes) != len(args):
            raise SemanticError(
                f"vmap of `{self.name}`: `in_axes=` has {len(self.in_axes)} axes, and the call has {len(args)} arguments by "
                "position: give an axis, or None, for each; arguments by name are mapped over axis 0"
            )
        return tuple(self.in_axes)

    def _of_entries(self, args: Sequence[Any], kwargs: dict[str, Any], axes: Sequence[Axes]) -> Any:
        """The results for fields, and for what stands for arrays while a pipeline is traced."""
        batch = Batch(self.name)
        entries = [batch.entry(v, axis, f"argument {n}") for n, (v, axis) in enumerate(zip(args, axes, strict=True))]
        named = {name: batch.entry(value, 0, f"`{name}`") for name, value in kwargs.items()}
        batch.check()
        result = self.function(*self.first, *entries, **(self.preset | named))
        return batch.results(result, self.out_axes)

    def _of_arrays(
        self, args: Sequence[Any], kwargs: dict[str, Any], axes: Sequence[Axes], options: dict[str, Any]
    ) -> Any:
        """The results for arrays, by a pipeline; their axes are moved to the front before."""
        fronts = [
            _front(v, axis, f"argument {n}", self.name) for n, (v, axis) in enumerate(zip(args, axes, strict=True))
        ]
        key = len(args), tuple(kwargs), tuple(map(_first, axes))
        return self._pipelines.find(key, lambda: pipeline(self._placed(*key)))(*fronts, *kwargs.values(), **options)

    def _placed(self, count: int, names: tuple[str, ...], axes: tuple[Axes, ...]) -> Callable[..., Any]:
        """The function of arrays for a pipeline: of arguments by position, then of those by name."""

        def of_arrays(*values: Any) -> Any:
            return self._of_entries(values[:count], dict(zip(names, values[count:], strict=True)), axes)

        parameters = list(self.signature.parameters.values())[len(self.first) :]
        own = [p.name for p in parameters if p.kind in BY_POSITION and p.name not in names]
        own = [own[n] if n < len(own) else f"argument_{n}" for n in range(count)]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return self._like(of_arrays, inspect.Signature([inspect.Parameter(n, kind) for n in (*own, *names)]))


def _leaves(value: Any) -> Iterator[Any]:
    """The members of containers, and of those in them."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, CONTAINERS) else None
    if members is None:
        yield value
        return
    for member in members:
        yield from _leaves(member)


def _first(axis: Axes) -> Axes:
    """The axes of arrays whose mapped ones have been moved to the front."""
    return tuple(map(_first, axis)) if isinstance(axis, CONTAINERS) else None if axis is None else 0


def _front(value: Any, axis: Axes, what: str, name: str) -> Any:
    """An array with an axis at the front, in the same memory; anything else as it is."""
    if not is_integer(axis) or not is_array(value) or axis in (0, -value.ndim):
        return value
    n = in_words(f"vmap of `{name}`: {what}", tuple(value.shape), int(axis))
    order = (n, *(a for a in range(value.ndim) if a != n))
    return value.permute(order) if hasattr(value, "permute") else value.transpose(order)


@naming_arguments
def vmap(function: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """Make of a function of fields or arrays one over one more axis: it computes what a loop over the entries of that axis would.

        blurred = gp.vmap(blur)(photos)                              # (N, H, W) of a function of (H, W)
        shifted = gp.vmap(shift, in_axes=(0, None))(photos, offset)   # the same offset for all

    The function is called once, with Fields of one entry, and the kernels that it records run over the whole batch: nothing is
    looped over or copied, and what depends on no mapped argument is computed once. Operators, functions of fields, pipelines and
    library functions can be mapped, and mapped functions again; they are used in pipelines, graphs and `gp.iterate` as others.

    Args:
        function: of Fields, or of arrays from which it makes Fields, as a pipeline; returns a Field, or a tuple or list of them.
        in_axes: the axis of the arrays of all arguments that is mapped, None for the same value in each entry, or one of these for
            each argument by position; of a tuple or list of fields also one for each. Arguments by name are mapped over axis 0.
            Arguments that are no Fields and no arrays are the same for all entries.
        out_axes: the axis that the entries are along in results: one for all, or one for each; None for results that do not depend
            on mapped arguments.

    Returns:
        A function of the same arguments: of Fields it gives Fields, of arrays, arrays of their library.

    Raises:
        SemanticError: no function, or other axes than these; when called, mapped axes of different extents, an axis that an
            argument has not, and what has no form over a batch, with its line.
    """
    if not callable(function):
        raise SemanticError(f"vmap takes a function of fields or arrays, not {described(function)}")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        wrong = next((axis for axis in _leaves(axes) if axis is not None and not is_integer(axis)), None)
        if wrong is not None:
            raise SemanticError(
                f"vmap: `{name}=` is an integer, None, or a tuple of these, one for each argument, not {described(wrong)}"
            )
    return Mapped(function, in_axes, out_axes).as_function
