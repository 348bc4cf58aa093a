"""Minima and maxima of floats by one instruction each, checked afterwards, on NVIDIA GPUs.

`x < y ? y : x` is a comparison and a selection. The maximum instruction returns NaN where either operand is NaN, and the positive
one of zeros of both signs. So the result of a chain of extremes is NaN if any operand was; otherwise it equals the exact result,
and its bits differ only if it is a zero. A thread whose loop has neither result is done. Otherwise it tests whether any operand
was NaN or a negative zero, and if so runs the loop again as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Assign, Block, Comment, Const, Expr, For, If, Let, Ref, Stmt, Store, Var
from gpuop.ir.types import BOOL, FLOAT, INT, Type
from gpuop.ir.visit import Copier, loaded, map_blocks, used_by, written_by
from gpuop.passes.simplify import extreme_of

SINCE = 80  # least compute capability with such instructions
FEWEST = 8  # least extremes of the body of a loop, for which its copy is worth the text
EACH = 4  # least extremes for each result that is tested
NEGATIVE_ZERO = -(2**31)  # the bits of -0.0


def quick_extremes(kernel: Kernel) -> Kernel:
    if kernel.target is None or kernel.target.architecture < SINCE:
        return kernel
    return replace(kernel, body=_block(kernel.body))


def _block(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        choices = _Choices(stmt.body) if isinstance(stmt, For) and _may_repeat(stmt.body) else None
        if choices is not None and choices.pay:
            assert isinstance(stmt, For)
            out += _in_one_instruction(stmt, choices)
        else:
            out.append(map_blocks(stmt, _block))
    return tuple(out)


def _may_repeat(body: Block) -> bool:
    """Return whether the body of a loop may run twice: it stores to arrays that it does not load, without conditions."""
    stored = {written_by(stmt) for stmt in body} - {None}
    kinds = all(isinstance(stmt, (Let, Store, Comment)) for stmt in body)
    return kinds and all(isinstance(memory, Array) for memory in stored) and stored.isdisjoint(loaded(body))


class _Choices:
    """The extremes of a body.

    Attributes:
        quick: the instruction for each extreme.
        leaves: the operands of extremes that are no extremes themselves.
        ends: the extremes that other statements use.
        pay: whether the instructions save more than the tests take.
    """

    def __init__(self, body: Block) -> None:
        lets = {stmt.var: stmt.value for stmt in body if isinstance(stmt, Let)}
        self.quick = {var: quick for var, value in lets.items() if (quick := _quick(value, lets)) is not None}
        operands = dict.fromkeys(e for quick in self.quick.values() for e in quick.args if isinstance(e, Ref))
        self.leaves = [e for e in operands if e.var not in self.quick]
        others = [stmt for stmt in body if not (isinstance(stmt, Let) and stmt.var in self.quick)]
        needed = _used(others)
        outside = _used(stmt for stmt in others if not (isinstance(stmt, Let) and stmt.var not in needed))
        self.ends = [var for var in self.quick if var in outside]
        self.pay = len(self.quick) >= max(FEWEST, EACH * len(self.ends))


def _quick(value: Expr, lets: dict[Var, Expr]) -> Apply | None:
    """The instruction for a selection; None where an operand is the constant zero, since many results would be zeros."""
    match value:
        case Apply(op="choose", args=(Ref(var=test), a, b), type=Type(dtype=dtype, lanes=1)) if dtype is FLOAT:
            order = lets.get(test)
            plain = all(isinstance(e, Ref) or (isinstance(e, Const) and abs(e.value) > 0) for e in (a, b))
            return extreme_of(order, a, b) if plain and isinstance(order, Apply) else None
    return None


def _used(block: Iterable[Stmt]) -> set[Var]:
    return {var for stmt in block for var in used_by(stmt)}


def _in_one_instruction(loop: For, choices: _Choices) -> Iterator[Stmt]:
    odd, special = (Var(hint, Type(BOOL), mutable=True, temporary=True) for hint in ("odd", "special"))
    (again,) = Copier((loop,)).copy()
    quick = [
        replace(stmt, value=choices.quick[stmt.var]) if isinstance(stmt, Let) and stmt.var in choices.quick else stmt
        for stmt in loop.body
    ]
    b = collector(quick)
    for var in choices.ends:
        usual = b.apply("or", b.apply("lt", Ref(var), 0.0), b.apply("gt", Ref(var), 0.0))
        quick.append(Assign(odd, b.apply("or", Ref(odd), b.apply("not", usual))))
    yield Let(odd, constant(False, BOOL))
    yield replace(loop, body=tuple(quick))
    look = _look(loop, choices.leaves, special)
    yield If(Ref(odd), (Let(special, constant(False, BOOL)), look, If(Ref(special), (Comment("as written"), again))))


def _look(loop: For, leaves: list[Ref], special: Var) -> Stmt:
    """A loop that tests whether any of the values is NaN or a negative zero."""
    body: list[Stmt] = [stmt for stmt in loop.body if isinstance(stmt, Let)]
    b = collector(body)
    for x in leaves:
        negative = b.apply("eq", b.bits(x, Type(INT)), NEGATIVE_ZERO)
        odd = b.apply("or", b.apply("ne", x, x), negative)
        body.append(Assign(special, b.apply("or", Ref(special), odd)))
    (copied,) = Copier((replace(loop, body=tuple(body)),)).copy()
    return copied
