"""Positions along the dimensions of a field, by number and by name; a field may have more dimensions than a kernel grid
has axes.

The first dimensions of such a field are one axis of the kernel, counted in row-major order (`FieldType.folded`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from gpuop.base.errors import SemanticError, meant
from gpuop.dsl.builtins.indices import coordinate, linear_place
from gpuop.dsl.builtins.shared_memory import shown
from gpuop.dsl.recorder.recorder import Recorder, current
from gpuop.dsl.recorder.value import Operand, Value, apply, integer
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import constant
from gpuop.ir.dims import spelled
from gpuop.ir.nodes import GRID_AXES, Const, Expr, Index
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, MOST_GRID, FieldType, Shape

LAYER = Index("global", "layer")
Made = TypeVar("Made")


def _dim(of: Any) -> Value:
    """This thread's position along a dimension of the thread grid: `_dim("chan")`.

    The thread grid has the dimensions of `_out0`, or of the first Field, or of what `_globalThreads` was given.

    Args:
        of: the dimension's name, or its number.

    Returns:
        An int.

    Raises:
        SemanticError: there is no such dimension.
    """
    recorder = current("`_dim`")
    count = len(_grid(recorder))
    if isinstance(of, int) and not isinstance(of, bool) and -count <= of < count:
        return Value(own_places(recorder)[of])
    if not isinstance(of, str) or not of or of not in recorder.names:
        had = spelled(recorder.names) if recorder.names else f"{count} dimensions without names"
        raise SemanticError(
            f"the threads have no dimension {repr(of) if isinstance(of, (str, int)) else shown(of)}: they have {had}"
        )
    return Value(own_places(recorder)[recorder.names.index(of)])


def own_places(recorder: Recorder) -> tuple[Expr, ...]:
    """Own position along each dimension of the thread grid."""
    first = _leading(_grid(recorder))
    own = recorder.own_point()
    if not first:
        return own
    cached = recorder.unfolded
    if cached is None or not cached[0].open:
        recorder.idle = True  # not all of them may be used
        parts = _nameless(recorder, lambda: tuple(coordinate(recorder, LAYER, first, n) for n in range(len(first))))
        recorder.unfolded = cached = recorder.scope, parts
    return (*cached[1], *own[1:])


def folded_point(recorder: Recorder, kind: FieldType, at: Sequence[Expr], border: str) -> tuple[Expr, ...]:
    """The point that kernels know of one over all dimensions, whose first ones are one axis.

    Args:
        border: what holds along the first dimensions: "fill" makes of a point outside one that is outside.
    """
    first = _leading(kind.field_shape)
    if not first:
        return tuple(at)
    own = _leading(_grid(recorder)) == first and tuple(at[: len(first)]) == own_places(recorder)[: len(first)]
    layer = LAYER if own else _nameless(recorder, lambda: _layer(recorder, first, at[: len(first)], border))
    return (layer, *at[len(first) :])


def _nameless(recorder: Recorder, make: Callable[[], Made]) -> Made:
    """Record a function whose statements the user's line does not name."""
    naming, recorder.naming = recorder.naming, False
    try:
        return make()
    finally:
        recorder.naming = naming


def _layer(recorder: Recorder, extents: Sequence[int], at: Sequence[Expr], border: str) -> Expr:
    build = recorder.build
    along = [coordinate_of(recorder, expr, n) for expr, n in zip(at, extents, strict=True)]
    if border != "fill":
        return linear_place(build, [place(build, c, border) for c in along], extents)
    tests = [test for c in along if (test := inside(build, c)) is not None]
    linear = linear_place(build, at, extents)
    if not tests:
        return linear
    return build.apply("choose", functools.reduce(lambda a, b: build.apply("and", a, b), tests), linear, -1)


def brought(recorder: Recorder, at: Expr, n: int, border: str, rule: str) -> Expr:
    """A coordinate inside of n points, unless the border is the one that the read keeps, or nothing is to be done."""
    if border in (rule, "unchecked"):
        return at
    return _nameless(recorder, lambda: place(recorder.build, coordinate_of(recorder, at, n), border))


