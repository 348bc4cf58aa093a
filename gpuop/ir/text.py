"""Kernel text, one line per statement: for people, for logs, and (without hints and names) as identity."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import EXACT, Kernel, Names
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.visit import walk

Symbol = ir.Var | ir.FieldParam | ir.Array
SHOWN = ("inputs", "outputs", "intermediates", "dynamic")  # fields of a kernel that hold symbols


class KernelText:
    """Writer of one kernel. Symbols are numbered in order of appearance; with `hints` they carry user names."""

    def __init__(self, hints: bool) -> None:
        self.hints = hints
        self.numbers: dict[Symbol, int] = {}
        self.lines: list[str] = []
        self.named: dict[ir.FieldParam | None, Names] = {}

    def name(self, symbol: Symbol) -> str:
        number = self.numbers.setdefault(symbol, len(self.numbers))
        return f"{symbol.hint if self.hints else ''}%{number}"

    def kernel(self, kernel: Kernel) -> str:
        whole = " whole" if kernel.whole else ""
        pin = f" {kernel.pin}" if kernel.pin is not None else ""
        precision = f" {kernel.precision}" if kernel.precision != EXACT else ""
        facts = f"group {kernel.group}{whole}{precision}{pin}"
        self.named = dict(kernel.named)
        self.lines.append(f"kernel {kernel.name if self.hints else ''} [{self.grid(None, str(kernel.domain))}] {facts}")
        for param in kernel.inputs:
            how = f"{' by value' * param.by_value}{' table' * param.table}{' dynamic' * (param in kernel.dynamic)}"
            self.lines.append(f"in {self.name(param)}: {self.grid(param, str(param.type))}{how}")
        for output in kernel.outputs:
            over = "" if output.over is None else f" over {self.name(output.over)}"
            over += "" if output.initial is None else f" begins as {self.name(output.initial)}"
            fill = f"{output.fill}{' complete' * output.complete}{' unordered' * output.unordered}"
            kind = self.grid(output.param, str(output.param.type))
            self.lines.append(f"out {self.name(output.param)}: {kind} fill {fill}{over}")
        for param in kernel.intermediates:
            self.lines.append(f"intermediate {self.name(param)}: {param.type}")
        self.block(kernel.body, 1)
        return "\n".join(self.lines)

    def grid(self, param: ir.FieldParam | None, shown: str) -> str:
        """A type or a grid, with the names of extents that have some in the place of their numbers."""
        extents, space, rest = shown.partition(" ")
        names = self.named.get(param, ())
        each = zip(names, extents.split("×"), strict=True) if names else [("", extents)]
        return "×".join(name or extent for name, extent in each) + space + rest

    def block(self, block: ir.Block, depth: int) -> None:
        for stmt in block:
            self.stmt(stmt, depth)

    def put(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def stmt(self, stmt: ir.Stmt, depth: int) -> None:  # noqa: C901 - a case for each kind of node
        match stmt:
            case ir.Let(var=var, value=value):
                self.put(depth, f"{'var' if var.mutable else 'let'} {self.name(var)}: {var.type} = {self.expr(value)}")
            case ir.Assign(var=var, value=value):
                self.put(depth, f"{self.name(var)} := {self.expr(value)}")
            case ir.Declare(array=array):
                space = "" if array.space == "private" else f"{array.space} "
                kind = f"{space}{'volatile ' * array.volatile}array"
                values = f" = {', '.join(map(repr, array.values))}" if array.values else ""
                self.put(depth, f"{kind} {self.name(array)}: {array.type}{list(array.shape)}{values}")
            case ir.Write(field=field, value=value, point=point, element=element):
                self.put(depth, f"write {self.name(field)}{self.at(point, element)} := {self.expr(value)}")
            case ir.Store(memory=memory, index=index, value=value, ahead=ahead):
                self.put(depth, f"{self.name(memory)}[{self.places(index, ahead)}] := {self.expr(value)}")
            case ir.Comment(text=text):
                if self.hints:
                    self.put(depth, f"-- {text}")
            case ir.Atomic() | ir.Wide() | ir.Barrier() | ir.Print() | ir.Assert():
                self.put(depth, self.effect(stmt))
            case ir.Collective():
                self.collective(stmt, depth)
            case ir.If() | ir.For() | ir.While():
                self.nested(stmt, depth)
            case ir.Break() | ir.Continue():
                self.put(depth, type(stmt).__name__.lower())
            case _:
                ir.assert_never(stmt)

    def effect(self, stmt: ir.Atomic | ir.Wide | ir.Barrier | ir.Print | ir.Assert) -> str:
        match stmt:
            case ir.Atomic(op=op, memory=memory, index=index, args=args, var=var, element=element):
                call = f"atomic {op} {self.name(memory)}{self.at(index, element)} ({self.list(args)})"
                return call if var is None else f"let {self.name(var)}: {var.type} = {call}"
            case ir.Wide(field=field, array=array, loads=loads, index=index, element=element, left=left, parts=parts):
                most = "" if left is None else f" at most {self.expr(left)}"
                most += f" in {parts}" * (parts > 1)
                return f"{'load' if loads else 'store'} {self.name(array)}, {self.name(field)}{self.at(index, element)}{most}"
            case ir.Barrier(fence=fence):
                return f"barrier {fence}"
            case ir.Print(format=text, args=args):
                return f"print {text!r} ({self.list(args)})"
            case ir.Assert(cond=cond, message=message):
                return f"assert {self.expr(cond)} {message!r}"
            case _:
                ir.assert_never(stmt)

    def collective(self, stmt: ir.Collective, depth: int) -> None:
        options = [
            f" {what} {self.expr(e)}" for what, e in (("at", stmt.at), ("outside", stmt.outside)) if e is not None
        ]
        over = f" over {stmt.over}" if stmt.over else ""
        call = f"{stmt.kind} {self.expr(stmt.value)}{over}{''.join(options)}"
        self.put(depth, f"let {self.name(stmt.var)}: {stmt.var.type} = {call}")
        if (combination := stmt.combination) is not None:
            self.put(
                depth, f"by {self.name(combination.left)}, {self.name(combination.right)} {combination.name}".rstrip()
            )
            self.block(combination.body, depth + 1)
            self.put(depth, f"gives {self.expr(combination.result)}")

    def nested(self, stmt: ir.If | ir.For | ir.While, depth: int) -> None:
        match stmt:
            case ir.If(cond=cond, then=then, orelse=orelse):
                self.put(depth, f"if {self.expr(cond)}")
                self.block(then, depth + 1)
                if orelse:
                    self.put(depth, "else")
                    self.block(orelse, depth + 1)
            case ir.For(var=var, start=start, stop=stop, step=step, body=body, unroll=unroll, lanes=lanes):
                bounds = self.list((start, stop, step))
                self.put(depth, f"for {self.name(var)} in {bounds} unroll {unroll}{' lanes' * lanes}")
                self.block(body, depth + 1)
            case ir.While(head=head, cond=cond, body=body):
                self.put(depth, "while")
                self.block(head, depth + 1)
                self.put(depth, f"holds {self.expr(cond)}")
                self.block(body, depth + 1)
            case _:
                ir.assert_never(stmt)

    def at(self, point: tuple[ir.Expr, ...] | None, element: ir.Expr | None) -> str:
        return ("" if point is None else f"[{self.list(point)}]") + (
            "" if element is None else f".{self.expr(element)}"
        )

    def places(self, index: tuple[ir.Expr, ...], ahead: tuple[int, ...]) -> str:
        return f"{self.list(index)}{''.join(f' +{k}' for k in ahead)}"

    def list(self, exprs: tuple[ir.Expr, ...]) -> str:
        return ", ".join(map(self.expr, exprs))

    def expr(self, expr: ir.Expr) -> str:  # noqa: C901 - a case for each kind of node
        match expr:
            case ir.Const(text=text, type=type_):
                return f"{text}:{type_}"
            case TargetConst(fact=fact, type=type_):
                return f"{fact!r}:{type_}"
            case ir.Ref(var=var):
                return self.name(var)
            case ir.Index(kind=kind, axis=axis, offset=offset):
                return f"{kind}.{axis}" + (f"{offset:+d}" if offset else "")
            case ir.Stride(field=field, what=what, value=value):
                return f"{self.name(field)}.{what}" + ("" if any(self.named.get(field, ())) else f"={value}")
            case ir.Argument(field=field, plane=plane, follows=follows):
                return f"{self.name(field)}.{plane}" + (f" of {follows}" if follows else "")
            case ir.Apply(op=op, args=args):
                return f"{op}({self.list(args)})"
            case ir.Cast(arg=arg, type=type_, saturate=saturate, fits=fits):
                return f"{'plain ' if fits else '' if saturate else 'wrap '}{type_}({self.expr(arg)})"
            case ir.Bits(arg=arg, type=type_):
                return f"bits {type_}({self.expr(arg)})"
            case ir.Lane(arg=arg, lane=lane):
                return f"{self.expr(arg)}.{'xyzw'[lane]}"
            case ir.Pack(args=args):
                return f"({self.list(args)})"
            case ir.Read(field=field, point=point, element=element, border=border, fill=fill):
                outside = "" if fill is None else f" {fill.text if isinstance(fill, ir.Const) else self.expr(fill)}"
                edge = "" if point is None else f" {border}{outside}"
                return f"read {self.name(field)}{self.at(point, element)}{edge}"
            case ir.Load(memory=memory, index=index, ahead=ahead, whole=whole):
                return f"{self.name(memory)}[{self.places(index, ahead)}{f' of {whole}' if whole else ''}]"
            case _:
                ir.assert_never(expr)


def show(kernel: Kernel) -> str:
    """The kernel for people."""
    return KernelText(hints=True).kernel(kernel)


def identity(kernel: Kernel) -> str:
    """A digest that two kernels share exactly when they compute the same thing the same way; names do not count."""
    return hashlib.sha256(KernelText(hints=False).kernel(kernel).encode()).hexdigest()


@lru_cache(maxsize=128)  # a kernel is looked for in several caches
def content(kernel: Kernel) -> str:
    """Digest that two recorded kernels share exactly if the same text is generated from them: names count, and the user
    lines, except those of operator calls. Lines of kernels with open extents do not: sizes come from many places.
    """
    text = KernelText(hints=True)
    shown = text.kernel(kernel)
    apart = ("body", "layouts", "named", "looked", "called", "remark", *SHOWN, *(["loc"] if kernel.named else []))
    facts = {f.name: getattr(kernel, f.name) for f in fields(kernel) if f.name not in apart}
    layouts = {text.numbers[param]: layout for param, layout in kernel.layouts}
    named = [(param and text.numbers[param], names) for param, names in kernel.named]
    temporary = [isinstance(symbol, ir.Var) and symbol.temporary for symbol in text.numbers]
    lines = [] if kernel.named else [stmt.loc for stmt in _lines(kernel.body)]
    return hashlib.sha256(repr((shown, facts, layouts, named, temporary, lines)).encode()).hexdigest()


def _lines(block: ir.Block) -> Iterator[ir.Stmt]:
    """Statements that carry user lines, including those that combine values."""
    for stmt in walk(block):
        if not isinstance(stmt, ir.Comment):
            yield stmt
        if isinstance(stmt, ir.Collective) and stmt.combination is not None:
            yield from _lines(stmt.combination.body)
