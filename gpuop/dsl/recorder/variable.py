"""Variables and arrays of a thread, the assignable values of kernels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpuop.base.errors import SemanticError, article, here, warn
from gpuop.dsl.recorder.components import SWIZZLE, component, lane_of
from gpuop.dsl.recorder.kernel_warnings import as_float
from gpuop.dsl.recorder.no_number import NoNumber
from gpuop.dsl.recorder.recorder import Recorder, current
from gpuop.dsl.recorder.value import Operand, Value, atom, convert, integer
from gpuop.ir.nodes import Array, Assign, Expr, Let, Load, Ref, Store, Var
from gpuop.ir.target_expressions import Extent
from gpuop.ir.types import Type
from gpuop.ir.visit import walk


class Variable(Value):
    """A variable: `v @= e` assigns, `v += e` updates, `v.x = e` sets a component."""

    __slots__ = ()

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def assign(self, value: Operand) -> None:
        """Assign, as `:=` of Cog; converts as a write does."""
        recorder, target = current(), self.expr
        assert isinstance(target, Ref)
        if not target.var.mutable:
            raise SemanticError(
                f"`{target.var.hint}` is read-only: a loop's counter is not assigned; copy it with `v = _var({target.var.hint})`"
            )
        if target.type.kind == "f":
            as_float(recorder.quotients, atom(value))
        kind = value.type if isinstance(value, Value) else target.type
        if kind.lanes not in (1, target.type.lanes):
            raise SemanticError(_of_other_length(recorder, target.var, kind))
        converted = convert(value, target.type)
        recorder.emit(Assign(target.var, converted, here()))

    def _become(self, value: Operand) -> Variable:
        self.assign(value)
        return self

    def _update(self, value: Value) -> Variable:
        """Assign the result of `v += e` and its like. An integer variable truncates a float every time, which is hardly meant."""
        if self.type.integer and value.type.kind == "f":
            message = (
                f"`{self.hint}` is {article(str(self.type))} variable, so a float result is truncated each time; declare "
                f"`{self.hint} = _var(0.0)`, or say so by `{self.hint} @= …`"
            )
            warn(message)
        return self._become(value)

    # fmt: off
    def __imatmul__(self, other: Operand) -> Variable: return self._become(other)
    def __iadd__(self, other: Operand) -> Variable: return self._update(self + other)
    def __isub__(self, other: Operand) -> Variable: return self._update(self - other)
    def __imul__(self, other: Operand) -> Variable: return self._update(self * other)
    def __itruediv__(self, other: Operand) -> Variable: return self._update(self / other)
    def __ifloordiv__(self, other: Operand) -> Variable: return self._update(self // other)
    def __imod__(self, other: Operand) -> Variable: return self._update(self % other)
    def __ipow__(self, other: Operand) -> Variable: return self._update(self ** other)
    def __iand__(self, other: Operand) -> Variable: return self._update(self & other)
    def __ior__(self, other: Operand) -> Variable: return self._update(self | other)
    def __ixor__(self, other: Operand) -> Variable: return self._update(self ^ other)
    def __ilshift__(self, other: Operand) -> Variable: return self._update(self << other)
    def __irshift__(self, other: Operand) -> Variable: return self._update(self >> other)
    # fmt: on

    def __setattr__(self, name: str, value: Operand) -> None:
        if SWIZZLE.match(name):
            self._set_lanes([lane_of(self.type, letter) for letter in name], value)
        else:
            super().__setattr__(name, value)

    def __setitem__(self, index: int, value: Operand) -> None:
        self._set_lanes([component(self.type, index)], value)

    def _set_lanes(self, lanes: list[int], value: Operand) -> None:
        if len(set(lanes)) < len(lanes):
            raise SemanticError("a component is assigned twice")
        build, target = current().build, self.type
        parts = build.lanes(convert(value, Type(target.dtype, len(lanes))))
        components = build.lanes(self.expr)
        for lane, part in zip(lanes, parts, strict=True):
            components[lane] = part
        self.assign(Value(build.pack(components)))


def _of_other_length(recorder: Recorder, var: Var, kind: Type) -> str:
    """Message about a variable that is assigned a vector of another length, with the line that declares it."""
    statements = walk(tuple(stmt for scope in recorder.scopes for stmt in scope.statements))
    line = next(
        (f" since {stmt.loc}" for stmt in statements if isinstance(stmt, Let) and stmt.var is var and stmt.loc), ""
    )
    zeros = ", ".join(["0.0" if kind.kind == "f" else "0"] * kind.lanes)
    name, own, other = var.hint, article(str(var.type)), article(str(kind))
    return (
        f"`{name}` is {own} variable{line}, and {other} does not convert to {var.type}: declare `{name} = _var(_{kind}({zeros}))`, "
        "or `_tensorVar(field)` for the tensors of any field, or take components, as `v.x`"
    )


def in_scope(array: Array) -> Recorder:
    """Recorder in which the array is visible."""
    recorder = current(f"`{array.hint}`")
    scope = recorder.scope_of.get(array)
    if scope is None or not scope.open:
        raise SemanticError(
            f"array `{array.hint}` belongs to a block that has ended, or to another operator; declare it before the block"
        )
    return recorder


class ArrayVariable(NoNumber):
    """An array of a thread: `a[i, j]` reads, `a[i, j] = e` and `a[i, j] += e` write."""

    __slots__ = ("_array",)
    advice: ClassVar[str] = "read its elements, as in `a[i]`"
    assigned: ClassVar[str] = "set its elements, as in `a[i] = v`"

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self._array.shape

    def _index(self, index: Operand) -> tuple[Expr, ...]:
        in_scope(self._array)
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != len(self.shape):
            raise SemanticError(
                f"array `{self._array.hint}` has {len(self.shape)} dimensions: give {len(self.shape)} indices, not {len(indices)}"
            )
        for i, n in zip(indices, self.shape, strict=True):
            if isinstance(i, (int, np.integer)) and (i < 0 or (isinstance(n, int) and i >= n)):
                raise SemanticError(f"index {i} is outside array `{self._array.hint}`, whose extent is {n}")
        return tuple(integer(i, f"an index of array `{self._array.hint}`") for i in indices)

    def __getitem__(self, index: Operand) -> Value:
        return Value(current().build.bind(Load(self._array, self._index(index), self._array.type)))

    def __setitem__(self, index: Operand, value: Operand) -> None:
        position = self._index(index)
        current().emit(Store(self._array, position, convert(value, self._array.type), here()))
