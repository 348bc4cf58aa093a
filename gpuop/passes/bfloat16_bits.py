"""bfloat16 as its bits: fields of 16-bit integers, which reads shift into floats and writes round floats to.

It comes early, so that other passes, schedules and devices know no bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.bfloat16 import BFLOAT16, NAN, bits_of
from gpuop.ir.build import Builder
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.types import BFLOAT, FLOAT, UINT, USHORT, DType, Type
from gpuop.ir.visit import Copier, walk
from gpuop.passes.rewrite import rewrite_bindings

Number = Callable[[float], float]  # returns a constant's value in another type
INFINITY, ROUND = 0x7F800000, 0x7FFF


def bfloat16_as_bits(kernel: Kernel) -> Kernel:
    """The kernel with the bits of its bfloat16 fields."""
    if not has_bfloat16(kernel):
        return kernel
    computed = replace(kernel, body=rewrite_bindings(kernel.body, _computed))
    return _with_fields_of(computed, USHORT, lambda value: int(bits_of(value)))


def bfloat16_as_float(kernel: Kernel) -> Kernel:
    """The kernel on fields of float32 in the place of bfloat16, which rounds nothing."""
    return _with_fields_of(kernel, FLOAT, lambda value: value)


def has_bfloat16(kernel: Kernel) -> bool:
    """Return whether a kernel has such fields, or rounds to them."""
    rounds = (stmt for stmt in walk(kernel.body) if isinstance(stmt, ir.Let) and stmt.var.type.dtype is BFLOAT)
    return bool(_fields(kernel)) or any(True for _ in rounds)


def _fields(kernel: Kernel) -> list[ir.FieldParam]:
    params = (*kernel.inputs, *kernel.written, *kernel.intermediates)
    return [param for param in params if param.type.dtype == BFLOAT16]


def _with_fields_of(kernel: Kernel, dtype: DType, number: Number) -> Kernel:
    fields = {
        p: ir.FieldParam(p.hint, p.type.replace(dtype=dtype.name), p.by_value and dtype is USHORT)
        for p in _fields(kernel)
    }

    def of(param: ir.FieldParam) -> ir.FieldParam:
        return fields.get(param, param)

    return replace(
        kernel,
        inputs=tuple(map(of, kernel.inputs)),
        outputs=tuple(_output(output, fields, number) for output in kernel.outputs),
        intermediates=tuple(map(of, kernel.intermediates)),
        layouts=tuple((of(param), layout) for param, layout in kernel.layouts),
        dynamic=frozenset(map(of, kernel.dynamic)),
        named=tuple((param and of(param), names) for param, names in kernel.named),
        body=_Retyped(kernel.body, fields, dtype, number).copy(),
    )


def _output(output: Output, fields: dict[ir.FieldParam, ir.FieldParam], number: Number) -> Output:
    fill = output.fill
    return replace(
        output,
        param=fields.get(output.param, output.param),
        fill=number(fill) if output.param in fields and fill is not None else fill,
        over=output.over and fields.get(output.over, output.over),
        initial=output.initial and fields.get(output.initial, output.initial),
    )


def _computed(b: Builder, expr: ir.Expr) -> ir.Expr | None:
    """Conversions by integer arithmetic; other operations in float, rounded once."""
    match expr:
        case ir.Cast(arg=arg, type=type_):
            if (arg.type.dtype is BFLOAT) == (type_.dtype is BFLOAT):
                return None
            if arg.type.dtype is BFLOAT:
                return b.cast(_widened(b, arg), type_, expr.saturate)
            return b.cast(_rounded(b, b.cast(arg, arg.type.of(FLOAT))), type_)
        case ir.Apply(op=op, args=args, type=type_) if op != "choose":
            if all(each.type.dtype is not BFLOAT for each in args) and type_.dtype is not BFLOAT:
                return None
            result = b.apply(op, *(_widened(b, each) if each.type.dtype is BFLOAT else each for each in args))
            return _rounded(b, result) if type_.dtype is BFLOAT else result
    return None


def _widened(b: Builder, x: ir.Expr) -> ir.Expr:
    bits = b.cast(b.bits(x, x.type.of(USHORT)), x.type.of(UINT))
    return b.bits(b.apply("shl", bits, 16), x.type.of(FLOAT))


def _rounded(b: Builder, x: ir.Expr) -> ir.Expr:
    """The upper half of a float's bits, rounded to nearest even; carries round up to the next power, and to infinity."""
    bits = b.bits(x, x.type.of(UINT))
    odd = b.apply("and", b.apply("shr", bits, 16), 1)
    near = b.apply("shr", b.apply("add", b.apply("add", bits, odd), ROUND), 16)
    is_nan = b.apply("gt", b.apply("and", bits, 0x7FFFFFFF), INFINITY)
    chosen = b.apply("choose", is_nan, NAN, near)
    return b.bits(b.cast(chosen, x.type.of(USHORT), saturate=False), x.type.of(BFLOAT))


class _Retyped(Copier):
    """Copies a body with another type in the place of bfloat16; conversions between equal types vanish."""

    def __init__(
        self, body: ir.Block, fields: dict[ir.FieldParam, ir.FieldParam], dtype: DType, number: Number
    ) -> None:
        super().__init__(body, fields=fields)
        self.dtype, self.number = dtype, number
        self.vars = {old: replace(new, type=self.type(new.type)) for old, new in self.vars.items()}
        self.arrays = {old: self.array(new) for old, new in self.arrays.items()}

    def expr(self, expr: ir.Expr) -> ir.Expr:
        match copied := super().expr(expr):
            case ir.Bits(arg=arg, type=type_) | ir.Cast(arg=arg, type=type_) if arg.type == self.type(type_):
                return arg
            case ir.Const(value=value, type=type_) if type_.dtype is BFLOAT:
                return ir.Const(self.number(value), self.type(type_))
            case ir.Bits() | ir.Read() | ir.Load() | ir.Lane() | ir.Pack() | ir.Apply() | ir.Cast() | ir.Argument():
                return replace(copied, type=self.type(copied.type))
        return copied

    def type(self, type_: Type) -> Type:
        return type_.of(self.dtype) if type_.dtype is BFLOAT else type_

    def array(self, array: ir.Array) -> ir.Array:
        values = tuple(map(self.number, array.values))
        return replace(array, type=self.type(array.type), values=values) if array.type.dtype is BFLOAT else array
