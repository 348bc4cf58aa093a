"""Reverse mode: gradients, and cotangents pulled back through functions of fields."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described, naming_arguments
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder, is_array
from gpuop.dsl.fields.sources import Deferred
from gpuop.dsl.recorder.trace_effects import reads_watched
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.gradients.values import added, cotangents, depends_on, is_differentiable, substituted
from gpuop.ir.build import number
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS, dtype_name
from gpuop.ir.types import FieldType, is_integer
from gpuop.ir.values import Leaf, Node, Result, calls
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import copied

Function = Callable[..., Any]


@naming_arguments
def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function of the same arguments, which gives the gradient of a function whose result is one real number.

        step = gp.grad(lambda u: ((smooth(u) - target) ** 2).sum())(u)

    It is lazy like the function itself, outside of graphs, in pipelines and in graphs, and its kernels are fused as others are.
    Of a pipeline it is a pipeline: of arrays of any library, whose gradients are arrays of that library.

    Args:
        function: of Fields, `gp.Parameter`s and constants; it gives a 0D field of a real floating dtype. Fields that it captures
            are constants.
        argnums: the position of the argument, or a tuple of positions.
        has_aux: whether the function gives a tuple of its result and of anything else, which is returned beside the gradient.

    Returns:
        A function, which gives a Field of the argument's type, or a tuple of them where `argnums` is one; with `has_aux` a tuple of
        that and the rest. An argument that the result does not depend on has a gradient of zeros. Of complex numbers it is
        ∂/∂x − i·∂/∂y, as in JAX.

    Raises:
        SemanticError: an argument without a gradient, another result, or a construct between them that has no derivative, at its
            line.
    """
    return _differentiated("grad", function, argnums, has_aux, lambda value, gradient, aux: (gradient, aux))


