"""One recorded body, many targets: which branch each device runs, what each target's text holds, and that it compiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.runtime.cuda import nvrtc
from gpuop.runtime.devices import current
from tests.codegen.nvrtc import compile_cuda

from .compare import same

TABLE = {"reference": 3, "opencl": 4, "cuda": 8, "cuda:sm_80": 16, "cuda:sm_90": 32}
rng = np.random.default_rng(5)


def here(by_backend: dict[str, Any]) -> Any:
    """The entry of the device in use."""
    return by_backend[current().target.backend]


def floats(*shape: int) -> Any:
    return rng.integers(-99, 100, shape).astype(np.float32)


# --- branches -----------------------------------------------------------------------------------------------------------


@gp.operator
def by_backend(field, second):
    x = _var(_readTensor(field))
    with _codegenIf(_target.backend == "reference"):
        x += 1
    with _codegenElseif((_target.backend == "cuda") & (_target.architecture >= 80)):
        x += _convert_float(_exp2(_convert_double(_readTensor(second))))
    with _codegenElseif(_target.backend == "cuda"):
        x += _erf(_readTensor(field))
    with _codegenElse():
        x *= 3
    return x


def test_each_device_runs_its_branch(device: str) -> None:
    a, b = floats(5, 70), floats(5, 70)
    result = by_backend(gp.ScalarField(a), gp.ScalarField(b))
    same(result, here({"reference": a + 1, "opencl": a * 3, "cuda": a + np.exp2(b.astype("d")).astype("f")}))


def source(target: str) -> str:
    kind = gp.FieldType((5, 70))
    return by_backend.source(kind, kind, target=target)


def test_text_has_nothing_of_other_branches() -> None:
    opencl, old, new = source("opencl"), source("cuda:sm_70"), source("cuda:sm_90")
    assert "x * 3.0f" in opencl and "x + 1.0f" not in opencl + old + new
    assert "erf(" in old and "erf(" not in opencl + new
    assert "exp2(" in new and "double" in new and "second" in new
    for text in (opencl, old):
        assert "double" not in text and "exp2" not in text and "second" not in text


@pytest.mark.parametrize("architecture", nvrtc.architectures() or ("sm_90",))
def test_text_compiles_for_every_architecture(architecture: str) -> None:
    compile_cuda(source(f"cuda:{architecture}"), architecture)
    compile_cuda(tiled.source(gp.FieldType((9, 70)), target=f"cuda:{architecture}"), architecture)


@gp.operator
def helped(field):
    v = _readTensor(field)
    x = _intVar(0)
    with _codegenIf(_target.backend == "opencl"):
        x @= _clz(_convert_int(v))
    with _codegenElse():
        x @= _convert_int(v)
    return x


def test_a_target_needs_only_what_its_branch_does() -> None:
    kernel = by_backend(gp.ScalarField(floats(2, 3)), gp.ScalarField(floats(2, 3))).node.call.kernel
    needs = {t: generate(kernel, target_named(t)).needs for t in ("opencl", "cuda:sm_75", "cuda:sm_90")}
    assert needs == {"opencl": frozenset(), "cuda:sm_75": frozenset(), "cuda:sm_90": {"double"}}


def test_helper_functions_go_with_their_branch() -> None:
    kind = gp.FieldType((5, 70))
    assert "saturate" in helped.source(kind, target="cuda") and "__clz" not in helped.source(kind, target="cuda")
    assert "clz" in helped.source(kind, target="opencl")


def test_facts_are_those_of_the_device(device: str) -> None:
    @gp.operator(outputs=gp.FieldType((4,), (4,), "int32"))
    def facts(field):
        width, memory, flags, group = _intVar(), _intVar(), _intVar(), _intVar()
        with _for(_target.simd_width):
            width += 1
        with _for(_target.local_memory_bytes // 1024):
            memory += 1
        with _codegenIf(_target.has_fp64):
            flags += 1
        with _codegenIf(_target.device == "cpu"):
            flags += 2
        with _codegenIf(_target.has_fp16):
            flags += 4
        with _codegenIf(_target.architecture):
            group @= 1
        _writeTensor(_out0, _int4(width, memory, flags, group))

    t = current().target
    flags = t.has_fp64 + 2 * (t.device == "cpu") + 4 * t.has_fp16
    expected = [t.simd_width, t.local_memory_bytes // 1024, flags, t.architecture > 0]
    same(facts(gp.ScalarField(floats(4))), np.tile(np.array(expected, np.int32), (4, 1)))


def test_nested_branches_and_recorded_conditions(device: str) -> None:
    @gp.operator
    def nested(field):
        x = _var(_readTensor(field))
        with _if(x > 0):
            with _codegenIf(_not(_target.backend == "reference")):
                with _codegenIf(_target.backend == "cuda"):
                    x @= 7
                with _codegenElse():
                    x @= 8
        with _else():
            with _codegenIf(_or(_target.backend == "opencl", _target.backend == "cuda")):
                x @= -1
        return x

    a = floats(6, 9)
    same(nested(gp.ScalarField(a)), here({
        "reference": a, "opencl": np.where(a > 0, np.float32(8), -1), "cuda": np.where(a > 0, np.float32(7), -1),
    }))  # fmt: skip


def test_loops_are_left_from_branches(device: str) -> None:
    @gp.operator
    def left(field):
        n = _intVar()
        with _for(10) as i:
            with _if(i > 3):
                with _codegenIf(_target.backend == "reference"):
                    _break()
                with _codegenElse():
                    _continue()
                n += 100
            n += 1
            with _codegenIf(_target.backend == "reference"):
                _continue()
            n += 10
        return n

    same(left(gp.ScalarField(floats(3))), np.full(3, here({"reference": 4, "opencl": 44, "cuda": 44}), np.int32))


def test_outputs_are_written_in_branches(device: str) -> None:
    kind = gp.FieldType((4, 6))

    @gp.operator(outputs=(kind, gp.FieldType((4, 6), (2,))), default=(None, -5.0))
    def two(field):
        v = _readTensor(field)
        with _codegenIf(_target.backend == "reference"):
            _writeTensor(_out0, v)
            _writeTensorElement(_out1, v, 1)
        with _codegenElse():
            _writeTensor(_out0, -v)
            _writeTensorElement(_out1, v, _row, _column, 0)

    a = floats(4, 6)
    first, second = two(gp.ScalarField(a))
    is_reference = here({"reference": True, "opencl": False, "cuda": False})
    same(first, a if is_reference else -a)
    pair = (np.full_like(a, -5), a) if is_reference else (a, np.full_like(a, -5))
    same(second, np.stack(pair, 2))


def test_own_points_for_one_target_and_computed_ones_for_another(device: str) -> None:
    @gp.operator(outputs=lambda f: f.type)
    def mirrored(field):
        with _codegenIf(_target.backend == "reference"):
            _writeTensor(_out0, _readTensor(field, _columns - 1 - _column))
        with _codegenElse():
            _writeTensor(_out0, _readTensor(field), _columns - 1 - _column)

    a = floats(20)
    same(mirrored(gp.ScalarField(a)), a[::-1])


def test_tables_go_with_their_branch() -> None:
    @gp.operator
    def looked_up(field):
        x = _intVar()
        with _codegenIf(_target.backend == "cuda"):
            x @= _constantArray([3, 1, 4])[_column % 3]
        with _codegenElse():
            x @= _constantArray([2, 7])[_column % 2]
        return x

    opencl, cuda = (looked_up.source(gp.FieldType(5), target=t) for t in ("opencl", "cuda"))
    assert "{2, 7}" in opencl and "{3, 1, 4}" not in opencl
    assert "{3, 1, 4}" in cuda and "{2, 7}" not in cuda


def test_target_expressions_are_arguments() -> None:
    @gp.operator
    def counted(field, n):
        x = _intVar()
        with _for(n) as i:
            x += i
        return x

    a = gp.ScalarField(floats(3))
    first, again, other = (
        counted(a, _target.simd_width),
        counted(a, _target.simd_width),
        counted(a, _target.simd_width + 1),
    )
    assert len(counted.memo) == 2
    assert first.node.call.kernel is again.node.call.kernel is not other.node.call.kernel


OPENED = [d.name for d in gp.devices()]  # and not what the tests make of the reference


def test_fields_made_only_for_another_target_are_not_computed(device: str) -> None:
    @gp.operator
    def fails(field):
        _assert(False, "this is for no device that runs")
        return _readTensor(field)

    @gp.operator
    def gathers(field, other):
        x = _var(_readTensor(field))
        with _codegenIf(_target.architecture > 9999):
            x += _readTensor(other, _column, _row)
        return x

    a = gp.ScalarField(floats(5, 5))
    with gp.use_device(device if device in OPENED else "reference", checked=True):
        same(gathers(a, fails(a)), a.numpy())


# --- groups, arrays, loops ----------------------------------------------------------------------------------------------


@gp.operator
def tiled(field):
    """The sum of a row of the group's tile."""
    _localThreads(_target.choose({"cuda": 2}, default=4), _target.choose(TABLE) * 2)
    tile = _local(_floatArray(_localRows, _localColumns + 1))
    tile[_localRow, _localColumn] = _readTensor(field, _row, _groupColumn * _localColumns + _localColumn, border=0)
    _syncThreadsLocal()
    total = _floatVar()
    with _for(_localColumns) as i:
        total += _where(_groupColumn * _localColumns + i < _columns, tile[_localRow, i], 0.0)
    return total


