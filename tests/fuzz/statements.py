"""Random statements. Barriers stand where all threads of a group come; between two of them local memory is either
written, each slot by its thread alone, or read."""

from __future__ import annotations

from math import prod

from .expressions import ARITHMETIC, BITWISE, SHIFTS, Expressions
from .kinds import FLOATS, INTEGERS, RANKED, common, join, split


class Statements(Expressions):
    """Makes bodies. `loops` says of each open loop whether all threads of a group are in the same turn."""

    def __init__(self, draw, exactly: bool = False) -> None:
        super().__init__(draw)
        self.exactly = exactly
        self.budget = 60 if exactly else 120
        self.outputs: tuple = ()
        self.loops: list[bool] = []
        self.count = 0
        self.together = False
        self.by_element = False

    def body(self, barriers: bool, depth: int) -> tuple:
        self.together = barriers
        results = list(self.block(depth, 3 + self.below(5)))
        if barriers and self.scope.phase == "read":
            results.append(self._barrier())
        return tuple(results)

    def block(self, depth: int, most: int) -> tuple:
        """Statements with their own variables."""
        s = self.scope
        sizes = len(s.variables), len(s.arrays), len(s.counters)
        results = [self.stmt(depth) for _ in range(most)]
        del s.variables[sizes[0] :], s.arrays[sizes[1] :], s.counters[sizes[2] :]
        return tuple(results)

    def stmt(self, depth: int) -> tuple:
        forms = [self._set, self._set, self._set, self._update, self._component]
        forms += [self._store] if self.scope.arrays else []
        forms += [self._new] if self.count < 6 else []
        forms += [self._write, self._write] if self.outputs else []
        if self.scope.locals or self.scope.bins or self.scope.shared:
            forms += [self._local, self._local]
        if self.together:
            forms += [self._barrier, self._barrier, self._uniform_set]
            forms += [self._uniform_if, self._uniform_for] if depth else []
        forms += [self._leave] if self.loops and not self.loops[-1] else []
        if depth and self.budget > 0:
            forms += [self._if, self._if, self._for, self._while, self._each]
        return self.pick(forms)() if forms else ("nothing",)

    def _depth(self) -> int:
        return 3 if self.budget > 60 else 1

    # --- variables and arrays -----------------------------------------------------------------------------------------

    def _set(self) -> tuple:
        name, kind, *_ = self.pick(self.scope.variables)
        lanes = split(kind)[1]
        of = kind if self.chance(80) else join(self.pick(RANKED[1:]), self.pick((1, lanes)))
        return ("set", name, self.value(of, self._depth()))

    def _update(self) -> tuple:
        name, kind, *_ = self.pick(self.scope.variables)
        dtype, lanes = split(kind)
        other = self.pick(RANKED)
        ops = list(ARITHMETIC[:5])
        ops += BITWISE if common(dtype, other) not in FLOATS else ()
        ops += SHIFTS if dtype in INTEGERS and other in INTEGERS else ()
        return ("update", name, self.pick(ops), self.value(join(other, self.pick((1, lanes))), 2))

    def _component(self) -> tuple:
        results = [v for v in self.scope.variables if split(v[1])[1] > 1]
        if not results:
            return self._set()
        name, kind, *_ = self.pick(results)
        dtype, lanes = split(kind)
        letters = list("xyzw"[:lanes])
        chosen = "".join(letters.pop(self.below(len(letters))) for _ in range(1 + self.below(lanes)))
        if self.chance(30):
            return ("element", name, self.below(lanes), self.value(self.pick(RANKED), 2))
        of = join(self.pick((dtype, *RANKED[1:])), self.pick((1, len(chosen))))
        return ("component", name, chosen, self.value(of, 2))

    def _store(self) -> tuple:
        name, kind, dims = self.pick(self.scope.arrays)
        return (self.pick(("store", "store", "add")), name, self.places(dims), self._stored(kind))

    def _stored(self, kind: str) -> tuple:
        dtype, lanes = split(kind)
        of = join(self.pick((dtype, dtype, *RANKED[1:])), self.pick((1, lanes)))
        return self.value(of, 2)

    def _new(self) -> tuple:
        """A variable or an array of this block."""
        self.count += 1
        kind = self.kind()
        if self.chance(30):
            dims = tuple(1 + self.below(3) for _ in range(1 + self.below(3)))
            self.scope.arrays.append((f"b{self.count}a", kind, dims))
            return ("new array", f"b{self.count}a", kind, dims)
        first = self.value(kind, 2) if self.chance(60) else None
        self.scope.variables.append((f"w{self.count}", kind))
        return ("new", f"w{self.count}", kind, first)

    # --- outputs --------------------------------------------------------------------------------------------------------

    def written(self, output) -> tuple:
        """A value that may be written: of any type, scalars spread."""
        lanes = 1 if self.by_element else prod(output.tensor)
        dtype = self.pick(RANKED)
        return self.value(dtype if dtype == "bool" else join(dtype, self.pick((1, lanes))), 3)

    def _write(self) -> tuple:
        return self.write(*self.pick(self.outputs))

    def write(self, n: int, output) -> tuple:
        if output.how == "atomic":
            return ("atomic", n, tuple(self.index() for _ in output.grid), self.value(output.dtype.rstrip("32"), 1))
        count = prod(output.tensor)
        if count > 1 and not self.by_element and self.chance(40):
            return ("write element", n, self.places((count,))[0], self.value(self.pick(RANKED), 2))
        return ("write", n, self.written(output))

    # --- local memory ---------------------------------------------------------------------------------------------------

    def _local(self) -> tuple:
        s = self.scope
        if s.phase == "read":
            return self._set()
        forms = [lambda a=a: ("own slot", a[0], self._stored(a[1])) for a in s.locals]
        forms += [lambda a=a: ("leader", a[0], self._stored(a[1])) for a in s.shared]
        forms += [
            lambda a=a: ("bin", a[0], self.places((a[2],))[0], self.value(a[1], 1)) for a in s.bins for _ in (0, 1)
        ]
        return self.pick(forms)()

    def _barrier(self) -> tuple:
        self.scope.phase = "read" if self.scope.phase == "write" else "write"
        return ("barrier", self.pick(("local", "local", "global")))

    def _uniform(self, kind: str, depth: int = 1) -> tuple:
        """A value that all threads of a group agree on."""
        self.scope.uniform_only = True
        result = self.value(kind, depth)
        self.scope.uniform_only = False
        return result

    def _uniform_set(self) -> tuple:
        name, kind, *_ = self.pick(self.scope.uniform)
        return ("set", name, self._uniform(kind))

    def _paired(self, depth: int, extra: tuple = ()) -> tuple:
        """A block that ends in the phase it began in."""
        phase = self.scope.phase
        results = (*extra, *self.block(depth - 1, 1 + self.below(4)))
        return results if self.scope.phase == phase else (*results, self._barrier())

    def _uniform_if(self) -> tuple:
        then = self._paired(1)
        return ("if", ((self._uniform("bool"), then),), self._paired(1) if self.chance(40) else None)

    def _uniform_for(self) -> tuple:
        stop = (
            ("number", "int", (1 + self.below(3),)) if self.chance(50) else ("within", "int", self._uniform("int"), 4)
        )
        name = self._counter()
        self.loops.append(True)
        leave = (("leave if", self._uniform("bool"), self.pick(("_break", "_continue"))),) if self.chance(40) else ()
        body = self._paired(1, leave)
        self._uncounted()
        return ("for", name, None, stop, None, 1, body)

    # --- blocks -----------------------------------------------------------------------------------------------------------

    def _apart(self, depth: int = 1) -> tuple:
        """A block that only some threads may run."""
        together, self.together = self.together, False
        result = self.block(depth - 1 if not self.chance(40) else depth, 1 + self.below(3))
        self.together = together
        return result

    def _if(self) -> tuple:
        depth = min(1, max(0, self.budget // 20))
        branches = [(self.value("bool", 2), self._apart(depth))]
        while self.chance(25) and len(branches) < 3:
            branches.append((self.value("bool", 2), self._apart(depth)))
        orelse = self._apart(depth) if self.chance(40) else None
        return ("if", tuple(branches), orelse)

    def _counter(self) -> str:
        self.count += 1
        self.scope.counters.append((f"i{self.count}", "int"))
        return f"i{self.count}"

    def _uncounted(self) -> None:
        self.loops.pop()
        self.scope.counters.pop()

    def _for(self) -> tuple:
        start = self.pick((None, ("number", "int", (self.below(5) - 2,)), ("within", "int", self.index(), 3)))
        stop = ("number", "int", (self.below(5),)) if self.chance(60) else ("within", "int", self.index(), 5)
        step = self.pick((None, 1, 2, 3, -1, -2, "computed"))
        start = ("number", "int", (0,)) if step is not None and start is None else start
        name = self._counter()
        self.loops.append(False)
        body = self._apart()
        self._uncounted()
        return ("for", name, start, stop, step, self.pick((1, 1, True, 2)), body)

    def _while(self) -> tuple:
        turns, condition = 1 + self.below(4), self.value("bool", 1) if self.chance(40) else None
        self.loops.append(False)
        body = self._apart()
        self.loops.pop()
        return ("while", turns, condition, self.chance(30), body)

    def _leave(self) -> tuple:
        return ("leave if", self.value("bool", 1), self.pick(("_break", "_continue")))

    def _each(self) -> tuple:
        shape = self.pick(((3,), (2, 3), (2,), (1,), (5,)))
        element, self.scope.element = self.scope.element, True
        loops, self.loops, outputs = self.loops, [], self.outputs
        self.outputs = () if element else outputs  # their elements are those of the outer block
        body = self._apart(0)
        self.loops, self.scope.element, self.outputs = loops, element, outputs
        return ("each", shape, body)
