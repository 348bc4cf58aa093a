"""Pipelines: functions of arrays, traced once per array types and other arguments, then compiled."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.dsl.arrays import Deferred, Placeholder
from gpuop.dsl.field import Field, Parameter
from gpuop.dsl.frames import def_line, return_line
from gpuop.errors import SemanticError, described
from gpuop.fusion.graph import Program, program
from gpuop.ir.graph import Leaf, Node
from gpuop.runtime.backend import Argument, Array, Backend, download, planes_of
from gpuop.runtime.devices import current
from gpuop.session import argument, prepare


class Pipeline:
    """What `@gp.pipeline` makes of a function: arrays in, arrays out."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.name = function, function.__name__
        self.signature = inspect.signature(function)
        self.traced: dict[Any, tuple[Program, bool]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as wrong:
            raise SemanticError(f"pipeline `{self.name}`: {wrong}") from None
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if isinstance(value, np.ndarray)}
        fields = [value for value in bound.arguments.values() if isinstance(value, Field)]
        if fields:
            if given and not all(isinstance(value, Parameter) for value in fields):
                raise SemanticError(
                    f"pipeline `{self.name}` gets Fields and arrays; give it arrays and Parameters only, or Fields only"
                )
            if not given:
                return self.function(*args, **kwargs)
        what, several = self._trace(bound, given)
        results = _run(what, list(given.values()), current())
        return tuple(results) if several else results[0]

    def _trace(self, bound: inspect.BoundArguments, given: dict[str, Array]) -> tuple[Program, bool]:
        constants = {n: v.node if isinstance(v, Field) else v for n, v in bound.arguments.items() if n not in given}
        others = tuple((n, type(v), v, repr(v)) for n, v in constants.items())
        key = (tuple((n, a.shape, a.dtype) for n, a in given.items()), others)
        try:
            hash(key)
        except TypeError:
            raise SemanticError(
                f"pipeline `{self.name}`: arguments that are not arrays must be hashable constants or Parameters"
            ) from None
        if key not in self.traced:
            for position, (name, array) in enumerate(given.items()):
                bound.arguments[name] = Placeholder(position, array.shape, array.dtype)
            returned = self.function(*bound.args, **bound.kwargs)
            several = isinstance(returned, tuple)
            fields = returned if isinstance(returned, tuple) else (returned,)
            for f in fields:
                if not isinstance(f, Field):
                    code = self.function.__code__
                    raise SemanticError(
                        f"pipeline `{self.name}` returns {described(f)}; it returns a Field or a tuple of Fields",
                        return_line(code) or def_line(code),
                    )
            self.traced[key] = program([f.node for f in fields]), several
        return self.traced[key]


def _run(what: Program, given: list[Array], backend: Backend) -> list[Array]:
    def passed(node: Node) -> Argument:
        if isinstance(node, Leaf) and isinstance(node.source, Deferred):
            kind, array = node.source.make(given[node.source.placeholder.position])
            return backend.upload(kind, planes_of(kind, array))
        return argument(node, backend)

    values = prepare(what, backend).run({number: passed(node) for number, node in what.leaves.items()})
    return [download(what.types[v], values[v], backend) for v in what.wanted]


def pipeline(function: Callable[..., Any]) -> Pipeline:
    """Make a pipeline of a function that builds Fields from its array arguments and returns a Field or a tuple of them.

    It is traced once per array types and other arguments. Called with Fields it is the plain function.
    """
    if not inspect.isroutine(function) or not hasattr(function, "__code__"):
        raise SemanticError(f"a pipeline is made of a Python function, not of {described(function)}; write a `def`")
    return Pipeline(function)
