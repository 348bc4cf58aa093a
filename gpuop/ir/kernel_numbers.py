"""Numbers of kernels: constants in the text that may be arguments instead, without changing a bit of the results.

These are operands of operations that are rounded correctly, so folding them gives what a device computes; values beyond the
edges of fields; and tables. Integers that decide places, loops or sizes are not among them: plans depend on these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from typing import Any, TypeAlias

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector
from gpuop.ir.kernel import EXACT, Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.text import KernelText
from gpuop.ir.types import INT, SMALL_TENSOR, DType, FieldType, Type
from gpuop.ir.visit import map_blocks, map_values, used_by, walk, with_operands

TEXT_ONLY = frozenset({"div", "mod", "shl", "shr"})  # of integers: a constant divisor or shift has a faster form
MOST_ARGUMENTS = 64  # numbers of a kernel that are arguments; more of them are in memory
HOLE = ir.FieldParam("numbers", FieldType((), (), "float32"), by_value=True)  # stands for all numbers
OUTSIDE = "outside"  # the role of values beyond an edge
Number: TypeAlias = ir.Const | ir.Array  # an array is a table


@dataclass(frozen=True, slots=True)
class NumberInput:
    """Numbers that are one input of a kernel: up to four arguments, or numbers in memory."""

    type: FieldType
    positions: tuple[int, ...]
    by_value: bool

    def param(self, tables: bool) -> ir.FieldParam:
        return ir.FieldParam("numbers", self.type, self.by_value, tables and not self.by_value)


@dataclass(frozen=True, slots=True)
class KernelNumbers:
    """A kernel with holes in the places of its numbers.

    Attributes:
        body: the statements; the number n is `Argument(HOLE, n)`, if it is not a table.
        text: the identity of the kernel without its numbers.
        numbers: the numbers, in order.
        roles: for each number equal texts for numbers that are likely to change together: operands of one operation, as weights.
    """

    kernel: Kernel
    body: ir.Block
    text: str
    numbers: tuple[Number, ...]
    roles: tuple[str, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> KernelNumbers | None:
        """The numbers of a recorded kernel; None if there are none that may be inputs."""
        if kernel.precision != EXACT or kernel.named or kernel.target is not None:
            return None
        holes = _Holes(_deciding_places(kernel.body))
        body = holes.block(kernel.body)
        if not holes.numbers:
            return None
        text = _Form(holes.numbers).kernel(replace(kernel, body=body))
        return cls(kernel, body, "\n".join((text, *holes.roles)), tuple(holes.numbers), tuple(holes.roles))

    @property
    def values(self) -> tuple[Any, ...]:
        """A key of each number's value."""
        return tuple(n.text if isinstance(n, ir.Const) else n.values for n in self.numbers)

    def with_their_like(self, positions: set[int]) -> list[int]:
        """These positions and those of numbers with equal roles, in order."""
        roles = {self.roles[n] for n in positions}
        return [n for n, role in enumerate(self.roles) if role in roles]

    def inputs(self, positions: Sequence[int]) -> list[NumberInput]:
        """The inputs for the numbers at these positions."""
        tables = [(n, table) for n in positions if isinstance(table := self.numbers[n], ir.Array)]
        result = [NumberInput(_type_of(table.type.dtype, table.elements), (n,), False) for n, table in tables]
        scalars = [n for n in positions if isinstance(self.numbers[n], ir.Const)]
        many = len(scalars) > MOST_ARGUMENTS
        for (dtype, in_memory), group in groupby(
            sorted(scalars, key=lambda n: self._in_memory(n, many)),
            lambda n: (self.numbers[n].type.dtype, self._in_memory(n, many)),
        ):
            run = list(group)
            step = len(run) if in_memory else SMALL_TENSOR
            parts = [tuple(run[start : start + step]) for start in range(0, len(run), step)]
            result += [NumberInput(_type_of(dtype, len(part)), part, not in_memory) for part in parts]
        return result

    def _in_memory(self, n: int, many: bool) -> bool:
        return many and not self.roles[n].startswith(OUTSIDE)

    def with_inputs(self, positions: Sequence[int], tables: bool) -> tuple[str, Callable[[], Kernel]]:
        """The identity of the kernel whose numbers at these positions are inputs, and what makes it.

        Args:
            tables: numbers in memory are those of one array of the host, which a launch may be passed.
        """
        fixed = [repr(value) for n, value in enumerate(self.values) if n not in set(positions)]
        identity = sha256("\n".join((self.text, repr((tuple(positions), tables)), *fixed)).encode()).hexdigest()
        return identity, lambda: self._made(positions, tables)

    def _made(self, positions: Sequence[int], tables: bool) -> Kernel:
        filled: list[Any] = list(self.numbers)
        params: list[ir.FieldParam] = []
        first: list[ir.Stmt] = []
        arrays: dict[ir.Array, ir.FieldParam] = {}
        for each in self.inputs(positions):
            params.append(each.param(tables))
            for plane, n in enumerate(each.positions):
                number = self.numbers[n]
                if isinstance(number, ir.Array):
                    arrays[number] = params[-1]
                elif each.by_value:
                    filled[n] = ir.Argument(params[-1], plane, number.type)
                else:
                    variable = ir.Var("number", number.type)
                    first.append(ir.Let(variable, _element(params[-1], ir.Const(plane, Type(INT)))))
                    filled[n] = ir.Ref(variable)
        body = (*first, *_Filled(filled, arrays).block(self.body))
        return replace(self.kernel, inputs=(*self.kernel.inputs, *params), body=body)


