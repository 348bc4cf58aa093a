"""Reads and writes of fields: at the thread's own point, at explicit points with a border rule, by element."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from gpuop.dsl.recorder.field_like import FieldLike
from gpuop.dsl.recorder.fills import Fill, fill_of, numeric, of_element, uniform
from gpuop.dsl.recorder.outputs import OutputRef, OutputSlot
from gpuop.dsl.recorder.record import Recorder, current
from gpuop.dsl.recorder.storage import fetch, stored
from gpuop.dsl.recorder.updated import UpdatedField
from gpuop.dsl.recorder.value import NUMBERS, Operand, Value, atom, integer, literal_atom
from gpuop.errors import SemanticError, article, described, here
from gpuop.ir.borders import WORDS
from gpuop.ir.build import constant
from gpuop.ir.nodes import GRID_AXES, Atomic, Const, Expr, FieldParam, Read, Ref, Var, Write
from gpuop.ir.types import BOOL, INT, SMALL_TENSOR, FieldType, Shape, Type

BORDER_WORDS = ", ".join(WORDS)
OUTPUTS = {f"_out{k}": OutputRef(k) for k in range(10)}


# --- reading --------------------------------------------------------------------------------------------------------


def _readTensor(field: Operand, *point: Operand, border: Any = "clamp") -> Value:
    """The tensor of a field at the thread's own point, or at explicit coordinates `[layer, [row,]] column`.

    Args:
        field: a Field of small tensors (up to 4 elements), or a number, which is returned as it is; or an output, of which a
            thread sees what it has written, and what its work-group has before `_syncThreadsGlobal()`.
        border: what is read outside: a number, or a name such as "clamp" or "wrap"; docs/language.md has all ("Borders").

    Returns:
        A scalar or vector of the field's dtype; unorm8 reads as float 0…1, complex64 as float2.
    """
    recorder = current("`_readTensor`")
    if isinstance(field, NUMBERS) and not point:
        return Value(literal_atom(field))
    if isinstance(field, OutputRef):
        return _read_back(recorder, field, point, False, border)
    if (updated := _updated(recorder, field, point)) is not None:
        return Value(updated.read(None))
    param = _field(recorder, field)
    if param.type.planes > SMALL_TENSOR:
        raise SemanticError(
            f"`{param.hint}` has big tensors ({param.type.planes} elements); "
            "read elements with `_readTensorElement(f, …, element)`, "
            "inside `with _forEachTensorElement(f.tensor_shape):`"
        )
    where = _point(recorder, param, point, "read")
    rule, fill = _border(border, param.type)
    if where is None or uniform(fill):
        kind = Type(param.type.storage, param.type.planes)
        return Value(fetch(recorder.build, param.type, Read(param, kind, where, None, rule, next(iter(fill), None))))
    lanes = [_element(recorder, param, where, constant(n, INT), rule, fill) for n in range(param.type.planes)]
    return Value(recorder.build.pack(lanes))


def _readTensorElement(field: Operand, *place: Operand, border: Any = "clamp") -> Value:
    """One element of a tensor: `_readTensorElement(f, [[layer, [row,]] column,] element)`, by default `_tensorElement`.

    Elements count in row-major order of the tensor. Borders apply to the grid's coordinates, never to the element.
    """
    recorder = current("`_readTensorElement`")
    if isinstance(field, OutputRef):
        return _read_back(recorder, field, place, True, border)
    if (updated := _updated(recorder, field, place[:-1])) is not None:
        return Value(updated.read(_place(recorder, updated.slot.param, place)[1]))
    param = _field(recorder, field)
    point, element = _place(recorder, param, place)
    rule, fill = _border(border, param.type)
    where = _point(recorder, param, point, "read")
    return Value(_element(recorder, param, where, element, rule, fill))


def _read_back(recorder: Recorder, out: OutputRef, place: tuple[Operand, ...], one: bool, border: Any) -> Value:
    """What an output holds now: what this thread has written, and others of its work-group before `_syncThreadsGlobal()`."""
    slot = _output(recorder, out)
    kind, build = slot.param.type, recorder.build
    if border != "clamp":
        raise SemanticError(f"`border=` is for Fields; of {slot.shown} the nearest point is read")
    if not one and kind.planes > SMALL_TENSOR:
        raise SemanticError(f"{slot.shown} has big tensors ({kind.planes} elements); read one by `_readTensorElement`")
    point, element = _place(recorder, slot.param, place) if one else (place, None)
    where = _point(recorder, slot.param, point, "write") if kind.field_shape else ()
    inside = tuple(
        at if where is None else build.apply("min", build.apply("max", at, 0), n - 1)
        for at, n in zip(recorder.own_point() if where is None else where, kind.field_shape, strict=True)
    )
    elements = [element] if one else [constant(k, INT) if kind.planes > 1 else None for k in range(kind.planes)]
    lanes: list[Expr] = []
    for each in elements:
        var = Var(f"{slot.param.hint}_now", Type(kind.storage), temporary=True)
        recorder.scope_of[var] = recorder.scope
        recorder.emit(Atomic("read", slot.param, inside, (), var, each, here()))
        lanes.append(Ref(var))
    return Value(fetch(build, kind, build.pack(lanes)))


def _element(
    recorder: Recorder,
    param: FieldParam,
    where: tuple[Expr, ...] | None,
    element: Expr | None,
    rule: str,
    fill: Fill,
) -> Expr:
    """One scalar of a tensor; outside it is that part of the number."""
    build, kind = recorder.build, Type(param.type.storage)
    if where is None or uniform(fill):
        return fetch(build, param.type, Read(param, kind, where, element, rule, next(iter(fill), None)))
    if isinstance(element, Const):
        fill = (fill[int(element.value) % len(fill)],)
    reads = tuple(fetch(build, param.type, Read(param, kind, where, element, rule, part)) for part in fill)
    return of_element(build, reads, element)


# --- writing --------------------------------------------------------------------------------------------------------


def _writeTensor(out: Operand, value: Operand, *point: Operand) -> None:
    """Write a tensor of an output at the thread's own point or at `[layer, [row,]] column`; outside it is dropped."""
    recorder = current("`_writeTensor`")
    if (updated := _updated(recorder, out, point)) is not None:
        return updated.write(_converted(recorder, updated.slot, value, updated.var.type.lanes), None)
    slot = _output(recorder, out)
    kind, lanes = slot.param.type, slot.param.type.planes
    if lanes > SMALL_TENSOR:
        raise SemanticError(
            f"{slot.shown} has big tensors ({lanes} elements); write them with `_writeTensorElement({slot.shown}, value, element)`"
        )
    converted = _converted(recorder, slot, value, lanes)
    where = _point(recorder, slot.param, point, "write")
    recorder.emit(Write(slot.param, stored(recorder.build, kind, converted, lanes), where, None, here()))


