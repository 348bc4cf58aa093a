"""Lanes in the output of NVIDIA's compiler: accesses as wide as they are written, and no array left in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.dsl.fields.field import Field
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.passes.coarsening_factor import PointsPerThread, points_per_thread
from tests.golden.kernels import field

from .nvrtc import ptx_of

CUDA = target_named("cuda")
LARGE = (4096, 4096)


def kernel_of(result: Field) -> Kernel:
    (step,) = plan(program([result.node])).launches
    return step.kernel


def accesses(result: Field) -> list[str]:
    """The accesses to fields in PTX, such as "ld.v4.f32"."""
    ptx = ptx_of(generate(kernel_of(result), CUDA).text, "compute_90")
    assert ".local" not in ptx, "an array is not in registers"
    matches = re.findall(r"\b(ld|st)\.global(?:\.nc)?((?:\.v\d)?\.\w\d+)", ptx)
    return ["".join(parts) for parts in matches]


def test_floats_move_four_at_once() -> None:
    assert accesses(field(LARGE) / 2) == ["ld.v4.f32", "st.v4.f32"]


def test_bytes_move_sixteen_at_once() -> None:
    assert accesses(255 - field(LARGE, dtype="uint8")) == ["ld.v4.u32", "st.v4.u32"]


def test_halves_move_eight_at_once() -> None:
    assert accesses(field(LARGE, dtype="float16") * 2) == ["ld.v4.u32", "st.v4.u32"]


def test_doubles_move_two_at_once() -> None:
    assert accesses(field(LARGE, dtype="float64") * 2) == ["ld.v2.f64", "st.v2.f64"]


def test_every_plane_of_a_tensor_is_wide() -> None:
    assert accesses(field(LARGE, (3,)) * 2) == ["ld.v4.f32"] * 3 + ["st.v4.f32"] * 3


def test_the_widest_field_decides() -> None:
    assert accesses(field(LARGE, dtype="unorm8") * 2) == ["ld.v4.u8", "st.v4.f32"]


def test_branches_and_loops_stay_in_registers() -> None:
    @gp.operator
    def steps(f):
        x = _var(_readTensor(f))
        with _while(x > 1):
            with _if(x > 2):
                x @= x / 2
            with _else():
                x @= x - (_column & 1)
        return x

    assert accesses(steps(field(LARGE))) == ["ld.v4.f32", "st.v4.f32"]


def test_loads_come_before_stores_where_points_are_odd() -> None:
    assert accesses(field((4095, 4095)) * 2) == ["ld.f32"] * 4 + ["st.f32"] * 4


@pytest.mark.parametrize("shape", [(4096, 4096), (4095, 4095)])
def test_fewer_threads_are_launched(shape: tuple[int, int]) -> None:
    threads, _, _ = generate(kernel_of(field(shape) / 2), CUDA).threads
    points = shape[0] * shape[1]
    assert points <= 4 * threads < points + 4 * 256


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUOP_WIDEN=0 gives a thread one point."""
    kernel = kernel_of(field(LARGE) / 2)
    assert generate(kernel, CUDA).threads == (4096 * 4096 // 4, 1, 1)
    monkeypatch.setattr(config, "widen", False)
    assert generate(kernel, CUDA).threads == (4096, 4096, 1)
    assert decided(kernel).reason == "GPUOP_WIDEN is 0"


def decided(kernel: Kernel) -> PointsPerThread:
    return points_per_thread(replace(kernel, target=CUDA))


@gp.operator
def rowwise(f):
    return _readTensor(f) * _row


@gp.operator
def shifted(f):
    return _readTensor(f, _row, _column + 1)


@gp.operator
def printed(f):
    _print("%f", _readTensor(f))
    return _readTensor(f)


@gp.operator
def summed(f):
    total = _floatVar()
    with _for(16) as k:
        total += _readTensorElement(f, k)
    return total


def long(f: Field) -> Field:
    for k in range(400):
        f = f * 1.5 + k
    return f


@pytest.mark.parametrize(
    ("make", "count", "form", "flat", "reason"),
    [
        (lambda: field(LARGE) / 2, 4, "wide", True, ""),
        (lambda: rowwise(field(LARGE)), 4, "wide", False, ""),  # a row is known without division
        (lambda: rowwise(field((4096, 4098))), 4, "wide", True, ""),
        (lambda: field((4095, 4095)) / 2, 4, "spaced", True, "4 lanes do not divide 16769025 points"),
        (lambda: field((256, 512)) / 2, 2, "wide", True, "more lanes would leave too few threads"),
        (lambda: field((100, 100)) / 2, 1, "scalar", False, "more lanes would leave too few threads"),
        (lambda: field((65536, 65536)) / 2, 4, "wide", False, ""),
        (lambda: field((65535, 65535)) / 2, 1, "scalar", False,
         "its 4294836225 points are too many to count, and lanes do not divide rows of 65535"),
        (lambda: field(LARGE, (16, 16)) * 2, 4, "wide", True, ""),  # a thread for each element
        (lambda: shifted(field(LARGE)), 1, "scalar", False, "it reads points that are not the thread's own"),
        (lambda: printed(field(LARGE)), 1, "scalar", False, "it has prints"),
        (lambda: summed(field(LARGE, (16,))), 1, "scalar", False, "it reads computed elements of tensors"),
        (lambda: long(field(LARGE)), 1, "scalar", False, "its body computes 1600 values"),
    ],
)  # fmt: skip
def test_what_is_decided(make: Callable[[], Field], count: int, form: str, flat: bool, reason: str) -> None:
    assert decided(kernel_of(make())) == PointsPerThread(count, form, flat, reason)


def test_a_scalar_target_has_the_grid_of_the_field() -> None:
    assert generate(kernel_of(field(LARGE) / 2), replace(CUDA, widening="scalar")).threads == (4096, 4096, 1)
