"""Shared memory: `_local` and `_volatile` declarations, constant tables, and barriers."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import SemanticError, UnsupportedError, described, here
from gpuop.dsl.recorder.assignment_targets import assigned_name
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.recorder import Recorder, caller, current
from gpuop.dsl.recorder.value import Operand, Value, convert
from gpuop.dsl.recorder.variable import ArrayVariable, Variable, in_scope
from gpuop.ir.build import constant
from gpuop.ir.nodes import Array, Barrier, Cast, Const, Declare, Expr, Load, Ref, Store
from gpuop.ir.types import BY_NUMPY, INT, Type

UNNAMED = "shared"  # memory of groups that no name is given to
CONSTANT_BYTES = 64512  # devices have 65,536 for constant memory, and drivers put more into it
MANY_WEIGHTS = '; sums with so many weights are `gpuop.ndimage.convolve(f, weights, method="fft")`'
LONGEST_SIDE = 256  # limit for windows of weights: larger arrays are pictures or tables
_MADE_OF = "a constant table is made of numbers that are known in Python"
Declared = TypeVar("Declared")


def of_weights(value: Any) -> str:
    """The advice on sums with many weights, for an array that may be those of a window; else empty."""
    sides = value.shape if isinstance(value, np.ndarray) else ()
    return MANY_WEIGHTS if len(sides) in (2, 3) and max(sides) <= LONGEST_SIDE else ""


class LocalVariable(Variable):
    """A variable in local memory: one for each work-group. Vectors lie there component by component.

    Its expression is a load of the whole, which each use replaces by loads of the components.
    """

    __slots__ = ()

    @property
    def _array(self) -> Array:
        assert isinstance(self._expr, Load) and isinstance(self._expr.memory, Array)
        return self._expr.memory

    @property
    def type(self) -> Type:
        return self._expr.type

    @property
    def expr(self) -> Expr:
        """Current value in memory."""
        build = in_scope(self._array).build
        return build.pack(
            [build.bind(Load(self._array, self._place(k), self._array.type)) for k in range(self.type.lanes)]
        )

    @property
    def hint(self) -> str:
        return self._array.hint

    @property
    def named(self) -> bool:
        return True

    def _place(self, lane: int) -> tuple[Expr, ...]:
        return (constant(lane, INT),) if self.type.lanes > 1 else ()

    def assign(self, value: Operand) -> None:
        self._set_lanes(list(range(self.type.lanes)), value)

    def _set_lanes(self, lanes: list[int], value: Operand) -> None:
        if len(set(lanes)) < len(lanes):
            raise SemanticError("a component is assigned twice")
        recorder = in_scope(self._array)
        parts = recorder.build.lanes(convert(value, Type(self.type.dtype, len(lanes))))
        for lane, part in zip(lanes, parts, strict=True):
            recorder.emit(Store(self._array, self._place(lane), part, here()))


def _local(declared: Variable | ArrayVariable) -> Any:
    """Put a variable or an array that is declared here into local memory, shared by a work-group's threads, and not zeroed there.

    Let threads write it, and wait with `_syncThreadsLocal()` before others read.
    """
    recorder = current("`_local`")
    symbol = _symbol("_local", declared)
    hint = assigned_name(caller()) or (symbol.hint if symbol.hint not in ("a", "v") else UNNAMED)
    initial = _initial(recorder, declared)
    if not recorder.retract(symbol):
        raise SemanticError("`_local` stands around a declaration: `tile = _local(_floatArray(16, 16))`")
    if not initial:
        raise SemanticError("local memory is not initialised: assign it, and wait with `_syncThreadsLocal()`")
    lanes = symbol.type.lanes
    if isinstance(declared, ArrayVariable):
        array = Array(hint, symbol.type, declared.shape, "local")
    else:
        array = Array(hint, symbol.type.scalar, (lanes,) if lanes > 1 else (), "local")
    recorder.shared.append(Declare(array, here()))
    recorder.scope_of[array] = recorder.scope
    if symbol in recorder.volatile:
        recorder.volatile.add(array)
    return _moved(declared, array, symbol.type)


def _moved(declared: Variable | ArrayVariable, array: Array, kind: Type) -> Any:
    """The same object, in other memory: names that it has already mean that too."""
    if isinstance(declared, ArrayVariable):
        declared._array = array
    else:
        declared.__class__ = LocalVariable
        declared._expr = Load(array, (), kind)
    return declared


def _symbol(name: str, declared: Any) -> Any:
    if isinstance(declared, (LocalVariable, ArrayVariable)):
        if name == "_local" and declared._array.space != "private":
            raise SemanticError(f"`{declared._array.hint}` is in {declared._array.space} memory already")
        return declared._array
    expr = declared.expr if isinstance(declared, Variable) else None
    if not isinstance(expr, Ref) or not expr.var.mutable:
        raise SemanticError(f"`{name}` takes a variable or an array, as `{name}(_floatVar())`, not {shown(declared)}")
    return expr.var


def shown(value: Any) -> str:
    """User argument in words."""
    if isinstance(value, Variable):
        return f"the variable `{value.hint}`"
    if isinstance(value, ArrayVariable):
        return f"the array `{value._array.hint}`"
    if isinstance(value, OutputRef):
        return f"`{value}` as a whole"
    return "a computed value" if isinstance(value, Value) else described(value)


def _initial(recorder: Recorder, declared: Any) -> bool:
    """True if a variable starts as zero, the default."""
    if isinstance(declared, ArrayVariable):
        return True
    last = recorder.scope.statements[-1]
    value = getattr(last, "value", None)
    if isinstance(value, Ref):
        value = recorder.values.get(value.var)
    if isinstance(value, Cast):
        value = value.arg
    return isinstance(value, Const) and value.value == 0


def _volatile(declared: Declared) -> Declared:
    """Have every access to a variable or an array reach its memory. Private memory is nobody else's, so nothing changes there."""
    symbol, name = _symbol("_volatile", declared), assigned_name(caller())
    current("`_volatile`").volatile.add(symbol)
    if name and symbol.hint == UNNAMED:  # `tile = _volatile(_local(…))`; nothing but text depends on a name
        object.__setattr__(symbol, "hint", name)
    return declared