def _writeTensorElement(out: Operand, value: Operand, *place: Operand) -> None:
    """Write one element: `_writeTensorElement(_outK, v, [[layer, [row,]] column,] element)`, by default `_tensorElement`."""
    recorder = current("`_writeTensorElement`")
    if (updated := _updated(recorder, out, place[:-1])) is not None:
        element = _place(recorder, updated.slot.param, place)[1]
        return updated.write(_converted(recorder, updated.slot, value, 1), element)
    slot = _output(recorder, out)
    point, element = _place(recorder, slot.param, place)
    converted = _converted(recorder, slot, value, 1)
    where = _point(recorder, slot.param, point, "write")
    recorder.emit(Write(slot.param, stored(recorder.build, slot.param.type, converted, 1), where, element, here()))


def _converted(recorder: Recorder, slot: OutputSlot, value: Operand, lanes: int) -> Expr:
    """The value as an atom, checked against the output's type; stricter where that type is only the default."""
    given, kind = atom(value), slot.param.type
    if isinstance(given, (bool, int, float)):
        fits = kind.element.holds(given) or (kind.element is BOOL and given in (0, 1))
        given = constant(given, kind.element) if fits else literal_atom(value)
    name = slot.shown
    if given.type.lanes not in (1, lanes):
        advice = "declare the output with the type that you mean, or write as many components as it has"
        raise SemanticError(f"{article(str(given.type))} is written to {name}, which is {kind}: {advice}")
    if not slot.declared and kind.element.kind != "f" and given.type.kind == "f":
        raise SemanticError(
            f"{article(str(given.type))} is written to {name}, which is {kind.dtype} by default: "
            "convert it (`_convert_int(v)`), or declare `outputs=`"
        )
    if not slot.declared and given.type.lanes == 1 and lanes > 1:
        advice = (
            "write `_float2(v, 0)`"
            if kind.dtype == "complex64"
            else f"spread it with `_{Type(kind.element, lanes)}(v)`"
        )
        raise SemanticError(
            f"a scalar is written to {name}, whose default type is {kind}: declare `outputs=`, or {advice}"
        )
    return given


def output_place(
    recorder: Recorder, out: Operand, place: tuple[Operand, ...]
) -> tuple[FieldParam, tuple[Expr, ...], Expr | None]:
    """An element of an output: the thread's own point, or coordinates, and then the tensor's element if it has several."""
    param = _output(recorder, out).param
    grid = param.type.field_shape
    element = None
    if len(place) > len(grid) or (param.type.planes > 1 and len(place) == 1):
        place, element = _place(recorder, param, place)
    if param.type.planes > 1 and element is None:
        raise SemanticError(
            f"{_shown(recorder, param)} has tensors of {param.type.planes} elements: name the element too"
        )
    where = _point(recorder, param, place, "write") if grid else ()
    return param, recorder.own_point() if where is None else where, element


# --- addresses ------------------------------------------------------------------------------------------------------


def _field(recorder: Recorder, field: Operand) -> FieldParam:
    if isinstance(field, OutputRef):
        raise SemanticError(f"{field} is read by `_readTensor({field})`, or in a following operator")
    if not isinstance(field, FieldLike):
        raise SemanticError(f"reads want a Field, not {described(field)}; wrap arrays, as in `gp.ScalarField(array)`")
    return recorder.param(field)


