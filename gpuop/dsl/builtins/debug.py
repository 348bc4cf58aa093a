"""Debugging builtins: `_print` and `_assert`."""

from __future__ import annotations

import re

from gpuop.base.errors import SemanticError, article, here
from gpuop.dsl.recorder.control_flow import condition
from gpuop.dsl.recorder.recorder import current
from gpuop.dsl.recorder.value import Operand, literal_atom
from gpuop.ir.build import Builder
from gpuop.ir.nodes import Assert, Expr, Print
from gpuop.ir.types import INT, UINT, ULONG, Type

CONVERSION = re.compile(r"%(?:%|([-+ #0]*)(\d*)(\.\d+)?(?:hh|h|ll|l|z)?(.?))", re.DOTALL)
UNPRINTABLE = re.compile("[\0\ud800-\udfff]")  # NUL ends a C string; halves of surrogate pairs have no UTF-8
KINDS = {**dict.fromkeys("di", "i"), **dict.fromkeys("ouxX", "iu"), **dict.fromkeys("fFeEgGaA", "f")}


def _print(format: str, *values: Operand) -> None:
    """Write from the device, as C's printf; every thread that comes here writes.

    Args:
        format: a text with a conversion for each value: %d %i of signed integers and bools, %u %o %x %X of integers, %f %e %g %a
            of floating values. Sizes need not be given. A vector's components take the same conversion, with commas between.
            A line's end is written where `\\n` is.
        values: kernel values, or numbers.
    """
    recorder = current("`_print`")
    if not isinstance(format, str):
        raise SemanticError('`_print` takes a format first, as `_print("x = %g\\n", x)`')
    if unprintable := UNPRINTABLE.search(format):
        raise SemanticError(f"`_print` cannot write the character {unprintable[0]!r} of {format!r}; leave it out")
    operands = [literal_atom(v) for v in values]
    parts: list[str] = []
    args: list[Expr] = []
    end = 0
    for match in CONVERSION.finditer(format):
        parts.append(format[end : match.start()])
        end = match.end()
        if match[0] == "%%":
            parts.append("%%")
            continue
        if match[4] not in KINDS:
            have = " ".join("%" + c for c in KINDS)
            raise SemanticError(f"`_print` has no conversion {match[0]!r}, but {have}; a percent sign is written `%%`")
        if not operands:
            raise SemanticError(f"`_print` has no value for the conversion {match[0]!r} in {format!r}")
        text, lanes = _conversion(recorder.build, match, operands.pop(0))
        parts.append(text)
        args += lanes
    if operands:
        raise SemanticError(
            f"`_print` has {len(operands)} more value{'s' * (len(operands) > 1)} than conversions in {format!r}"
        )
    recorder.emit(Print("".join([*parts, format[end:]]), tuple(args), here()))


def _conversion(build: Builder, match: re.Match[str], value: Expr) -> tuple[str, list[Expr]]:
    """A conversion, once for each component, with the size that its type has; and the components as C passes them."""
    letter, kind = match[4], value.type.kind
    if (
        kind.replace("b", "i").replace("u", "i" if letter in "di" and value.type.dtype.bits < 32 else "u")
        not in KINDS[letter]
    ):
        format = "%d" if kind in "ib" else "%u" if kind == "u" else "%g"
        raise SemanticError(f"{match[0]!r} does not print {article(str(value.type))}; write {format!r}")
    wide = value.type.dtype.bits == 64 and kind in "iu"
    target = _passed(value.type, unsigned=letter in "ouxX")
    text = f"%{match[1]}{match[2]}{match[3] or ''}{'l' * wide}{letter}"
    lanes = [build.cast(lane, target.scalar, False) for lane in build.lanes(value)]
    return ", ".join([text] * len(lanes)), lanes


def _passed(kind: Type, unsigned: bool) -> Type:
    """C passes narrow integers as int; conversions of unsigned integers show the bits of signed ones."""
    if kind.kind == "f":
        return kind
    if kind.dtype.bits == 64:
        return kind.of(ULONG if unsigned else kind.dtype)
    return kind.of(UINT if unsigned or (kind.kind == "u" and kind.dtype.bits == 32) else INT)


def _assert(condition_: Operand, message: str = "") -> None:
    """State what holds here for every thread. Checked execution reports the first thread for which it does not, with its point
    and this line; otherwise it costs nothing.

    Raises:
        SemanticError: where the results are needed, in checked execution: with `GPUOP_DEBUG` set, or under
            `gp.use_device(name, checked=True)`.
    """
    if not isinstance(message, str):
        raise SemanticError('`_assert` takes a condition and a text, as `_assert(n > 0, "n is positive")`')
    current("`_assert`").emit(Assert(condition(condition_, "_assert"), message, here()))
