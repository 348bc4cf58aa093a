"""Cross products and diagonals: operations on single components."""

from __future__ import annotations

from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.precisions import exactly
from gpuop.lib.linalg.contractions import Contraction, element_at, labelled_axes, write
from gpuop.lib.linalg.product_dtypes import Products, broadcast_place
from gpuop.ops.elementwise.algebra import common_dtype
from gpuop.ops.layout.axes import axes_of, type_of
from gpuop.ops.layout.gather import Place, Reading, apart, gathered, own_place


def crossed(a: Field, b: Field) -> Field:
    """The cross product of 3-vectors along the last axis of both; of each difference the second product is rounded first."""
    labels = [(*(f"b{n}" for n in reversed(range(len(f.type.array_shape) - 1))), "c") for f in (a, b)]
    what = Contraction((labels[0], labels[1]), max(labels, key=len))
    known, dtype = labelled_axes("cross", [a, b], what), common_dtype((a, b))
    out, products = type_of("cross", [known[one] for one in what.output], dtype), Products(dtype)

    def at(place: list[Any]) -> Any:
        def component(field: Field, step: int) -> Any:
            there = broadcast_place([*place[:-1], (place[-1] + step) % 3], field.type.array_shape)
            return products.converted(field, element_at(field, there))

        nothing = k._float2(0, 0) if products.complex else k._convert(0, products.summed)
        second = products.more(nothing, component(a, 2), component(b, 1))
        return products.result(products.more(-second, component(a, 1), component(b, 2)))

    def body() -> None:
        point = own_place(len(out.field_shape))
        for element in range(out.tensor_points):
            write(out, at([*point, *apart(element, out.tensor_shape)]), element)

    with exactly():
        return library_call("cross", (out,), [a, b], body, what)[0]


def diagonal_of(field: Field, offset: int) -> Field:
    """The diagonals of the matrices in the last two axes."""
    axes = axes_of(field.type)
    if len(axes) < 2:
        raise ArgumentError(
            f"diagonal: the last two axes are those of matrices, and a {field.type} field has {len(axes)}"
        )
    *rest, rows, columns = axes
    count = max(0, min(rows.extent + min(offset, 0), columns.extent - max(offset, 0)))
    extent = type(rows)(count, rows.tensor and columns.tensor)

    def value(at: Place, read: Reading) -> Any:
        return read.at(field, [*at[:-1], at[-1] - min(offset, 0), at[-1] + max(offset, 0)])

    return gathered("diagonal", type_of("diagonal", [*rest, extent], field.dtype), [field], value, offset)
