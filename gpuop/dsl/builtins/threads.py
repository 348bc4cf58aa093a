"""Thread identity constants. They exist in every dimensionality: 0, or 1 for counts, along an absent axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpuop.base.errors import SemanticError, here
from gpuop.dsl.builtins.shared_memory import shown
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.recorder import OpenGrid, Recorder, current
from gpuop.dsl.recorder.target_facts import TargetExpression, extent
from gpuop.dsl.recorder.value import Value
from gpuop.ir.build import constant
from gpuop.ir.dims import Dims, spelled
from gpuop.ir.nodes import GRID_AXES, Expr, Index
from gpuop.ir.target_expressions import Extent, numbers
from gpuop.ir.types import INT, FieldType, Shape, is_integer


class ThreadConstant(Value):
    """A value that each recorder resolves to its own thread grid."""

    __slots__ = ("_name", "_resolve")

    def __init__(self, name: str, resolve: Callable[[Recorder], Expr]) -> None:
        self._name = name
        self._resolve = resolve

    @property
    def expr(self) -> Expr:
        return self._resolve(current(f"`{self._name}`"))

    @property
    def hint(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return self._name


def _position(kind: str, axis: str, missing: int) -> Callable[[Recorder], Expr]:
    def resolve(recorder: Recorder) -> Expr:
        return Index(kind, axis) if axis in recorder.domain.axes else constant(missing, INT)

    return resolve


def _element_count(recorder: Recorder) -> Expr:
    if recorder.elements:
        return constant(recorder.elements[-1][1], INT)
    if recorder.tensor:
        return constant(recorder.tensor.points, INT)
    types = [slot.param.type for slot in recorder.outputs] or [param.type for param in recorder.inputs.values()]
    return constant(types[0].tensor_points if types else 1, INT)


def _first(name: str) -> Recorder:
    recorder = current(f"`{name}`")
    if len(recorder.scopes) > 1 or recorder.scope.statements or recorder.shared:
        raise SemanticError(
            f"`{name}` comes first in a body: statements before it were recorded for another thread grid"
        )
    return recorder


def _localThreads(*shape: Any, whole_groups: bool = False, groups: Any = None) -> None:
    """The shape of the work-groups: `_localThreads(rows, columns)`, or a Shape; missing extents are 1, and `_target` may decide.

    The number of threads is rounded up to whole groups. Tail threads, beyond the grid, run nothing but barriers.

    Args:
        whole_groups: let tail threads run too, so that groups at the edges load whole tiles: what they read follows the
            borders, at their own points too, and what they write outside is dropped.
        groups: how many work-groups there are along each axis, a Shape or a number; then the thread grid is theirs, and there is
            no `_globalThreads`.

    Raises:
        SemanticError: when the body ends, without `whole_groups`, if threads read local memory that only tail threads
            would have written.
    """
    recorder = _first("_localThreads")
    if recorder.group is not None:
        raise SemanticError("`_localThreads` is called twice; a kernel has one shape of work-groups")
    extents = _group_extents(shape)
    if not extents or 0 in extents:
        raise SemanticError(f"a work-group has at least one thread along every axis, not {tuple(extents)}")
    if not isinstance(whole_groups, bool):
        raise SemanticError(f"`whole_groups=` is True or False, not {whole_groups!r}")
    recorder.group, recorder.whole = (extents, here()), whole_groups
    if groups is not None:
        recorder.grid, recorder.threads_set, recorder.grid_of = _grid_of_groups(recorder, extents, groups), True, ""
        recorder.names, recorder.unfolded = (), None


def _grid_of_groups(recorder: Recorder, group: tuple[Extent, ...], groups: Any) -> Shape:
    """The threads of so many work-groups."""
    if recorder.threads_set:
        raise SemanticError("`groups=` says how many threads there are, and so does `_globalThreads`: give one of them")
    counts = _extents(groups)
    if len(counts) != len(group):
        raise SemanticError(
            f"`groups=` has a number for each extent of the work-groups, {len(group)}, not {len(counts)}"
        )
    if any(not isinstance(n, int) for n in group):
        raise SemanticError(
            "`groups=` wants work-groups whose extents are known: the thread grid is the same on all targets"
        )
    return Shape(*(n * count for n, count in zip(numbers(group), counts, strict=True)))


def _group_extents(extents: tuple[Any, ...], what: str = "an extent of a work-group") -> tuple[Extent, ...]:
    """Integers, some of them decided by the target."""
    flat = tuple(extents[0]) if len(extents) == 1 and isinstance(extents[0], Iterable) else extents
    numbers = iter(Shape(*(n for n in flat if not isinstance(n, TargetExpression))))
    return tuple(extent(n, what) if isinstance(n, TargetExpression) else next(numbers) for n in flat)


def _globalThreads(*shape: Any, tensor: Any = None) -> None:
    """The thread grid: one thread per point of a shape, or per element of the tensors at its points.

    `_globalThreads(rows, columns)` gives extents, `_globalThreads(shape[, tensor_shape])` a Shape or Dims, or a Field or
    FieldType, which stands for its grid. Of more than three dimensions the first ones are layers; `_dim` tells them apart. Extents
    may follow the target, as in `_globalThreads(n // _target.choose({"opencl": 1, "cuda": 4}))`: the operator is recorded for each
    grid that there is then.

    Args:
        tensor: the tensor's extents; `_tensorElement` is the thread's position in them, in row-major order.
    """
    recorder = _first("_globalThreads")
    if recorder.threads_set:
        raise SemanticError("`_globalThreads` is called twice; a kernel has one thread grid")
    field_shape, tensor_shape = _shapes(shape, tensor)
    threads = field_shape.type if isinstance(field_shape, FieldLike) else field_shape
    if isinstance(threads, Dims):
        threads = FieldType(threads.shape, dims=spelled(threads.names))
    grid = threads.field_shape if isinstance(threads, FieldType) else _grid(recorder, threads)
    recorder.grid, recorder.threads_set, recorder.grid_of = grid, True, ""
    recorder.names, recorder.unfolded = threads.names[: len(grid)] if isinstance(threads, FieldType) else (), None
    recorder.tensor = _extents(tensor_shape) if tensor_shape is not None else Shape()
    if recorder.tensor.points == 0:
        raise SemanticError("a tensor has at least one element")


def _shapes(args: tuple[Any, ...], tensor: Any) -> tuple[Any, Any]:
    """The shape of the grid and that of the tensor: extents side by side, or a shape and then a tensor's."""
    if args and all(is_integer(n) or isinstance(n, TargetExpression) for n in args):
        return args, tensor
    if len(args) == 1:
        return args[0], tensor
    if len(args) != 2 or tensor is not None:
        raise SemanticError(
            "`_globalThreads` takes the grid's extents, as in `_globalThreads(rows, columns)`, or a shape; "
            "a tensor's shape follows that, or is given by `tensor=`"
        )
    return args


