"""Mask what surplus threads must not do where there are barriers, which they must reach: each stretch of statements between
barriers stands in a condition of its own, and values that later stretches use move to variables before it.

(An early return of the surplus threads segfaults or miscomputes on some drivers.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import (
    Array,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Comment,
    Continue,
    Declare,
    Expr,
    For,
    If,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    Var,
    While,
)
from gpuop.ir.visit import blocks, expressions, map_blocks, map_values, values, walk, walk_expr, with_operands


class Masking:
    """Args:
    test: whether a thread is one of the grid's.
    """

    def __init__(self, kernel: Kernel, test: Expr) -> None:
        self.test = test
        self.uses = _uses(kernel.body)
        self.joint: set[int] = set()  # statements with blocks that all threads run, surplus ones included
        self.needed: set[Var | Array] = set()  # what decides about barriers, so surplus threads compute it too
        self.outside: set[Var] = set()  # bound outside the conditions, for good
        self.moved: dict[Var, Var] = {}
        known = -1
        while known != len(self.joint) + len(self.needed):
            known = len(self.joint) + len(self.needed)
            self._scan(kernel.body, False)

    def _scan(self, block: Block, leaving: bool) -> bool:
        """Find what all threads must run; whether the block has any of it. `leaving`: a break here leaves a joint loop."""
        found = False
        for stmt in block:
            loop = isinstance(stmt, (For, While))
            inner = [self._scan(b, id(stmt) in self.joint if loop else leaving) for b in blocks(stmt)]
            match stmt:
                case If() | For() | While():
                    matters = any(inner)
                    if matters:
                        self.joint.add(id(stmt))
                case Break() | Continue():
                    matters = leaving
                case _:
                    matters = isinstance(stmt, Barrier) or self._is_needed(stmt)
            if matters:
                self.needed |= {symbol for v in values(stmt) for symbol in _symbols(v)}
            # a binding is no reason for the block around it to be joint, an assignment or a barrier is
            found |= matters and not isinstance(stmt, Let)
        return found

    def _is_needed(self, stmt: Stmt) -> bool:
        match stmt:
            case Let(var=var) | Assign(var=var):
                return var in self.needed
            case Store(memory=Array() as array):
                return array in self.needed
        return False

    # --- rewriting ----------------------------------------------------------------------------------------------

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        run: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, Declare) or (isinstance(stmt, Comment) and not run):
                out.append(stmt)
            elif id(stmt) in self.joint or self._is_joint(stmt):
                self._flush(run, out)
                out.append(map_blocks(map_values(stmt, self._expr), self.block))
                self._note_outside(stmt)
            else:
                run.append(stmt)
        self._flush(run, out)
        return tuple(out)

    def _is_joint(self, stmt: Stmt) -> bool:
        return isinstance(stmt, (Barrier, Break, Continue)) or self._is_needed(stmt)

    def _note_outside(self, stmt: Stmt) -> None:
        if isinstance(stmt, (Let, For)) and not stmt.var.mutable:
            self.outside.add(stmt.var)

    def _flush(self, run: list[Stmt], out: list[Stmt]) -> None:
        """Print the waiting statements, masked; what others use of them is declared before."""
        ahead = self._ahead(run)
        here = _uses(run)
        masked: list[Stmt] = []
        for stmt in run:
            var = stmt.var if isinstance(stmt, (Let, Atomic)) else None
            if id(stmt) in ahead:
                out.append(map_values(stmt, self._expr))
                self._note_outside(stmt)
            elif var is None or self.uses[var] == here[var]:
                masked.append(self._copied(stmt))
            else:
                masked += self._spread(stmt, var, out)
        if all(isinstance(stmt, Comment) for stmt in masked):
            out += masked
        else:
            out.append(If(self.test, tuple(masked)))
        run.clear()

    def _ahead(self, run: list[Stmt]) -> set[int]:
        """The bindings that others use and that any thread may compute: they read no memory, and no variables."""
        here, free = _uses(run), set(self.outside)
        for stmt in run:
            if isinstance(stmt, Let) and self._is_free(stmt, free) and not stmt.var.mutable:
                free.add(stmt.var)
        ahead: set[int] = set()
        wanted: set[Var] = set()
        for stmt in reversed(run):
            used = isinstance(stmt, Let) and (stmt.var in wanted or self.uses[stmt.var] > here[stmt.var])
            if isinstance(stmt, Let) and used and self._is_free(stmt, free):
                ahead.add(id(stmt))
                wanted |= {e.var for e in walk_expr(stmt.value) if isinstance(e, Ref)}
        return ahead

    @staticmethod
    def _is_free(let: Let, free: set[Var]) -> bool:
        return all(not isinstance(e, Load) and (not isinstance(e, Ref) or e.var in free) for e in walk_expr(let.value))

    def _spread(self, stmt: Stmt, var: Var, out: list[Stmt]) -> list[Stmt]:
        """The binding as an assignment to a variable that is declared outside."""
        kept = var if var.mutable else self.moved.setdefault(var, Var(var.hint, var.type, mutable=True))
        out.append(Let(kept, constant(0, var.type.dtype)))
        if isinstance(stmt, Let):
            return [Assign(kept, self._expr(stmt.value), stmt.loc)]
        inner = Var(var.hint, var.type)
        copied = self._copied(stmt)
        assert isinstance(copied, Atomic)
        return [
            Atomic(copied.op, copied.memory, copied.index, copied.args, inner, None, copied.loc),
            Assign(kept, Ref(inner)),
        ]

    def _copied(self, stmt: Stmt) -> Stmt:
        return map_blocks(map_values(stmt, self._expr), lambda inner: tuple(map(self._copied, inner)))

    def _expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Ref) and expr.var in self.moved:
            return Ref(self.moved[expr.var])
        return with_operands(expr, self._expr)


def _symbols(expr: Expr) -> Iterator[Var | Array]:
    """The variables and the thread's own arrays that an expression reads."""
    for e in walk_expr(expr):
        if isinstance(e, Ref):
            yield e.var
        elif isinstance(e, Load) and isinstance(e.memory, Array) and e.memory.space == "private":
            yield e.memory


def _uses(block: Iterable[Stmt]) -> Counter[Var]:
    block = tuple(block)
    read = Counter(e.var for e in expressions(block) if isinstance(e, Ref))
    return read + Counter(stmt.var for stmt in walk(block) if isinstance(stmt, Assign))
