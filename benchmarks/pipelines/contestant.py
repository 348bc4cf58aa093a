"""A contestant: something that runs a pipeline again and again on arrays that it holds."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .pipeline import Array


@dataclass
class Contestant:
    """A pipeline that is ready to run.

    Attributes:
        run: run it so many times, and wait.
        results: the arrays that it computed.
        code: the functions and texts that a user writes for it.
        kernels: launched by a run, where that is known.
        crop: the points at the edges that it does not compute as the pipeline does.
        bits: whether its results are bit for bit those of the unfused operators, or it is an error.
        allocates: whether it makes new arrays for its results at each run, instead of writing into those of the last one.
    """

    run: Callable[[int], object]
    results: Callable[[], tuple[Array, ...]]
    code: tuple[Any, ...] = ()
    kernels: int | None = None
    crop: int = 0
    bits: bool = False
    allocates: bool = False


Maker = Callable[[tuple[Array, ...]], Contestant]  # compiles, and has run once when it returns


def lines_of(code: tuple[Any, ...]) -> int:
    """Lines of functions and of what they use of their own packages, and of texts; without comments and blank ones."""
    known: dict[str, int] = {}
    for part in code:
        if isinstance(part, str):
            lines = (line.strip() for line in part.splitlines())
            known[part] = sum(bool(line) and not line.startswith("//") for line in lines)
        else:
            _count(part, known)
    return sum(known.values())


def _count(function: Any, known: dict[str, int], owner: Any = None) -> None:
    owner = type(function.__self__) if inspect.ismethod(function) else owner
    function = inspect.unwrap(getattr(function, "py_func", getattr(function, "__func__", function)))
    if not inspect.isfunction(function) or not function.__module__.startswith("benchmarks."):
        return
    name = f"{function.__module__}.{function.__qualname__}"
    if name in known:
        return
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (SyntaxError, OSError):  # the line of a lambda need not be a statement of its own
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        known[name] = 1
        return
    known[name] = sum(map(bool, ast.unparse(_without_docstring(tree)).splitlines()))
    for used in _names(function.__code__):
        _count(function.__globals__.get(used, getattr(owner, used, None)), known, owner)


def _without_docstring(tree: Any) -> Any:
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:] or [ast.Pass()]
    return tree


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if inspect.iscode(inner):
            yield from _names(inner)
