"""SWAR arithmetic: four integers of 8 or 16 bits in one or two words, computed at once; no lane overflows into the next.

    8 bits     | x3 | x2 | x1 | x0 |                   one word
    16 bits    |    x2   |    x0   |  |    x3   |    x1   |     a word of even lanes, and one of odd lanes

Ranges prove that results fit their lanes; where they exceed 8 bits, lanes become 16 bits wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from gpuop.base.records import dataclass
from gpuop.ir.analysis.intervals import Range, interval
from gpuop.ir.build import Builder, constant
from gpuop.ir.nodes import Const, Expr
from gpuop.ir.types import UINT

LANES = 4  # columns in a word of bytes
ONES = {8: 0x01010101, 16: 0x00010001}  # 1 in all lanes
MOST = {8: 0xFF, 16: 0xFFFF}
ODD, HIGH = 0x4341, 0x7351  # selectors of bytes of two words: the odd ones of the first, with 0 between; those of both
HALVES = 0x5432  # selector of the high half of the first word and the low half of the second
Words = tuple[Expr, ...]  # a word of four bytes; or one with the even lanes and one with the odd ones, 16 bits each


@dataclass
class Packed:
    """Four integers that are not negative, in the forms that were requested.

    Attributes:
        range: the range of all of them.
        bits: the bits of a lane in the original form; 0 for constants, which have any.
        make: builds the words of a form.
        forms: the words of each form, by the bits of a lane.
    """

    range: Range
    bits: int
    make: Callable[[int], Words]
    forms: dict[int, Words] = field(default_factory=dict)

    def form(self, bits: int) -> Words:
        if bits not in self.forms:
            self.forms[bits] = self.make(bits)
        return self.forms[bits]


@dataclass(frozen=True)
class Flags:
    """Four bools: the highest bits of lanes, whose other bits are arbitrary.

    Attributes:
        differs: for a test of equality, lanes that are 0 where it holds; their highest bits are 0.
    """

    bits: int
    words: Words
    differs: Words | None = None


class PackedLanes:
    """Builds the arithmetic; methods return None for operations without a SWAR form."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.forms: dict[Words, Words] = {}  # words in the other form

    def number(self, value: int) -> Packed | None:
        if not 0 <= value <= MOST[16]:
            return None
        return Packed((value, value), 0, lambda bits: (splat(value, bits),) * (bits // 8))

    def packed(self, bits: int, words: Words, range_: Range) -> Packed:
        return Packed(range_, bits, lambda other: self.converted(words, other), {bits: words})

    def converted(self, words: Words, bits: int) -> Words:
        """Words in the other form: bytes widened to 16 bits, or lanes of 16 bits, which hold bytes, narrowed."""
        b = self.b
        if words not in self.forms and bits == 16:
            (word,) = words
            self.forms[words] = b.apply("and", word, splat(255, 16)), self.bytes(word, uint(0), ODD)
        elif words not in self.forms:
            even, odd = words
            self.forms[words] = (self.bytes(even, odd, 0x6240),)
        return self.forms[words]

    def bytes(self, x: Expr, y: Expr, selector: int) -> Expr:
        """Four bytes of two words, permuted by a selector."""
        return self.b.apply("bytes_of", x, y, uint(selector))

    def beside(self, parts: Callable[[int], Words], stored: int, column: int, range_: Range) -> Packed:
        """The four columns from a column on: a word, or the last bytes of one and the first ones of the next.

        Args:
            parts: returns the words of a number, in the form of `stored` bits.
        """
        first, shift = divmod(column, LANES)

        def form(k: int, bits: int) -> Words:
            return parts(k) if bits == stored else self.converted(parts(k), bits)

        def make(bits: int) -> Words:
            if not shift:
                return form(first, bits)
            if bits == 8:
                (word,), (following,) = form(first, bits), form(first + 1, bits)
                return (self.bytes(word, following, 0x3210 + shift * 0x1111),)
            (even, odd), (next_even, next_odd) = form(first, bits), form(first + 1, bits)
            if shift == 1:
                return odd, self.bytes(even, next_even, HALVES)
            behind = self.bytes(odd, next_odd, HALVES)
            return (self.bytes(even, next_even, HALVES), behind) if shift == 2 else (behind, next_even)

        return Packed(range_, stored, make)

    def high(self, words: Words, bits: int) -> Words:
        """The high bytes of lanes of 16 bits, in a form."""
        even, odd = words
        if bits == 8:
            return (self.bytes(even, odd, HIGH),)
        return self.bytes(even, uint(0), ODD), self.bytes(odd, uint(0), ODD)

    def each(self, op: str, *operands: Words) -> Words:
        return tuple(self.b.apply(op, *words) for words in zip(*operands, strict=True))

    # --- arithmetic ---------------------------------------------------------------------------------------------

    def apply(self, op: str, x: Packed, y: Packed) -> Packed | None:
        """An operation on integers, whose exact result must fit 16 bits and not be negative."""
        range_ = interval(op, [x.range, y.range], UINT)
        constant_ = y.range[0] == y.range[1]
        if range_[0] < 0 or range_[1] > MOST[16]:
            return None
        bits = 8 if max(x.bits, y.bits) <= 8 and max(range_[1], x.range[1], y.range[1]) <= MOST[8] else 16
        if op in ("add", "sub", "and", "or", "xor"):
            return self.packed(bits, self.each(op, x.form(bits), y.form(bits)), range_)
        if op == "shl" and constant_ and y.range[0] < 16:
            factor = self.number(1 << y.range[0])
            assert factor is not None
            return self.apply("mul", x, factor)
        if op == "mul" and (constant_ or x.range[0] == x.range[1]):
            x, times = (x, y.range[0]) if constant_ else (y, x.range[0])
            return self.packed(bits, self.each("mul", x.form(bits), (uint(times),) * (bits // 8)), range_)
        if op == "shr" and constant_ and y.range[0] < x.bits:
            return self.shifted(x, y.range[0], range_)
        if op in ("min", "max"):
            return self.packed(16, self.each(f"halves_{op}", x.form(16), y.form(16)), range_)
        return None

    def shifted(self, x: Packed, count: int, range_: Range) -> Packed:
        """Lanes shifted to the right; the bits from the next lane are masked out."""
        words = x.form(x.bits)
        if (x.bits, count) == (16, 8):
            return Packed(range_, 16, lambda bits: self.high(words, bits))
        shifted = self.each("shr", words, (uint(count),) * len(words))
        mask = (splat(MOST[x.bits] >> count, x.bits),) * len(words)
        return self.packed(x.bits, self.each("and", shifted, mask), range_)

    def masked(self, x: Packed, most: int) -> Packed:
        """The low bits of lanes."""
        mask = self.number(most)
        assert mask is not None
        result = self.apply("and", x, mask)
        assert result is not None
        return result

    # --- conditions ---------------------------------------------------------------------------------------------

    def compared(self, op: str, x: Packed, y: Packed) -> Flags | None:
        """A comparison of lanes whose highest bits are 0: those of a difference are the result."""
        if op in ("gt", "le"):
            return self.compared({"gt": "lt", "le": "ge"}[op], y, x)
        bits = next((n for n in (8, 16) if max(x.bits, y.bits) <= n and max(x.range[1], y.range[1]) < 1 << (n - 1)), 0)
        if not bits:
            return None
        a, c = x.form(bits), y.form(bits)
        if op in ("eq", "ne"):
            flags = self.equal(bits, self.each("xor", a, c))
            return self.inverted(flags) if op == "ne" else flags
        flags = Flags(bits, self.each("sub", self.each("or", a, highest(bits)), c))  # x ≥ y
        return self.inverted(flags) if op == "lt" else flags

    def equal(self, bits: int, differs: Words) -> Flags:
        return Flags(bits, self.each("sub", highest(bits), differs), differs)

    def inverted(self, flags: Flags) -> Flags:
        return Flags(flags.bits, self.each("xor", flags.words, highest(flags.bits)))

    def combined(self, op: str, x: Flags, y: Flags) -> Flags:
        bits = max(x.bits, y.bits)
        if op == "and" and x.differs and y.differs and x.bits == y.bits:
            return self.equal(bits, self.each("or", x.differs, y.differs))
        return Flags(bits, self.each(op, self.flags(x, bits), self.flags(y, bits)))

    def flags(self, x: Flags, bits: int) -> Words:
        """Flags of bytes as those of 16 bits."""
        if x.bits == bits:
            return x.words
        (word,) = x.words
        return self.b.apply("shl", word, uint(8)), word

    def truth(self, x: Flags) -> Packed:
        """Integers, 1 where flags hold and 0 elsewhere."""
        (word,) = x.words if x.bits == 8 else self.high(x.words, 8)
        return self.packed(8, self.each("and", self.each("shr", (word,), (uint(7),)), (splat(1, 8),)), (0, 1))

    def chosen(self, test: Flags, x: Packed, y: Packed) -> Packed:
        """x where the test holds, else y."""
        range_ = min(x.range[0], y.range[0]), max(x.range[1], y.range[1])
        bits = 8 if range_[1] <= MOST[8] and max(x.bits, y.bits) <= 8 else 16
        truth = self.truth(test).form(bits)
        mask = self.each("mul", truth, (uint(MOST[bits]),) * len(truth))
        if y.range == (0, 0):
            return self.packed(bits, self.each("and", x.form(bits), mask), range_)
        differs = self.each("and", self.each("xor", x.form(bits), y.form(bits)), mask)
        return self.packed(bits, self.each("xor", y.form(bits), differs), range_)


def uint(value: int) -> Const:
    return constant(value, UINT)


def highest(bits: int) -> Words:
    """The words with the highest bits of all lanes set."""
    return (splat(1 << (bits - 1), bits),) * (bits // 8)


def splat(value: int, bits: int) -> Const:
    """The constant word with a number in all lanes."""
    return uint(value * ONES[bits])
