"""Folding of integer zeros: `sum(…)` starts with the Python 0, and windows have weights of 0.

0 + x is x, and 0 · x is 0 whatever x is. Floating zeros mean what IEEE 754 says: 0.0 + -0.0 is 0.0, and 0.0 · NaN is NaN.
"""

from __future__ import annotations

from gpuop.dsl.recorder.recorder import Recorder
from gpuop.ir.build import Number
from gpuop.ir.nodes import Cast, Const, Expr, Ref
from gpuop.ir.ops import OPS
from gpuop.ir.types import Type


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
