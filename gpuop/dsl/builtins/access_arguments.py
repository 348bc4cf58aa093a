"""Argument checks of reads and writes: fields, outputs, coordinates, elements, borders."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.builtins.dimensions import brought, by_name, check_own, coordinates, displaced, folded_point
from gpuop.dsl.builtins.shared_memory import shown
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.fill_values import Fill, fill_of, numeric
from gpuop.dsl.recorder.outputs import OutputRef, OutputSlot
from gpuop.dsl.recorder.recorder import Recorder, UpdatedField
from gpuop.dsl.recorder.value import Operand, Value, integer
from gpuop.ir.borders import WORDS
from gpuop.ir.build import constant
from gpuop.ir.nodes import Const, Expr, FieldParam
from gpuop.ir.types import FieldType

BORDER_WORDS = ", ".join(WORDS)


def _field(recorder: Recorder, field: Operand) -> FieldParam:
    if isinstance(field, OutputRef):
        raise SemanticError(f"{field} is read by `_readTensor({field})`, or in a following operator")
    if not isinstance(field, FieldLike):
        called = recorder.called if any(field is value for value in recorder.constants) else None
        raise SemanticError(
            f"reads want a Field, not {described(field)}; wrap arrays, as in `gp.ScalarField(array)`", called
        )
    return recorder.param(field)


def _updated(
    recorder: Recorder, field: Operand, point: tuple[Operand, ...], dims: Mapping[str, Operand]
) -> UpdatedField | OutputSlot | None:
    """The field, if the operator updates it at own points; its output, if it updates it anywhere."""
    updated = recorder.updated.get(field.node) if isinstance(field, FieldLike) else None
    if updated is None:
        return None
    if not updated.in_memory:
        kind = updated.slot.kind
        if dims:
            point, _ = by_name(recorder, f"`{updated.name}`", kind, point, dims)
        own = _point(recorder, updated.slot.param, kind, point, "write") is None
        updated.elsewhere |= not (own and updated.is_small)
    return updated.slot if updated.elsewhere else updated


def _pointed(recorder: Recorder, what: Operand) -> OutputRef | OutputSlot | None:
    """The output that atomic functions are to update, if it is one."""
    updated = recorder.updated.get(what.node) if isinstance(what, FieldLike) else None
    if updated is not None:
        updated.elsewhere = True
        return updated.slot
    return what if isinstance(what, OutputRef) else None


def _moved(
    recorder: Recorder, field: Operand, place: tuple[Operand, ...], dims: Mapping[str, Operand], offset: Any
) -> tuple[Operand, ...]:
    """The coordinates of a read or a write, which an offset may say."""
    if offset is None:
        return place
    updated = recorder.updated.get(field.node) if isinstance(field, FieldLike) else None
    if isinstance(field, (OutputRef, OutputSlot)) or updated is not None:
        slot = updated.slot if updated is not None else _output(recorder, field)
        return displaced(recorder, slot.shown, slot.kind, place, dims, offset)
    return displaced(recorder, _shown(recorder, _field(recorder, field)), _kind(field), place, dims, offset)


def _kind(field: Operand) -> FieldType:
    """The type that users see, with names and all dimensions."""
    assert isinstance(field, FieldLike)
    return field.type


def _output(recorder: Recorder, out: Operand) -> OutputSlot:
    if isinstance(out, OutputSlot):
        return out
    if isinstance(out, FieldLike):
        raise SemanticError(
            f"writes want an output, `_out0` … `_out9`, not {described(out)}: Fields are immutable, but for arguments that "
            "`inout=` names"
        )
    if not isinstance(out, OutputRef):
        raise SemanticError(f"writes want an output first, `_out0` … `_out9`, not {shown(out)}")
    if recorder.updated:
        names = ", ".join(f"`{updated.name}`" for updated in recorder.updated.values())
        raise SemanticError(f"operator `{recorder.name}` updates {names}, and has no {out}: write the argument itself")
    return recorder.output(out.index)


def _shown(recorder: Recorder, param: FieldParam) -> str:
    """The name of a field or an output, as users write it."""
    return next((slot.shown for slot in recorder.outputs if slot.param is param), f"`{param.hint}`")


def _point(
    recorder: Recorder, param: FieldParam, kind: FieldType, point: tuple[Operand, ...], verb: str, border: str = "fill"
) -> tuple[Expr, ...] | None:
    """Explicit coordinates, or None for the own point."""
    name, grid = _shown(recorder, param), kind.field_shape
    if not point:
        check_own(recorder, name, kind, verb)
        if verb == "read" and grid and recorder.runs_tail_threads:
            return recorder.own_point()
        return () if verb == "write" and not grid and recorder.domain.shape else None
    if len(point) == 1 and isinstance(point[0], (tuple, list)):
        written = f"({name.strip('`')}, {coordinates(kind)})"
        raise SemanticError(f"coordinates stand one by one, as in `{written}`, not in a {type(point[0]).__name__}")
    if len(point) != len(grid):
        remedy = f"({coordinates(kind)}), or no coordinates" if grid else "no coordinates"
        several = "; `gp.vmap` maps operators over leading dimensions" if 1 < len(point) < len(grid) else ""
        raise SemanticError(f"{name} is {len(grid)}D: give {remedy}, not {len(point)}{several}")
    if verb == "read" and grid.points == 0 and recorder.domain.threads:
        raise SemanticError(f"{name} has no points to read")
    where = folded_point(recorder, kind, [integer(i, f"a coordinate of {name}") for i in point], border)
    own = param.type.field_shape == recorder.domain.shape and where == recorder.own_point()
    return None if own and not (verb == "read" and recorder.runs_tail_threads) else where


def _place(
    recorder: Recorder,
    param: FieldParam,
    kind: FieldType,
    place: tuple[Operand, ...],
    dims: Mapping[str, Operand] = MappingProxyType({}),
) -> tuple[tuple[Operand, ...], Expr | None]:
    """Split coordinates and the element; None is the only element of a scalar tensor."""
    count = param.type.planes
    if dims:
        point, named = by_name(recorder, _shown(recorder, param), kind, place, dims)
        place = (*point, Value(recorder.tensor_element()) if named is None else named)
    index = place[-1] if place else Value(recorder.tensor_element())
    element = integer(index, f"an element of {_shown(recorder, param)}")
    if isinstance(element, Const) and not 0 <= element.value < count:
        last = f"its tensors have elements 0 … {count - 1}" if count > 1 else "its tensors are scalars, element 0"
        raise SemanticError(f"{_shown(recorder, param)} has no tensor element {element.value}: {last}")
    return place[:-1], None if count == 1 and isinstance(element, Const) else element


def _bordered(
    recorder: Recorder, param: FieldParam, kind: FieldType, point: tuple[Operand, ...], border: Any
) -> tuple[tuple[Operand, ...], str, Fill]:
    """The coordinates of a read, and the border of all of them: where axes have others, their coordinates are brought inside."""
    if not isinstance(border, (tuple, list)):
        return (point, *_border(border, param.type))
    name, grid = _shown(recorder, param), kind.field_shape
    if len(border) != len(grid):
        raise SemanticError(
            f"{name} is {len(grid)}D: `border=` is one for all, or one for each of ({coordinates(kind)})"
        )
    rules = [_border(each, param.type) for each in border]
    fills = {tuple(part.text for part in fill): fill for _, fill in rules if fill}
    if len(fills) > 1:
        raise SemanticError(
            f"{name}: the value outside of a field is one number for all axes, so `border=` takes no two numbers"
        )
    common_rule = "fill" if fills else next((rule for rule, _ in reversed(rules) if rule != "unchecked"), "unchecked")
    if len(point) == len(grid):
        at = [integer(each, f"a coordinate of {name}") for each in point]
        point = tuple(
            Value(brought(recorder, *each, common_rule))
            for each in zip(at, grid, (rule for rule, _ in rules), strict=True)
        )
    return point, common_rule, next(iter(fills.values()), ())


def _border(border: Any, field_type: FieldType) -> tuple[str, Fill]:
    if numeric(border):
        return "fill", fill_of(field_type, border, "border")
    if border is not None and not isinstance(border, str):
        raise SemanticError(f"`border=` is a Python number or one of {BORDER_WORDS}, not {described(border)}")
    if border not in WORDS:
        word = next((f'"{row.word}"{row.hint}' for row in WORDS.values() if border in row.elsewhere), None)
        near = get_close_matches(str(border), WORDS, 1)
        advice = f"here that is {word}; it" if word else f"did you mean {near[0]!r}? It" if near else "it"
        raise SemanticError(f"there is no border={border!r}: {advice} is one of {BORDER_WORDS}, or a number")
    row = WORDS[border]
    return row.name, (constant(0, field_type.storage),) if row.filled else ()
