"""Scatters: shares of places that data decide on are added there, in integers, so that their order does not matter.

Shares are scaled by a power of two so that the greatest possible sum fits a 64-bit integer; the same bits follow on all devices.
The unit is the sum of the magnitudes of a thread's shares, the greatest of all threads, times the threads' number times 2⁻⁶²: what
is rounded off is absolute. Where a share is infinite or NaN, all sums are NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.borders import Coordinate, inside
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import DOUBLE, FLOAT, HALF, INT, LONG, DType, FieldType, Type
from gpuop.ir.visit import map_blocks

BITS = 61  # of the greatest sum
MOST_SCALED = {
    FLOAT: 126,
    DOUBLE: 1000,
}  # exponents of scales are within this distance of 0, so that these are normal numbers


def own_dtype(param: ir.FieldParam) -> DType:
    """The dtype that shares of a field are added in."""
    return FLOAT if param.type.storage is HALF else param.type.storage


def sums_of(param: ir.FieldParam) -> ir.FieldParam:
    """The field of integer sums for a field."""
    planes = param.type.planes
    return ir.FieldParam(
        f"{param.hint}_sums", FieldType(param.type.field_shape, (planes,) if planes > 1 else (), "int64")
    )


def without_scatters(body: ir.Block, but: ir.FieldParam | None = None) -> ir.Block:
    """The statements without those that add up shares, but for those of one target."""
    left = (stmt for stmt in body if not isinstance(stmt, ir.Write) or stmt.field is but)
    return tuple(map_blocks(stmt, lambda inner: without_scatters(inner, but)) for stmt in left)


@dataclass(frozen=True, eq=False)
class Scatter:
    """The shares of places of one field that data decide on.

    Attributes:
        kernel: its writes to its output stand for additions to the sums.
        param: the field that was read.
    """

    kernel: Kernel
    param: ir.FieldParam

    @property
    def target(self) -> ir.FieldParam:
        """The field that stands for the sums."""
        return self.kernel.outputs[0].param

    def greatest(self) -> tuple[ir.Block, ir.Expr]:
        """The statements of the sum of the magnitudes of a thread's shares, in all iterations of its loops."""
        kind = Type(own_dtype(self.param))
        most = ir.Var("most", kind, mutable=True)

        def summed(write: ir.Write, out: list[ir.Stmt]) -> None:
            b = collector(out, write.loc)
            total: ir.Expr = ir.Ref(most)
            for lane in b.lanes(b.cast(write.value, Type(kind.dtype, write.value.type.lanes))):
                total = b.apply("add", total, b.apply("fabs", lane))
            out.append(ir.Assign(most, total, write.loc))

        body = (ir.Let(most, constant(0, kind.dtype)), *self.rewritten(self.kernel.body, summed))
        return body, ir.Ref(most)

    def added(self, sums: ir.FieldParam, scale: ir.FieldParam) -> ir.Block:
        """The statements that add the scaled shares of a thread to the integer sums."""
        head: list[ir.Stmt] = []
        factor = collector(head).bind(ir.Read(scale, Type(own_dtype(self.param))))

        def update(write: ir.Write, out: list[ir.Stmt]) -> None:
            b = collector(out, write.loc)
            tests = self.tests(write, b)
            inner: list[ir.Stmt] = []
            self.add(write, sums, factor, inner)
            test = b.all_of(tests)
            out += inner if test is None else [ir.If(test, tuple(inner), (), write.loc)]

        return (*head, *self.rewritten(self.kernel.body, update))

    def add(self, write: ir.Write, sums: ir.FieldParam, factor: ir.Expr, out: list[ir.Stmt]) -> None:
        b = collector(out, write.loc)
        assert write.point is not None
        lanes = b.lanes(b.cast(write.value, Type(factor.type.dtype, write.value.type.lanes)))
        for n, lane in enumerate(lanes):
            whole = b.cast(b.apply("rint", b.apply("mul", lane, factor)), Type(LONG))
            element = write.element if len(lanes) == 1 else constant(n, INT)
            out.append(ir.Atomic("add", sums, write.point, (whole,), None, element, write.loc))

    def tests(self, write: ir.Write, b: Builder) -> list[ir.Expr | None]:
        """The conditions that a place lies in the field."""
        assert write.point is not None
        extents = self.param.type.field_shape
        pairs = zip(write.point, extents, strict=True)
        return [inside(b, Coordinate(at, constant(n, INT), n, *_range(at))) for at, n in pairs]

    def rewritten(self, body: ir.Block, rule: Callable[[ir.Write, list[ir.Stmt]], None]) -> ir.Block:
        out: list[ir.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ir.Write):
                if stmt.field is self.target:
                    rule(stmt, out)
            else:
                out.append(map_blocks(stmt, lambda inner: self.rewritten(inner, rule)))
        return tuple(out)


def _range(at: ir.Expr) -> tuple[int | None, int | None]:
    number = int(at.value) if isinstance(at, ir.Const) else None
    return number, number


def scale_of(greatest: ir.FieldParam, threads: int) -> tuple[ir.Block, ir.Expr]:
    """The statements of the power of two that shares are multiplied by; those of each of the threads add up to this at most."""
    out: list[ir.Stmt] = []
    b = collector(out)
    most = b.bind(ir.Read(greatest, Type(greatest.type.storage)))
    exponent = b.apply("sub", BITS - threads.bit_length(), b.apply("ilogb", most))
    bound = MOST_SCALED[most.type.dtype]
    exponent = b.apply("min", b.apply("max", exponent, -bound), bound)
    one = constant(1, most.type.dtype)
    scale = b.apply("choose", b.apply("eq", most, 0.0), one, b.apply("ldexp", one, exponent))
    difference = b.apply("sub", most, most)  # NaN of infinities too
    finite = b.apply("eq", difference, difference)
    scale = b.apply("choose", finite, scale, difference)
    return tuple(out), scale


def unscaled(
    sums: ir.FieldParam, scale: ir.FieldParam, param: ir.FieldParam, element: ir.Expr | None
) -> tuple[ir.Block, ir.Expr]:
    """The statements of the sums as numbers."""
    out: list[ir.Stmt] = []
    b = collector(out)
    planes = 1 if element is not None else sums.type.planes
    total = b.bind(ir.Read(sums, Type(LONG, planes), None, element))
    factor = b.bind(ir.Read(scale, Type(own_dtype(param))))
    number = b.cast(total, Type(factor.type.dtype, planes))
    value = b.cast(b.apply("div", number, factor), Type(param.type.storage, planes))
    return tuple(out), value
