"""Warnings for C semantics that users hardly mean: a KernelWarning at the user line, once per line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuop.base.errors import KernelWarning, user_frame, warn
from gpuop.ir.analysis.intervals import LIMITS, Range, interval
from gpuop.ir.build import Number
from gpuop.ir.nodes import Apply, Assign, Cast, Const, Expr, Lane, Let, Pack, Read, Ref, Stmt, Var
from gpuop.ir.types import Type
from gpuop.ir.visit import operands as operands_of
from gpuop.ir.visit import values, walk, walk_expr

if TYPE_CHECKING:
    from gpuop.dsl.recorder.recorder import Recorder

MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
SIGNS = {
    "less": "less than", "less_equal": "at most", "greater": "greater than", "greater_equal": "at least", "equal": "equal to",
    "not_equal": "other than",
}  # fmt: skip
OPERATOR = 3  # frames from here to the line with the operator
AUGMENTED = f"{__package__}.variable"  # the module between, for `v += e`
WRAPPING = {"subtract": "-", "add": "+", "multiply": "*"}
NARROW = 16  # bits of integers whose sums and products are likely to wrap around
# Operations whose results are wrong where an operand has wrapped around; others, such as `&`, take low bits
PASSING = ("abs", "add", "choose", "div", "max", "min", "mul", "neg", "sub")
LESSER, GREATER = ("and", "div", "min", "mod", "shr"), ("max", "or")  # than an operand, if that is unsigned
MOST_STEPS = 32  # operations that a range is followed back through


class Wrapping(NamedTuple):
    """An operation of the user's whose result may wrap around."""

    sign: str
    type: Type
    frame: tuple[str, int, dict[str, Any]]


def note(recorder: Recorder, name: str, operands: Sequence[Any], atoms: Sequence[Any], result: Expr) -> None:
    """Examine an operator in the user's line."""
    frame: FrameType | None = sys._getframe(OPERATOR)
    if frame and frame.f_globals.get("__name__") == AUGMENTED:
        frame = frame.f_back
    if len(atoms) != 2 or not frame or user_frame(frame) is not frame:
        return
    if name in WRAPPING:
        _note_wrapping(recorder, name, result, frame)
    elif name in SIGNS or name == "divide":
        if name in MIRRORED:
            recorder.compared.add(frozenset(_source(recorder.values, atom) for atom in atoms))
        _note_other(recorder, name, operands, atoms, result)


def _note_other(recorder: Recorder, name: str, operands: Sequence[Any], atoms: Sequence[Any], result: Expr) -> None:
    """Examine a comparison or a quotient."""
    a, b = atoms
    if name == "divide":
        all_recorded = not any(isinstance(operand, (int, float, np.generic)) for operand in operands)
        if all_recorded and isinstance(result, Ref) and result.type.integer:
            recorder.quotients.add(result.var)
    elif (number := _number(b)) is not None:
        _check_comparison(name, a, number)
    elif (number := _number(a)) is not None:
        _check_comparison(MIRRORED.get(name, name), b, number)


def _number(atom: Any) -> Number | None:
    value = atom.value if isinstance(atom, Const) else atom
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _check_comparison(name: str, value: Any, number: Number) -> None:
    """Warn of a comparison that the type of one side decides."""
    if not isinstance(value, Expr) or not value.type.integer or value.type.kind == "b" or number != number:
        return
    info = np.iinfo(value.type.dtype.numpy)
    result = _decided(name, int(info.min), int(info.max), number)
    if result is not None:
        kind, when = Type(value.type.dtype), "always" if result else "never"
        warn(
            f"this comparison is {when} true, whatever the value: {kind} is from {info.min} to {info.max}, so it is {when} "
            f"{SIGNS[name]} {number}; what is computed in {kind} wraps around at these ends, as in C: convert before you compute, "
            "as `_convert_int(x)` and `_convert_float(x)` do, or leave the comparison out",
            KernelWarning,
        )


def _decided(name: str, low: int, high: int, number: Number) -> bool | None:
    """Result of comparing any integer of a range with a number; None if it depends on the integer."""
    match name:
        case "less":
            return True if high < number else False if low >= number else None
        case "less_equal":
            return True if high <= number else False if low > number else None
        case "greater":
            return True if low > number else False if high <= number else None
        case "greater_equal":
            return True if low >= number else False if high < number else None
    outside = not low <= number <= high or number != int(number)
    return (name == "not_equal") if outside else None


def as_float(quotients: set[Var], value: Any) -> None:
    """Warn where a quotient of two integers becomes a float by itself."""
    if quotients and isinstance(value, Ref) and value.var in quotients:
        quotients.discard(value.var)
        warn(
            "`/` of two integers is an integer in kernels, as in C, and becomes a float only here: 1 / 2 is 0; write "
            "`_convert_float(a) / b` for the quotient of floats, or `a // b` where an integer is meant",
            KernelWarning,
        )


# --- integers that wrap around and become floats ------------------------------------------------------------------------