@naming_arguments
def value_and_grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function of the same arguments, which gives the result of a function and its gradient, in one program.

        loss, step = gp.value_and_grad(misfit)(u)

    Args:
        function, argnums, has_aux: as of `gp.grad`.

    Returns:
        A function, which gives a tuple of the result and the gradient; with `has_aux` the result is a tuple of it and the rest.

    Raises:
        SemanticError: as of `gp.grad`.
    """

    def results(value: Field, gradient: Any, aux: Any) -> Any:
        return ((value, aux) if has_aux else value, gradient), None

    return _differentiated("value_and_grad", function, argnums, has_aux, results, aux_beside=False)


@naming_arguments
def vjp(function: Function, *primals: Any) -> tuple[Any, Function]:
    """The result of a function, and a function that pulls a cotangent of it back to the arguments: J transposed, times a vector.

        out, pull = gp.vjp(blur, image)
        (back,) = pull(weights)

    Args:
        function: of Fields; it gives a Field, or a tuple of them.
        primals: its arguments; while a pipeline is traced, the arrays of its arguments too, which cotangents may be as well.

    Returns:
        The result, and a function of a Field of its type, or of a tuple where the result is one; it gives a tuple with a Field for
        each argument, None for what is no field of floating or complex numbers. It may be called again.

    Raises:
        SemanticError: arguments or results that are no Fields, a cotangent of another type, or as of `gp.grad`.
    """
    trace = _Trace("vjp", function, primals, {}, [n for n, p in enumerate(primals) if _is_active(p)])
    several = isinstance(trace.result, (tuple, list))
    outputs = trace.fields(trace.result if several else (trace.result,))

    def pull(*cotangent: Any) -> tuple[Field | None, ...]:
        if len(cotangent) != 1:
            raise SemanticError(
                f"vjp: the pull of `{trace.name}` takes one cotangent, of the type of the result: a tuple where that is one"
            )
        bars = cotangent[0] if several else cotangent
        if not isinstance(bars, (tuple, list)) or len(bars) != len(outputs):
            raise SemanticError(
                f"vjp: `{trace.name}` gives {len(outputs)} fields, so its cotangents are a tuple of as many"
            )
        pairs = [(out.node, _cotangent(trace.name, out, bar)) for out, bar in zip(outputs, bars, strict=True)]
        gradients = dict(zip(trace.positions, trace.gradients(pairs), strict=True))
        return tuple(gradients.get(n) for n in range(len(primals)))

    results = trace.outside(outputs)
    return tuple(results) if several else results[0], pull


# --- calls --------------------------------------------------------------------------------------------------------------


def _differentiated(
    word: str, function: Function, argnums: Any, has_aux: bool, results: Callable[..., Any], aux_beside: bool = True
) -> Function:
    if not callable(function):
        raise SemanticError(f"{word} wants a function of fields, not {described(function)}")
    positions = _positions(word, argnums)

    def of_fields(*args: Any, **kwargs: Any) -> Any:
        value, gradients, aux = _gradients(word, function, positions, has_aux, args, kwargs)
        gradient = gradients if isinstance(argnums, (tuple, list)) else gradients[0]
        result, rest = results(value, gradient, aux)
        return (result, rest) if has_aux and aux_beside else result

    of_fields.__name__ = of_fields.__qualname__ = f"{word}_{_name(function)}"
    of_fields.__module__ = function.__module__  # so what it captures is looked at, as of any function of that module
    of_fields.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    if not isinstance(function, Pipeline):
        return of_fields
    settings = pipeline(precision=function.precision, optimize=function.optimize)
    several = isinstance(argnums, (tuple, list))
    if has_aux or (several and word == "value_and_grad"):
        return _of_nested_results(of_fields, settings)
    return settings(of_fields)


def _of_nested_results(function: Function, settings: Callable[[Function], Function]) -> Function:
    """A function of arrays whose results are tuples in tuples: a pipeline gives one tuple, which is folded again."""
    forms = _Forms()

    @functools.wraps(function)
    def flat(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return forms.flattened(function(*args, **kwargs))

    of_arrays = settings(flat)

    @functools.wraps(function)
    def nested(*args: Any, **kwargs: Any) -> Any:
        return forms.folded(of_arrays(*args, **kwargs))

    return nested


class _Forms:
    """Tuples in tuples of results, by their number; traces write them, so what a pipeline captures leaves them out."""

    def __init__(self) -> None:
        self._by_number: dict[int, Any] = {}

    def flattened(self, result: Any) -> tuple[Any, ...]:
        fields = tuple(_members(result))
        self._by_number[len(fields)] = _folded(result, itertools.repeat(None))
        return fields

    def folded(self, results: Any) -> Any:
        return _folded(self._by_number[len(results)], iter(results))


def _members(value: Any) -> Iterator[Any]:
    for each in value:
        if isinstance(each, (tuple, list)):
            yield from _members(each)
        else:
            yield each


def _folded(form: Any, members: Iterator[Any]) -> Any:
    """Values in the tuples that others lie in."""
    if isinstance(form, (tuple, list)):
        return tuple(_folded(each, members) for each in form)
    return next(members)


def _positions(word: str, argnums: Any) -> list[int]:
    positions = list(argnums) if isinstance(argnums, (tuple, list)) else [argnums]
    if not positions or not all(map(is_integer, positions)):
        raise SemanticError(f"{word}: `argnums=` is the position of an argument, or a tuple of them, not {argnums!r}")
    return [int(n) for n in positions]


def _gradients(
    word: str, function: Function, positions: list[int], has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Field, tuple[Any, ...], Any]:
    trace = _Trace(word, function, args, kwargs, positions)
    value, aux = trace.result, None
    if has_aux:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise SemanticError(f"{word}: with `has_aux=True` `{trace.name}` gives a tuple of its result and the rest")
        value, aux = value
    _check_scalar(word, trace.name, value)
    one = filled(FieldType((), (), value.dtype), 1)
    gradients = trace.gradients([(value.node, one)])
    return trace.outside([value])[0], gradients, trace.outside_of(aux)


def _check_scalar(word: str, name: str, value: Any) -> None:
    if not isinstance(value, Field):
        raise SemanticError(f"{word}: `{name}` gives {described(value)}; it gives a real 0D field, as `f.sum()` is")
    if value.type.array_shape or not is_differentiable(value.type) or value.dtype in COMPLEX_DTYPES:
        raise SemanticError(
            f"{word}: `{name}` gives a {value.type} field; a gradient is of a real 0D field, as `f.sum()` is; for other results "
            f"there is `gp.vjp({name}, …)`"
        )


def _is_active(value: Any) -> bool:
    if isinstance(value, Placeholder):
        return dtype_name(value.dtype) in FLOATS
    return isinstance(value, Field) and is_differentiable(value.type)


def _cotangent(name: str, out: Field, bar: Any) -> Field:
    if isinstance(bar, Placeholder):
        bar = Field(bar, len(out.type.tensor_shape))
    value = number(bar) if not isinstance(bar, Field) else None
    if value is not None and not out.type.array_shape:
        return filled(out.type, value)
    if not isinstance(bar, Field) or bar.node.type != out.node.type:
        what = f"a {bar.type} field" if isinstance(bar, Field) else described(bar)
        raise SemanticError(f"vjp: `{name}` gives a {out.type} field, and a cotangent has its type; this one is {what}")
    return bar


def _name(function: Function) -> str:
    return str(getattr(function, "__name__", getattr(function, "name", "function"))).strip("<>")


@dataclass(frozen=True)
class _Argument:
    """An argument to differentiate by, and the value that stands for it in the trace: a copy, or leaves of a pipeline's array."""

    value: Any
    alias: Any


