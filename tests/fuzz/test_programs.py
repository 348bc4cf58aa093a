"""Random kernels of everything that kernels have: what is recorded, what the passes make of it and what devices compute
are equal bit for bit, and inexact functions within their bounds; checked execution finds nothing to complain about."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from

import gpuop as gp
from gpuop import dsl
from gpuop.base.errors import SemanticError
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl.builtins.functions import table
from gpuop.runtime.reference import checked
from tests.codegen.nvrtc import compile_cuda

from . import functions, running
from .common import INTERPRETED, profile
from .expressions import ARITHMETIC, BITWISE, SHIFTS
from .kinds import FLOATS, RANKED, STORED, join
from .leaves import BORDERS, COMPARE
from .programs import BINS, pairs, programs

WORDS = """
set update component element store add new if for while each leave barrier own leader bin write atomic
number variable thread table array slot shared read readElement sample offset convert spread swizzle vector pack
bits binary literal unary power where call part real finite neg abs invert pos
plain threads sometimes scatter inexact mirrored rolled same moved computed _break _continue global local _and _or _not ~
"""
USED = {
    *WORDS.split(), *ARITHMETIC, *BITWISE, *SHIFTS, *COMPARE, *BORDERS, *RANKED, *STORED,
    *(join(d, n) for d in RANKED[1:] for n in (2, 3, 4)),
}  # fmt: skip
RARE = {name for name, entry in functions.ENTRIES.items() if entry.group != "math"}


def words(part, into: set) -> set:
    """The words of a program."""
    if isinstance(part, str):
        into |= {part, *part.split()}
    elif isinstance(part, tuple):
        for p in part:
            words(p, into)
    elif hasattr(part, "__dataclass_fields__"):
        for name in part.__dataclass_fields__:
            words(getattr(part, name), into)
    return into


def test_recorded_lowered_and_compiled_agree(device):
    if device == "reference":
        pytest.skip("compared with itself")

    @profile(device, 42, 5)
    @given(programs())
    def run(program):
        running.check(program, device)

    run()


def test_checked_execution_finds_nothing():
    """The programs are free of races, and read nothing that is not there; their narrow integers wrap around on purpose."""

    @profile("reference", 12, 0)
    @given(programs())
    def run(program):
        recording = running.recorded(program, careful=True)
        want = running.computed(recording, "reference")
        try:
            actual = running.computed(recording, "checked")
        except SemanticError as error:
            if "it wraps around to" not in str(error):
                raise
            with mock.patch.object(checked, "may_wrap", return_value=False):  # what follows is checked, too
                actual = running.computed(recording, "checked")
        assert not running.differences(program, actual, want)

    run()


def test_pairs_fused_and_apart_agree(device):
    """One program reads another one's outputs: fusing changes no bit, of multiply-adds neither, and devices agree on them."""
    kernels = []

    @profile(device, 9, 3)
    @given(pairs(), sampled_from(("exact", "contract")))
    def run(pair, precision):
        with gp.precision(precision):
            together, few = running.pair_in_a_graph(pair, device, optimize=True)
            apart, many = running.pair_in_a_graph(pair, device, optimize=False)
            want, _ = running.pair_in_a_graph(pair, "reference", optimize=False)
        kernels.append((few, many))
        for name, value in together.items():
            np.testing.assert_array_equal(value, apart[name], err_msg=f"{name}: {pair}")
            np.testing.assert_array_equal(value, want[name], err_msg=f"{name}: {pair}")

    run()
    if device in INTERPRETED:  # it is fusion that was tested
        assert sum(few for few, _ in kernels) < sum(many for _, many in kernels)


def test_cuda_compiles():
    target = replace(target_named("cuda"), least_threads=1)

    @profile("cuda", 0, 4)
    @given(programs())
    def run(program):
        compile_cuda(generate(running.kernel(running.recorded(program)), target).text, "sm_90")

    run()


def test_the_random_programs_use_everything():
    names: set[str] = set()
    modes, shapes = set(), set()

    @profile("reference", 400, 0)
    @given(programs())
    def run(program):
        words(program, names)
        modes.add((program.mode, len(program.grid), program.group is not None))
        shapes.add(program.returned)

    run()
    assert not USED - names, USED - names
    assert len(RARE & names) > 0.75 * len(RARE), RARE - names
    assert len(names & set(BINS)) > 6
    assert {m for m, _, _ in modes} == {"plain", "threads", "element", "each"}
    assert {(d, g) for m, d, g in modes if m == "plain"} >= {(d, g) for d in (1, 2, 3) for g in (False, True)}
    assert shapes == {False, True}
    assert len(INTERPRETED) == 4


def test_every_function_is_used():
    """Those of no bound are left out; new ones want a line in `functions`."""
    assert {e.name for e in table() if e.group != "complex"} == functions.KNOWN
    given_by = {name for d in RANKED[1:] for n in (1, 2, 3, 4) for name in functions.names_for(join(d, n))}
    assert given_by | set(functions.INEXACT) | functions.UNBOUNDED == functions.KNOWN
    assert set(dsl.__all__) >= functions.KNOWN
    assert not functions.UNBOUNDED & given_by
    assert FLOATS == ("half", "float", "double")