def test_groups_and_tiles_by_target(device: str) -> None:
    a = floats(9, 70)
    width = 2 * here({"reference": 3, "opencl": 4, "cuda": 32})
    sums = np.add.reduceat(a, np.arange(0, 70, width), axis=1)
    same(tiled(gp.ScalarField(a)), np.repeat(sums, width, axis=1)[:, :70])


@pytest.mark.parametrize(
    ("target", "width"), [("opencl", 8), ("cuda:sm_75", 16), ("cuda:sm_89", 32), ("cuda:sm_90", 64)]
)
def test_tables_by_architecture(target: str, width: int) -> None:
    text = tiled.source(gp.FieldType((9, 70)), target=target)
    rows = 4 if target == "opencl" else 2
    assert f"tile[{rows}][{width + 1}]" in text and f"_localColumns = {width}" in text


def test_barriers_and_local_memory_in_branches(device: str) -> None:
    @gp.operator
    def reversed_rows(field):
        _localThreads(1, 16)
        out = _floatVar()
        with _codegenIf(_target.architecture == 999):
            huge = _local(_floatArray(3_000_000))
            huge[_localColumn] = _readTensor(field)
            _syncThreadsLocal()
            out @= huge[15 - _localColumn]
        with _codegenElse():
            tile = _local(_floatArray(_localColumns))
            tile[_localColumn] = _readTensor(field)
            _syncThreadsLocal()
            out @= tile[15 - _localColumn]
        return out

    a = floats(3, 32)
    same(reversed_rows(gp.ScalarField(a)), a.reshape(3, 2, 16)[:, :, ::-1].reshape(3, 32))
    assert "huge" not in reversed_rows.source(gp.FieldType((3, 32)), target="opencl")
    assert "huge[3000000]" in reversed_rows.source(gp.FieldType((3, 32)), target="cuda:sm_999")


