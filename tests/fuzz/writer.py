"""Writes random programs down in the vocabulary of kernels. Every value must have the type that the program says."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *

from .kinds import split
from .programs import Program

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "neg": operator.neg, "abs": abs, "pos": operator.pos, "invert": operator.invert, "~": operator.invert,
}  # fmt: skip
AXES = {"layer": (_layer, _layers), "row": (_row, _rows), "column": (_column, _columns)}
FILLS = {"b": True, "f": 0.5, "c": 0.5}


def named(name: str) -> Any:
    return getattr(dsl, name)


class Writer:
    """Expressions of a program; a careful writer divides by no zero."""

    def __init__(self, program: Program, fields: dict[str, gp.Field], careful: bool = False) -> None:
        self.careful = careful
        self.program = program
        self.fields = fields
        self.names: dict[str, Any] = {}  # variables, counters, arrays, tables, local memory
        self.axes = tuple(AXES)[3 - len(program.grid) :]

    def value(self, expr: tuple) -> Any:
        form, kind, *rest = expr
        result = getattr(self, f"_{form}")(kind, *rest)
        assert str(result.type) == kind, f"{expr} is {result.type}"
        return result

    # --- leaves -------------------------------------------------------------------------------------------------

    def _number(self, kind, numbers):
        dtype, lanes = split(kind)
        values = [_convert(n, "bool") if dtype == "bool" else named(f"_convert_{dtype}")(n) for n in numbers]
        return named(f"_{kind}")(*values) if lanes > 1 else values[0]

    def _variable(self, kind, name):
        return self.names[name]

    def _thread(self, kind, name):
        return named(name)

    def _offset(self, kind, axis, n):
        return AXES[axis][0] + n

    def _at(self, kind, n):
        return _convert(n, "int32")

    def _within(self, kind, expr, n):
        return (_convert_int(self.value(expr)) & 1023) % n

    def place(self, expr):
        """A place in an array: a number stays one."""
        return expr[2] if expr[0] == "at" else self.value(expr)

    def _array(self, kind, name, places):
        return self.names[name][tuple(map(self.place, places))]

    _table = _array

    def _slot(self, kind, name, places):
        return self.names[name][self.slot() if places is None else self.other(places)]

    def slot(self):
        """The thread's own slot of a local array."""
        return tuple(named(f"_local{a.capitalize()}") for a in self.axes)

    def other(self, places):
        """The slot of a thread of this group; those beyond the grid's end run nothing."""
        return tuple(self._thread_of_group(a, p) for a, p in zip(self.axes, places, strict=True))

    def _thread_of_group(self, axis, place):
        size, group = named(f"_local{axis.capitalize()}s"), named(f"_group{axis.capitalize()}")
        return (_convert_int(self.value(place)) & 1023) % _min(size, AXES[axis][1] - group * size)

    def _shared(self, kind, name):
        return _var(self.names[name])

    def _bin(self, kind, name, place):
        return self.names[name][self.place(place)]

    # --- reading ------------------------------------------------------------------------------------------------

    def point(self, name, point, border):
        """Arguments of a read."""
        if not point:
            return (), {}
        if border == "number":
            border = FILLS.get(
                np.dtype(self.fields[name].dtype).kind if self.fields[name].dtype != "unorm8" else "f", 7
            )
        return tuple(map(self.value, point)), {} if border == "clamp" else {"border": border}

    def _read(self, kind, name, point, border):
        at, options = self.point(name, point, border)
        return _readTensor(self.fields[name], *at, **options)

    def _sample(self, kind, name, point, border):
        at, options = self.point(name, point, border)
        return _sampleTensor(self.fields[name], *at, **options)

    def _readElement(self, kind, name, point, element, border):
        at, options = self.point(name, point, border)
        return _readTensorElement(self.fields[name], *at, self.place(element), **options)

    # --- types --------------------------------------------------------------------------------------------------

    def _convert(self, kind, expr):
        dtype, _ = split(kind)
        value = self.value(expr)
        return _convert(value, "bool") if dtype == "bool" else named(f"_convert_{kind}")(value)

    def _spread(self, kind, expr):
        return named(f"_{kind}")(self.value(expr))

    def _component(self, kind, expr, lane):
        value = self.value(expr)
        return value[lane] if lane % 2 else getattr(value, "xyzw"[lane])

    def _swizzle(self, kind, expr, letters):
        return getattr(self.value(expr), letters)

    def _vector(self, kind, *parts):
        return _vector(*map(self.value, parts))

    def _pack(self, kind, *parts):
        return named(f"_{kind}")(*map(self.value, parts))

    def _bits(self, kind, expr):
        return named(f"_as_{kind}")(self.value(expr))

    # --- operators and functions ----------------------------------------------------------------------------------

    def operate(self, op, a, b):
        if self.careful and op in ("/", "%", "//"):
            b = (b or 1) if isinstance(b, (int, float)) else b if b.type.kind == "f" else _where(b == 0, True, b)
        return OPERATORS[op](a, b)

    def _binary(self, kind, op, a, b):
        return self.operate(op, self.value(a), self.value(b))

    def _literal(self, kind, op, a, number, turned):
        value = self.value(a)
        return self.operate(op, number, value) if turned else self.operate(op, value, number)

    def _unary(self, kind, op, a):
        return OPERATORS[op](self.value(a))

    def _power(self, kind, a, n):
        return self.value(a) ** n

    def _where(self, kind, c, a, b):
        return _where(self.value(c), self.value(a), self.value(b))

    def _call(self, kind, name, *args):
        values = [self.value(a) for a in args]
        return ~values[0] if name == "~" else named(name)(*values)

    def _part(self, kind, name, k, *args):
        return named(name)(*map(self.value, args))[k]

    def _real(self, kind, expr):
        """NaN has no sign and no bits."""
        value = self.value(expr)
        return _where(value == value, value, 1.0)

    def _finite(self, kind, expr):
        value = self.value(expr)
        return _where((_fabs(value) < float("inf")) & (value != 0), value, 1.0)
