"""Targets of commands: a function, as FILE:FUNCTION, applied to fields of types."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.dsl.fields.sources import Deferred
from gpuop.dsl.operators.operator import Operator
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.fusion.program import program
from gpuop.ir.dims import Dims, spelled
from gpuop.ir.types import FieldType
from gpuop.ir.values import NO_EXTENTS, NO_VALUES, Leaf

DIMS = r"[^\W\d]\w*=\d+(:[^\W\d]\w*=\d+)*"
TYPE = re.compile(rf"(?P<dtype>[a-z]+\d*)(\[(?P<grid>[\dx×,]*|{DIMS})\])?(x(?P<tensor>\d+([x×]\d+)*))?")


OPEN = re.compile(r"\?(\d*)")  # an open extent; those with one number are equal


def applied(where: str, types: Sequence[str]) -> tuple[str, dict[str, Field], Any]:
    """The name of a function, its arguments that are Fields, and its results for them."""
    for text in filter(_leaves_extents_open, types):
        raise SemanticError(
            f"{text!r} leaves extents open, which `gpuop compile` alone takes: write them all, as float32[480x640]"
        )
    name, _, record = recorded(where, types)
    return name, *record(())


def recorded(
    where: str, types: Sequence[str]
) -> tuple[str, int, Callable[[Sequence[int]], tuple[dict[str, Field], Any]]]:
    """The name of a function, the number of open extents, and a function from such extents to the fields of `applied`."""
    function, name = _function(where)
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"?{numbers.setdefault(match[0] if match[1] else f'? {len(numbers)}', len(numbers))}"

    numbered = [OPEN.sub(number, text) if _leaves_extents_open(text) else text for text in types]

    def record(sizes: Sequence[int]) -> tuple[dict[str, Field], Any]:
        try:
            return _applied(name, function, [_argument(text, sizes) for text in numbered])
        except SemanticError as wrong:
            if not sizes:
                raise
            note = f"open extents are {', '.join(map(str, sizes))} here; extents of the same number, as ?1, are equal"
            raise SemanticError(f"{wrong.message} ({note})", wrong.loc) from None

    return name, len(numbers), record


def _applied(name: str, function: Any, args: Sequence[Any]) -> tuple[dict[str, Field], Any]:
    try:
        bound = inspect.signature(function).bind(*args)
    except TypeError as wrong:
        raise SemanticError(
            f"`{name}`: {wrong}; `--types` gives the types of its fields, and its other arguments"
        ) from None
    if isinstance(function, Pipeline):
        fields, results = _traced(name, function, bound.arguments)
    else:
        fields, results = _named(bound.arguments), function(*args)
    for result in results if isinstance(results, tuple) else (results,):
        if not isinstance(result, Field):
            raise SemanticError(
                f"`{name}` gives {described(result)}; name a function that gives a Field, or a tuple of them"
            )
    return fields, results


def _named(arguments: Mapping[str, Any]) -> dict[str, Field]:
    """The arguments that are Fields; those of `*fields` get numbers after the name."""
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        flat.update({f"{name}{k}": v for k, v in enumerate(value)} if isinstance(value, tuple) else {name: value})
    return {name: value for name, value in flat.items() if isinstance(value, Field)}


def _traced(name: str, pipeline: Pipeline, arguments: Mapping[str, Any]) -> tuple[dict[str, Field], Any]:
    """The Fields that a pipeline makes of its arrays, by argument, and its results."""
    fields = _named(arguments)
    kinds = {n: (f.type.array_shape, f.type.array_dtype) for n, f in fields.items()}
    stand_ins = {
        n: Placeholder(k, tuple(shape), dtype, dynamic=fields[n].node.dynamic)
        for k, (n, (shape, dtype)) in enumerate(kinds.items())
    }
    results = pipeline.function(**{**arguments, **stand_ins})
    nodes = [f.node for f in (results if isinstance(results, tuple) else (results,)) if isinstance(f, Field)]
    fields_of: dict[str, Field] = {}
    for leaf in program(nodes).leaves.values():
        if isinstance(leaf, Leaf) and isinstance(leaf.source, Deferred):
            argument = list(kinds)[leaf.source.placeholder.position]
            kind = leaf.source.kind
            if argument in fields_of or (kind.array_shape, kind.array_dtype) != kinds[argument]:
                raise SemanticError(
                    f"pipeline `{name}` converts its array `{argument}`, or makes several fields of it; "
                    "a bundle takes the arrays of its fields: name a function of fields"
                )
            fields_of[argument] = Field.of(leaf, kind=kind)
    return {n: fields_of.get(n, f) for n, f in fields.items()}, results


def _function(where: str) -> tuple[Any, str]:
    file, _, name = where.rpartition(":")
    path = Path(file)
    if not file or not name.isidentifier():
        raise SemanticError(f"{where!r} names no function; write FILE:FUNCTION, as `filters.py:sharpen`")
    if not path.is_file() or path.suffix != ".py":
        problem = f"{file} is not a Python file" if path.is_file() else f"there is no file {file}"
        raise SemanticError(f"{problem}; write FILE:FUNCTION, as `filters.py:sharpen`")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not isinstance(function, (Operator, Pipeline)) and not inspect.isfunction(function):
        functions = [n for n, v in vars(module).items() if _is_own(v, module.__name__)]
        raise SemanticError(f"{file} has no function of fields {name!r}; it has {', '.join(functions) or 'none'}")
    return function, name


def _is_own(value: Any, module: str) -> bool:
    return isinstance(value, (Operator, Pipeline, FunctionType)) and value.__module__ == module


def _dims(text: str) -> Dims:
    """Named dimensions, as "y=480:x=640"."""
    named = dict(part.split("=") for part in text.split(":"))
    return Dims(":".join(named), **{name: int(n) for name, n in named.items()})


def _leaves_extents_open(text: str) -> bool:
    """Return whether a text is a field type, or dimensions, with extents that are "?"."""
    closed = OPEN.sub("1", text)
    match = TYPE.fullmatch(closed)
    fits = re.fullmatch(DIMS, closed) if match is None else match["grid"]
    return closed != text and fits is not None


def _argument(text: str, sizes: Sequence[int]) -> Any:
    """A Field of a type, whose open extents get these sizes; dimensions; or a Python literal."""
    is_open = _leaves_extents_open(text)
    if is_open and ("[" not in text or "?" in text.rpartition("]")[2]):
        raise SemanticError(
            f"{OPEN.sub('?', text)!r} leaves more open than the extents of a field's grid; write the others"
        )
    text = OPEN.sub(lambda match: str(sizes[int(match[1])]), text) if is_open else text
    match = TYPE.fullmatch(text)
    if match is not None and (match["grid"] is not None or not match["dtype"].isalpha()):
        dims = _dims(match["grid"]) if "=" in (match["grid"] or "") else None
        grid = re.findall(r"\d+", match["grid"] or "") if dims is None else dims.shape
        tensor = tuple(map(int, re.findall(r"\d+", match["tensor"] or "")))
        names = "" if dims is None else spelled((*dims.names, *[""] * len(tensor)))
        kind = FieldType(tuple(map(int, grid)), tensor, match["dtype"], names)
        return Field.of(Leaf(kind.folded, NO_EXTENTS if is_open else NO_VALUES), kind=kind)
    if re.fullmatch(DIMS, text):
        return _dims(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise SemanticError(
            f"{text!r} is neither a field's type, as float32[480x640], uint8[480x640]x3, float32[y=480:x=640] or float32[] for a "
            "number on the device, nor dimensions, as y=2:x=2, nor a Python literal, as 0.5 or \"'clamp'\""
        ) from None
