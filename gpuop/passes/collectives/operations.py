"""Reductions, scans, selections and shuffles, step by step.

Values are combined in the same order on all targets, for equal bits: a reduction first combines every 32nd value, then four
values at equal distances at a time, neighbours first; a scan combines values at doubling distances among 32 in a row (W. Hillis,
G. Steele, Communications of the ACM 29(12), 1986), then the halves of doubling blocks (J. Sklansky, IRE Transactions on
Electronic Computers EC-9, 1960).

    a reduction of 64 threads          distances, each followed by a barrier or a shuffle
      32 threads take 2 values         32
       8 threads take 4 values         8, 16, 24
       2 threads take 4 values         2, 4, 6
       1 thread takes 2 values         1
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuop.base.errors import SemanticError
from gpuop.ir.build import constant
from gpuop.ir.nodes import Assign, Block, Expr, For, Let, Ref, Var
from gpuop.ir.types import INT, UINT, Type
from gpuop.passes.collectives.exchange import GroupValues
from gpuop.passes.collectives.participants import WARP

FAN = 4  # values that a thread combines at each level: fewer levels need fewer barriers


class GroupOperation(GroupValues):
    """The statements of one operation."""

    def statements(self) -> Block:
        stmt = self.stmt
        if self.part.size == 1:
            value: Expr = stmt.outside if stmt.kind == "before" and stmt.outside is not None else stmt.value
        elif stmt.kind in ("reduce", "first"):
            value = self.reduced(stmt.value)
        elif stmt.kind == "ballot":
            value = self.voted()
        elif stmt.kind in ("scan", "before"):
            value = self.scanned()
        else:
            value = self.selected() if stmt.kind == "select" else self.shuffled()
        return (*self.out, Let(stmt.var, value, stmt.loc))

    # --- reductions ---------------------------------------------------------------------------------------------------

    def reduced(self, value: Expr) -> Expr:
        first = self.stmt.kind == "first"
        self.hold(value)
        stages = _stages(self.part.size)
        for k, (reach, count) in enumerate(stages):
            if self.in_warp or (self.of_warps and reach * count <= WARP):
                self.reduce_in_warp(reach, count)
                self.stored = False
                continue
            if not self.stored:
                self.put(Ref(self.value_var))
            self.wait()
            shuffles_next = self.of_warps and k == 0
            self.reduce_in_memory(reach, count, again=not shuffles_next and (reach > 1 or not first))
        total: Expr = Ref(self.value_var)
        if first:
            return self.b.apply("choose", self.b.apply("eq", self.number, 0), total, self.stmt.value)
        zero = constant(0, INT)
        if self.in_warp:
            return self.shuffle("warp shuffle", total, zero)
        if not self.stored:
            self.under([self.b.apply("eq", self.number, 0)], (self.store(zero, total),))
        self.wait()
        return self.load_for_all(zero)

    def reduce_in_memory(self, reach: int, count: int, again: bool) -> None:
        """The first `reach` threads combine `count` values each; they store the result if it is combined `again`."""
        part, mine = self.part, self.b.apply("lt", self.number, reach)
        before = self.apart()
        items: list[tuple[Expr, Expr | None]] = [(Ref(self.value_var), None)]
        for k in range(1, count):
            if k * reach < part.size:
                at = self.b.apply("add", self.number, k * reach)
                test = None
                if not part.has(k * reach + min(reach, part.size) - 1):
                    test = self.b.apply("lt", at, part.members)
                    at = self.b.apply("choose", test, at, self.number)  # others may be writing elsewhere
                items.append((self.load(at), test))
        self.set(self.pairwise(items))
        if again:
            self.out.append(self.store(self.number, Ref(self.value_var)))
        self.under([mine], self.rejoin(before))

    def pairwise(self, items: Sequence[tuple[Expr, Expr | None]]) -> Expr:
        """Combine values pairwise, neighbours first; one with a condition is left out where that does not hold."""
        while len(items) > 1:
            pairs = [(self.joined(a, b, test), known) for (a, known), (b, test) in zip(items[::2], items[1::2])]  # noqa: B905
            items = [*pairs, *items[len(pairs) * 2 :]]
        return items[0][0]

    def joined(self, left: Expr, right: Expr, test: Expr | None) -> Expr:
        both = self.combined(left, right)
        return both if test is None else self.b.apply("choose", test, both, left)

    def reduce_in_warp(self, reach: int, count: int) -> None:
        """Combine values by shuffles: two distances for four values."""
        for step in range(count.bit_length() - 1):
            distance = reach << step
            other = self.shuffle("warp down", Ref(self.value_var), constant(distance, INT))
            test = None
            if not self.part.has((reach << (count.bit_length() - 1)) - 1):
                test = self.b.apply("lt", self.b.apply("add", self.number, distance), self.part.members)
            self.set(self.joined(Ref(self.value_var), other, test))

    def voted(self) -> Expr:
        """A bit for each thread: the ballot of the warp, restricted to the part, or the reduction of all bits."""
        b, stmt, part = self.b, self.stmt, self.part
        if part.size > WARP:
            raise SemanticError(
                f"{stmt.word}: a part has {WARP} threads at most, a bit each, not {part.size}", stmt.loc
            )
        if not self.in_warp:
            return self.reduced(b.apply("shl", stmt.value, b.cast(self.number, stmt.value.type)))
        votes = self.shuffle("warp ballot", stmt.value, constant(0, INT))
        if part.size < WARP and part.parts > 1:
            first = b.apply("and", b.apply("mul", part.which, part.size), WARP - 1)
            votes = b.apply("shr", votes, b.cast(first, votes.type, saturate=False))
        if part.has(WARP - 1):
            return votes
        others = b.cast(b.apply("sub", WARP, part.members), votes.type, saturate=False)
        return b.apply("and", votes, b.apply("shr", constant(2**WARP - 1, UINT), others))

    # --- scans --------------------------------------------------------------------------------------------------------

    def scanned(self) -> Expr:
        before, size = self.stmt.kind == "before", self.part.size
        self.hold(self.stmt.value)
        distance = 1
        while distance < size:
            if self.in_warp or (self.of_warps and distance < WARP):
                self.scan_in_warp(distance)
            else:
                if not self.stored:
                    self.put(Ref(self.value_var))
                self.wait()
                combine = self.scan_in_order if distance < WARP else self.scan_in_halves
                combine(distance, before or 2 * distance < size)
            distance *= 2
        if not before:
            return Ref(self.value_var)
        assert self.stmt.outside is not None
        later = self.b.apply("gt", self.number, 0)
        if self.in_warp:
            other = self.shuffle("warp up", Ref(self.value_var), constant(1, INT))
        else:
            self.wait()
            other = self.load_for_all(self.b.apply("max", self.b.apply("sub", self.number, 1), 0), common=False)
        return self.b.apply("choose", later, other, self.stmt.outside)

    def scan_in_warp(self, distance: int) -> None:
        other = self.shuffle("warp up", Ref(self.value_var), constant(distance, INT))
        both = self.combined(other, Ref(self.value_var))
        self.set(self.b.apply("choose", self.is_behind(distance), both, Ref(self.value_var)))

    def scan_in_order(self, distance: int, again: bool) -> None:
        """A step of a scan in memory among 32 threads in a row; results go to the other array."""
        mine = self.is_behind(distance)
        before = self.apart()
        other = self.load(self.b.apply("sub", self.number, distance))
        self.set(self.combined(other, Ref(self.value_var)))
        self.under([mine], self.rejoin(before))
        if again:
            self.buffer = 1 - self.buffer
            self.under([], (self.store(self.number, Ref(self.value_var)),))
            self.shared.used.add(self.memory)

    def is_behind(self, distance: int) -> Expr:
        """The test whether another thread is at a distance before the thread, among its 32 in a row."""
        lane = self.number if self.part.size <= WARP else self.b.apply("and", self.number, WARP - 1)
        return self.b.apply("ge", lane, distance)

    def scan_in_halves(self, distance: int, again: bool) -> None:
        """A step of a scan in memory: threads of the second half of a block add the last value of the first half, which stays."""
        mine = self.b.apply("ne", self.b.apply("and", self.number, distance), 0)
        before = self.apart()
        last = self.b.apply("sub", self.b.apply("and", self.number, -distance), 1)
        other = self.load(last)
        self.set(self.combined(other, Ref(self.value_var)))
        if again:
            self.out.append(self.store(self.number, Ref(self.value_var)))
        self.under([mine], self.rejoin(before))

    # --- one thread's value -------------------------------------------------------------------------------------------

    def selected(self) -> Expr:
        """The value at a position of the sorted order: each thread counts the values before its own, which is its position."""
        b, stmt, part = self.b, self.stmt, self.part
        assert stmt.at is not None
        position = b.apply("min", b.apply("max", stmt.at, 0), b.apply("sub", part.members, 1))
        self.put(stmt.value)
        self.wait()
        place, turn = Var("place", Type(INT), mutable=True, temporary=True), Var("other", Type(INT), temporary=True)
        self.out.append(Let(place, constant(0, INT), stmt.loc))
        before = self.apart()
        theirs = self.load(Ref(turn))
        earlier = self.b.apply("lt", Ref(turn), self.number)
        tied = self.b.apply("not", self.less(stmt.value, theirs))
        first = self.b.apply("or", self.less(theirs, stmt.value), self.b.apply("and", earlier, tied))
        count = self.b.apply("add", Ref(place), self.b.cast(first, Type(INT)))
        self.out.append(Assign(place, count, stmt.loc))
        zero, one = constant(0, INT), constant(1, INT)
        self.under([], (For(turn, zero, part.members, one, tuple(self.rejoin(before)), 1, stmt.loc),))
        self.wait()
        self.under([self.b.apply("eq", Ref(place), position)], (self.store(zero, stmt.value),))
        self.wait()
        return self.load_for_all(zero)

    def less(self, x: Expr, y: Expr) -> Expr:
        """The order of NumPy, with NaN last."""
        less = self.b.apply("lt", x, y)
        if x.type.kind != "f":
            return less
        only = self.b.apply("and", self.b.apply("ne", y, y), self.b.apply("eq", x, x))
        return self.b.apply("or", less, only)

    def shuffled(self) -> Expr:
        """The value of another thread; the thread's own where there is no such thread."""
        b, stmt, part = self.b, self.stmt, self.part
        assert stmt.at is not None
        at, most = self.other(stmt.at), b.apply("sub", part.members, 1)
        near = b.apply("min", b.apply("max", at, 0), most)
        if self.in_warp:
            other = self.shuffle("warp shuffle", stmt.value, near)
        else:
            self.put(stmt.value)
            self.wait()
            other = self.load_for_all(near, common=stmt.kind == "broadcast")
        return other if stmt.kind == "broadcast" else b.apply("choose", b.apply("eq", at, near), other, stmt.value)

    def other(self, at: Expr) -> Expr:
        """The number of the thread whose value is read."""
        operation = {"up": "sub", "down": "add", "xor": "xor"}.get(self.stmt.kind)
        return at if operation is None else self.b.apply(operation, self.number, at)


def _stages(size: int) -> list[tuple[int, int]]:
    """The number of threads at each step, and the number of values that each of them combines."""
    stages = [(WARP, -(-size // WARP))] if size > WARP else []
    reach = min(WARP, 1 << (size - 1).bit_length())
    while reach > 1:
        count = min(FAN, reach)
        reach //= count
        stages.append((reach, count))
    return stages
