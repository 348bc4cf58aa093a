"""Statements as C text, a line each, with the user line of every line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.errors import Loc
from gpuop.codegen.c.expressions import GUARDED, Expressions
from gpuop.codegen.c.identifiers import comment
from gpuop.ir import nodes as ir
from gpuop.ir.build import Number, constant
from gpuop.ir.types import DOUBLE, HALF, DType
from gpuop.ir.verify import element_type

ESCAPES = {'"': '\\"', "\\": "\\\\", "?": "\\?"}  # two question marks may begin a trigraph
CONTROLS = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


class Statements:
    def __init__(self, expressions: Expressions) -> None:
        self.e, self.dialect = expressions, expressions.dialect
        self.rising: set[ir.Var] = set()  # counters
        self.rolled: set[ir.Var] = set()  # counters of loops that stay as they are
        self.large: set[ir.FieldParam] = set()  # outputs that are written past the caches where accesses are wide
        self.lines: list[str] = []
        self.locs: dict[int, Loc] = {}

    def put(self, depth: int, text: str, loc: Loc | None = None) -> None:
        self.lines.append("    " * depth + text if text else "")
        if loc is not None:
            self.locs[len(self.lines)] = loc

    def block(self, block: ir.Block, depth: int) -> None:
        titles: list[str] = []  # of operators whose statements were all inlined into the next
        for stmt in block:
            if isinstance(stmt, ir.Comment):
                titles.append(stmt.text)
                continue
            if titles:
                self.put(depth, comment(", ".join(dict.fromkeys(titles))))
                titles = []
            self.stmt(stmt, depth)

    def stmt(self, stmt: ir.Stmt, depth: int) -> None:
        t = self.e.text
        match stmt:
            case ir.Let(var=var, value=value):
                text = t(value)
                # Clang tries to compute constants: of choices among choices every way through them, for ever.
                const = "" if var.mutable or " ? " in text else "const "
                self.put(depth, f"{const}{self.e.type(var.type)} {self.e.names.of(var)} = {text};", stmt.loc)
            case ir.Assign(var=var, value=value):
                self.put(depth, f"{self.e.names.of(var)} = {t(value)};", stmt.loc)
            case ir.Break() | ir.Continue():
                self.put(depth, f"{type(stmt).__name__.lower()};", stmt.loc)
            case ir.If():
                self.branches(stmt, depth, "")
            case ir.For() | ir.While():
                self.loop(stmt, depth)
            case _:
                self.effect(stmt, depth)

    def effect(self, stmt: ir.Action, depth: int) -> None:  # noqa: C901 - a case for each kind of node
        match stmt:
            case ir.Declare(array=array):
                if array.space != "constant":
                    self.put(depth, self.declaration(array), stmt.loc)
            case ir.Store():
                self.store(stmt, depth)
            case ir.Atomic():
                self.put(depth, self.atomic(stmt), stmt.loc)
            case ir.Wide():
                for part in range(stmt.parts):
                    self.put(depth, f"{self.wide(stmt, part)};", stmt.loc)
            case ir.Print(format=text, args=args):
                self.put(depth, f"printf({', '.join([self.quoted(text), *map(self.e.text, args)])});", stmt.loc)
            case ir.Collective():
                self.put(depth, self.shuffle(stmt), stmt.loc)
            case ir.Barrier():
                self.put(depth, f"{self.dialect.barrier[stmt.fence]};", stmt.loc)
            case ir.Comment():
                pass  # `block` prints titles
            case ir.Write() | ir.Assert():
                raise AssertionError(f"a {type(stmt).__name__} has no C text")
            case _:
                ir.assert_never(stmt)

    def declaration(self, array: ir.Array) -> str:
        """An array: zeroed where it is private, filled where it is constant."""
        dims = "".join(f"[{n}]" for n in array.shape)
        qualifier = {"private": "", "local": f"{self.dialect.local} ", "constant": f"{self.dialect.constant} "}[
            array.space
        ]
        text = f"{qualifier}{'volatile ' * array.volatile}{self.e.type(array.type)} {self.e.names.of(array)}{dims}"
        if array.space == "local":
            return f"{text};"
        zero = "{" * len(array.shape) + "0" + "}" * len(array.shape)
        return f"{text} = {self.initial(array.extents, array.values, array.type.dtype) if array.values else zero};"

    def initial(self, shape: tuple[int, ...], values: Sequence[Number], dtype: DType) -> str:
        """Values in the braces of an array's dimensions."""
        if not shape:
            return self.element(values[0], dtype)
        size = len(values) // shape[0]
        parts = [self.initial(shape[1:], values[k : k + size], dtype) for k in range(0, len(values), size)]
        return f"{{{', '.join(parts)}}}"

    def element(self, value: Number, dtype: DType) -> str:
        """A literal; NaN and infinity are computed, because their C names cannot initialise constant memory."""
        if math.isfinite(value):
            return self.e.literal(constant(value, dtype))
        over_zero = 0.0 if math.isnan(value) else math.copysign(1, value)
        return f"{self.e.literal(constant(over_zero, dtype))} / {self.e.literal(constant(0.0, dtype))}"

    def atomic(self, stmt: ir.Atomic) -> str:
        """The operation, and the variable that takes its result."""
        memory, kind = stmt.memory, element_type(stmt.memory)
        if stmt.op == "read":
            value = self.e.text(ir.Load(memory, stmt.index, kind))
            return (
                f"const {self.e.type(kind)} {self.e.names.of(stmt.var)} = {value};" if stmt.var else f"(void){value};"
            )
        space = memory.space if isinstance(memory, ir.Array) else "global"
        pointer = f"&{self.e.names.of(memory)}{''.join(f'[{self.e.text(i)}]' for i in stmt.index)}"
        if isinstance(memory, ir.Array) and memory.volatile:
            pointer = self.dialect.volatile.format(p=pointer, type=self.e.type(kind))
        forms = (f"{stmt.op} {kind} {space}", f"{stmt.op} {kind}", stmt.op)
        form = next(self.dialect.atomics[name] for name in forms if name in self.dialect.atomics)
        call = form.format(*map(self.e.text, stmt.args), p=pointer)
        return f"{call};" if stmt.var is None else f"const {self.e.type(kind)} {self.e.names.of(stmt.var)} = {call};"

    def shuffle(self, stmt: ir.Collective) -> str:
        assert stmt.at is not None
        call = self.dialect.shuffles[stmt.kind].format(self.e.text(stmt.value), self.e.text(stmt.at), n=stmt.over)
        return f"const {self.e.type(stmt.var.type)} {self.e.names.of(stmt.var)} = {call};"

    def wide(self, stmt: ir.Wide, part: int = 0) -> str:
        kind = element_type(stmt.field).dtype
        form = f"{'load' if stmt.loads else 'store'}{' half' * (kind is HALF)}"
        if not stmt.loads and stmt.left is None and "stream" in self.dialect.wide and stmt.field in self.large:
            form = "stream"
        if kind is DOUBLE:
            kind = stmt.array.type.dtype  # on devices without double their bits
        elif element_type(stmt.array) != element_type(stmt.field):
            form, kind = f"{form} words", stmt.array.type.dtype
        lanes, n = self.e.names.of(stmt.array), stmt.array.elements // stmt.parts
        if stmt.parts > 1:
            kind_of = self.e.type(element_type(stmt.array))
            lanes = self.dialect.wide["part"].format(type=kind_of, n=n, lanes=lanes, first=part * n)
        further = f" + {part * n}" if part else ""
        return self.dialect.wide[form].format(
            lanes=lanes,
            pointer=f"&{self.e.names.of(stmt.field)}[{self.e.text(stmt.index[0], 12)}{further}]",
            type=self.dialect.type(kind.c),
            n=n,
        )

    def quoted(self, text: str) -> str:
        """printf's format as a C literal."""
        long = self.dialect.long
        spelled = re.sub(r"%%|%[-+ #0-9.]*l", lambda m: m[0] if m[0] == "%%" else m[0][:-1] + long, text)
        return '"' + "".join(ESCAPES.get(c, c) if " " <= c <= "~" else _octal(c) for c in spelled) + '"'

    def store(self, stmt: ir.Store, depth: int) -> None:
        name, value = self.e.names.of(stmt.memory), self.e.text(stmt.value)
        if stmt.value.type.lanes > 1:
            text = self.e.stored(stmt)
        elif not isinstance(stmt.memory, ir.Array) and stmt.memory.type.storage is HALF:
            text = self.dialect.store_half.format(pointer=name, offset=self.e.text(stmt.index[0]), x=value)
        else:
            text = f"{name}{''.join(f'[{self.e.text(i)}]' for i in stmt.index)} = {value}"
        self.put(depth, f"{text};", stmt.loc)

    def branches(self, stmt: ir.If, depth: int, prefix: str) -> None:
        """Conditions are joined by `&&` where one guards the other; conditions of one value are bits, which make vectors."""
        conds = [stmt.cond]
        while not stmt.orelse and len(stmt.then) == 1 and isinstance(inner := stmt.then[0], ir.If) and not inner.orelse:
            stmt = inner if inner.loc else replace(inner, loc=stmt.loc)
            conds.append(inner.cond)
        text = " && ".join(self.e.operand(cond, GUARDED) for cond in conds) if conds[1:] else self.e.text(stmt.cond)
        self.put(depth, f"{prefix}if ({text}) {{", stmt.loc)
        self.block(stmt.then, depth + 1)
        match stmt.orelse:
            case ():
                self.put(depth, "}")
            case (ir.If() as chained,):
                self.branches(chained, depth, "} else ")
            case _:
                self.put(depth, "} else {")
                self.block(stmt.orelse, depth + 1)
                self.put(depth, "}")

    def loop(self, stmt: ir.For | ir.While, depth: int) -> None:
        if isinstance(stmt, ir.For):
            name, stop, step = self.e.names.of(stmt.var), self.e.text(stmt.stop, 11), self.e.text(stmt.step)
            if stmt.unroll != 1:
                self.put(depth, self.dialect.unroll.format(n=stmt.unroll or "").rstrip())
            elif stmt.var in self.rolled:
                self.put(depth, self.dialect.rolled)
            if stmt.var in self.rising or isinstance(stmt.step, ir.Const):
                test = f"{name} {'<' if stmt.var in self.rising else '>'} {stop}"
            else:
                test = f"{step} > 0 ? {name} < {stop} : {step} < 0 && {name} > {stop}"
            self.put(depth, f"for (int {name} = {self.e.text(stmt.start)}; {test}; {name} += {step}) {{", stmt.loc)
        elif not stmt.head:
            self.put(depth, f"while ({self.e.text(stmt.cond)}) {{", stmt.loc)
        else:
            self.put(depth, "while (true) {", stmt.loc)
            self.block(stmt.head, depth + 1)
            self.put(depth + 1, f"if (!({self.e.text(stmt.cond)})) break;", stmt.loc)
        self.block(stmt.body, depth + 1)
        self.put(depth, "}")


def _octal(c: str) -> str:
    """Character outside of the C source set, as octal escapes of its bytes; three digits each, so that no digit can extend
    one.
    """
    return CONTROLS.get(c) or "".join(f"\\{byte:03o}" for byte in c.encode())
