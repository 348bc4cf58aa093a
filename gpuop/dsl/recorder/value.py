"""Recorded values: Python operators on them record code, and Python constructs that would misuse them are errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from gpuop.base.errors import MissingError, SemanticError, UnsupportedError, article, described, here
from gpuop.dsl.recorder.arithmetic import Arithmetic
from gpuop.dsl.recorder.assignment_targets import is_chained, unpacked
from gpuop.dsl.recorder.components import COMPONENTS, INSTEAD, SWIZZLE, component, lane_of
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.kernel_warnings import as_float, note
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.placeholders import COMPLEX, beside_complex, field_value, is_complex, pair
from gpuop.dsl.recorder.recorder import Recorder, current
from gpuop.dsl.recorder.target_facts import TargetExpression, misplaced
from gpuop.ir.build import Number, constant, fold_cast, literal, number
from gpuop.ir.expansions.table import EXPANSIONS
from gpuop.ir.nodes import Cast, Const, Expr, Ref
from gpuop.ir.ops import OPS
from gpuop.ir.types import BOOL, BY_NUMPY, DOUBLE, INT, LONG, ULONG, DType, Type

# Table rows by the NumPy name of an operator (see `arithmetic`), where the names differ
KERNEL_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "floor_divide": "floordiv", "remainder": "mod", "negative": "neg",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "equal": "eq", "not_equal": "ne", "logical_not": "not",
}  # fmt: skip
SAME_NAMES = ("add", "power", "absolute", "invert", "left_shift", "right_shift")
LISTS = "of several values there are `_sum`, `_min`, `_max`, `_and` (all), `_or` (any), `_sort`; `_constantArray` makes a table"
ADVICE: dict[type, str] = {type(None): "did a function forget its `return`?", str: "a kernel computes with numbers"}
ADVICE |= dict.fromkeys((list, tuple), LISTS)
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
Operand = Any  # operand of kernel arithmetic: a Value, a number, or a 0D scalar Field


PRODUCT = (
    "`@` does not multiply kernel values; `_dot(a, b)` is the product of two vectors, and `@` multiplies Fields outside of "
    "kernels"
)


class Value(Arithmetic["Value"]):
    """A recorded value: a scalar, or a vector of 2 to 4 components."""

    __slots__ = ("_expr",)

    def __init__(self, expr: Expr) -> None:
        varies = isinstance(expr, Ref) and expr.var.mutable
        self._expr = (
            current().build.copy(expr) if varies else expr
        )  # the value at this statement, whatever is assigned later

    @property
    def expr(self) -> Expr:
        """Atom of this value; an error if its block has ended."""
        return current(f"`{self.hint}`").usable(self._expr)

    @property
    def type(self) -> Type:
        return self.expr.type

    @property
    def hint(self) -> str:
        """Name in messages: that of the variable, or the number."""
        expr = self._expr
        return expr.var.hint if isinstance(expr, Ref) else str(expr.value) if isinstance(expr, Const) else "value"

    @property
    def named(self) -> bool:
        """True if the user knows the value by its hint."""
        expr = self._expr
        return isinstance(expr, Const) or (isinstance(expr, Ref) and not expr.var.temporary)

    @property
    def constant(self) -> Number | None:
        """The number, if it is known while recording."""
        return self.expr.value if isinstance(self.expr, Const) else None

    def __repr__(self) -> str:
        return f"<{self._expr.type}{' ' + self.hint if self.named else ''}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise UnsupportedError(
                "Python cannot format a recorded value, which exists only on the device; `_print(format, x)` prints there"
            )
        return repr(self)

    def _operate(self, name: str, *operands: Operand) -> Value:
        if name in ("left_shift", "right_shift"):
            return _shift("shl" if name == "left_shift" else "shr", *operands)
        if name == "invert" and self.type.kind == "b":
            name = "logical_not"
        result = apply(KERNEL_NAMES.get(name, name), *operands)
        note(current(), name, operands, [atom(operand) for operand in operands], result.expr)
        return result

    def __pos__(self) -> Value:
        return Value(self.expr)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Value:
        """Arithmetic with a NumPy scalar on the left; other NumPy functions do not take values."""
        if method != "__call__" or options or ufunc.__name__ not in (*KERNEL_NAMES, *SAME_NAMES):
            raise UnsupportedError(
                f"numpy.{ufunc.__name__} does not take kernel values; kernels have functions of their own, as "
                f"`{kernel_call(ufunc.__name__) or ANY}`"
            )
        return self._operate(ufunc.__name__, *operands)

    # --- components ---------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__") or not SWIZZLE.match(name):
            if name.startswith("__"):  # Python and NumPy probe for these
                raise AttributeError(name)
            raise MissingError(f"a kernel value has no attribute {name!r}; {INSTEAD.get(name, COMPONENTS)}")
        lanes = [lane_of(self.type, letter) for letter in name]
        build = current().build
        return Value(build.pack([build.lane(self.expr, i) for i in lanes]))

    def __getitem__(self, index: int) -> Value:
        return Value(current().build.lane(self.expr, component(self.type, index)))

    def __iter__(self) -> Iterator[Value]:
        if self.type.lanes == 1:
            raise SemanticError(
                "a scalar value cannot be unpacked or iterated over; use `with _for(n) as i:` for loops on the device, and "
                "`with _for((rows, columns)) as (r, c):` along several dimensions"
            )
        count = unpacked(sys._getframe(1))
        if count not in (None, self.type.lanes):
            raise SemanticError(
                f"a value of {self.type.lanes} components is unpacked into {self.type.lanes} names, not into {count}; "
                "`v.xy` has the first two, `v[i]` has one"
            )
        return iter([self[i] for i in range(self.type.lanes)])

    # --- Python constructs that would misuse a value ----------------------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        if is_chained(sys._getframe(1)):
            raise SemanticError(
                "a chained comparison such as `a < x < b` is an `and` in Python, which asks a recorded value for its truth; "
                "write `(a < x) & (x < b)`"
            )
        raise SemanticError(
            "a recorded value has no truth value: `if`, `while`, `and`, `or`, `not`, `min` and `max` of Python cannot decide "
            "on it; use `with _if(c):`, `with _while(c):`, `&`, `|`, `~`, `_min`, `_max`, `_where(c, a, b)`"
        )

    def __index__(self) -> NoReturn:
        raise SemanticError(
            "a recorded value is not a Python integer: it exists only on the device; "
            "use `with _for(n) as i:`, or a table for computed indices, as `_constantArray(values)` makes of a list"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(
            "NumPy does not compute with a recorded value, or index an array by it: it exists only on the device; `table = "
            "_constantArray(array)` makes a table for computed indices, as in `table[i]`; `_where(c, a, b)` chooses, and "
            "`_sum(values)`, `_min` and `_max` take lists of values"
        )

    def __int__(self) -> NoReturn:
        raise SemanticError("a recorded value is not a Python integer; convert on the device with `_convert_int(x)`")

    def __float__(self) -> NoReturn:
        raise SemanticError(
            "a recorded value is not a Python float: it exists only on the device; "
            f"use the kernel's own functions ({math_call()}), or `_convert_float(x)`"
        )

    def __round__(self, digits: Any = None) -> NoReturn:
        raise UnsupportedError("`round` of Python does not take kernel values; use `_rint(x)`, or `_round(x)`")

    def __len__(self) -> int:
        raise UnsupportedError(
            "a kernel value has no `len`: it is a number, or a vector of 2 to 4 components; a field has its `tensor_shape`"
        )

    def __matmul__(self, other: Any) -> Value:
        raise UnsupportedError(PRODUCT)

    __rmatmul__ = __matmul__

    def __enter__(self) -> NoReturn:
        raise UnsupportedError(
            "a kernel value does not open a block; write `with _if(condition):`, or `with _while(condition):`"
        )

    def __exit__(self, *exc: object) -> None:
        """Python looks for it before it enters."""

    def __divmod__(self, other: Any) -> NoReturn:
        raise UnsupportedError("`divmod` of Python does not take kernel values; write `x // y` and `x % y`")

    __rdivmod__ = __divmod__

    @property
    def _numba_type_(self) -> NoReturn:
        raise UnsupportedError(
            "compiled functions of Numba do not take kernel values: call the Python function that was compiled, "
            "`f.py_func(x)`, or write it without `@njit`"
        )

    def assign(self, value: Operand) -> None:
        """Assign to a variable; an expression is not one."""
        raise SemanticError(
            "`@=` assigns to variables, and this is an expression; make a variable of it with `v = _var(x)`"
        )

    def __imatmul__(self, other: Operand) -> Value:
        self.assign(other)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if SWIZZLE.match(name):
            self[0] = value
        elif not name.startswith("_"):
            raise MissingError(f"a kernel value has no attribute {name!r} to set")
        object.__setattr__(self, name, value)

    def __setitem__(self, index: Any, value: Operand) -> None:
        raise SemanticError(
            "components of a variable can be assigned, and this is an expression; make a variable of it with `v = _var(x)`"
        )


# --- from Python objects to atoms -----------------------------------------------------------------------------------


def atom(value: Operand) -> Expr | Number:
    """Atom of an operand, or a number whose type its neighbours decide."""
    if isinstance(value, Value):
        return value.expr
    plain = number(value)
    if plain is not None:
        return plain
    if isinstance(value, COMPLEX):
        return pair(value)
    if isinstance(value, FieldLike):
        return field_value(value)
    if isinstance(value, TargetExpression):
        raise misplaced(value)
    description = repr(value) if isinstance(value, OutputRef) else described(value)
    advice = getattr(
        value,
        "advice",
        ADVICE.get(
            type(value),
            "wrap arrays in a Field and read them with `_readTensor`, or index them with Python integers",
        ),
    )
    raise SemanticError(f"{description} cannot stand in a kernel; {advice}")


def literal_atom(value: Operand) -> Expr:
    """The atom of an operand: lone Python numbers are int or float, and NumPy numbers keep their dtype."""
    result = typed(value)
    return literal(result) if isinstance(result, (bool, int, float)) else result


def typed(value: Operand) -> Expr | Number:
    """The atom of an operand: NumPy numbers keep their dtype, except int64 and float64, the types of Python numbers."""
    result = atom(value)
    dtype = BY_NUMPY.get(value.dtype.name) if isinstance(value, (np.generic, np.ndarray)) else None
    if dtype is None or dtype is DOUBLE or not isinstance(result, (bool, int, float)):
        return result
    return result if dtype is LONG and INT.holds(result) else constant(result, dtype)


def apply(name: str, *args: Operand) -> Value:
    """Record a table row or an expansion that has one result."""
    return Value(record(name, *args))


def record(name: str, *args: Operand) -> Any:
    """Record a table row or an expansion: an atom, or a tuple of them."""
    atoms = beside_complex(name, args, atom) if any(map(is_complex, args)) else [atom(a) for a in args]
    if all(isinstance(a, (bool, int, float)) for a in atoms):
        atoms = [typed(a) for a in args]
    recorder = current(f"`_{name}`")
    if any(isinstance(a, float) or (isinstance(a, Expr) and a.type.kind == "f") for a in atoms):
        for operand in atoms:
            as_float(recorder.quotients, operand)
    if (folded := without_zero(recorder, name, atoms)) is not None:
        return folded
    if name in EXPANSIONS:
        function = EXPANSIONS[name]
        inside = name if function.group == "integer" else ""
        return recorder.steps(
            lambda: function.expand(recorder.build, *recorder.build.literals(function.alone, atoms)), inside
        )
    return recorder.build.apply(name, *atoms)


def convert(value: Operand, target: Type) -> Expr:
    """Convert as a write does: integers truncate and saturate, scalars spread."""
    build, source = current().build, atom(value)
    if isinstance(source, (bool, int, float)):
        source = _number(source, target.dtype)
    return build.cast(source, target)


def _number(value: Number, target: DType) -> Const:
    if isinstance(value, bool):
        return fold_cast(constant(value, BOOL), Type(target), True)
    if target.kind == "f" and not -(2**63) <= value < 2**64 and DOUBLE.holds(value):
        value = float(value)  # beyond every integer of the device
    source = DOUBLE if isinstance(value, float) else LONG if -(2**63) <= value < 2**63 else ULONG
    if not source.holds(value):
        raise SemanticError(f"{value} does not fit any type of the device")
    return fold_cast(constant(value, source), Type(target), True)


def integer(value: Operand, what: str) -> Expr:
    """An int atom for an index, a bound or an extent."""
    expr = literal_atom(value)
    if not expr.type.integer or expr.type.lanes > 1:
        divided = isinstance(value, float)  # a Python float, the only way to get one here
        advice = "`/` of Python integers gives a float, write `//`; " if divided else ""
        raise SemanticError(
            f"{what} is a scalar integer, not {article(str(expr.type))}; {advice}convert with `_convert_int(x)`"
        )
    return current().build.cast(expr, Type(INT))


def _shift(op: str, value: Operand, amount: Operand) -> Value:
    """Shift as in OpenCL: the amount counts modulo the width."""
    shifted, by = atom(value), atom(amount)
    if not isinstance(by, NUMBERS):
        width = (by if isinstance(shifted, NUMBERS) else shifted).type.dtype.bits
        return apply(op, value, Value(by) & (width - 1))
    if not isinstance(by, (int, np.integer)) or by < 0 or isinstance(shifted, NUMBERS):
        raise SemanticError(f"a shift amount is an integer that is not negative, not {amount!r}")
    return apply(op, value, int(by) % shifted.type.dtype.bits)


# --- integer zeros ----------------------------------------------------------------------------------------------------
# `sum(…)` starts with the Python 0, and windows have weights of 0: 0 + x is x, and 0 · x is 0 whatever x is. Floating zeros mean
# what IEEE 754 says: 0.0 + -0.0 is 0.0, and 0.0 · NaN is NaN.


def without_zero(recorder: Recorder, name: str, atoms: list[Expr | Number]) -> Expr | None:
    """Result of a sum, difference or product with an integer 0, if it needs no operation; else None."""
    if name not in ("add", "sub", "mul") or all(isinstance(atom, (bool, int, float)) for atom in atoms):
        return None
    first, second = (_is_zero(recorder, atom) for atom in atoms)
    if not (second or (first and name != "sub")):
        return None
    row, operands = OPS[name], recorder.build.literals((), atoms)
    _, result = row.rule(row.shown, [operand.type for operand in operands])
    if name == "mul" or (first and second):
        recorder.idle = True
        return _zero(recorder, result)
    operand = operands[0] if second else operands[1]
    if isinstance(operand, Ref) and operand.var.mutable:  # its current value
        operand = recorder.bind(operand)
    return recorder.build.cast(operand, result, saturate=False)


def _zero(recorder: Recorder, type_: Type) -> Expr:
    """Zero of a type. A floating one stays an integer 0, unlike 0.0, so that it costs nothing in sums either."""
    return recorder.build.cast(Const(0, type_.scalar), type_)


def _is_zero(recorder: Recorder, atom: Expr | Number | None) -> bool:
    if isinstance(atom, Ref):
        spread = recorder.values.get(atom.var)
        return isinstance(spread, Cast) and _is_zero(recorder, spread.arg)
    if isinstance(atom, Const):
        return atom.type.kind == "f" and type(atom.value) is int and atom.value == 0
    return type(atom) is int and atom == 0


# --- kernel builtins that correspond to functions of Python and NumPy, for messages -----------------------------------


OTHERS = {
    "maximum": "_max(a, b)", "fmax": "_max(a, b)", "minimum": "_min(a, b)", "fmin": "_min(a, b)", "arctan2": "_atan2(a, b)",
    "gamma": "_tgamma(x)", "matmul": "_dot(a, b)", "deg2rad": "_radians(x)",
    "rad2deg": "_degrees(x)", "float_power": "_pow(a, b)", "bitwise_count": "_popcount(x)",
}  # fmt: skip
TWO = ("atan2", "copysign", "fmod", "hypot", "ldexp", "nextafter", "pow", "remainder")
ANY = "_sqrt(x)"


def kernel_call(name: str) -> str:
    """Kernel call that corresponds to a NumPy or `math` function; empty if there is none."""
    if name in OTHERS:
        return OTHERS[name]
    builtin = "_" + re.sub("^arc", "a", name)
    if not hasattr(sys.modules.get("gpuop.dsl"), builtin):
        return ""
    return f"{builtin}({'a, b' if builtin[1:] in TWO else 'x'})"


def math_call() -> str:
    """Replacement of the `math` function in the user's line, with its name; an example if there is none."""
    at = here()
    called = re.findall(r"\bmath\.(\w+)\(", at.text if at is not None else "")
    suggestion = next(
        (f"`{call}` for `math.{name}{call[call.index('(') :]}`" for name in called if (call := kernel_call(name))), ""
    )
    return suggestion or "`_sin(x)` for `math.sin(x)`"
