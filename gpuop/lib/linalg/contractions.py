"""Tensor contractions over axes of the grid or of tensors: each thread, or element of its tensor, computes one sum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.precisions import exactly
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType
from gpuop.lib.linalg.product_dtypes import Products
from gpuop.ops.elementwise.algebra import common_dtype
from gpuop.ops.layout.axes import Axis, axes_of, type_of
from gpuop.ops.layout.gather import apart, flat, own_place

WRITTEN_OUT = 64  # most products of a sum, and elements of a tensor, that are unrolled
Label = str  # name of an axis; axes of one name are matched


@dataclass(frozen=True)
class Contraction:
    """The labels of axes: equal labels are matched, and labels that the output lacks are summed over.

    Attributes:
        inputs: the labels of each field's axes.
        output: the labels of the result's axes.
    """

    inputs: tuple[tuple[Label, ...], ...]
    output: tuple[Label, ...]

    def summed(self) -> list[Label]:
        return [one for one in dict.fromkeys(itertools.chain(*self.inputs)) if one not in self.output]


def contracted(name: str, fields: Sequence[Field], what: Contraction, dtype: str = "") -> Field:
    """The contraction; axes of extent 1 are broadcast.

    Raises:
        ArgumentError: axes of one label have different extents.
    """
    result_dtype = dtype or common_dtype(fields)
    axes = labelled_axes(name, fields, what)
    out = type_of(name, [axes[one] for one in what.output], result_dtype)
    extents = {one: axis.extent for one, axis in axes.items()}
    with exactly():
        body = _Sums(fields, what, extents, out, Products(result_dtype)).body
        return library_call(name, (out,), fields, body, what)[0]


def labelled_axes(name: str, fields: Sequence[Field], what: Contraction) -> dict[Label, Axis]:
    """The axis of each label: a tensor axis if it is one in all fields that have the label, else an axis of the grid."""
    result: dict[Label, Axis] = {}
    for field, labels in zip(fields, what.inputs, strict=True):
        for label, axis in zip(labels, axes_of(field.type), strict=True):
            before = result.get(label, Axis(1, True))
            if 1 not in (before.extent, axis.extent) and before.extent != axis.extent:
                raise ArgumentError(f"{name}: axes that are multiplied have {before.extent} and {axis.extent} elements")
            extent = axis.extent if before.extent == 1 else before.extent
            result[label] = Axis(extent, axis.tensor and before.tensor, axis.name)
    return result


class _Sums:
    def __init__(
        self, fields: Sequence[Field], what: Contraction, extents: dict[Label, int], out: FieldType, products: Products
    ) -> None:
        self.fields, self.what, self.extents, self.out, self.products = fields, what, extents, out, products

    def body(self) -> None:
        point, shape = own_place(len(self.out.field_shape)), self.out.tensor_shape
        points = shape.points
        if points > WRITTEN_OUT:
            with k._forEachTensorElement(points):
                write(self.out, self.at((*point, *apart(k._tensorElement, shape))), k._tensorElement)
        else:
            for element in range(points):
                write(self.out, self.at((*point, *apart(element, shape))), element)

    def at(self, place: Sequence[Any]) -> Any:
        here = dict(zip(self.what.output, place, strict=True))
        summed = self.what.summed()
        extents = [self.extents[one] for one in summed]
        total = self.products.total()
        if math.prod(extents) <= WRITTEN_OUT:
            for counts in itertools.product(*map(range, extents)):
                self._add(total, here | dict(zip(summed, counts, strict=True)))
        else:
            with k._for(tuple(extents)) as counts:
                self._add(total, here | dict(zip(summed, counts, strict=True)))
        return self.products.result(total)

    def _add(self, total: Any, place: dict[Label, Any]) -> None:
        values = [
            self.products.converted(field, element_at(field, self._place(field, labels, place)))
            for field, labels in zip(self.fields, self.what.inputs, strict=True)
        ]
        total @= self.products.sum_of(total, values)

    def _place(self, field: Field, labels: Sequence[Label], place: dict[Label, Any]) -> list[Any]:
        axes = zip(labels, field.type.array_shape, strict=True)
        return [0 if n == 1 else place[label] for label, n in axes]


def element_at(field: Field, place: Sequence[Any]) -> Any:
    """The element of a field's array at an index: a number; a 2-vector of complex ones."""
    grid = len(field.field_shape)
    point, shape = place[:grid], field.tensor_shape
    if not shape:
        return k._readTensor(field, *point, border="unchecked")
    number = flat(place[grid:], shape)
    if field.dtype not in COMPLEX_DTYPES:
        return k._readTensorElement(field, *point, number, border="unchecked")
    return k._vector(*(k._readTensorElement(field, *point, 2 * number + n, border="unchecked") for n in range(2)))


def write(out: FieldType, value: Any, element: Any) -> None:
    """Write a number at an element of the thread's own tensor."""
    if out.dtype not in COMPLEX_DTYPES:
        k._writeTensorElement(k._out0, value, element)
        return
    for n in range(2):
        k._writeTensorElement(k._out0, value[n], 2 * element + n)
