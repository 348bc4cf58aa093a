"""Lowering of collective operations: to local memory and barriers, and to shuffles within warps where a target has these.

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

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import FLOAT, HALF, INT, UINT, Type
from gpuop.ir.visit import Copier, map_blocks, walk
from gpuop.passes.collectives.participants import WARP, part_of

FAN = 4  # values that a thread combines at each level: fewer levels need fewer barriers


def spell_collectives(kernel: Kernel) -> Kernel:
    """The kernel without collective operations other than shuffles in warps. Its target must be known.

    Raises:
        SemanticError: parts whose size depends on the target do not divide the work-group.
    """
    if is_spelled(kernel):
        return kernel
    memory = GroupMemory(replace(kernel, group=kernel.work_group))
    body = _block(memory, kernel.body, False)
    return replace(memory.kernel, body=(*map(ir.Declare, memory.arrays.values()), *body))


def is_spelled(kernel: Kernel) -> bool:
    return all(stmt.kind in ir.SHUFFLES for stmt in walk(kernel.body) if isinstance(stmt, ir.Collective))


def _block(memory: GroupMemory, block: ir.Block, looping: bool) -> ir.Block:
    out: list[ir.Stmt] = []
    for stmt in block:
        if isinstance(stmt, ir.Collective):
            out += GroupOperation(memory, stmt, looping).statements()
        else:
            around = looping or isinstance(stmt, (ir.For, ir.While))
            out.append(map_blocks(stmt, lambda inner, around=around: _block(memory, inner, around)))  # type: ignore[misc]
    return tuple(out)


@dataclass
class GroupMemory:
    """The local memory of all operations of a kernel, by type and extents; operations reuse it.

    Attributes:
        used: the arrays that an earlier operation may still be reading.
    """

    kernel: Kernel
    arrays: dict[tuple[Type, tuple[int, ...], int], ir.Array] = field(default_factory=dict)
    used: set[ir.Array] = field(default_factory=set)


class GroupOperation:
    """The statements of one operation.

    Attributes:
        var, value: the variable of the thread's value so far, and a reference to it.
        stored: whether local memory has this value.
        buffer: the number of the array that has it, of two that take turns, one written while the other is read.
    """

    def __init__(self, shared: GroupMemory, stmt: ir.Collective, looping: bool) -> None:
        self.shared, self.stmt, self.looping = shared, stmt, looping
        self.out: list[ir.Stmt] = []
        self.b = collector(self.out, stmt.loc)
        self.part = part_of(shared.kernel, stmt.over, self.b, stmt.loc)
        self.number = self.part.number
        target = shared.kernel.target
        shuffles = target is not None and target.shuffles
        self.in_warp = shuffles and self.part.in_warp
        self.of_warps = shuffles and self.part.of_warps
        self.var = ir.Var(stmt.var.hint, stmt.var.type, mutable=True, temporary=stmt.var.temporary)
        self.value = ir.Ref(self.var)
        self.stored, self.buffer = False, 0

    # --- local memory -------------------------------------------------------------------------------------------------

    @property
    def memory(self) -> ir.Array:
        kind, shape = self.var.type, self.part.shape
        return self.shared.arrays.setdefault((kind, shape, self.buffer), ir.Array("together", kind, shape, "local"))

    def put(self, value: ir.Expr) -> None:
        """Let all threads of the part store a value, after a barrier if an earlier operation may still read the memory."""
        if self.memory in self.shared.used or self.looping:
            self.wait()
        self.shared.used.add(self.memory)
        self.under([], (self.store(self.number, value),))
        self.stored = True

    def store(self, at: ir.Expr, value: ir.Expr) -> ir.Stmt:
        return ir.Store(self.memory, self.part.place(at), value, self.stmt.loc)

    def wait(self) -> None:
        self.out.append(ir.Barrier("local", self.stmt.loc))

    def load(self, at: ir.Expr) -> ir.Expr:
        return self.b.bind(ir.Load(self.memory, self.part.place(at), self.var.type))

    def load_for_all(self, at: ir.Expr, common: bool = True) -> ir.Expr:
        """A value for all threads. Tail threads get their own, unless the value is `common` to the whole work-group."""
        if self.part.inside is None or (common and self.part.parts == 1):
            return self.load(at)
        result = ir.Var("other", self.var.type, mutable=True, temporary=True)
        self.out.append(ir.Let(result, self.stmt.value, self.stmt.loc))
        before = self.apart()
        self.out.append(ir.Assign(result, self.load(at), self.stmt.loc))
        self.under([], self.rejoin(before))
        return ir.Ref(result)

    def under(self, tests: list[ir.Expr | None], body: Iterable[ir.Stmt]) -> None:
        """Append statements for the threads of the part for which conditions hold."""
        test = self.b.all_of((*tests, self.part.inside))
        self.out += body if test is None else (ir.If(test, tuple(body), (), self.stmt.loc),)

    def apart(self) -> list[ir.Stmt]:
        """Collect the following statements in a list of their own, up to `rejoin`; return the list before."""
        before, self.out = self.out, []
        self.b = collector(self.out, self.stmt.loc)
        return before

    def rejoin(self, before: list[ir.Stmt]) -> list[ir.Stmt]:
        inner, self.out = self.out, before
        self.b = collector(before, self.stmt.loc)
        return inner

    # --- combining ----------------------------------------------------------------------------------------------------

    def combined(self, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        combination = self.stmt.combination
        assert isinstance(combination, ir.Combination)
        copier = Copier(combination.body, {combination.left: left, combination.right: right})
        self.out += copier.copy()
        return copier.expr(combination.result)

    def set(self, value: ir.Expr) -> None:
        self.out.append(ir.Assign(self.var, value, self.stmt.loc))

    def hold(self, value: ir.Expr) -> None:
        self.out.append(ir.Let(self.var, value, self.stmt.loc))

    def shuffle(self, kind: str, value: ir.Expr, at: ir.Expr) -> ir.Expr:
        """The value of another lane of the warp, component by component; halves are floats in registers."""
        passed = Type(FLOAT) if value.type.dtype is HALF else value.type.scalar
        lanes = []
        for lane in self.b.lanes(value):
            var = ir.Var("other", passed, temporary=True)
            arg = self.b.cast(lane, passed)
            over = WARP if kind == "warp ballot" else self.part.width
            self.out.append(ir.Collective(kind, var, arg, over, at, word=self.stmt.word, loc=self.stmt.loc))
            lanes.append(self.b.cast(ir.Ref(var), value.type.scalar))
        return self.b.pack(lanes)

    # --- operations ---------------------------------------------------------------------------------------------------

    def statements(self) -> ir.Block:
        stmt = self.stmt
        if self.part.size == 1:
            value: ir.Expr = stmt.outside if stmt.kind == "before" and stmt.outside is not None else stmt.value
        elif stmt.kind in ("reduce", "first"):
            value = self.reduced(stmt.value)
        elif stmt.kind == "ballot":
            value = self.voted()
        elif stmt.kind in ("scan", "before"):
            value = self.scanned()
        else:
            value = self.selected() if stmt.kind == "select" else self.shuffled()
        return (*self.out, ir.Let(stmt.var, value, stmt.loc))

    # --- reductions ---------------------------------------------------------------------------------------------------

    def reduced(self, value: ir.Expr) -> ir.Expr:
        first = self.stmt.kind == "first"
        self.hold(value)
        stages = _stages(self.part.size)
        for k, (reach, count) in enumerate(stages):
            if self.in_warp or (self.of_warps and reach * count <= WARP):
                self.reduce_in_warp(reach, count)
                self.stored = False
                continue
            if not self.stored:
                self.put(self.value)
            self.wait()
            shuffles_next = self.of_warps and k == 0
            self.reduce_in_memory(reach, count, again=not shuffles_next and (reach > 1 or not first))
        total: ir.Expr = self.value
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
        items: list[tuple[ir.Expr, ir.Expr | None]] = [(self.value, None)]
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
            self.out.append(self.store(self.number, self.value))
        self.under([mine], self.rejoin(before))

    def pairwise(self, items: Sequence[tuple[ir.Expr, ir.Expr | None]]) -> ir.Expr:
        """Combine values pairwise, neighbours first; one with a condition is left out where that does not hold."""
        while len(items) > 1:
            pairs = [(self.joined(a, b, test), certain) for (a, certain), (b, test) in zip(items[::2], items[1::2])]  # noqa: B905
            items = [*pairs, *items[len(pairs) * 2 :]]
        return items[0][0]

    def joined(self, left: ir.Expr, right: ir.Expr, test: ir.Expr | None) -> ir.Expr:
        both = self.combined(left, right)
        return both if test is None else self.b.apply("choose", test, both, left)

    def reduce_in_warp(self, reach: int, count: int) -> None:
        """Combine values by shuffles: two distances for four values."""
        for step in range(count.bit_length() - 1):
            distance = reach << step
            other = self.shuffle("warp down", self.value, constant(distance, INT))
            test = None
            if not self.part.has((reach << (count.bit_length() - 1)) - 1):
                test = self.b.apply("lt", self.b.apply("add", self.number, distance), self.part.members)
            self.set(self.joined(self.value, other, test))

    def voted(self) -> ir.Expr:
        """A bit for each thread: the ballot of the warp, restricted to the part, or the reduction of all bits."""
        b, stmt, part = self.b, self.stmt, self.part
        if part.size > WARP:
            message = f"{stmt.word}: a part has {WARP} threads at most, a bit each, not {part.size}"
            raise SemanticError(message, stmt.loc)
        if not self.in_warp:
            vote = b.cast(b.apply("ne", stmt.value, 0), stmt.value.type)
            return self.reduced(b.apply("shl", vote, b.cast(self.number, vote.type)))
        votes = self.shuffle("warp ballot", stmt.value, constant(0, INT))
        if part.size < WARP and part.parts > 1:
            first = b.apply("and", b.apply("mul", part.which, part.size), WARP - 1)
            votes = b.apply("shr", votes, b.cast(first, votes.type, saturate=False))
        if part.has(WARP - 1):
            return votes
        others = b.cast(b.apply("sub", WARP, part.members), votes.type, saturate=False)
        return b.apply("and", votes, b.apply("shr", constant(2**WARP - 1, UINT), others))

    # --- scans --------------------------------------------------------------------------------------------------------

    def scanned(self) -> ir.Expr:
        before, size = self.stmt.kind == "before", self.part.size
        self.hold(self.stmt.value)
        distance = 1
        while distance < size:
            if self.in_warp or (self.of_warps and distance < WARP):
                self.scan_in_warp(distance)
            else:
                if not self.stored:
                    self.put(self.value)
                self.wait()
                combine = self.scan_in_order if distance < WARP else self.scan_in_halves
                combine(distance, before or 2 * distance < size)
            distance *= 2
        if not before:
            return self.value
        assert self.stmt.outside is not None
        later = self.b.apply("gt", self.number, 0)
        if self.in_warp:
            other = self.shuffle("warp up", self.value, constant(1, INT))
        else:
            self.wait()
            other = self.load_for_all(self.b.apply("max", self.b.apply("sub", self.number, 1), 0), common=False)
        return self.b.apply("choose", later, other, self.stmt.outside)

    def scan_in_warp(self, distance: int) -> None:
        other = self.shuffle("warp up", self.value, constant(distance, INT))
        both = self.combined(other, self.value)
        self.set(self.b.apply("choose", self.is_behind(distance), both, self.value))

    def scan_in_order(self, distance: int, again: bool) -> None:
        """A step of a scan in memory among 32 threads in a row; results go to the other array."""
        mine = self.is_behind(distance)
        before = self.apart()
        other = self.load(self.b.apply("sub", self.number, distance))
        self.set(self.combined(other, self.value))
        self.under([mine], self.rejoin(before))
        if again:
            self.buffer = 1 - self.buffer
            self.under([], (self.store(self.number, self.value),))
            self.shared.used.add(self.memory)

    def is_behind(self, distance: int) -> ir.Expr:
        """The test whether another thread is at a distance before the thread, among its 32 in a row."""
        lane = self.number if self.part.size <= WARP else self.b.apply("and", self.number, WARP - 1)
        return self.b.apply("ge", lane, distance)

    def scan_in_halves(self, distance: int, again: bool) -> None:
        """A step of a scan in memory: threads of the second half of a block add the last value of the first half, which stays."""
        mine = self.b.apply("ne", self.b.apply("and", self.number, distance), 0)
        before = self.apart()
        last = self.b.apply("sub", self.b.apply("and", self.number, -distance), 1)
        other = self.load(last)
        self.set(self.combined(other, self.value))
        if again:
            self.out.append(self.store(self.number, self.value))
        self.under([mine], self.rejoin(before))

    # --- one thread's value -------------------------------------------------------------------------------------------

    def selected(self) -> ir.Expr:
        """The value at a position of the sorted order: each thread counts the values before its own, which is its position."""
        b, stmt, part = self.b, self.stmt, self.part
        assert stmt.at is not None
        position = b.apply("min", b.apply("max", stmt.at, 0), b.apply("sub", part.members, 1))
        self.put(stmt.value)
        self.wait()
        place = ir.Var("place", Type(INT), mutable=True, temporary=True)
        k = ir.Var("other", Type(INT), temporary=True)
        self.out.append(ir.Let(place, constant(0, INT), stmt.loc))
        before = self.apart()
        theirs = self.load(ir.Ref(k))
        earlier = self.b.apply("lt", ir.Ref(k), self.number)
        tied = self.b.apply("not", self.less(stmt.value, theirs))
        first = self.b.apply("or", self.less(theirs, stmt.value), self.b.apply("and", earlier, tied))
        count = self.b.apply("add", ir.Ref(place), self.b.cast(first, Type(INT)))
        self.out.append(ir.Assign(place, count, stmt.loc))
        zero, one = constant(0, INT), constant(1, INT)
        self.under([], (ir.For(k, zero, part.members, one, tuple(self.rejoin(before)), 1, stmt.loc),))
        self.wait()
        self.under([self.b.apply("eq", ir.Ref(place), position)], (self.store(zero, stmt.value),))
        self.wait()
        return self.load_for_all(zero)

    def less(self, x: ir.Expr, y: ir.Expr) -> ir.Expr:
        """The order of NumPy, with NaN last."""
        less = self.b.apply("lt", x, y)
        if x.type.kind != "f":
            return less
        only = self.b.apply("and", self.b.apply("ne", y, y), self.b.apply("eq", x, x))
        return self.b.apply("or", less, only)

    def shuffled(self) -> ir.Expr:
        """The value of another thread; the thread's own where there is no such thread."""
        b, stmt, part = self.b, self.stmt, self.part
        assert stmt.at is not None
        operation = {"up": "sub", "down": "add", "xor": "xor"}.get(stmt.kind)
        at = stmt.at if operation is None else b.apply(operation, self.number, stmt.at)
        most = b.apply("sub", part.members, 1)
        near = b.apply("min", b.apply("max", at, 0), most)
        if self.in_warp:
            other = self.shuffle("warp shuffle", stmt.value, near)
        else:
            self.put(stmt.value)
            self.wait()
            other = self.load_for_all(near, common=stmt.kind == "broadcast")
        return other if stmt.kind == "broadcast" else b.apply("choose", b.apply("eq", at, near), other, stmt.value)


def _stages(size: int) -> list[tuple[int, int]]:
    """The number of threads at each step, and the number of values that each of them combines."""
    stages = [(WARP, -(-size // WARP))] if size > WARP else []
    reach = min(WARP, 1 << (size - 1).bit_length())
    while reach > 1:
        count = min(FAN, reach)
        reach //= count
        stages.append((reach, count))
    return stages