def test_private_arrays_and_unrolled_loops(device: str) -> None:
    @gp.operator
    def powers(field):
        size = _target.choose(TABLE)
        values = _floatArray(_min(size, 100) - 1, size)
        with _for(size, unroll=_target.backend != "reference") as i:
            values[0, i] = _readTensor(field) * _convert_float(i)
        total = _floatVar()
        with _for(0, size, 1, unroll=_target.choose({"cuda": 4}, default=2)) as i:
            total += values[0, i]
        return total

    a = floats(7)
    n = here(TABLE | {"cuda": 32})
    same(powers(gp.ScalarField(a)), a * np.float32(n * (n - 1) / 2))
    text = powers.source(gp.FieldType(7), target="opencl")
    assert "values[3][4]" in text and "#pragma unroll 2" in text and "values[0][3] =" in text


@pytest.mark.parametrize(
    ("expression", "opencl", "cuda"),
    [
        (lambda t: t.architecture // 10, 0, 7),
        (lambda t: t.architecture % 10 + 1, 1, 6),
        (lambda t: 2 * t.simd_width - 1, 1, 63),
        (lambda t: 100 - t.architecture, 100, 25),
        (lambda t: -t.architecture + 80, 80, 5),
        (lambda t: 90 // t.architecture + 1, 1, 2),
        (lambda t: ~t.architecture + 90, 89, 14),
        (lambda t: (t.simd_width | 4) & 6, 4, 4),
        (lambda t: np.int32(3) + t.simd_width, 4, 35),
        (lambda t: _max(t.simd_width, 2), 2, 32),
        (lambda t: _min(t.simd_width, 2) * t.has_fp64, 1, 2),
        (lambda t: t.choose({"opencl": 5, "cuda": 6, "cuda:sm_75": 9, "cuda:sm_80": 7}), 5, 9),
        (lambda t: t.choose({"cuda:sm_80": 7}, default=3), 3, 3),
        (lambda t: (t.choose({"cuda": "b"}, default="a") == "a") + 1, 2, 1),
    ],
)
def test_arithmetic_of_target_expressions(expression: Any, opencl: int, cuda: int) -> None:
    @gp.operator(outputs=gp.FieldType(3, (), "int32"))
    def turns(field):
        n = _intVar()
        with _for(expression(_target)):
            n += 1
        _writeTensor(_out0, n)

    text = {t: turns.source(gp.FieldType(3), target=t) for t in ("opencl", "cuda:sm_75")}
    assert f"i < {opencl};" in text["opencl"]
    assert f"i < {cuda};" in text["cuda:sm_75"]


# --- fusion -------------------------------------------------------------------------------------------------------------


@gp.operator
def twice(field):
    return _readTensor(field) * 2


@gp.operator
def neighbour(field):
    return _readTensor(field, _row, _column + 1)


def test_branches_are_fused(device: str) -> None:
    a, b = floats(9, 70), floats(9, 70)
    with gp.ComputeGraph() as graph:
        fa, fb = gp.ScalarField(a), gp.ScalarField(b)
        graph.probe(twice(by_backend(twice(fa), neighbour(fb))), "fused")
    graph.reset()
    assert graph.kernel_count == 1
    c = a * 2
    there = np.pad(b, ((0, 0), (0, 1)), mode="edge")[:, 1:]
    expected = here({"reference": c + 1, "opencl": c * 3, "cuda": c + np.exp2(there.astype("d")).astype("f")}) * 2
    assert np.array_equal(graph.read("fused"), expected)
    assert "by_backend" in graph.explain()


def test_branches_are_recomputed_where_they_are_read(device: str) -> None:
    a, b = floats(9, 70), floats(9, 70)
    moved = neighbour(by_backend(gp.ScalarField(a), gp.ScalarField(b)))
    value = here({"reference": a + 1, "opencl": a * 3, "cuda": a + np.exp2(b.astype("d")).astype("f")})
    same(moved, np.pad(value, ((0, 0), (0, 1)), mode="edge")[:, 1:])


def test_equal_groups_are_fused_and_others_are_not() -> None:
    @gp.operator
    def grouped(field, factor):
        _localThreads(1, _target.simd_width * factor)
        return _readTensor(field) + _convert_float(_localColumn)

    with gp.ComputeGraph() as graph:
        a = gp.ScalarField(floats(4, 64))
        graph.probe(grouped(grouped(a, 2), 2), "same")
        graph.probe(grouped(grouped(a, 2), 4), "different")
    assert graph.kernel_count == 2
    assert "run in different work-groups, 1×1×_target.simd_width * 2 and 1×1×_target.simd_width * 4" in graph.explain()


def test_local_memory_that_a_target_decides_is_not_put_together() -> None:
    with gp.ComputeGraph() as graph:
        graph.probe(tiled(tiled(gp.ScalarField(floats(9, 70)))), "twice")
    assert graph.kernel_count == 2


def test_kernels_differ_by_their_conditions() -> None:
    @gp.operator
    def above(field, limit):
        x = _var(_readTensor(field))
        with _codegenIf(_target.architecture >= limit):
            x += 1
        return x

    a = gp.ScalarField(floats(4))
    assert above(a, 70).node.call.identity != above(a, 80).node.call.identity
    assert above(a, 70).node.call.identity == above(a, 70).node.call.identity
