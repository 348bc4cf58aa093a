"""Sorting networks: sorting and selection of lists by exchanges of two values, with no data-dependent step."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.builtins.functions import OF_LISTS, alike, listed
from gpuop.dsl.recorder.recorder import current
from gpuop.dsl.recorder.value import Operand, Value, apply
from gpuop.ir import type_rules
from gpuop.ir.types import is_integer

Exchange = tuple[int, int]  # the lesser of two values comes to the first place, the greater to the second one
Network = tuple[tuple[Exchange, ...], int]  # exchanges, and the place of the value that is wanted

# Medians with fewer exchanges than general networks have: J. L. Smith, "Implementing median filters in XC4000E FPGAs" (1996), and
# N. Devillard, "Fast median search: an ANSI C implementation" (1998). Threes that follow one another are sorted first, so that
# windows share them that are given column by column.
MEDIANS = {
    9: "1 2 4 5 7 8 0 1 3 4 6 7 1 2 4 5 7 8 0 3 5 8 4 7 3 6 1 4 2 5 4 7 4 2 6 4 4 2",
    25: "0 1 3 4 2 4 2 3 6 7 5 7 5 6 9 10 8 10 8 9 12 13 11 13 11 12 15 16 14 16 14 15 18 19 17 19 17 18 21 22 20 22 20 21 23 24 "
    "2 5 3 6 0 6 0 3 4 7 1 7 1 4 11 14 8 14 8 11 12 15 9 15 9 12 13 16 10 16 10 13 20 23 17 23 17 20 21 24 18 24 18 21 19 22 "
    "8 17 9 18 0 18 0 9 10 19 1 19 1 10 11 20 2 20 2 11 12 21 3 21 3 12 13 22 4 22 4 13 14 23 5 23 5 14 15 24 6 24 6 15 "
    "7 16 7 19 13 21 15 23 7 13 7 15 1 9 3 11 5 17 11 17 9 17 4 10 6 12 7 14 4 6 4 7 12 14 10 14 6 7 10 12 6 10 6 17 12 17 "
    "7 17 7 10 12 18 7 12 10 18 12 20 10 20 10 12",
}


def _sort(*values: Operand) -> list[Value]:
    """The values in ascending order and in their common type, of two or more or of a list of them: `low, high = _sort(a, b)`.

    Components of vectors are sorted apart. Where NaN is among the values, their order is not defined.

    Returns:
        A list, of which only what is used is computed.

    Raises:
        SemanticError: a single value that is no list.
    """
    operands = listed("_sort", values)
    return _ordered("_sort", operands, sorting(len(operands)), range(len(operands)))


def selected(*args: Any) -> Value:
    """`_select(values, k)`: the one of a list that has k others before it, as `_sort(values)[k]` is, by fewer exchanges.

    Raises:
        SemanticError: no k, or one beyond the list.
    """
    if len(args) != 2:
        raise SemanticError(f"`_select(values, k)` takes a list and an integer, not {len(args)} arguments")
    values, k = args
    operands = listed("_select", (values,))
    if isinstance(k, Value) or not is_integer(k):
        shown = "a recorded value" if isinstance(k, Value) else described(k)
        raise SemanticError(
            f"`_select(values, k)` takes a Python integer, not {shown}; `_switch(k, _sort(values))` selects by a recorded one"
        )
    if not -len(operands) <= k < len(operands):
        raise SemanticError(f"`_select(values, k)` of {len(operands)} values has no k = {k}")
    network, place = selection(len(operands), operator.index(k) % len(operands))
    return _ordered("_select", operands, network, [place])[0]


OF_LISTS["select"] = selected


def _ordered(word: str, operands: Sequence[Any], network: Sequence[Exchange], places: Sequence[int]) -> list[Value]:
    """Values at some positions after a network."""

    def exchanged() -> tuple[Any, ...]:
        lanes: list[Any] = alike(word, type_rules.arithmetic, operands)
        for (first, second), low, high in needed_exchanges(network, places):
            a, b = lanes[first], lanes[second]
            # both use one comparison, so no value is lost or duplicated, not even NaN
            lanes[first] = apply("min", a, b) if low else None
            lanes[second] = apply("max", b, a) if high else None
        return tuple(lanes[place].expr for place in places)

    return [Value(expr) for expr in current(f"`{word}`").steps(exchanged)]


# --- networks -----------------------------------------------------------------------------------------------------------


def needed_exchanges(network: Sequence[Exchange], places: Sequence[int]) -> list[tuple[Exchange, bool, bool]]:
    """The exchanges that the values at some positions depend on, each with flags for the results that are needed."""
    needed, result = set(places), list[tuple[Exchange, bool, bool]]()
    for first, second in reversed(network):
        if first in needed or second in needed:
            result.append(((first, second), first in needed, second in needed))
            needed |= {first, second}
    return result[::-1]


def cost(network: Sequence[Exchange], place: int) -> int:
    """Number of minima and maxima of a selection."""
    return sum(low + high for _, low, high in needed_exchanges(network, [place]))


@lru_cache(maxsize=256)
def sorting(count: int) -> tuple[Exchange, ...]:
    """K. E. Batcher's odd-even merge sort (AFIPS 1968), of any number of values."""
    network, run = list[Exchange](), 1
    while run < count:
        step = run
        while step:
            for start in range(step % run, count - step, 2 * step):
                for k in range(start, min(start + step, count - step)):
                    if k // (2 * run) == (k + step) // (2 * run):
                        network.append((k, k + step))
            step //= 2
        run *= 2
    return tuple(network)


@lru_cache(maxsize=256)
def selection(count: int, k: int) -> Network:
    """The cheapest known network that brings the value of a rank to a place."""
    if count in MEDIANS and 2 * k + 1 == count:
        numbers = [int(n) for n in MEDIANS[count].split()]
        return tuple(zip(numbers[::2], numbers[1::2], strict=True)), k
    mirrored = tuple((count - 1 - b, count - 1 - a) for a, b in sorting(count))
    return min([(sorting(count), k), (mirrored, k), forgetting(count, k)], key=lambda network: cost(*network))


def forgetting(count: int, k: int) -> Network:
    """Selection that drops the least and the greatest of the candidates, takes another value, and so on."""
    below, above = k, count - 1 - k  # number of dropped values
    live = list(range(max(below, above) + 2))[:count]
    network = list[Exchange]()
    for new in range(len(live), 2 * count):
        half, size = len(live) // 2, len(live)
        if below and above:
            network += [(live[n], live[size - 1 - n]) for n in range(half)]
            lower, upper = live[: size - half], live[half:]
            network += [(lower[0], n) for n in lower[1:]]
            network += [(n, upper[-1]) for n in upper[:-1]]
        elif below:
            network += [(live[0], n) for n in live[1:]]
        elif above:
            network += [(n, live[-1]) for n in live[:-1]]
        else:
            break
        live = live[below > 0 : size - (above > 0)]
        below, above = max(below - 1, 0), max(above - 1, 0)
        live += [new] * (new < count)
    return tuple(network), live[0]