def _updated(recorder: Recorder, field: Operand, point: tuple[Operand, ...]) -> UpdatedField | None:
    """The field, if the operator updates it; a thread does so at its own point."""
    updated = recorder.updated.get(field.node) if isinstance(field, FieldLike) else None
    if updated is not None and _point(recorder, updated.slot.param, point, "write") is not None:
        raise SemanticError(
            f"`{updated.name}` is updated, so a thread reads and writes its own point of it; what other points held before is read "
            "from the same field given as one more argument"
        )
    return updated


def _output(recorder: Recorder, out: Operand) -> OutputSlot:
    if isinstance(out, FieldLike):
        raise SemanticError(
            f"writes want an output, `_out0` … `_out9`, not {described(out)}: Fields are immutable, but for arguments that "
            "`inout=` names"
        )
    if not isinstance(out, OutputRef):
        raise SemanticError(f"writes want an output, `_out0` … `_out9`, not {described(out)}")
    if recorder.updated:
        names = ", ".join(f"`{updated.name}`" for updated in recorder.updated.values())
        raise SemanticError(f"operator `{recorder.name}` updates {names}, and has no {out}: write the argument itself")
    return recorder.output(out.index)


def _shown(recorder: Recorder, param: FieldParam) -> str:
    """The name of a field or an output, as users write it."""
    return next((slot.shown for slot in recorder.outputs if slot.param is param), f"`{param.hint}`")


def _point(recorder: Recorder, param: FieldParam, point: tuple[Operand, ...], verb: str) -> tuple[Expr, ...] | None:
    """Explicit coordinates, or None for the thread's own point."""
    name, grid = _shown(recorder, param), param.type.field_shape
    if not point:
        if grid and grid != recorder.domain.shape:
            raise _mismatch(recorder, name, grid, verb)
        if verb == "read" and grid and recorder.surplus:
            return recorder.own_point()
        return () if verb == "write" and not grid and recorder.domain.shape else None
    if len(point) == 1 and isinstance(point[0], (tuple, list)):
        written = f"({name.strip('`')}, {', '.join(GRID_AXES[3 - len(grid) :])})"
        raise SemanticError(f"coordinates stand one by one, as in `{written}`, not in a {type(point[0]).__name__}")
    if len(point) != len(grid):
        wanted = f"({', '.join(GRID_AXES[3 - len(grid) :])}), or no coordinates" if grid else "no coordinates"
        raise SemanticError(f"{name} is {len(grid)}D: give {wanted}, not {len(point)}")
    where = tuple(integer(i, f"a coordinate of {name}") for i in point)
    if verb == "read" and grid.points == 0 and recorder.domain.threads:
        raise SemanticError(f"{name} has no points to read")
    own = grid == recorder.domain.shape and where == recorder.own_point()
    return None if own and not (verb == "read" and recorder.surplus) else where


def _mismatch(recorder: Recorder, name: str, grid: Shape, verb: str) -> SemanticError:
    """The error where a field has no point of a thread's own."""
    extents, advice = "×".join(map(str, grid)), f"give coordinates to {verb} at"
    if (*recorder.domain.shape, *recorder.tensor) == grid:
        advice = f"a tensor's shape follows the grid's, so write `_globalThreads({', '.join(map(str, grid))})`"
    elif recorder.grid_of:
        advice += f", or choose the threads by `_globalThreads({', '.join(map(str, grid))})`"
    whose = f" ({recorder.grid_of})" if recorder.grid_of else ""
    return SemanticError(
        f"{name} is {extents}, the threads are {recorder.domain}{whose}: own points do not match; {advice}"
    )


def _place(
    recorder: Recorder, param: FieldParam, place: tuple[Operand, ...]
) -> tuple[tuple[Operand, ...], Expr | None]:
    """Split coordinates and the element; None is the only element of a scalar tensor."""
    count = param.type.planes
    given = place[-1] if place else Value(recorder.tensor_element())
    element = integer(given, f"an element of {_shown(recorder, param)}")
    if isinstance(element, Const) and not 0 <= element.value < count:
        last = f"its tensors have elements 0 … {count - 1}" if count > 1 else "its tensors are scalars, element 0"
        raise SemanticError(f"{_shown(recorder, param)} has no tensor element {element.value}: {last}")
    return place[:-1], None if count == 1 and isinstance(element, Const) else element


def _border(border: Any, field_type: FieldType) -> tuple[str, Fill]:
    if numeric(border):
        return "fill", fill_of(field_type, border, "border")
    if border is not None and not isinstance(border, str):
        raise SemanticError(f"a `border=` is a number of Python's or one of {BORDER_WORDS}, not {described(border)}")
    if border not in WORDS:
        known = next((f'"{row.word}"{row.hint}' for row in WORDS.values() if border in row.elsewhere), None)
        near = get_close_matches(str(border), WORDS, 1)
        advice = f"here that is {known}; it" if known else f"did you mean {near[0]!r}? It" if near else "it"
        raise SemanticError(f"there is no border={border!r}: {advice} is one of {BORDER_WORDS}, or a number")
    row = WORDS[border]
    return row.name, (constant(0, field_type.storage),) if row.filled else ()
