"""CUDA C++ runs on the host as on a GPU, and what a GPU would not take is found."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.cuda.dialect import CUDA
from gpuop.runtime.base.program_text import ProgramText
from tests.as_gpus import used

from .compiled import COMPILER, compiled, on_host
from .host_device import ON_HOST, guarded

pytestmark = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
HEAD = 'extern "C" __global__ void __launch_bounds__(64) one(const int *a, int *out0)\n'


def run(body: str, a: Any, count: int, blocks: int = 1, threads: int = 64) -> tuple[np.ndarray, str]:
    """The output of a kernel with this body, and its errors."""
    (function,) = compiled(ProgramText(f"{HEAD}{{\n{body}\n}}\n", (), ("one",)))
    values, out = guarded(4 * len(a)).view(np.int32), guarded(4 * count).view(np.int32)
    values[...] = a
    cells = [ctypes.c_void_p(each.ctypes.data) for each in (values, out)]
    wrong = function.run((ctypes.c_void_p * 2)(*map(ctypes.addressof, cells)), (blocks, 1, 1, threads, 1, 1))
    return out, wrong


def test_barriers_and_exchanges():
    """A block turns what it has read around; lanes of a warp add what is 3 behind them, and vote."""
    turn = "__shared__ int t[64]; t[threadIdx.x] = a[64 * blockIdx.x + threadIdx.x]; __syncthreads();\n"
    turn += "out0[64 * blockIdx.x + threadIdx.x] = t[63 - threadIdx.x];"
    x = np.arange(128, dtype=np.int32) ** 2
    out, wrong = run(turn, x, 128, 2)
    assert not wrong
    np.testing.assert_array_equal(out.reshape(2, 64), x.reshape(2, 64)[:, ::-1])
    vote = "const int x = a[threadIdx.x]; const int y = __shfl_up_sync(~0u, x, 3, 16), z = __shfl_down_sync(~0u, x, 5, 32);\n"
    vote += "out0[threadIdx.x] = y + z + (int)__ballot_sync(~0u, x % 3 == 0) + __shfl_sync(~0u, x, 9, 16);"
    out, wrong = run(vote, x[:64], 64)
    lanes = np.arange(64)
    y, z = np.where(lanes % 16 < 3, lanes, lanes - 3), np.where(lanes % 32 + 5 >= 32, lanes, lanes + 5)
    votes = [sum(1 << k for k in range(32) if x[32 * w + k] % 3 == 0) for w in range(2)]
    expected = x[y].astype(np.int64) + x[z] + np.repeat(votes, 32) + x[lanes // 16 * 16 + 9]
    assert not wrong
    np.testing.assert_array_equal(out, expected.astype(np.uint32).view(np.int32))


BEYOND = "accesses memory beyond an array, or where it is not aligned, or does what C++ leaves undefined"
WRONG = {
    "a write behind the end": ("out0[60 + threadIdx.x] = 0;", BEYOND),
    "a read before the begin": ("out0[threadIdx.x] = a[(int)threadIdx.x - 1100];", BEYOND),
    "an access of 16 bytes at 4": ("struct alignas(16) Four { int at[4]; }; *(Four *)(out0 + 1) = Four();", BEYOND),
    "beyond local memory": ("__shared__ int t[8]; t[threadIdx.x] = 1; out0[0] = t[0];", BEYOND),
    "a sum that overflows": ("out0[threadIdx.x] = a[threadIdx.x] + 2147483647;", BEYOND),
    "a barrier of some": (
        "if (threadIdx.x < 9) __syncthreads();",
        "has threads that wait at a barrier, or for a warp, where others do not come",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_a_gpu_does_not_take(what):
    body, message = WRONG[what]
    assert run(body, np.arange(64), 64)[1] == message
    assert run("out0[threadIdx.x] = a[threadIdx.x];", np.arange(64), 64)[1] == ""  # and the process goes on


def test_memory_that_nobody_wrote_holds_no_zeros():
    body = "__shared__ int t[64]; out0[threadIdx.x] = t[threadIdx.x]; t[threadIdx.x] = 7;"
    out, wrong = run(body, np.arange(64), 65)
    assert not wrong and set(out.tolist()) == {-0x5A5A5A5B}


def test_every_helper_of_cuda_is_compiled():
    """Instructions are functions of the header."""
    text = on_host("".join(CUDA.helpers.values()))
    assert "asm" not in text and "ptx_min_u16x2" in text
    compiled(ProgramText(f"{''.join(CUDA.helpers.values())}{HEAD}{{ }}\n", (), ("one",)))


def test_a_plan_from_end_to_end():
    """Wide loads, tiles, sums of warps, private copies of a histogram; halves and bytes."""
    x = np.random.default_rng(3).integers(0, 200, (33, 46)).astype(np.uint8)
    with used(ON_HOST) as device:
        assert device.target.architecture == 90
        f = gp.ScalarField(x)
        np.testing.assert_array_equal((f + 3).numpy(), x + 3)
        np.testing.assert_array_equal((f.T + 1).numpy(), x.T + 1)
        np.testing.assert_array_equal(f.sum(1).numpy(), x.sum(1))
        np.testing.assert_array_equal((np.roll(f, 5, 1) + f).numpy(), np.roll(x, 5, 1) + x)
        np.testing.assert_array_equal((f.astype("float16") / 3).numpy(), x.astype(np.float16) / 3)
        np.testing.assert_array_equal(np.histogram(f, 7, (0, 200))[0].numpy(), np.histogram(x, 7, (0, 200))[0])