class _Trace:
    """A call of a function with values in the place of some of its arguments, so that what it captures stays constant."""

    def __init__(
        self, word: str, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], positions: Sequence[int]
    ) -> None:
        self.word, self.name, self.positions = word, _name(function), positions
        self.arguments = {n: self.argument(n, args) for n in dict.fromkeys(self.place(n, len(args)) for n in positions)}
        self.order = [self.place(n, len(args)) for n in positions]
        inner = [self.arguments[n].alias if n in self.arguments else arg for n, arg in enumerate(args)]
        with reads_watched(self.check_read):
            self.result = function(*inner, **kwargs)
        pairs = self.arguments.values()
        self.moved: dict[Node, Node] = {p.alias.node: p.value.node for p in pairs if isinstance(p.value, Field)}

    def place(self, position: int, count: int) -> int:
        place = position + count if position < 0 else position
        if not 0 <= place < count:
            raise SemanticError(
                f"{self.word}: `argnums={position}` is no argument: `{self.name}` is called with {count} by position, from 0 on"
            )
        return place

    def argument(self, n: int, args: Sequence[Any]) -> _Argument:
        value = args[n]
        what = f"{self.word}: argument {n} of `{self.name}` is"
        if is_integer(value) or isinstance(value, (float, np.floating)):
            raise SemanticError(
                f"{what} a number, which is a constant; give a `gp.Parameter`, or an array without axes"
            )
        if not isinstance(value, (Field, Placeholder)):
            advice = "; a `gp.pipeline` takes arrays" if is_array(value) else ""
            raise SemanticError(f"{what} {described(value)}, not a Field{advice}")
        if not _is_active(value):
            kind = f"a {value.type} field" if isinstance(value, Field) else f"an array of {dtype_name(value.dtype)}"
            raise SemanticError(
                f"{what} {kind}, and {value.dtype} has no gradient; convert "
                'it, as in `.astype("float32")`, or leave it out of `argnums=`'
            )
        if isinstance(value, Placeholder):
            return _Argument(value, value)
        return _Argument(value, _alias(value))

    def check_read(self, node: Node) -> None:
        """Refuse to read what has a derivative: what follows from the numbers would have none."""
        wanted = [p.alias.node for p in self.arguments.values() if isinstance(p.alias, Field)]
        if depends_on(node, wanted):
            raise SemanticError(
                f"{self.word}: `{self.name}` reads values that depend on an argument, and what follows from numbers has no "
                "derivative: compute with Fields; `gp.stop_gradient(x)` is a constant, which may be read"
            )

    def fields(self, values: Sequence[Any]) -> list[Field]:
        for value in values:
            if not isinstance(value, Field):
                raise SemanticError(f"{self.word}: `{self.name}` gives {described(value)}; it gives Fields")
        return list(values)

    def outside(self, fields: Sequence[Field]) -> list[Field]:
        """Fields as computed from the caller's arguments."""
        return substituted(fields, self.moved)

    def outside_of(self, value: Any) -> Any:
        """The same of a value that may hold fields."""
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.outside_of, value))
        if isinstance(value, dict):
            return {key: self.outside_of(each) for key, each in value.items()}
        return self.outside([value])[0] if isinstance(value, Field) else value

    def gradients(self, outputs: Sequence[tuple[Node, Field]]) -> tuple[Any, ...]:
        """The gradients by the arguments, from the cotangents of results."""
        leaves = {n: self.leaves(argument, outputs) for n, argument in self.arguments.items()}
        wanted = list(dict.fromkeys(node for nodes in leaves.values() for node in nodes))
        bars = dict(zip(wanted, cotangents(outputs, wanted), strict=True))
        each = {n: self.gradient(self.arguments[n], nodes, bars) for n, nodes in leaves.items()}
        return tuple(each[n] for n in self.order)

    def gradient(self, argument: _Argument, nodes: Sequence[Node], bars: Mapping[Node, Field | None]) -> Field:
        """The gradient by an argument; zeros where nothing depends on it."""
        value = argument.value
        if isinstance(value, Field):
            own = _or_zeros(bars[nodes[0]], value.node.type)
            return Field.of(self.outside([own])[0].node, kind=value.kind)
        kind = _kind_of(nodes, value)
        shares = [bar for bar in map(bars.get, nodes) if bar is not None]  # of each field that is made of the array
        result = Field.of(_or_zeros(added(shares) if shares else None, kind.folded).node, kind=kind)
        return result.astype(dtype_name(value.dtype))

    def leaves(self, argument: _Argument, outputs: Sequence[tuple[Node, Field]]) -> list[Node]:
        """The values that stand for an argument."""
        if isinstance(argument.value, Field):
            return [argument.alias.node]
        nodes = [node for call in calls([node for node, _ in outputs]) for node in call.inputs]
        nodes += [node for node, _ in outputs]
        result = [node for node in dict.fromkeys(nodes) if _placeholder(node) is argument.value]
        if len({node.type for node in result}) > 1:
            raise SemanticError(
                f"{self.word}: `{self.name}` makes fields of different types from one array; make one, and compute the other "
                "from it"
            )
        return result


def _or_zeros(field: Field | None, kind: FieldType) -> Field:
    return filled(kind, 0) if field is None else field


def _placeholder(node: Node) -> Any:
    return node.source.placeholder if isinstance(node, Leaf) and isinstance(node.source, Deferred) else None


def _kind_of(nodes: Sequence[Node], value: Placeholder) -> FieldType:
    if nodes and isinstance(nodes[0], Leaf) and isinstance(nodes[0].source, Deferred):
        return nodes[0].source.kind
    return FieldType(value.shape, (), value.dtype)


def _alias(field: Field) -> Field:
    """A value that equals the field and is another one."""
    node = field.node
    if isinstance(node, Result):
        return Field.of(copied(Field.of(node)).node, kind=field.kind)
    return Field.of(Leaf(node.type, node.source, node.by_value, node.name), kind=field.kind)
