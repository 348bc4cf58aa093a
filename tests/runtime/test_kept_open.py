"""Kernels that do not know their extents, lowered by other processes: found for all sizes that they are for, and no others."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.cache import disk_memo
from gpuop.base.config import config
from gpuop.base.lru import BoundedCache
from gpuop.codegen import generate as generating
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.passes import dynamic_extents, pipeline
from gpuop.runtime.tuning.chooser import limits_for
from tests.process import python

from .test_cache import OPENCL, needs_opencl

TARGETS = ("opencl", "opencl:cpu", "cuda")
SHAPES = ((66, 67), (99, 1030), (700, 80))


def scaled(field, factor=2, border="clamp"):
    @gp.operator(dynamic=True)
    def scaled(f):
        return _readTensor(f) * factor

    return scaled(field)


def across(field, factor=2, border="clamp"):
    @gp.operator(dynamic=True)
    def across(f):
        return _readTensor(f, _row, _column - 2, border=border) * factor - _readTensor(
            f, _row, _column + 1, border=border
        )

    return across(field)


def below(field, factor=2, border="clamp"):
    @gp.operator(dynamic=True)
    def below(f):
        return _readTensor(f, _row + 3, _column) * factor + _readTensor(f, _row - 1, _column + 1)

    return below(across(field, factor, border))


def placed(field, factor=2, border="clamp"):
    @gp.operator(dynamic=True)
    def placed(f):
        return _readTensor(f) * factor + _row * _columns

    return placed(field)


CASES = {each.__name__: each for each in (scaled, across, below, placed)}


def kernel_of(case, shape, target, *how, dtype=np.int32):
    node = case(gp.ScalarField(np.zeros(shape, dtype)), *how).node
    return plan(program([node]), limits=limits_for(target)).launches[0].kernel


@pytest.fixture
def lowered(disk, monkeypatch):
    """Generate as a process does that begins; how often kernels were lowered."""
    results = []
    for module in (generating, dynamic_extents):
        monkeypatch.setattr(
            module, "lower", lambda kernel, target: results.append(target) or pipeline.lower(kernel, target)
        )

    def anew(kernel, target):
        monkeypatch.setattr(generating, "_sources", BoundedCache(8))
        monkeypatch.setattr(dynamic_extents, "_ranges", BoundedCache(8))
        monkeypatch.setattr(dynamic_extents, "_openings", BoundedCache(8))
        return generate(kernel, target)

    return results, anew


def facts(source):
    rest = {name: value for name, value in vars(source).items() if name != "arguments"}
    return [(p.hint, p.type, p.by_value) for p in source.arguments], rest, source.identity


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_found_is_what_was_made(lowered, case, target):
    """Whatever extents it was made for, and whatever those are that it is found for."""
    result, anew = lowered
    target = target_named(target)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(config, "verify", True)  # nothing is kept
        kernels = [kernel_of(CASES[case], shape, target) for shape in SHAPES]
        new = [facts(anew(kernel, target)) for kernel in kernels]
        ranges = [(o.least, o.most, o.per_thread) for o in (dynamic_extents.opened(k, target) for k in kernels)]
    assert all(rest["extents"] for _, rest, _ in new)
    del result[:]
    anew(kernels[0], target)
    count = len(result)
    assert count > 1
    assert [facts(anew(kernel, target)) for kernel in kernels] == new
    results = [dynamic_extents.opened(kernel, target) for kernel in kernels]
    assert [(o.least, o.most, o.per_thread) for o in results] == ranges and {o.lowered for o in results} == {None}
    assert len(result) == count


def test_the_text_is_made_again_where_only_the_range_is_found(lowered, disk):
    result, anew = lowered
    target = target_named("opencl:cpu")
    kernel = kernel_of(below, (99, 1030), target)
    new = facts(anew(kernel, target))
    (text,) = [path for path in disk.rglob("*") if path.is_file() and b"__kernel" in path.read_bytes()]
    text.unlink()
    count = len(result)
    assert facts(anew(kernel, target)) == new and len(result) == count + 1


def test_other_kernels_targets_and_settings_are_none_of_before(lowered):
    result, anew = lowered
    target = target_named("opencl:cpu")
    first = kernel_of(across, (66, 67), target)
    anew(first, target)
    others = [
        (kernel_of(across, (66, 67), target, 3), target),  # another number in the body
        (kernel_of(across, (66, 67), target, 2, "wrap"), target),
        (kernel_of(across, (66, 67), target, dtype=np.float32), target),
        (kernel_of(scaled, (66, 67), target), target),
        (replace(first, dynamic=frozenset()), target),
        (first, replace(target, local_memory_bytes=target.local_memory_bytes + 1)),
        (first, replace(target, simd_width=target.simd_width * 2)),
        (first, target_named("cuda")),
    ]
    for kernel, aim in others:
        for again in (False, True):
            count = len(result)
            anew(kernel, aim)
            assert (len(result) == count) == again
    for name, value in (("widen", False), ("schedule", "plain")):
        count = len(result)
        with mock.patch.object(config, name, value):
            anew(first, target)
        assert len(result) > count
    count = len(result)
    anew(first, target)
    assert len(result) == count


@pytest.mark.parametrize("shape", [(2, 3), (1, 67), (66, 1), (5, 300), (8192, 8192)])
def test_extents_outside_a_range_have_the_text_that_they_had(lowered, shape):
    """Found or not: those that are small, one, or large."""
    result, anew = lowered
    target = target_named("opencl:cpu")
    kernel = kernel_of(below, shape, target)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(config, "verify", True)
        new = facts(anew(kernel, target))
    anew(kernel_of(below, (99, 1030), target), target)
    assert facts(anew(kernel, target)) == new
    count = len(result)
    assert facts(anew(kernel, target)) == new and len(result) == count


def test_that_there_is_no_range_is_known_too(lowered, monkeypatch):
    result, anew = lowered
    target = target_named("opencl:cpu")
    monkeypatch.setattr(dynamic_extents, "LEAST", ())
    kernel = kernel_of(across, (66, 67), target)
    new = facts(anew(kernel, target))
    assert not new[1]["extents"]
    count = len(result)
    assert facts(anew(kernel, target)) == new and len(result) == count


def test_other_files_make_it_anew(lowered, disk, package):
    result, anew = lowered
    target = target_named("opencl:cpu")
    for folder in disk_memo.MAKERS:
        (package / folder / "some.py").write_text("# another")
        disk_memo.makers.cache_clear()
        count = len(result)
        new = facts(anew(kernel_of(across, (66, 67), target), target))
        assert len(result) > count
        count = len(result)
        assert facts(anew(kernel_of(across, (99, 50), target), target))[1]["text"] == new[1]["text"]
        assert len(result) == count
    assert len([path for path in disk.rglob("*") if path.is_file()]) == 2


# How many kernels were lowered, and whether results are NumPy's, of sizes that are given.
COUNTED = """
import sys
import numpy as np
import gpuop as gp
from gpuop.dsl import *
from gpuop.codegen import generate as generating
from gpuop.base.cache import disk_memo
from gpuop.passes import dynamic_extents, lowering_cache
disk_memo.SETTLED = -1e9
made = []
for module, name in ((generating, "lower"), (dynamic_extents, "lower"), (lowering_cache, "choice")):
    given = getattr(module, name)
    setattr(module, name, lambda *args, given=given: made.append(1) or given(*args))