def coordinate_of(recorder: Recorder, at: Expr, n: int) -> Coordinate:
    """A coordinate, with the range that it is known to have."""
    low = high = None
    if isinstance(at, Const):
        low = high = int(at.value)
    elif isinstance(at, Index) and at.kind == "global" and not recorder.runs_tail_threads:
        low, high = at.offset, at.offset + recorder.domain.extent(at.axis) - 1
    elif recorder.unfolded is not None and at in recorder.unfolded[1]:
        low, high = 0, _leading(_grid(recorder))[recorder.unfolded[1].index(at)] - 1
    return Coordinate(at, constant(n, INT), n, low, high)


def _grid(recorder: Recorder) -> Shape:
    return recorder.domain.shape if recorder.grid is None else recorder.grid


def _leading(shape: Sequence[int]) -> tuple[int, ...]:
    """The extents that are one axis in kernels; none where all have one each."""
    return tuple(shape[: len(shape) - MOST_GRID + 1]) if len(shape) > MOST_GRID else ()


# --- own points -----------------------------------------------------------------------------------------------------


def coordinates(kind: FieldType) -> str:
    """Names of the coordinates of a field."""
    count = len(kind.field_shape)
    names = kind.names[:count] or (GRID_AXES[3 - count :] if count <= 3 else [f"i{n}" for n in range(count)])
    return ", ".join(name or f"i{n}" for n, name in enumerate(names))


def check_own(recorder: Recorder, name: str, kind: FieldType, verb: str) -> None:
    """Refuse a field without an own point of each thread."""
    grid, threads = kind.field_shape, recorder.domain.shape if recorder.grid is None else recorder.grid
    if grid and grid != threads:
        raise _mismatch(recorder, name, grid, threads, verb)
    names = kind.names[: len(grid)]
    if any(one and other and one != other for one, other in zip(names, recorder.names, strict=False)):
        raise SemanticError(
            f"{name} has {spelled(names)}, and the threads have {spelled(recorder.names)}: own points do not match; "
            f"name what to {verb} at, as in `{names[-1] or 'x'}=…`"
        )


def _mismatch(recorder: Recorder, name: str, grid: Shape, threads: Shape, verb: str) -> SemanticError:
    """Error for a field without an own point of a thread."""
    extents, advice = "×".join(map(str, grid)), f"give coordinates to {verb} at"
    if (*threads, *recorder.tensor) == grid:
        advice = f"a tensor's shape follows the grid's, so write `_globalThreads({', '.join(map(str, grid))})`"
    elif recorder.grid_of:
        advice += f", or choose the threads by `_globalThreads({', '.join(map(str, grid))})`"
    whose = f" ({recorder.grid_of})" if recorder.grid_of else ""
    return SemanticError(
        f"{name} is {extents}, the threads are {_threads(recorder, threads)}{whose}: own points do not match; {advice}"
    )


def _threads(recorder: Recorder, grid: Shape) -> str:
    return str(recorder.domain if grid == recorder.domain.shape else Domain(grid, recorder.tensor.points))


# --- by name ----------------------------------------------------------------------------------------------------------


def by_name(
    recorder: Recorder, name: str, kind: FieldType, place: tuple[Operand, ...], named: Mapping[str, Operand]
) -> tuple[tuple[Operand, ...], Operand | None]:
    """Coordinates over a field's grid, and the element of its tensor, if names say which.

    Dimensions of the grid that are not named are the thread's own; none are given where all are.

    Raises:
        SemanticError: a name that there is not, coordinates beside names, or a dimension that the threads have not.
    """
    _check_names(name, kind, named)
    if place:
        raise SemanticError(f"{name}: coordinates stand one by one or by name, not both")
    split = len(kind.field_shape)
    grid, tensor = kind.names[:split], kind.names[split:]
    element = None
    if any(n in named for n in tensor):
        missing = [n for n in tensor if n not in named]
        if missing:
            raise SemanticError(f"{name}: name an element by all dimensions of the tensor, {missing[0] or '_'!r} too")
        at = [integer(named[n], f"the place along {n!r}") for n in tensor]
        element = Value(recorder.steps(lambda: linear_place(recorder.build, at, kind.tensor_shape)))
    if not any(n in named for n in grid if n):
        return (), element
    names = grid or ("",) * split
    return tuple(named[n] if n in named else _own_along(recorder, name, kind, a) for a, n in enumerate(names)), element


