"""Prepared calls with arrays of the host on a device with memory of its own: one copy there, one back; here of a stand-in."""

from __future__ import annotations

import threading
from itertools import count

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.jit.prepared_staged_call import PreparedStagedCall
from gpuop.runtime.base.launch_list import OneByOne
from gpuop.runtime.base.stages import Stage, Stages, size_of
from gpuop.runtime.reference.device import Reference
from tests.counted import counted
from tests.harness import same_bits

A = np.random.default_rng(0).random((16, 24), np.float32)


class FarStages(Stages):
    """Memory of the device is that of other arrays."""

    addresses = count(1 << 24, 1 << 24)

    def __init__(self):
        super().__init__()
        self.memory, self.full, self.fails, self.copies = {}, False, False, []

    def new(self, size):
        if self.full:
            raise MemoryError
        address = next(self.addresses)
        self.memory[address] = np.full(size, 0xA5, np.uint8)
        return Stage(np.full(size, 0xA5, np.uint8), address, None)

    def run(self, stage, launches, values, sent, end):
        there = self.memory[stage.address]
        self.copies.append((sent, end - sent))
        there[:sent] = stage.host[:sent]
        launches.run(values, {})
        if self.fails:
            raise gp.DeviceError("the device failed")
        stage.host[sent:end] = there[sent:end]


class Far(Reference):
    """The reference, with a memory of its own as GPUs have."""

    name = "far"

    def __init__(self):
        super().__init__()
        self.stages, self.kept = FarStages(), []

    def wrap(self, array):
        return None

    def launch_list(self, launches):
        return OneByOne(launches, self.once)

    def once(self, program, arguments):
        kinds = [param.type for param in (*program.inputs, *program.written)]
        super().once(program, [self.planes(a, kind) for a, kind in zip(arguments, kinds, strict=True)])

    def planes(self, argument, kind):
        if not hasattr(argument, "address"):
            return argument
        begin = argument >> 24 << 24
        there = self.stages.memory[begin][argument - begin :][: kind.nbytes]
        return there.view(kind.memory_dtype).reshape(kind.planes, -1)

    def keep(self, owner):
        self.kept.append(owner)


@pytest.fixture(autouse=True)
def far():
    backend = Far()
    with gp.use_device(backend):
        yield backend


@pytest.fixture
def staged(monkeypatch):
    """The staged calls that ran."""
    ran, inner = [], PreparedStagedCall.result

    def spy(self, inputs, out):
        result = inner(self, inputs, out)
        ran.append(result is not NotImplemented)
        return result

    monkeypatch.setattr(PreparedStagedCall, "result", spy)
    return ran


def test_arrays_and_results(far, staged):
    two = gp.pipeline(lambda a, b: (gp.ScalarField(a) + gp.ScalarField(b), (gp.ScalarField(a) > 0.5)))
    results = [two(A, A + n) for n in range(4)]
    for n, (total, mask) in enumerate(results):
        same_bits(total, A + (A + n))
        same_bits(mask, A > 0.5)
    assert staged == [True] * 2
    assert far.stages.copies == [(2 * A.nbytes, A.nbytes + 512)] * 2  # the results, aligned


def test_results_are_of_the_caller(staged):
    one = gp.pipeline(lambda a: gp.ScalarField(a) * 2 + 1)
    out = np.empty_like(A)
    for n in range(4):
        assert one(A + n, out=out) is out
        same_bits(out, (A + n) * 2 + 1)
    over = A.copy()
    assert one(over, out=over) is over
    same_bits(over, A * 2 + 1)
    whole = np.zeros((17, 24), np.float32)
    whole[:16] = A
    one(whole[:16], out=whole[1:])
    same_bits(whole[1:], A * 2 + 1)
    assert staged == [True] * 4
    wide = np.zeros((16, 48), np.float32)
    one(A, out=wide[:, ::2])
    same_bits(wide[:, ::2], A * 2 + 1)
    with pytest.raises(gp.ArgumentError, match="out="):
        one(A, out=np.empty((16, 25), np.float32))
    assert staged[4:] == [False] * 2