def _grid(recorder: Recorder, shape: Any) -> Shape:
    """A thread grid, for one of the targets where they decide on it."""
    if not isinstance(shape, (tuple, list)) or not any(isinstance(n, TargetExpression) for n in shape):
        return _extents(shape)
    extents = _group_extents((shape,), "an extent of a thread grid")
    if recorder.grid_chosen is None:
        grid = OpenGrid("the thread grid of a `gp.GPUOperator` is the same on all targets; make it a `@gp.operator`")
        grid.extents = extents
        raise grid
    if min(recorder.grid_chosen) < 0:
        raise SemanticError(
            f"an extent of a thread grid is 0 or more, and for one target it is {min(recorder.grid_chosen)}"
        )
    return Shape(recorder.grid_chosen)


def _extents(shape: Any) -> Shape:
    if isinstance(shape, (bool, str, Value)):
        raise SemanticError(f"a thread grid is a shape, a Field or a FieldType, not {shown(shape)}")
    return Shape(shape)


def generated() -> dict[str, Value]:
    """`_row`, `_rows`, `_localRow`, `_localRows`, `_groupRow`, `_groupRows` and their like."""
    names: dict[str, Callable[[Recorder], Expr]] = {}
    for axis in GRID_AXES:
        capital = axis.capitalize()
        names[f"_{axis}"] = _position("global", axis, 0)
        names[f"_{axis}s"] = _position("global_size", axis, 1)
        names[f"_local{capital}"] = _position("local", axis, 0)
        names[f"_local{capital}s"] = _position("local_size", axis, 1)
        names[f"_group{capital}"] = _position("group", axis, 0)
        names[f"_group{capital}s"] = _position("group_count", axis, 1)
    names["_tensorElement"] = Recorder.tensor_element
    names["_tensorElements"] = _element_count
    return {name: ThreadConstant(name, resolve) for name, resolve in names.items()}