def _check_names(name: str, kind: FieldType, named: Iterable[str]) -> None:
    """Refuse names that are no dimensions, as those of arguments are that are misspelt."""
    for name_of_axis in named:
        if name_of_axis in kind.names:
            continue
        if name_of_axis == "border":  # reads have it
            raise SemanticError(f"{name} is written, and writes take no `border=`: what is outside is dropped")
        had = f"it has {spelled(kind.names)}" if kind.names else "its dimensions have no names"
        near = meant(name_of_axis, ("border", "offset", *filter(None, kind.names)))
        raise SemanticError(
            f"{name} has no dimension {name_of_axis!r}: {had}; reads take `border=` and `offset=` besides{near}"
        )


def displaced(
    recorder: Recorder,
    name: str,
    kind: FieldType,
    place: tuple[Operand, ...],
    named: Mapping[str, Operand],
    offset: Any,
) -> tuple[Operand, ...]:
    """Coordinates over a field's grid, so far from the thread's own place as an offset says.

    Args:
        offset: a number or a value for each dimension of the field, or a vector's components, or a scalar for the only one.

    Raises:
        SemanticError: coordinates or names beside it, or not as many dimensions as the field and the threads have.
    """
    count, threads = len(kind.field_shape), len(_grid(recorder))
    _check_names(name, kind, named)
    if place or named:
        raise SemanticError(f"{name}: `offset=` is from the thread's own point, so no coordinates stand beside it")
    vector = isinstance(offset, Value) and offset.type.lanes > 1
    steps = tuple(offset) if vector or isinstance(offset, (tuple, list, np.ndarray)) else (offset,)
    if len(steps) != count:
        raise SemanticError(
            f"{name} is {count}D: `offset=` has a number for each dimension, ({coordinates(kind)}), not {len(steps)}"
        )
    if count not in (0, threads):
        raise SemanticError(
            f"{name} is {count}D, and the threads are {threads}D: an offset is from the thread's own point, so give coordinates"
        )
    own = (_own_at(recorder, name, kind, axis) for axis in range(count))
    return tuple(_nameless(recorder, lambda: [apply("add", at, step) for at, step in zip(own, steps, strict=True)]))


def _own_at(recorder: Recorder, name: str, kind: FieldType, axis: int) -> Value:
    """Own position along a dimension of a field: by number, or by name if both have names."""
    by_names = kind.names and kind.names[axis] and recorder.names and recorder.names[axis]
    return _own_along(recorder, name, kind, axis) if by_names else Value(own_places(recorder)[axis])


def _own_along(recorder: Recorder, name: str, kind: FieldType, axis: int) -> Value:
    """Own position along a dimension of a field: that of the name, or, if threads have none there, of the number."""
    dimension, nameless = kind.names[axis], not recorder.names or not recorder.names[min(axis, len(recorder.names) - 1)]
    if nameless and kind.field_shape == _grid(recorder):
        return Value(own_places(recorder)[axis])
    if not dimension or dimension not in recorder.names:
        had = spelled(recorder.names) if recorder.names else "dimensions without names"
        raise SemanticError(
            f"{name}: give the place along {dimension or '_'!r} too: the threads have {had}, so there is none of their own"
        )
    return Value(own_places(recorder)[recorder.names.index(dimension)])