@gp.operator
def across(f):
    return _readTensor(f, _row, _column - 2, border="reflect") - _readTensor(f) * FACTOR

@gp.operator
def below(f):
    return _readTensor(f, _row + 1, _column) + _readTensor(f)

@gp.pipeline(dynamic=True)
def both(image):
    f = gp.ScalarField(image)
    return below(across(f)), f * 2, f.sum(axis=1)

for shapes, FACTOR in eval(sys.argv[1]):
    for shape in shapes:
        x = np.random.default_rng(0).integers(-99, 99, shape).astype(np.int32)
        found = both(x)
        left = np.pad(x, ((0, 0), (2, 0)), "reflect")[:, :-2] - x * FACTOR
        wanted = left + np.vstack([left[1:], left[-1:]]), x * 2, x.sum(axis=1)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)), shape
    print(len(made))
    del made[:]
"""


@needs_opencl
@pytest.mark.in_turn
@pytest.mark.parametrize("name", OPENCL)
def test_another_process_lowers_nothing(name, tmp_path):
    """Of sizes that the first one never saw; a changed function has its own, beside those of before."""

    def run(*shapes_and_factors):
        text = str(shapes_and_factors)
        printed = python("-c", COUNTED, text, GPUOP_CACHE=str(tmp_path), GPUOP_DEVICE=name).stdout
        return [int(count) for count in printed.split()]

    assert min(run(([(99, 130), (40, 2000)], 3), ([(150, 70)], 4))) > 0
    assert run(([(150, 70), (333, 1030)], 3), ([(99, 130)], 4)) == [0, 0]
