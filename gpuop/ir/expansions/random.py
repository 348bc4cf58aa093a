"""Counter-based random numbers by key: Philox 4×32-10.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Ten rounds of
products of 32 bits, which integers have alike on every device.
"""

from __future__ import annotations

from gpuop.base.errors import SemanticError, article
from gpuop.ir.build import Builder, constant
from gpuop.ir.expansions.registry import define, integers
from gpuop.ir.nodes import Expr
from gpuop.ir.types import LONG, UINT, ULONG, Type

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)  # increments of the key's words in each round


@define(
    "random",
    2,
    "random",
    "four uints by a key and a counter (Philox 4×32-10): a scalar is 64 bits, a vector 32 bits for each component, lowest first",
    alone=(0,),
)
def random(b: Builder, key: Expr, counter: Expr) -> Expr:
    k, c = _words(b, key, 2, "key"), _words(b, counter, 4, "counter")
    for turn in range(ROUNDS):
        if turn:
            k = [b.apply("add", word, constant(step, UINT)) for word, step in zip(k, STEPS, strict=True)]
        (low0, high0), (low1, high1) = (_product(b, c[n], m) for n, m in zip((0, 2), MULTIPLIERS, strict=True))
        c = [_mixed(b, high1, c[1], k[0]), low1, _mixed(b, high0, c[3], k[1]), low0]
    return b.pack(c)


def _words(b: Builder, arg: Expr, count: int, what: str) -> list[Expr]:
    """The 32-bit words of a number; those that it has not are 0."""
    (arg,) = integers(b, "random", arg)
    if arg.type.lanes > count:
        most = "two" if count == 2 else "four"
        raise SemanticError(f"the {what} of _random has up to {most} components, not {article(str(arg.type))}'s")
    if arg.type.lanes > 1:
        words = [b.cast(lane, Type(UINT), saturate=False) for lane in b.lanes(arg)]
    else:
        wide = b.cast(b.cast(arg, Type(LONG if arg.type.kind == "i" else ULONG)), Type(ULONG), saturate=False)
        words = _halves(b, wide)
    return words + [constant(0, UINT)] * (count - len(words))


def _halves(b: Builder, wide: Expr) -> list[Expr]:
    """The low and the high word of 64 bits."""
    return [b.cast(half, Type(UINT), saturate=False) for half in (wide, b.apply("shr", wide, 32))]


def _product(b: Builder, word: Expr, by: int) -> list[Expr]:
    return _halves(b, b.apply("mul", b.cast(word, Type(ULONG)), constant(by, ULONG)))


def _mixed(b: Builder, high: Expr, word: Expr, key: Expr) -> Expr:
    return b.apply("xor", b.apply("xor", high, word), key)
