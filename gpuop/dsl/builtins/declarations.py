"""Variables, arrays, vector literals and conversions of every type, generated from the list of types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpuop.base.errors import SemanticError, article, described, here
from gpuop.dsl.recorder.assignment_targets import assigned_name
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.recorder import Recorder, caller, current
from gpuop.dsl.recorder.target_facts import TargetExpression, extent
from gpuop.dsl.recorder.value import Operand, Value, atom, convert, literal_atom
from gpuop.dsl.recorder.variable import ArrayVariable, Variable
from gpuop.ir import type_rules
from gpuop.ir.build import constant, fold
from gpuop.ir.dtype_names import dtype_name
from gpuop.ir.nodes import AXES, Apply, Array, Cast, Const, Declare, Expr, Index, Ref, Var
from gpuop.ir.ops import OPS
from gpuop.ir.target_expressions import OPERATIONS, SYMBOLIC, Extent, Formula
from gpuop.ir.types import BFLOAT, BY_NUMPY, DTYPES, FLOAT, SMALL_TENSOR, DType, Type, is_integer

VECTORS = (1, 2, 3, 4)


def variable(type_: Type, init: Operand) -> Variable:
    """A new variable of a type, named as the user names it."""
    recorder = current("a variable")
    hint = assigned_name(caller()) or "v"
    return Variable(recorder.declare(Var(hint, type_, mutable=True), convert(init, type_)))


def array(type_: Type, dims: tuple[Any, ...]) -> ArrayVariable:
    """A zeroed array of 1 to 3 dimensions."""
    recorder = current("an array")
    if not 1 <= len(dims) <= 3:
        raise SemanticError(f"an array has 1 to 3 dimensions, not {len(dims)}")
    declared = Array(assigned_name(caller()) or "a", type_, tuple(dimension(recorder, d) for d in dims))
    recorder.emit(Declare(declared, here()))
    recorder.scope_of[declared] = recorder.scope
    return ArrayVariable(declared)


def dimension(recorder: Recorder, arg: Any) -> Extent:
    """A Python integer, a constant of the launch such as `_localRows + 2`, or a target expression."""
    if isinstance(arg, TargetExpression):
        return extent(arg, "a dimension of an array")
    number = launch_constant(recorder, arg.expr) if isinstance(arg, Value) else arg
    if isinstance(number, SYMBOLIC):
        return number
    if not is_integer(number) or number < 1:
        raise SemanticError(
            "the dimensions of an array are positive Python integers, or constants of the launch "
            f"as `_localRows`, not {'a computed value' if isinstance(arg, Value) else repr(arg)}"
        )
    return int(number)


def launch_constant(recorder: Recorder, expr: Expr) -> Extent | None:
    """The value of an expression of constants and of extents of the thread grid and of work-groups; else None."""
    match expr:
        case Const(value=value):
            return int(value)
        case Index(kind="global_size", axis=axis):
            return recorder.domain.extent(axis)
        case Index(kind="local_size", axis=axis):
            return recorder.work_group[AXES.index(axis)]
        case Index(kind="group_count", axis=axis):
            size = recorder.work_group[AXES.index(axis)]
            return -(-recorder.domain.extent(axis) // size) if isinstance(size, int) else None
        case Ref(var=var) if var in recorder.values:
            return launch_constant(recorder, recorder.values[var])
        case Cast(arg=arg) if expr.type.kind == "i" and arg.type.kind in "iu":
            return launch_constant(recorder, arg)
        case Apply(op=op, args=args, type=type_) if OPS[op].exact and type_.integer:
            parts = [launch_constant(recorder, a) for a in args]
            if any(isinstance(k, SYMBOLIC) for k in parts):
                return _formula(op, parts)
            operands = [constant(k, a.type.dtype) for k, a in zip(parts, args, strict=True) if k is not None]
            folded = fold(OPS[op], operands, [a.type for a in args], type_) if len(operands) == len(args) else None
            return int(folded.value) if isinstance(folded, Const) else None
    return None


def _formula(op: str, parts: Sequence[Extent | None]) -> Extent | None:
    """An operation on extents that a target decides; None where there is no such."""
    args = tuple(k for k in parts if k is not None)
    name = "rem" if op == "mod" else op  # C's
    return Formula(name, args, here()) if len(args) == len(parts) and name in OPERATIONS else None


def _var(value: Operand) -> Variable:
    """A variable of the value's type, initialised to it."""
    expr = literal_atom(value)
    return variable(expr.type, Value(expr))


def tensor_type(field: FieldLike, whole: bool) -> Type:
    if not isinstance(field, FieldLike):
        raise SemanticError(
            f"a variable for tensors takes its type from a Field, not from {described(field)}; `_var(x)` copies a value"
        )
    planes = field.type.planes if whole else 1
    if planes > SMALL_TENSOR:
        raise SemanticError(f"a big tensor ({planes} elements) fits no variable; use `_tensorElementVar(f)`")
    return Type(field.type.element, planes)


