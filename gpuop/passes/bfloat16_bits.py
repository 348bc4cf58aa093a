"""bfloat16 as its bits: fields of 16-bit integers, which reads shift into floats and writes round floats to.

It comes early, so that other passes, schedules and devices know no bfloat16.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.bfloat16 import BFLOAT16, NAN, bits_of
from gpuop.ir.build import Builder
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.types import BFLOAT, FLOAT, UINT, USHORT, Type
from gpuop.ir.visit import Copier
from gpuop.passes.rewrite import rewrite_bindings

INFINITY, ROUND = 0x7F800000, 0x7FFF


def bfloat16_as_bits(kernel: Kernel) -> Kernel:
    """The kernel with the bits of its bfloat16 fields."""
    params = (*kernel.inputs, *kernel.written, *kernel.intermediates)
    fields = {p: replace(p, type=p.type.replace(dtype=USHORT.name)) for p in params if p.type.dtype == BFLOAT16}
    if not fields:
        return kernel

    def of(param: ir.FieldParam) -> ir.FieldParam:
        return fields.get(param, param)

    return replace(
        kernel,
        inputs=tuple(map(of, kernel.inputs)),
        outputs=tuple(_output(output, fields) for output in kernel.outputs),
        intermediates=tuple(map(of, kernel.intermediates)),
        layouts=tuple((of(param), layout) for param, layout in kernel.layouts),
        dynamic=frozenset(map(of, kernel.dynamic)),
        named=tuple((param and of(param), names) for param, names in kernel.named),
        body=_Bits(rewrite_bindings(kernel.body, _computed), fields=fields).copy(),
    )


def _output(output: Output, fields: dict[ir.FieldParam, ir.FieldParam]) -> Output:
    is_bits, fill = output.param in fields, output.fill
    return replace(
        output,
        param=fields.get(output.param, output.param),
        fill=int(bits_of(fill)) if is_bits and fill is not None else fill,
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


class _Bits(Copier):
    """Copies a body with integers in the place of bfloat16."""

    def __init__(self, body: ir.Block, fields: dict[ir.FieldParam, ir.FieldParam]) -> None:
        super().__init__(body, fields=fields)
        self.vars = {old: replace(new, type=_bits(new.type)) for old, new in self.vars.items()}
        self.arrays = {old: _array(new) for old, new in self.arrays.items()}

    def expr(self, expr: ir.Expr) -> ir.Expr:
        match copied := super().expr(expr):
            case ir.Bits(arg=arg, type=type_) if arg.type == _bits(type_):
                return arg
            case ir.Const(value=value, type=type_) if type_.dtype is BFLOAT:
                return ir.Const(int(bits_of(value)), _bits(type_))
            case ir.Bits() | ir.Read() | ir.Load() | ir.Lane() | ir.Pack() | ir.Apply() | ir.Cast() | ir.Argument():
                return replace(copied, type=_bits(copied.type))
        return copied


def _bits(type_: Type) -> Type:
    return type_.of(USHORT) if type_.dtype is BFLOAT else type_


def _array(array: ir.Array) -> ir.Array:
    values = tuple(int(bits_of(value)) for value in array.values)
    return replace(array, type=_bits(array.type), values=values) if array.type.dtype is BFLOAT else array