class ConstantArray(ArrayVariable):
    """A table in constant memory; it is only read."""

    __slots__ = ()

    def __setitem__(self, index: Operand, value: Operand) -> None:
        raise SemanticError(
            f"`{self._array.hint}` is a constant table; copy what changes into an array, as `_floatArray(n)`"
        )


class ComplexTable(ConstantArray):
    """A table of pairs of numbers, whose parts lie beside one another."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Value:
        place = index if isinstance(index, tuple) else (index,)
        parts = [super(ComplexTable, self).__getitem__((*place[:-1], place[-1] * 2 + part)) for part in (0, 1)]
        return Value(current().build.pack([part.expr for part in parts]))


def _constantArray(values: Any) -> ArrayVariable:
    """A lookup table in constant memory, of 1 to 3 dimensions.

    Args:
        values: an array, which keeps its dtype, or nested lists of numbers, which become int or float; up to 63 KiB. Complex
            ones are pairs of their parts.
    """
    recorder, table = current("`_constantArray`"), constants_of(values)
    if not 1 <= table.ndim <= 3 or not table.size:
        raise SemanticError(
            f"a constant table has 1 to 3 dimensions and is not empty, unlike one of shape {table.shape}"
        )
    pairs = table.dtype.kind == "c"
    table = np.ascontiguousarray(table).view(table.real.dtype) if pairs else table
    size = table.nbytes + sum(d.array.nbytes for d in recorder.shared if d.array.space == "constant")
    if size > CONSTANT_BYTES:
        raise SemanticError(
            f"the constant tables of a kernel hold {CONSTANT_BYTES} bytes, not {size}; read a Field instead{of_weights(table)}"
        )
    kind = Type(BY_NUMPY[table.dtype.name])
    array = Array(
        assigned_name(caller()) or "table", kind, table.shape, "constant", values=tuple(table.ravel().tolist())
    )
    recorder.shared.append(Declare(array, here()))
    recorder.scope_of[array] = recorder.scope
    return ComplexTable(array) if pairs else ConstantArray(array)


def constants_of(values: Any) -> NDArray[Any]:
    """The numbers of a constant table, with a dtype that kernels have."""
    if isinstance(values, (Value, FieldLike)):
        raise SemanticError(f"{_MADE_OF}, not of {shown(values)}; read Fields with `_readTensor`")
    try:
        table = np.asarray(values)
    except ValueError:  # the NumPy message does not name the cause
        raise SemanticError("a constant table is made of lists of one length") from None
    except UnsupportedError:
        raise SemanticError(f"{_MADE_OF}, not of recorded values") from None
    if table.dtype.name not in BY_NUMPY and table.dtype.kind != "c":
        raise SemanticError(f"{_MADE_OF}, not of {table.dtype.name if table.dtype != object else 'Python objects'}")
    if table.dtype.kind == "c":
        return table if isinstance(values, (np.ndarray, np.generic)) else table.astype(np.complex64)
    if isinstance(values, (np.ndarray, np.generic)) or table.dtype == bool:
        return table
    if table.dtype.kind == "f":
        return table.astype(np.float32)
    narrow = table.astype(np.int32)
    if not np.array_equal(narrow, table):
        raise SemanticError("a number of the table does not fit an int; give it a dtype, as `np.array(values, dtype)`")
    return narrow


def _syncThreadsLocal() -> None:
    """Wait until every thread of the work-group is here; all then see their writes to local memory."""
    current("`_syncThreadsLocal`").emit(Barrier("local", here()))


def _syncThreadsGlobal() -> None:
    """Wait until every thread of the work-group is here; all then see their writes to local and global memory.

    Outputs are read as Fields are, by `_readTensor(_out0, _column)`.
    """
    current("`_syncThreadsGlobal`").emit(Barrier("global", here()))