def _note_wrapping(recorder: Recorder, name: str, result: Expr, frame: FrameType) -> None:
    """Keep a sum, difference or product that may wrap around. The kinds that hardly any body means: differences of unsigned
    integers, and narrow sums and products.
    """
    expr = recorder.values.get(result.var) if isinstance(result, Ref) else None
    if not isinstance(expr, Apply) or expr.type.kind not in "iu" or len(expr.args) != 2:
        return
    if (
        expr.type.kind != "u"
        if name == "subtract"
        else expr.type.dtype.bits > NARROW or Const(1, expr.type) in expr.args
    ):
        return
    low, high = LIMITS[expr.type.dtype]
    least, most = interval(expr.op, [_range(recorder.values, arg, MOST_STEPS) for arg in expr.args], expr.type.dtype)
    if isinstance(result, Ref) and (least < low or most > high):
        place = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
        recorder.wraps[result.var] = Wrapping(WRAPPING[name], Type(expr.type.dtype), place)


def _range(values: Mapping[Var, Expr], expr: Expr, steps: int) -> Range:
    """Least and greatest value of an integer, of each lane."""
    limits = LIMITS[expr.type.dtype]
    if isinstance(expr, Const):
        return int(expr.value), int(expr.value)
    if not steps or not (expr.type.integer or expr.type.kind == "b"):
        return limits
    if isinstance(expr, Ref):
        return _range(values, values[expr.var], steps - 1) if expr.var in values else limits
    if isinstance(expr, Cast) and (expr.arg.type.integer or expr.arg.type.kind == "b"):
        least, most = _range(values, expr.arg, steps - 1)
    elif isinstance(expr, Apply) and all(arg.type.integer or arg.type.kind == "b" for arg in expr.args):
        least, most = interval(expr.op, [_range(values, arg, steps - 1) for arg in expr.args], expr.type.dtype)
    else:
        return limits
    return (least, most) if limits[0] <= least and most <= limits[1] else limits


def _source(values: Mapping[Var, Expr], atom: Any) -> Any:
    """Read, variable or operation that a value is a copy of, for comparisons of operands; all numbers are alike."""
    while isinstance(atom, (Ref, Cast)):
        inner = atom.arg if isinstance(atom, Cast) else values.get(atom.var)
        if not isinstance(inner, (Ref, Cast, Read, Const)):
            return atom
        atom = inner
    return atom if isinstance(atom, Expr) and not isinstance(atom, Const) else "number"


def _is_meant(recorder: Recorder, var: Var) -> bool:
    """True for a difference whose operands the body compares, or of which one is made of the other: it is not below 0."""
    expr, values = recorder.values[var], recorder.values
    assert isinstance(expr, Apply)
    a, b = (_source(values, arg) for arg in expr.args)
    if expr.op != "sub":
        return False
    parts = []
    for each, ops in ((a, GREATER), (b, LESSER)):
        definition = values.get(each.var) if isinstance(each, Ref) else None
        parts.append(
            [_source(values, arg) for arg in definition.args]
            if isinstance(definition, Apply) and definition.op in ops
            else []
        )
    return (
        frozenset((a, b)) in recorder.compared
        or b in parts[0]
        or a in parts[1]
        or (parts[0] != [] and parts[0] == parts[1])
    )


def warn_of_wrapped_floats(recorder: Recorder) -> None:
    """Warn, at their own lines, of integers that may have wrapped around when they become floats."""
    wrapped = {var: wrapping for var, wrapping in recorder.wraps.items() if not _is_meant(recorder, var)}
    if not wrapped:
        return
    for stmt in walk(tuple(recorder.scopes[0].statements)):
        for expr in (each for value in values(stmt) for each in walk_expr(value)):
            if isinstance(expr, Cast) and expr.type.kind == "f" and (wrapping := _wrapping(wrapped, expr.arg)):
                _warn_of(wrapping, stmt)
        if isinstance(stmt, (Let, Assign)):
            origin = _wrapping(wrapped, stmt.value)
            if isinstance(stmt, Assign):
                wrapped.pop(stmt.var, None)
            if origin is not None:
                wrapped[stmt.var] = origin


def _wrapping(wrapped: Mapping[Var, Wrapping], expr: Expr) -> Wrapping | None:
    """Operation that makes an integer wrong, if any."""
    if isinstance(expr, Ref):
        return wrapped.get(expr.var)
    passes = isinstance(expr, (Cast, Lane, Pack)) or (isinstance(expr, Apply) and expr.op in PASSING)
    if not passes or not expr.type.integer:
        return None
    return next(filter(None, (_wrapping(wrapped, each) for each in operands_of(expr))), None)


def _warn_of(wrapping: Wrapping, stmt: Stmt) -> None:
    """Warn of an operation at its line, once; the statement makes a float of it."""
    sign, kind, (file, line, scope) = wrapping
    low, high = LIMITS[kind.dtype]
    root = 1 << kind.dtype.bits // 2
    example = {"-": f"1 - 2 is {high}", "+": f"{high} + 1 is {low}", "*": f"{root} * {root} is 0"}[sign]
    loc = getattr(stmt, "loc", None)
    where = "here" if loc is None or (loc.file, loc.line) == (file, line) else f"in line {loc.line}"
    message = (
        f"`{sign}` of {kind}s is {kind} in kernels and wraps around, as in C: {example}; what it gives becomes a float {where}; "
        f"convert before you compute, as in `_convert_float(a) {sign} b`"
    )
    warnings.warn_explicit(message, KernelWarning, file, line, registry=scope.setdefault("__warningregistry__", {}))
