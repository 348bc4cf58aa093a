"""Conversions between storage and kernel values (bytes and bools, unorm8 or bfloat16 and floats), recorded as ordinary
operations."""

from __future__ import annotations

from gpuop.ir.build import Builder, constant
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.nodes import Expr
from gpuop.ir.types import BFLOAT, FLOAT, UCHAR, FieldType, Type


def fetch(build: Builder, field_type: FieldType, read: Expr) -> Expr:
    """Record a read, or a cached value of the field, and the conversion to the kernel type."""
    stored = build.bind(read)
    if field_type.dtype == "bool":
        return build.apply("ne", stored, 0)
    if field_type.dtype == "unorm8":
        return build.apply("div", build.cast(stored, stored.type.of(FLOAT)), 255.0)
    return build.cast(stored, stored.type.of(FLOAT)) if stored.type.dtype is BFLOAT else stored


def stored(build: Builder, field_type: FieldType, value: Expr, lanes: int) -> Expr:
    """Convert a value for storage: unorm8 clamps to 0…1 and rounds to nearest, a scalar is a real number."""
    if field_type.dtype in COMPLEX_DTYPES and value.type.lanes == 1 < lanes:
        return build.pack([build.cast(value, Type(field_type.element)), constant(0, field_type.element)] * (lanes // 2))
    value_of_type = build.cast(value, Type(field_type.element, lanes))
    if field_type.dtype == "bool":
        return build.cast(value_of_type, value_of_type.type.of(UCHAR))
    if field_type.dtype == "unorm8":
        clamped = build.apply("fmin", build.apply("fmax", value_of_type, 0.0), 1.0)
        return build.cast(build.apply("rint", build.apply("mul", clamped, 255.0)), value_of_type.type.of(UCHAR))
    return build.cast(value_of_type, value_of_type.type.of(field_type.storage))
