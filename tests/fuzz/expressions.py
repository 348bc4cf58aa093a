"""Random well-typed expressions, as tuples: (form, type, …)."""

from __future__ import annotations

from collections.abc import Callable

from . import functions
from .kinds import BITS, FLOATS, INTEGERS, RANKED, below, common, join, plain_numbers, split
from .leaves import COMPARE, Leaves

ARITHMETIC = ("+", "-", "*", "/", "%", "//")
BITWISE = ("&", "|", "^")
SHIFTS = ("<<", ">>")


class Expressions(Leaves):
    """Makes expressions of wanted types."""

    def operands(self, kind: str, count: int, depth: int, exactly: bool = False) -> tuple:
        """Operands whose common type is the wanted one: one has it, the others have it or turn into it."""
        dtype, lanes = split(kind)
        have = self.below(count)
        whole = self.below(count)
        results = []
        for n in range(count):
            of = dtype if n == have or exactly or self.chance(60) else self.pick(below(dtype)[::-1])
            length = lanes if n == whole or self.chance(70) else 1
            results.append(self.value(join(of, length), depth))
        return tuple(results)

    # --- values -------------------------------------------------------------------------------------------------

    def value(self, kind: str, depth: int) -> tuple:
        self.budget -= 1
        if depth <= 0 or self.budget < 0:
            return self.leaf(kind)
        forms = self._forms(kind)
        choice = self.below(len(forms) + 2)
        return self.leaf(kind) if choice < 2 else forms[choice - 2](kind, depth - 1)

    def _forms(self, kind: str) -> list[Callable[[str, int], tuple]]:
        dtype, lanes = split(kind)
        forms = [self._where, self._convert]
        if dtype == "bool":
            return [*forms, self._compare, self._compare, self._compare, self._logic, self._bitwise, self._test_literal]
        forms += [
            self._binary,
            self._binary,
            self._binary,
            self._literal,
            self._unary,
            self._call,
            self._call,
            self._call,
        ]
        forms += [self._power, self._bits]
        if dtype in INTEGERS:
            forms += [self._bitwise, self._bitwise, self._shift]
        if dtype == "int":
            forms.append(self._of_bools)
        if lanes > 1:
            forms += [self._vector, self._vector]
        return forms

    def _where(self, kind: str, depth: int) -> tuple:
        lanes = split(kind)[1]
        return ("where", kind, self.value(join("bool", self.pick((1, lanes))), depth), *self.operands(kind, 2, depth))

    def _convert(self, kind: str, depth: int) -> tuple:
        dtype, lanes = split(kind)
        if dtype == "bool" and lanes > 1:
            return self._compare(kind, depth)
        return ("convert", kind, self.value(join(self.pick(RANKED), lanes), depth))

    def _binary(self, kind: str, depth: int) -> tuple:
        return ("binary", kind, self.pick(ARITHMETIC), *self.operands(kind, 2, depth))

    def _of_bools(self, kind: str, depth: int) -> tuple:
        of = join("bool", split(kind)[1])
        return ("binary", kind, self.pick(ARITHMETIC[:3]), self.value(of, depth), self.value(of, depth))

    def _literal(self, kind: str, depth: int) -> tuple:
        dtype, lanes = split(kind)
        if dtype == "float" and self.chance(30):  # a floating number beside an integer
            a, n = self.value(join(self.pick(INTEGERS), lanes), depth), self.pick((0.5, -3.25))
        else:
            a, n = self.value(kind, depth), self.pick(plain_numbers(dtype))
        return ("literal", kind, self.pick(ARITHMETIC), a, n, self.chance(30))

    def _unary(self, kind: str, depth: int) -> tuple:
        ops = ("neg", "abs", "pos") if split(kind)[0] in FLOATS else ("neg", "abs", "invert")
        return ("unary", kind, self.pick(ops), self.value(kind, depth))

    def _call(self, kind: str, depth: int) -> tuple:
        return functions.call(self, kind, self.pick(functions.names_for(kind)), depth)

    def _power(self, kind: str, depth: int) -> tuple:
        most = 3 if split(kind)[0] in FLOATS else 8
        return ("power", kind, self.value(kind, depth), self.below(most))

    def _bits(self, kind: str, depth: int) -> tuple:
        dtype, lanes = split(kind)
        of = join(self.pick([d for d in RANKED[1:] if BITS[d] == BITS[dtype] and d != dtype]), lanes)
        value = self.value(of, depth)
        return ("bits", kind, ("real", of, value) if split(of)[0] in FLOATS else value)

    def _bitwise(self, kind: str, depth: int) -> tuple:
        return ("binary", kind, self.pick(BITWISE), *self.operands(kind, 2, depth))

    def _shift(self, kind: str, depth: int) -> tuple:
        _dtype, lanes = split(kind)
        if self.chance(30):
            return ("literal", kind, self.pick(SHIFTS), self.value(kind, depth), self.below(70), False)
        by = join(self.pick(INTEGERS), self.pick((1, lanes)))
        return ("binary", kind, self.pick(SHIFTS), self.value(kind, depth), self.value(by, depth))

    def _vector(self, kind: str, depth: int) -> tuple:
        """Side by side; `_vector` takes the common type."""
        dtype, lanes = split(kind)
        parts = []
        while lanes:
            length = 1 + self.below(lanes)
            parts.append(self.value(join(self.pick((dtype, *below(dtype)[1:])), length), depth))
            lanes -= length
        if common(*(split(p[1])[0] for p in parts)) == dtype and self.chance(50):
            return ("vector", kind, *parts)
        return ("pack", kind, *parts) if len(parts) > 1 else self.adapted(parts[0], kind)

    def _compare(self, kind: str, depth: int) -> tuple:
        of = join(self.pick(RANKED), split(kind)[1])
        return ("binary", kind, self.pick(COMPARE), *self.operands(of, 2, depth))

    def _test_literal(self, kind: str, depth: int) -> tuple:
        dtype = self.pick(RANKED)
        a = self.value(join(dtype, split(kind)[1]), depth)
        return ("literal", kind, self.pick(COMPARE), a, self.pick(plain_numbers(dtype)), False)

    def _logic(self, kind: str, depth: int) -> tuple:
        lanes = split(kind)[1]
        name = self.pick(("_and", "_or", "_not", "~"))
        if name in ("_not", "~"):
            of = kind if name == "~" else join(self.pick(RANKED), lanes)
            return ("call", kind, name, self.value(of, depth))
        a, b = (self.value(join(self.pick(RANKED), n), depth) for n in (lanes, self.pick((1, lanes))))
        return ("call", kind, name, a, b)
