"""Numbers of kernels: constants in the text that may be arguments instead, without changing a bit of the results.

These are operands of operations that are rounded correctly, so folding them gives what a device computes; values beyond the
edges of fields; and tables. Integers that decide places, loops or sizes are not among them: plans depend on these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import EXACT, Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.text import KernelText
from gpuop.ir.types import SMALL_TENSOR, DType, FieldType
from gpuop.ir.visit import map_blocks, map_values, used_by, walk, with_operands

TEXT_ONLY = frozenset({"div", "mod", "shl", "shr"})  # of integers: a constant divisor or shift has a faster form
MOST_ARGUMENTS = 64  # numbers of a kernel that are arguments
HOLE = ir.FieldParam("numbers", FieldType((), (), "float32"), by_value=True)  # stands for all numbers


@dataclass(frozen=True, slots=True)
class KernelNumbers:
    """A kernel with holes in the places of its numbers.

    Attributes:
        body: the statements; the number n is `Argument(HOLE, n)`.
        text: the identity of the kernel without its numbers.
        numbers: the numbers, in order.
        roles: for each number equal texts for numbers that are likely to change together: operands of one operation, as weights.
    """

    kernel: Kernel
    body: ir.Block
    text: str
    numbers: tuple[ir.Const, ...]
    roles: tuple[str, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> KernelNumbers | None:
        """The numbers of a recorded kernel; None if there are none that may be arguments."""
        if kernel.precision != EXACT or kernel.named or kernel.target is not None:
            return None
        holes = _Holes(_deciding_places(kernel.body))
        body = holes.block(kernel.body)
        if not holes.numbers:
            return None
        text = KernelText(hints=False).kernel(replace(kernel, body=body))
        return cls(kernel, body, "\n".join((text, *holes.roles)), tuple(holes.numbers), tuple(holes.roles))

    def with_their_like(self, arguments: set[int]) -> list[int]:
        """The positions of these numbers and of those with equal roles, if they are few; else of these alone."""
        roles = {self.roles[n] for n in arguments}
        like = [n for n, role in enumerate(self.roles) if role in roles]
        return like if len(like) <= MOST_ARGUMENTS else sorted(arguments)

    def with_arguments(self, positions: Sequence[int]) -> tuple[str, Callable[[], Kernel]]:
        """The identity of the kernel whose numbers at these positions are arguments, and what makes it."""
        fixed = [number.text for n, number in enumerate(self.numbers) if n not in set(positions)]
        identity = sha256("\n".join((self.text, repr(tuple(positions)), *fixed)).encode()).hexdigest()
        return identity, lambda: self._made(positions)

    def _made(self, positions: Sequence[int]) -> Kernel:
        params = [ir.FieldParam("numbers", kind, by_value=True) for kind, _ in pieces(self.numbers, positions)]
        filled: list[ir.Expr] = list(self.numbers)
        for param, (_, part) in zip(params, pieces(self.numbers, positions), strict=True):
            for plane, n in enumerate(part):
                filled[n] = ir.Argument(param, plane, self.numbers[n].type)
        body = _Filled(filled).block(self.body)
        return replace(self.kernel, inputs=(*self.kernel.inputs, *params), body=body)


def pieces(numbers: Sequence[ir.Const], positions: Sequence[int]) -> list[tuple[FieldType, list[int]]]:
    """The arguments for the numbers at these positions: neighbours of one type are together, up to four."""
    result: list[tuple[FieldType, list[int]]] = []
    for dtype, group in groupby(positions, lambda n: numbers[n].type.dtype):
        run = list(group)
        for start in range(0, len(run), SMALL_TENSOR):
            part = run[start : start + SMALL_TENSOR]
            result.append((_type_of(dtype, len(part)), part))
    return result


def _type_of(dtype: DType, count: int) -> FieldType:
    return FieldType((), (count,) if count > 1 else (), dtype.name)


def _deciding_places(body: ir.Block) -> set[ir.Var]:
    """The variables that places in fields and arrays, and bounds of loops, are computed from."""
    sources: dict[ir.Var, list[ir.Stmt]] = {}
    pending: list[ir.Var] = []
    for stmt in walk(body):
        if isinstance(stmt, (ir.Let, ir.Assign)):
            sources.setdefault(stmt.var, []).append(stmt)
        pending += [e.var for e in _places(stmt) if isinstance(e, ir.Ref)]
    result: set[ir.Var] = set()
    while pending:
        var = pending.pop()
        if var not in result:
            result.add(var)
            for stmt in sources.get(var, ()):
                pending += used_by(stmt)
    return result


def _places(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """The operands of a statement that are places, sizes and numbers of threads."""
    match stmt:
        case (
            ir.Let(value=ir.Read(point=point, element=element)) | ir.Assign(value=ir.Read(point=point, element=element))
        ):
            yield from point or ()
            yield from () if element is None else (element,)
        case ir.Let(value=ir.Load(index=index)) | ir.Assign(value=ir.Load(index=index)):
            yield from index
        case ir.Write(point=point, element=element):
            yield from point or ()
            yield from () if element is None else (element,)
        case ir.Store(index=index):
            yield from index
        case ir.Atomic(index=index, element=element):
            yield from (*index, *(() if element is None else (element,)))
        case ir.Wide(index=index, element=element, left=left):
            yield from (*index, *(e for e in (element, left) if e is not None))
        case ir.For(start=start, stop=stop, step=step):
            yield from (start, stop, step)
        case ir.Collective(at=ir.Ref() as at):
            yield at


class _Holes:
    """Replaces the numbers of a body.

    Attributes:
        numbers, roles: those that have been replaced.
    """

    def __init__(self, places: set[ir.Var]) -> None:
        self.places = places
        self.numbers: list[ir.Const] = []
        self.roles: list[str] = []

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(map(self.stmt, block))

    def stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                return replace(stmt, value=self.value(value, whole=var not in self.places))
            case ir.Write(value=value) | ir.Store(value=value):
                return replace(stmt, value=self.atom(value, "value", whole=isinstance(stmt, ir.Write)))
        return map_blocks(stmt, self.block)

    def value(self, value: ir.Expr, whole: bool) -> ir.Expr:
        match value:
            case ir.Apply(op=op, args=args) if OPS[op].exact:
                whole = whole and op not in TEXT_ONLY
                return replace(value, args=tuple(self.atom(arg, f"{op} {n}", whole) for n, arg in enumerate(args)))
            case ir.Pack(args=args):
                return replace(value, args=tuple(self.atom(arg, f"pack {n}", whole) for n, arg in enumerate(args)))
            case ir.Cast(arg=ir.Const() as arg, type=kind) if arg.type == kind.scalar:
                return replace(value, arg=self.atom(arg, "spread", whole))
            case ir.Read(fill=ir.Const() as fill):
                return replace(value, fill=self.atom(fill, "outside", whole=True))
        return self.atom(value, "value", whole)

    def atom(self, expr: ir.Expr, role: str, whole: bool) -> ir.Expr:
        if not isinstance(expr, ir.Const) or not (expr.type.kind == "f" or (whole and expr.type.integer)):
            return expr
        self.numbers.append(expr)
        self.roles.append(f"{role} {expr.type}")
        return ir.Argument(HOLE, len(self.numbers) - 1, expr.type)


class _Filled:
    """Fills the holes of a body."""

    def __init__(self, numbers: Sequence[ir.Expr]) -> None:
        self.numbers = numbers

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(map_blocks(map_values(stmt, self.expr), self.block) for stmt in block)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Argument) and expr.field is HOLE:
            return self.numbers[expr.plane]
        return with_operands(expr, self.expr)
