"""Exchange of values between the threads of a part of a work-group: through local memory, or by shuffles in a warp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuop.ir.build import collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Assign, Barrier, Collective, Combination, Expr, If, Let, Load, Ref, Stmt, Store, Var
from gpuop.ir.types import FLOAT, HALF, Type
from gpuop.ir.visit import Copier
from gpuop.passes.collectives.participants import WARP, conjunction, part_of


@dataclass
class GroupMemory:
    """The local memory of all operations of a kernel, by type and extents; operations reuse it.

    Attributes:
        used: the arrays that an earlier operation may still be reading.
    """

    kernel: Kernel
    arrays: dict[tuple[Type, tuple[int, ...], int], Array] = field(default_factory=dict)
    used: set[Array] = field(default_factory=set)


class GroupValues:
    """The statements of one operation that exchange values and combine them.

    Attributes:
        value: the variable of the thread's value so far.
        stored: whether local memory has this value.
        buffer: the number of the array that has it, of two that take turns, one written while the other is read.
    """

    def __init__(self, shared: GroupMemory, stmt: Collective, looping: bool) -> None:
        self.shared, self.stmt, self.looping = shared, stmt, looping
        self.out: list[Stmt] = []
        self.b = collector(self.out, stmt.loc)
        self.part = part_of(shared.kernel, stmt.over, self.b, stmt.loc)
        self.number = self.part.number
        target = shared.kernel.target
        shuffles = target is not None and target.shuffles
        self.in_warp = shuffles and self.part.in_warp
        self.of_warps = shuffles and self.part.of_warps
        self.value_var = Var(stmt.var.hint, stmt.var.type, mutable=True, temporary=stmt.var.temporary)
        self.stored, self.buffer = False, 0

    # --- local memory -------------------------------------------------------------------------------------------------

    @property
    def memory(self) -> Array:
        shape = self.part.shape
        return self.shared.arrays.setdefault(
            (self.value_var.type, shape, self.buffer), Array("together", self.value_var.type, shape, "local")
        )

    def put(self, value: Expr) -> None:
        """Let all threads of the part store a value, after a barrier if an earlier operation may still read the memory."""
        if self.memory in self.shared.used or self.looping:
            self.out.append(Barrier("local", self.stmt.loc))
        self.shared.used.add(self.memory)
        self.under([], (self.store(self.number, value),))
        self.stored = True

    def store(self, at: Expr, value: Expr) -> Stmt:
        return Store(self.memory, self.part.place(at), value, self.stmt.loc)

    def wait(self) -> None:
        self.out.append(Barrier("local", self.stmt.loc))

    def load(self, at: Expr) -> Expr:
        return self.b.bind(Load(self.memory, self.part.place(at), self.value_var.type))

    def load_for_all(self, at: Expr, common: bool = True) -> Expr:
        """A value for all threads. Tail threads get their own, unless the value is `common` to the whole work-group."""
        if self.part.inside is None or (common and self.part.parts == 1):
            return self.load(at)
        result = Var("other", self.value_var.type, mutable=True, temporary=True)
        self.out.append(Let(result, self.stmt.value, self.stmt.loc))
        before = self.apart()
        self.out.append(Assign(result, self.load(at), self.stmt.loc))
        self.under([], self.rejoin(before))
        return Ref(result)

    def under(self, tests: list[Expr | None], body: Iterable[Stmt]) -> None:
        """Append statements for the threads of the part for which conditions hold."""
        tests = [test for test in (*tests, self.part.inside) if test is not None]
        self.out += (If(conjunction(self.b, tests), tuple(body), (), self.stmt.loc),) if tests else body

    def apart(self) -> list[Stmt]:
        """Collect the following statements in a list of their own, up to `rejoin`; return the list before."""
        before, self.out = self.out, []
        self.b = collector(self.out, self.stmt.loc)
        return before

    def rejoin(self, before: list[Stmt]) -> list[Stmt]:
        inner, self.out = self.out, before
        self.b = collector(before, self.stmt.loc)
        return inner

    # --- combining ----------------------------------------------------------------------------------------------------

    def combined(self, left: Expr, right: Expr) -> Expr:
        combination = self.stmt.combination
        assert isinstance(combination, Combination)
        copier = Copier(combination.body, {combination.left: left, combination.right: right})
        self.out += copier.copy()
        return copier.expr(combination.result)

    def set(self, value: Expr) -> None:
        self.out.append(Assign(self.value_var, value, self.stmt.loc))

    def hold(self, value: Expr) -> None:
        self.out.append(Let(self.value_var, value, self.stmt.loc))

    def shuffle(self, kind: str, value: Expr, at: Expr) -> Expr:
        """The value of another lane of the warp, component by component; halves are floats in registers."""
        passed = Type(FLOAT) if value.type.dtype is HALF else value.type.scalar
        lanes = []
        for lane in self.b.lanes(value):
            var = Var("other", passed, temporary=True)
            arg = self.b.cast(lane, passed)
            over = WARP if kind == "warp ballot" else self.part.width
            self.out.append(Collective(kind, var, arg, over, at, word=self.stmt.word, loc=self.stmt.loc))
            lanes.append(self.b.cast(Ref(var), value.type.scalar))
        return self.b.pack(lanes)
