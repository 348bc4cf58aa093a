"""Reads and writes of fields: at the own point of a thread, at explicit points with a border rule, by element."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from gpuop.base.errors import SemanticError, article, here
from gpuop.dsl.builtins.access_arguments import (
    _bordered,
    _field,
    _kind,
    _moved,
    _output,
    _place,
    _point,
    _shown,
    _updated,
)
from gpuop.dsl.builtins.dimensions import by_name
from gpuop.dsl.recorder.fill_values import Fill, element_of_fill, uniform
from gpuop.dsl.recorder.kernel_warnings import as_float
from gpuop.dsl.recorder.outputs import OutputRef, OutputSlot
from gpuop.dsl.recorder.placeholders import COMPLEX
from gpuop.dsl.recorder.recorder import Recorder, UpdatedField, current
from gpuop.dsl.recorder.storage import fetch, stored
from gpuop.dsl.recorder.value import NUMBERS, Operand, Value, atom, literal_atom
from gpuop.ir.borders import Coordinate, inside
from gpuop.ir.borders import place as nearest
from gpuop.ir.build import constant
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.nodes import Atomic, Const, Expr, FieldParam, Read, Ref, Var, Write
from gpuop.ir.types import BOOL, INT, SMALL_TENSOR, Type

OUTPUTS = {f"_out{k}": OutputRef(k) for k in range(10)}


# --- reading --------------------------------------------------------------------------------------------------------


def _readTensor(field: Operand, *point: Operand, border: Any = "clamp", offset: Any = None, **dims: Operand) -> Value:
    """The tensor of a field at the thread's own point, or at explicit coordinates `[layer, [row,]] column`.

    A field of more dimensions takes one for each. By name, as in `_readTensor(f, y=_dim("y") - 1)`, dimensions that are not
    named are the thread's own. `_readTensor(f, offset=(-1, 0))` reads so far from the thread's own point, of fields of any rank.

    Args:
        field: a Field of small tensors (up to 4 elements), or a number, which is returned as it is; or an output, or an argument
            of `inout=`, of which a thread sees what it has written, and what its work-group has before `_syncThreadsGlobal()`.
        border: the rule outside: a number, or a name such as "clamp" (reference/language.md: "Borders"), or one for each axis.
        offset: an integer for each dimension, of Python or the kernel, or a vector of the kernel; alone for a 1D field. The
            threads have as many dimensions as the field, of any extents.

    Returns:
        A scalar or vector of the field's dtype; unorm8 reads as float 0…1, complex64 as float2, complex128 as double2.
    """
    recorder = current("`_readTensor`")
    if isinstance(field, (*NUMBERS, *COMPLEX)) and not point:
        return Value(literal_atom(field))
    point = _moved(recorder, field, point, dims, offset)
    updated = _updated(recorder, field, point, dims)
    if isinstance(updated, UpdatedField):
        return Value(updated.read(None))
    if isinstance(field, OutputRef) or updated is not None:
        return _read_back(recorder, updated or field, point, False, border, dims)
    param = _field(recorder, field)
    _refuse_big(param)
    if dims:
        point, _ = by_name(recorder, _shown(recorder, param), _kind(field), point, dims)
    point, rule, fill = _bordered(recorder, param, _kind(field), point, border)
    where = _point(recorder, param, _kind(field), point, "read", rule)
    if where is None or uniform(fill):
        kind = Type(param.type.storage, param.type.planes)
        return Value(fetch(recorder.build, param.type, Read(param, kind, where, None, rule, next(iter(fill), None))))
    lanes = [_element(recorder, param, where, constant(n, INT), rule, fill) for n in range(param.type.planes)]
    return Value(recorder.build.pack(lanes))


def _readTensorElement(
    field: Operand, *place: Operand, border: Any = "clamp", offset: Any = None, **dims: Operand
) -> Value:
    """One element of a tensor: `_readTensorElement(f, [[layer, [row,]] column,] element)`, by default `_tensorElement`.

    Elements count in row-major order of the tensor. Borders apply to the grid's coordinates, never to the element. Names of
    the tensor's dimensions say which element, those of the grid's where, as of `_readTensor`; with `offset=` only the element
    stands beside it.
    """
    recorder = current("`_readTensorElement`")
    place = _of_element(recorder, field, place, dims, offset)
    updated = _updated(recorder, field, place[:-1], dims)
    if isinstance(updated, UpdatedField):
        return Value(updated.read(_place(recorder, updated.slot.param, updated.slot.kind, place, dims)[1]))
    if isinstance(field, OutputRef) or updated is not None:
        return _read_back(recorder, updated or field, place, True, border, dims)
    param = _field(recorder, field)
    point, element = _place(recorder, param, _kind(field), place, dims)
    point, rule, fill = _bordered(recorder, param, _kind(field), point, border)
    where = _point(recorder, param, _kind(field), point, "read", rule)
    return Value(_element(recorder, param, where, element, rule, fill))


def _refuse_big(param: FieldParam) -> None:
    if param.type.planes > SMALL_TENSOR:
        over = "f" if param.type.dtype in COMPLEX_DTYPES else "f.tensor_shape"  # complex numbers have two elements
        raise SemanticError(
            f"`{param.hint}` has big tensors ({param.type.planes} elements); "
            "read elements with `_readTensorElement(f, …, element)`, inside "
            f"`with _forEachTensorElement({over}):`"
        )


def _of_element(
    recorder: Recorder, field: Operand, place: tuple[Operand, ...], dims: Mapping[str, Operand], offset: Any
) -> tuple[Operand, ...]:
    """Coordinates, which an offset may say, and the element."""
    if offset is None:
        return place
    return (*_moved(recorder, field, place[:-1], dims, offset), *(place[-1:] or (Value(recorder.tensor_element()),)))


def _read_back(
    recorder: Recorder, out: Operand, place: tuple[Operand, ...], one: bool, border: Any, dims: Mapping[str, Operand]
) -> Value:
    """Current value of an output: the writes of this thread, and those of its work-group before `_syncThreadsGlobal()`."""
    slot = _output(recorder, out)
    kind, build = slot.param.type, recorder.build
    if not one and kind.planes > SMALL_TENSOR:
        raise SemanticError(f"{slot.shown} has big tensors ({kind.planes} elements); read one by `_readTensorElement`")
    point, element = _place(recorder, slot.param, slot.kind, place, dims) if one else (place, None)
    if dims and not one:
        point, _ = by_name(recorder, slot.shown, slot.kind, place, dims)
    point, rule, fill = _bordered(recorder, slot.param, slot.kind, point, border)
    where = _point(recorder, slot.param, slot.kind, point, "write", rule) if kind.field_shape else ()
    along = [
        Coordinate(at, constant(n, INT), n, None if where is not None else 0, None if where is not None else n - 1)
        for at, n in zip(recorder.own_point() if where is None else where, kind.field_shape, strict=True)
    ]
    there = tuple(nearest(build, c, rule) for c in along)
    tests = [test for c in along if rule == "fill" and (test := inside(build, c)) is not None]
    elements = [element] if one else [constant(k, INT) if kind.planes > 1 else None for k in range(kind.planes)]
    lanes: list[Expr] = []
    for each in elements:
        var = Var(f"{slot.param.hint}_now", Type(kind.storage), temporary=True)
        recorder.scope_of[var] = recorder.scope
        recorder.emit(Atomic("read", slot.param, there, (), var, each, here()))
        lanes.append(Ref(var))
    if tests:
        is_inside = functools.reduce(lambda a, b: build.apply("and", a, b), tests)
        outside = [
            element_of_fill(build, fill if one else fill[k % len(fill) :][:1], element) for k in range(len(lanes))
        ]
        lanes = [build.apply("choose", is_inside, lane, other) for lane, other in zip(lanes, outside, strict=True)]
    return Value(fetch(build, kind, build.pack(lanes)))


def _element(
    recorder: Recorder,
    param: FieldParam,
    where: tuple[Expr, ...] | None,
    element: Expr | None,
    rule: str,
    fill: Fill,
) -> Expr:
    """One scalar of a tensor; outside of the field it is that part of the fill value."""
    build, kind = recorder.build, Type(param.type.storage)
    if where is None or uniform(fill):
        return fetch(build, param.type, Read(param, kind, where, element, rule, next(iter(fill), None)))
    if isinstance(element, Const):
        fill = (fill[int(element.value) % len(fill)],)
    reads = tuple(fetch(build, param.type, Read(param, kind, where, element, rule, part)) for part in fill)
    return element_of_fill(build, reads, element)


# --- writing --------------------------------------------------------------------------------------------------------


def _writeTensor(out: Operand, value: Operand, *point: Operand, offset: Any = None, **dims: Operand) -> None:
    """Write a tensor of an output at the thread's own point, at `[layer, [row,]] column` or by name; outside it is dropped.

    `_writeTensor(_out0, v, offset=(0, 1))` writes so far from the thread's own point, as `_readTensor` reads.

    Args:
        out: `_out0` … `_out9`, or an argument that `inout=` names.
        offset: as of `_readTensor`.
    """
    recorder = current("`_writeTensor`")
    point = _moved(recorder, out, point, dims, offset)
    updated = _updated(recorder, out, point, dims)
    if isinstance(updated, UpdatedField):
        return updated.write(_converted(recorder, updated.slot, value, updated.var.type.lanes), None)
    slot = _output(recorder, updated or out)
    kind, lanes = slot.param.type, slot.param.type.planes
    if lanes > SMALL_TENSOR:
        raise SemanticError(
            f"{slot.shown} has big tensors ({lanes} elements); write them with `_writeTensorElement({slot.shown}, value, element)`"
        )
    converted = _converted(recorder, slot, value, lanes)
    if dims:
        point, _ = by_name(recorder, slot.shown, slot.kind, point, dims)
    where = _point(recorder, slot.param, slot.kind, point, "write")
    recorder.emit(Write(slot.param, stored(recorder.build, kind, converted, lanes), where, None, here()))


def _writeTensorElement(out: Operand, value: Operand, *place: Operand, offset: Any = None, **dims: Operand) -> None:
    """Write one element: `_writeTensorElement(_outK, v, [[layer, [row,]] column,] element)`, by default `_tensorElement`.

    Of an output, or an argument that `inout=` names. By name, and with `offset=`, as `_readTensorElement`.
    """
    recorder = current("`_writeTensorElement`")
    place = _of_element(recorder, out, place, dims, offset)
    updated = _updated(recorder, out, place[:-1], dims)
    if isinstance(updated, UpdatedField):
        element = _place(recorder, updated.slot.param, updated.slot.kind, place, dims)[1]
        return updated.write(_converted(recorder, updated.slot, value, 1), element)
    slot = _output(recorder, updated or out)
    point, element = _place(recorder, slot.param, slot.kind, place, dims)
    converted = _converted(recorder, slot, value, 1)
    where = _point(recorder, slot.param, slot.kind, point, "write")
    recorder.emit(Write(slot.param, stored(recorder.build, slot.param.type, converted, 1), where, element, here()))


def _converted(recorder: Recorder, slot: OutputSlot, value: Operand, lanes: int) -> Expr:
    """The value as an atom, checked against the output's type; stricter where that type is only the default."""
    operand, kind = atom(value), slot.param.type
    if isinstance(operand, (bool, int, float)):
        fits = kind.element.holds(operand) or (kind.element is BOOL and operand in (0, 1))
        operand = constant(operand, kind.element) if fits else literal_atom(value)
    name = slot.shown
    if kind.element.kind == "f":
        as_float(recorder.quotients, operand)
    if operand.type.lanes not in (1, lanes):
        advice = "declare the output with the type that you mean, or write as many components as it has"
        raise SemanticError(f"{article(str(operand.type))} is written to {name}, which is {kind}: {advice}")
    if not slot.declared and kind.element.kind != "f" and operand.type.kind == "f":
        raise SemanticError(
            f"{article(str(operand.type))} is written to {name}, which is {kind.dtype} by default: "
            "convert it (`_convert_int(v)`), or declare `outputs=`"
        )
    if not slot.declared and operand.type.lanes == 1 and lanes > 1:
        advice = (
            f"write `_{Type(kind.element, 2)}(v, 0)`"
            if kind.dtype in COMPLEX_DTYPES
            else f"spread it with `_{Type(kind.element, lanes)}(v)`"
        )
        raise SemanticError(
            f"a scalar is written to {name}, whose default type is {kind}: declare `outputs=`, or {advice}"
        )
    return operand


def output_place(
    recorder: Recorder, out: Operand, place: tuple[Operand, ...], offset: Any = None
) -> tuple[FieldParam, tuple[Expr, ...], Expr | None]:
    """An element of an output: the thread's own point, or coordinates, and then the tensor's element if it has several."""
    slot = _output(recorder, out)
    param, grid = slot.param, slot.kind.field_shape
    element = None
    if offset is not None:
        element_of = place or ((Value(recorder.tensor_element()),) if param.type.planes > 1 else ())
        place = (*_moved(recorder, slot, (), {}, offset), *element_of)
    if len(place) > len(grid) or (param.type.planes > 1 and len(place) == 1):
        place, element = _place(recorder, param, slot.kind, place)
    if param.type.planes > 1 and element is None:
        raise SemanticError(
            f"{_shown(recorder, param)} has tensors of {param.type.planes} elements: name the element too"
        )
    where = _point(recorder, param, slot.kind, place, "write") if grid else ()
    return param, recorder.own_point() if where is None else where, element