def _tensorVar(field: FieldLike) -> Variable:
    """A variable of the type of a field's tensors, zero."""
    return variable(tensor_type(field, True), 0)


def _tensorArray(field: FieldLike, *dims: int) -> ArrayVariable:
    """An array of a field's tensors."""
    return array(tensor_type(field, True), dims)


def _tensorElementVar(field: FieldLike) -> Variable:
    """A variable of the type of a field's tensor elements, zero."""
    return variable(tensor_type(field, False), 0)


def _tensorElementArray(field: FieldLike, *dims: int) -> ArrayVariable:
    """An array of a field's tensor elements."""
    return array(tensor_type(field, False), dims)


def vector(type_: Type, parts: tuple[Operand, ...]) -> Value:
    """A vector from scalars and vectors side by side; one scalar is replicated."""
    build = current(f"`_{type_}`").build
    if len(parts) == 1 and _lanes(parts[0]) in (1, type_.lanes):
        return Value(convert(parts[0], type_))
    lanes = [lane for part in parts for lane in build.lanes(convert(part, Type(type_.dtype, _lanes(part))))]
    if len(lanes) != type_.lanes:
        raise SemanticError(f"_{type_} has {type_.lanes} components, but its arguments have {len(lanes)}")
    return Value(build.pack(lanes))


def _lanes(value: Operand) -> int:
    """Components; a number has one, whatever type holds it."""
    operand = atom(value)
    return 1 if isinstance(operand, (bool, int, float)) else operand.type.lanes


def _vector(*parts: Operand) -> Value:
    """A vector whose scalar type is the common type of its arguments."""
    operands = [literal_atom(p) for p in parts]
    lanes = sum(e.type.lanes for e in operands)
    if not 1 <= lanes <= SMALL_TENSOR:
        raise SemanticError(f"a vector has up to {SMALL_TENSOR} components, not {lanes}")
    return vector(Type(type_rules.common([e.type for e in operands]), lanes), parts)


def _convert(value: Operand, dtype: Any) -> Value:
    """Convert to a NumPy dtype, lane by lane, as `_convert(x, "float32")`; integers truncate and saturate, NaN gives 0.

    A float is rounded to "bfloat16", and stays a float.

    Args:
        value: a number or a vector; `_convert_float(x)` takes numbers, and `_convert_float3(x)` vectors of three components.
        dtype: a NumPy dtype, or its name.

    Returns:
        A value of as many components.
    """
    target = Type(dtype_of(dtype), _lanes(value))
    result = convert(value, target)
    return Value(convert(Value(result), target.of(FLOAT)) if target.dtype is BFLOAT else result)


def dtype_of(dtype: Any) -> DType:
    """The type that kernels have for a dtype."""
    name = dtype_name(dtype)
    if name not in BY_NUMPY:
        raise SemanticError(f"kernel values have no dtype {name}; one of {', '.join(BY_NUMPY)}")
    return BY_NUMPY[name]


def _maker(type_: Type, kind: str) -> Callable[..., Any]:
    """One of the functions that exist for every type."""

    def make_variable(init: Operand = 0) -> Variable:
        return variable(type_, init)

    def make_array(*dims: int) -> ArrayVariable:
        return array(type_, dims)

    def make_vector(*parts: Operand) -> Value:
        return vector(type_, parts)

    def make_conversion(value: Operand) -> Value:
        return Value(convert(value, type_))

    def make_bits(value: Operand) -> Value:
        return Value(current().build.bits(literal_atom(value), type_))

    called = article(str(type_)).capitalize()
    makers: dict[str, tuple[Callable[..., Any], str]] = {
        "Var": (make_variable, f"{called} variable, zero by default."),
        "Array": (make_array, f"A zeroed array of {type_}, 1 to 3 dimensions."),
        "vector": (make_vector, f"{called} from scalars and vectors side by side."),
        "convert": (
            make_conversion,
            f"Convert to {type_}: integers truncate and saturate, NaN gives 0; a scalar spreads.",
        ),
        "as": (make_bits, f"Reinterpret the bits as {type_}; the size stays."),
    }
    maker, doc = makers[kind]
    maker.__doc__ = doc
    return maker


def generated() -> dict[str, Callable[..., Any]]:
    """`_floatVar`, `_int3Array`, `_float4`, `_convert_uchar`, `_as_int` and their like, for every type."""
    names: dict[str, Callable[..., Any]] = {}
    for dtype in DTYPES.values():
        for lanes in VECTORS:
            type_ = Type(dtype, lanes)
            if dtype.kind == "b" and lanes > 1:
                continue
            names[f"_{type_}Var"] = _maker(type_, "Var")
            names[f"_{type_}Array"] = _maker(type_, "Array")
            if dtype.kind == "b":
                continue
            if lanes > 1:
                names[f"_{type_}"] = _maker(type_, "vector")
            names[f"_convert_{type_}"] = _maker(type_, "convert")
            names[f"_as_{type_}"] = _maker(type_, "as")
    for name, function in names.items():
        function.__name__ = function.__qualname__ = name
    return names