def _type_of(dtype: DType, count: int) -> FieldType:
    return FieldType((), (count,) if count > 1 else (), dtype.name)


def _element(field: ir.FieldParam, element: ir.Expr) -> ir.Read:
    return ir.Read(field, Type(field.type.storage), None, element)


class _Form(KernelText):
    """The text of a kernel without the numbers of tables."""

    def __init__(self, numbers: Sequence[Number]) -> None:
        super().__init__(hints=False)
        self.tables = {number for number in numbers if isinstance(number, ir.Array)}

    def stmt(self, stmt: ir.Stmt, depth: int) -> None:
        if isinstance(stmt, ir.Declare) and stmt.array in self.tables:
            self.put(depth, f"table {self.name(stmt.array)}: {stmt.array.type}{list(stmt.array.shape)}")
        else:
            super().stmt(stmt, depth)


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
        self.numbers: list[Number] = []
        self.roles: list[str] = []

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(map(self.stmt, block))

    def stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                return replace(stmt, value=self.value(value, whole=var not in self.places))
            case ir.Write(value=value) | ir.Store(value=value):
                return replace(stmt, value=self.atom(value, "value", whole=isinstance(stmt, ir.Write)))
            case ir.Declare(array=ir.Array(space="constant") as table) if _is_table(table):
                self.numbers.append(table)
                self.roles.append(f"table {table.type}{list(table.shape)}")
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
                return replace(value, fill=self.atom(fill, OUTSIDE, whole=True))
        return self.atom(value, "value", whole)

    def atom(self, expr: ir.Expr, role: str, whole: bool) -> ir.Expr:
        if not isinstance(expr, ir.Const) or not (expr.type.kind == "f" or (whole and expr.type.integer)):
            return expr
        self.numbers.append(expr)
        self.roles.append(f"{role} {expr.type}")
        return ir.Argument(HOLE, len(self.numbers) - 1, expr.type)


def _is_table(array: ir.Array) -> bool:
    """Return whether the values of a constant array may come from memory; integers may be places, as offsets of a window."""
    return array.type.kind == "f" and array.type.lanes == 1 and array.elements > SMALL_TENSOR


class _Filled:
    """Fills the holes of a body, and reads tables from memory."""

    def __init__(self, numbers: Sequence[Any], tables: Mapping[ir.Array, ir.FieldParam]) -> None:
        self.numbers, self.tables = numbers, tables

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(inner for stmt in block for inner in self.stmt(stmt))

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        match stmt:
            case ir.Declare(array=array) if array in self.tables:
                return ()
            case ir.Let(value=ir.Load(memory=ir.Array() as array, index=index)) if array in self.tables:
                out: list[ir.Stmt] = []
                b = collector(out, stmt.loc)
                at = index[0]
                for place, extent in zip(index[1:], array.extents[1:], strict=True):
                    at = b.apply("add", b.apply("mul", at, extent), place)
                return (*out, replace(stmt, value=_element(self.tables[array], at)))
        return (map_blocks(map_values(stmt, self.expr), self.block),)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Argument) and expr.field is HOLE:
            result: ir.Expr = self.numbers[expr.plane]
            return result
        return with_operands(expr, self.expr)
