"""The thread identity constants. They exist in every dimensionality: 0, or 1 for counts, where there is no such axis."""

from __future__ import annotations

from collections.abc import Callable

from gpuop.dsl.record import Recorder, current
from gpuop.dsl.value import Value
from gpuop.ir.build import constant
from gpuop.ir.nodes import Expr, Index
from gpuop.ir.types import INT


class ThreadConstant(Value):
    """A value that each recorder resolves to its own thread grid."""

    __slots__ = ("_name", "_resolve")

    def __init__(self, name: str, resolve: Callable[[Recorder], Expr]) -> None:
        self._name = name
        self._resolve = resolve

    @property
    def expr(self) -> Expr:
        return self._resolve(current(f"`{self._name}`"))

    def __repr__(self) -> str:
        return self._name


def _position(kind: str, axis: str, missing: int) -> Callable[[Recorder], Expr]:
    def resolve(recorder: Recorder) -> Expr:
        return Index(kind, axis) if axis in recorder.domain.axes else constant(missing, INT)

    return resolve


def _element_count(recorder: Recorder) -> Expr:
    if recorder.elements:
        return constant(recorder.elements[-1][1], INT)
    types = [slot.param.type for slot in recorder.outputs] or [param.type for param in recorder.inputs.values()]
    return constant(types[0].tensor_points if types else 1, INT)


def generated() -> dict[str, Value]:
    """`_row`, `_rows`, `_localRow`, `_localRows`, `_groupRow` and their like."""
    names: dict[str, Callable[[Recorder], Expr]] = {}
    for axis in ("layer", "row", "column"):
        capital = axis.capitalize()
        names[f"_{axis}"] = _position("global", axis, 0)
        names[f"_{axis}s"] = _position("global_size", axis, 1)
        names[f"_local{capital}"] = _position("local", axis, 0)
        names[f"_local{capital}s"] = _position("local_size", axis, 1)
        names[f"_group{capital}"] = _position("group", axis, 0)
    names["_tensorElement"] = Recorder.tensor_element
    names["_tensorElements"] = _element_count
    return {name: ThreadConstant(name, resolve) for name, resolve in names.items()}
