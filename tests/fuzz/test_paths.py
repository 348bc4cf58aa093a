"""Random bodies that return early: what all paths write needs no default, what some do not is refused; results are Python's."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from tests.nightly import seeds

X = np.random.default_rng(5).integers(0, 2**32, 900).astype(np.uint32)
Tree = tuple[Any, ...]


class Left(Exception):
    """The simulated thread leaves: by "return", "break" or "continue"."""


def block(random: Random, depth: int, loops: int) -> list[Tree]:
    """Statements, the last of which may leave."""
    results = [statement(random, depth, loops) for _ in range(random.randint(1, 3))]
    if depth < 3 and random.random() < 0.45:
        results.append((random.choice(["return", "return", *["break", "continue"][: 2 * bool(loops)]]),))
    return results


def statement(random: Random, depth: int, loops: int) -> Tree:
    kind = random.choice(["write", "write", "if", "if", "if else", "for"] if depth else ["write"])
    number = random.randint(1, 99)
    if kind == "write":
        return kind, number
    if kind == "for" and loops < 2:
        return kind, random.randint(1, 3), block(random, depth - 1, loops + 1)
    orelse = block(random, depth - 1, loops) if kind == "if else" else []
    return "if", random.randint(1, 10**6), block(random, depth - 1, loops), orelse


def chosen(number: int, x: Any, counters: tuple[Any, ...]) -> Any:
    """A condition of unsigned integers of 32 bits, which goes either way whatever others do, in each turn."""
    mixed = x ^ (number * 0x1E3779B1 & 0x7FFFFFFF)
    for n, counter in enumerate(counters):
        mixed = mixed + (counter + 1) * (0x345FD + n)
    for _ in range(2):
        mixed = mixed * 0x45D9F3B
        mixed = mixed & 0xFFFFFFFF if isinstance(mixed, int) else mixed
        mixed = mixed ^ (mixed >> 15)
    return mixed & 1


def recorded(tree: list[Tree], x: Any, counters: tuple[Any, ...] = ()) -> None:
    for stmt in tree:
        match stmt:
            case ("write", number):
                _writeTensor(_out0, number)
            case ("if", number, then, orelse):
                with _if(chosen(number, x, counters) != 0):
                    recorded(then, x, counters)
                if orelse:
                    with _else():
                        recorded(orelse, x, counters)
            case ("for", turns, body):
                with _for(turns) as i:
                    recorded(body, x, (*counters, _convert_uint(i)))
            case ("return",):
                _return()
            case ("break",):
                _break()
            case ("continue",):
                _continue()


def simulated(tree: list[Tree], x: int, counters: tuple[int, ...], written: list[int]) -> None:
    for stmt in tree:
        match stmt:
            case ("write", number):
                written[:] = [number]
            case ("if", number, then, orelse):
                simulated(then if chosen(number, x, counters) else orelse, x, counters, written)
            case ("for", turns, body):
                for i in range(turns):
                    try:
                        simulated(body, x, (*counters, i), written)
                    except Left as left:
                        if left.args == ("break",):
                            break
                        if left.args == ("return",):
                            raise
            case (leaves,):
                raise Left(leaves)


def value_of(tree: list[Tree], x: int) -> int:
    """The last value that a thread writes; 0: nothing."""
    written = [0]
    with suppress(Left):
        simulated(tree, x, (), written)
    return written[0]


def check(seed: int) -> tuple[bool, bool]:
    """Return whether gpuop accepts an output without a default, and whether all threads have written it: if it accepts, they have.

    Results are Python's.
    """
    random = Random(seed)
    tree = [stmt for stmt in block(random, 3, 0) if stmt[0] not in ("write", "return")]
    tree += [("write", 100)] * (random.random() < 0.6)

    def body(f):
        recorded(tree, _readTensor(f))

    if "'write'" not in str(tree):
        return False, False
    expected = np.array([value_of(tree, int(x)) for x in X], np.uint32)
    np.testing.assert_array_equal(gp.operator(body, default=0)(gp.ScalarField(X)).numpy(), expected, f"{seed} {tree}")
    try:
        result = gp.operator(body)(gp.ScalarField(X)).numpy()
    except gp.SemanticError as refused:
        if "_out0 is not written on every path" not in str(refused):
            raise
        return False, bool(expected.all())
    np.testing.assert_array_equal(result, expected, f"{seed} {tree}")
    assert expected.all(), f"{seed} {tree}"
    return True, True


def test_paths_that_return():
    with gp.use_device("reference"):
        results = [check(seed) for seed in seeds(0, 200)]
    paths, written = map(sum, zip(*results, strict=True))
    assert 0.2 < paths / len(results) < 0.8
    assert written - paths <= 0.01 * len(results) + 1, "refused, though no thread of 900 comes where nothing is written"


def test_paths_on_the_best_device():
    for seed in seeds(1000, 6):
        check(seed)