def test_arrays_that_lie_otherwise(staged):
    """They are copied in any case."""
    one = gp.pipeline(lambda a: gp.ScalarField(a) * 2 + 1)
    for _ in range(3):
        one(A)
    wide = np.zeros((32, 48), np.float32)
    wide[::2, ::2] = A
    misplaced = np.zeros(A.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(A.shape)
    misplaced[...] = A
    for array in (wide[::2, ::2], A[::-1], np.asfortranarray(A), misplaced, np.broadcast_to(A[:1], A.shape)):
        same_bits(one(array), array * 2 + 1)
    assert staged == [True] * 6


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "int64", "float64", "complex64", "complex128"])
def test_dtypes(staged, dtype):
    a = (A * 100).astype(dtype)
    same = gp.pipeline(lambda x: np.where(gp.Field(x) != 0, gp.Field(x), gp.Field(x)))
    for _ in range(3):
        same_bits(same(a), a)
    assert staged == [True] * (not dtype.startswith("complex"))  # whose planes lie otherwise


@pytest.mark.parametrize("tensor", [(3,), (2, 2), (4,)])
def test_tensors(staged, tensor):
    photo = np.random.default_rng(1).random((5, 7, *tensor), np.float32)
    field = gp.VectorField if len(tensor) == 1 else gp.MatrixField
    shifted = gp.pipeline(lambda x: np.roll(field(x), 1, axis=0) * 2)
    for n in range(4):
        same_bits(shifted(photo + n), np.roll(photo + n, 1, axis=0) * 2)
    assert staged == [True] * 2


def test_values_besides_arrays(staged):
    gain, table = gp.Parameter(2.0), gp.ScalarField(A + 1)
    pipeline = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * gain + table) * 2)
    for value in (2.0, 3.0, 4.0, 4.0):
        gain.set(value)
        same_bits(pipeline(A), (A * np.float32(value) + (A + 1)) * 2)
    assert staged == [True] * 2


def test_large_arrays_and_those_without_points(staged):
    one = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    for shape in ((1200, 1200), (0, 4)):
        for _ in range(3):
            same_bits(one(np.ones(shape, "f")), np.full(shape, 2, "f"))
    assert not staged
    assert [size_of(n) for n in (1, 65536, 65537, 1 << 22, (1 << 22) + 1)] == [65536, 65536, 131072, 1 << 22, None]


def test_a_call_that_fails(far, staged):
    one = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    for _ in range(3):
        one(A)
    far.stages.fails = True
    with pytest.raises(gp.DeviceError, match="the device failed"):
        one(A)
    assert len(far.kept) == 1 and not any(far.stages.idle.values())
    far.stages.fails, far.stages.full = False, True
    same_bits(one(A), A * 2)
    assert not staged[-1]
    far.stages.full = False
    same_bits(one(A), A * 2)
    assert staged[-1]


def test_memory_that_was_let_go(far, staged):
    three = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3)
    for _ in range(3):
        three(A)
    far.stages.let_go()
    gp.release()
    for n in range(3):
        same_bits(three(A + n), ((A + n) * 2 + 1) * 3)


def test_threads_have_stages_of_their_own(far, staged):
    three, wrong = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3), []
    for _ in range(3):
        three(A)

    def work(n):
        mine = A + n
        with gp.use_device(far):
            wrong.extend(n for _ in range(20) if not np.array_equal(three(mine), (mine * 2 + 1) * 3))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and all(staged)


def test_counted(far, staged, monkeypatch):
    """But for the two copies and the launches."""
    one = gp.pipeline(lambda a: gp.ScalarField(a) * 2 + 1)
    three = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3)
    out = np.empty_like(A)
    for _ in range(3):
        one(A), three(A), one(A, out=out)
    monkeypatch.setattr(FarStages, "run", lambda *_: None)
    assert counted(lambda: one(A)) <= 30
    assert counted(lambda: three(A)) <= 30
    assert counted(lambda: one(A, out=out)) <= 36
    assert all(staged)
