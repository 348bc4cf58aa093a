"""Parameters of pinned schedules, of any size: what a kernel can have is taken, and shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.fusion.report.explain import explain
from gpuop.ir.kernel import Pin
from gpuop.passes.pipeline import unscheduled
from gpuop.passes.schedules.methods import METHODS, parameters_of
from gpuop.passes.schedules.pinning import pinned

GPU = target_named("cuda:sm_90")
CPU = replace(target_named("opencl"), device="cpu", simd_width=8, widening="vector")
HUGE = 10**30


def filled(*shape: int, dtype: str = "float32") -> gp.Field:
    return gp.ScalarField(np.ones(shape, dtype))


@gp.operator
def around(f):
    """The sum of the neighbours along each axis."""
    at = (_layer, _row, _column)[-len(f.field_shape) :]
    near = [[place + step * (axis == k) for k, place in enumerate(at)] for axis in range(len(at)) for step in (-1, 1)]
    return sum(_readTensor(f, *place) for place in near)


@gp.operator
def largest(f):
    return _max(_readTensor(f, _row, _column - 1), _readTensor(f, _row - 1, _column))


@gp.operator(outputs=gp.FieldType(16, dtype="int32"), default=0)
def counted(levels):
    _globalThreads(levels)
    _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(levels))))


@gp.operator(outputs=lambda f: f.type.replace(field_shape=f.field_shape[::-1]))
def turned(f):
    return _readTensor(f, _column, _row)


# of each method a target, what it suits, and what the largest numbers are taken for
CASES: list[tuple[str, Any, Any, dict[str, int]]] = [
    ("roll", GPU, lambda: around(filled(50, 96)), {"columns": 16, "rows": 64, "turn": 16, "width": 8}),
    ("roll", GPU, lambda: around(filled(12, 50, 99)), {"columns": 16, "rows": 50, "turn": 1, "width": 8}),
    ("layers", GPU, lambda: around(around(filled(40, 64, 128))), {"columns": 16, "layers": 40, "width": 8}),
    (
        "transpose",
        GPU,
        lambda: turned(filled(128, 256)),
        {"size": 64, "lanes": 4, "rows": 16, "columns": 16, "align": 1},
    ),
    (
        "transpose",
        CPU,
        lambda: turned(filled(128, 256)),
        {"size": 16, "lanes": 16, "rows": 1, "columns": 1, "align": 1},
    ),
    ("tile", GPU, lambda: around(around(around(filled(64, 100)))), {"rows": 64, "columns": 32, "tall": 8, "lanes": 4}),
    ("line buffers", CPU, lambda: around(around(filled(64, 100))), {"columns": 100, "rows": 64, "together": 16}),
    (
        "line buffers",
        CPU,
        lambda: around(around(filled(9, 20, 30))),
        {"columns": 30, "rows": 20, "layers": 9, "together": 16},
    ),
    ("interchange", CPU, lambda: filled(64, 100).max(axis=0), {"vectors": 7}),
    ("group lanes", CPU, lambda: filled(9, 300).sum(axis=1), {"vectors": 2}),
    ("resample", CPU, lambda: filled(50, 300)[::2, ::2], {"rows": 16}),
    ("vector rows", CPU, lambda: around(filled(50, 70)), {"rows": 16}),
    ("vector rows", CPU, lambda: around(filled(7, 70)), {"rows": 7}),
    ("privatize", CPU, lambda: counted(filled(40, 50)), {"strips": 160, "copies": 4, "lanes": 16}),
    ("privatize", GPU, lambda: counted(filled(40, 50)), {"points": 8}),
    ("ragged words", GPU, lambda: largest(filled(50, 131, dtype="uint8")), {"columns": 16}),
    ("shifted rows", GPU, lambda: filled(50, 70)[:, 1:], {"columns": 4}),
]


def test_each_method_is_tried() -> None:
    assert {method for method, *_ in CASES} == {method.name for method in METHODS}


@pytest.mark.parametrize(("name", "target", "field", "most"), CASES)
def test_what_is_taken_stays_as_it_is(name: str, target: Any, field: Any, most: dict[str, int]) -> None:
    """Of a method's own choice, and of any other."""
    target, method = replace(target, least_threads=1), next(each for each in METHODS if each.name == name)
    result = plan(program([field().node]), limits=Limits(target=target, pin=Pin(name)))
    kernel = unscheduled(result.launches[0].kernel, target)
    requests = [{}, *({each: n} for each in most for n in (1, 3, HUGE)), *(dict.fromkeys(most, n) for n in (1, HUGE))]
    for value in requests:
        parameters = parameters_of(method, kernel, value)
        assert parameters_of(method, kernel, parameters) == parameters
        assert list(parameters) == list(most)
        assert min(parameters.values()) > 0
    assert parameters == most


@pytest.mark.parametrize(
    ("method", "rows", "stages", "shown"),
    [
        ("vector rows", HUGE, 1, "vector rows (rows 16)"),
        ("vector rows", np.int64(8), 1, "vector rows (rows 8)"),
        ("line buffers", HUGE, 2, "line buffers (columns 70, rows 50, together 2)"),
        ("line buffers", 9, 2, "line buffers (columns 70, rows 8, together 2)"),
    ],
)
def test_what_is_taken_is_shown_and_runs(method: str, rows: int, stages: int, shown: str) -> None:
    limits = Limits(target=replace(CPU, least_threads=1))

    def texts(rows: int) -> tuple[str, str]:
        field = filled(50, 70)
        for _ in range(stages):
            field = around(field)
        with gp.schedule(method, rows=rows):
            result = plan(program([field.node]), limits=replace(limits, pin=pinned()))
        return explain(result, target=limits.target), generate(result.launches[0].kernel, limits.target).text

    message, text = texts(rows)
    assert f"  schedule: {shown}\n" in message
    assert texts(int(shown.split("rows ")[-1].split(",")[0].strip(")"))) == (message, text)
