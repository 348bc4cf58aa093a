"""GPUs that need none: what they plan, what they report, and where they are listed."""

from __future__ import annotations

import pickle
from unittest import mock

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import (
    Apply,
    Array,
    Barrier,
    Collective,
    Const,
    Declare,
    Expr,
    FieldParam,
    If,
    Index,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    Var,
    Wide,
)
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, FLOAT, INT, FieldType, Shape, Type
from gpuop.runtime.devices import examined, open_device
from gpuop.runtime.reference import gpu_device
from gpuop.runtime.reference.gpu_device import TARGETS
from gpuop.runtime.reference.gpu_threads import run_as_gpu
from tests.as_gpus import used


@gp.operator
def ahead(f, far):
    return _readTensor(f, _column + far, border="unchecked")


@pytest.mark.parametrize("name", TARGETS)
def test_they_are_opened_by_name_alone(name: str) -> None:
    assert name in {device.name for device in examined()}
    assert name not in {device.name for device in gp.devices()}
    with gp.use_device(name) as backend:
        assert (gp.arange(70).reshape(7, 10) * 2).numpy().sum() == 70 * 69
        assert backend.name == name and backend.target.device == "gpu"


def test_they_plan_for_that_gpu() -> None:
    assert open_device("reference:sm_75").target == target_named("cuda:sm_75")
    with gp.use_device("reference:sm_90"):
        text = gp.operator(lambda f: _readTensor(f) + 1).source(gp.FieldType(70))
    assert "__global__" in text


@pytest.mark.parametrize(("far", "place"), [(1, 70), (-1, -1)])
def test_reads_outside_of_a_field_are_reported(far: int, place: int) -> None:
    x = gp.ScalarField(np.arange(70, dtype="f4"))
    with gp.use_device("reference:sm_90"), pytest.raises(gp.DeviceError) as error:
        ahead(x, far).numpy()
    thread = 69 if far == 1 else 0
    assert str(error.value).startswith(
        f"reference:sm_90: kernel `ahead`: thread (layer 0, row 0, column {thread % 64}) of work-group (layer 0, row 0, "
        f"column {thread // 64}) reads `f[{place}]`, outside of the field `f` (70 float32), which has 70 elements; "
        'an index is inside unless the program reads with border="unchecked"\n  at '
    )
    assert 'return _readTensor(f, _column + far, border="unchecked")' in str(error.value)


F, OUT = FieldParam("f", FieldType(64)), FieldParam("out0", FieldType(64))
TILE, LANES = Array("tile", Type(FLOAT), (64,), "local"), Array("lanes", Type(FLOAT), (4,))
COLUMN = Index("local", "column")
THREAD = "thread (layer 0, row 0, column {}) of work-group (layer 0, row 0, column 0)"


def number(n: int) -> Const:
    return constant(n, INT)


def sum_of(x: Expr, n: int) -> Expr:
    return Apply("add", (x, number(n)), Type(INT))


def read(memory: Array | FieldParam, index: Expr) -> Load:
    return Load(memory, (index,), Type(FLOAT))


def less(n: int) -> Expr:
    return Apply("lt", (COLUMN, number(n)), Type(BOOL))


STORED = Store(OUT, (COLUMN,), read(F, COLUMN))
FILLED, WAITED = (Declare(TILE), Store(TILE, (COLUMN,), read(F, COLUMN))), Barrier("local")
MIRRORED = Apply("sub", (number(63), COLUMN), Type(INT))
VALUE = Var("value", Type(FLOAT))
TIMES_FOUR = Apply("mul", (COLUMN, number(4)), Type(INT))
FINE = {
    "what a choice leaves out": (
        Store(OUT, (COLUMN,), Apply("choose", (less(63), read(F, sum_of(COLUMN, 1)), read(F, COLUMN)), Type(FLOAT))),
    ),
    "what a condition leaves out": (STORED, If(less(63), (Store(OUT, (COLUMN,), read(F, sum_of(COLUMN, 1))),))),
    "a barrier": (*FILLED, WAITED, Store(OUT, (COLUMN,), read(TILE, MIRRORED))),
    "equal values": (Declare(TILE), Store(TILE, (number(0),), constant(3.0, FLOAT)), WAITED, STORED),
    "what nobody wrote and nobody uses": (Declare(TILE), Let(VALUE, read(TILE, COLUMN)), STORED),
    "a wide access": (
        Declare(LANES),
        If(less(16), (Wide(F, LANES, True, (TIMES_FOUR,)),
                      Wide(OUT, LANES, False, (TIMES_FOUR,)))),
    ),
}  # fmt: skip
REPORTED: dict[str, tuple[tuple[Stmt, ...], str]] = {
    "below a field": (
        (Store(OUT, (COLUMN,), read(F, sum_of(COLUMN, -1))),),
        (f"{THREAD.format(0)} reads `f[-1]`, outside of the field `f` (64 float32), which has 64 elements; an index is inside "
        'unless the program reads with border="unchecked"'),
    ),
    "a write beyond a field": (
        (Store(OUT, (sum_of(COLUMN, 1),), read(F, COLUMN)),),
        (f"{THREAD.format(63)} writes `out0[64]`, outside of the field `out0` (64 float32), which has 64 elements; an index is "
        'inside unless the program reads with border="unchecked"'),
    ),
    "beyond local memory": (
        (*FILLED, WAITED, Store(OUT, (COLUMN,), read(TILE, sum_of(COLUMN, 1)))),
        f"{THREAD.format(63)} reads `tile[64]`, outside of the local array `tile`: index 0 is 64, and the extent 64",
    ),
    "beyond an array of a thread": (
        (Declare(LANES), If(less(5), (Store(LANES, (COLUMN,), constant(1.0, FLOAT)),)), STORED),
        f"{THREAD.format(4)} writes `lanes[4]`, outside of the private array `lanes`: index 0 is 4, and the extent 4",
    ),
    "a lane beyond a field": (
        (Declare(LANES), If(less(17), (Wide(F, LANES, True, (TIMES_FOUR,)),)), STORED),
        (f"{THREAD.format(16)} reads `f[64]`, outside of the field `f` (64 float32), which has 64 elements; an index is inside "
        'unless the program reads with border="unchecked"'),
    ),
    "a wide access between others": (
        (Declare(LANES), If(less(1), (Wide(F, LANES, True, (number(6),)),)), STORED),
        f"{THREAD.format(0)} reads 4 elements from `f[6]` on in one access, which begins at no multiple of 4",
    ),
    "no barrier before a read": (
        (*FILLED, Store(OUT, (COLUMN,), read(TILE, MIRRORED))),
        f"{THREAD.format(0)} reads `tile[63]`, which {THREAD.format(63)} writes, and no barrier stands between the two",
    ),
    "no barrier before a write": (
        (*FILLED, WAITED, Store(OUT, (COLUMN,), read(TILE, MIRRORED)), Store(TILE, (COLUMN,), constant(1.0, FLOAT))),
        f"{THREAD.format(0)} writes `tile[0]`, which {THREAD.format(63)} reads, and no barrier stands between the two",
    ),
    "two values": (
        (STORED, Store(OUT, (number(3),), read(F, COLUMN))),
        (f"{THREAD.format(0)} writes `out0[3]`, which {THREAD.format(3)} writes with another value, and no barrier stands "
        "between the two"),
    ),
    "what nobody wrote": (
        (Declare(TILE), If(less(63), (FILLED[1],)), WAITED, Let(VALUE, read(TILE, COLUMN)), Store(OUT, (COLUMN,), Ref(VALUE))),
        (f"{THREAD.format(63)} reads `tile[63]`, which no thread of its work-group has written: the local array `tile` is not "
        "initialised"),
    ),
    "a part of an output": (
        (If(less(63), (STORED,)),),
        "no thread writes `out0[63]` of 256 bytes, which nothing fills before",
    ),
    "a barrier of some": (
        (*FILLED, If(less(7), (WAITED,)), STORED),
        f"{THREAD.format(0)} reaches a barrier, and {THREAD.format(7)} does not",
    ),
    "an exchange of some": (
        (If(less(7), (Collective("warp shuffle", VALUE, read(F, COLUMN), 32, number(0)),)), STORED),
        f"{THREAD.format(0)} reaches an exchange between the threads of a warp, and {THREAD.format(7)} does not",
    ),
}  # fmt: skip


def run_on(body: tuple[Stmt, ...]) -> None:
    kernel = Kernel("k", (F,), (Output(OUT),), Domain(Shape(64)), body, group=Shape(1, 1, 64))
    values = {F: np.arange(64, dtype="f4")[None], OUT: np.zeros((1, 64), "f4")}
    run_as_gpu("a GPU", kernel, values)


@pytest.mark.parametrize("body", FINE.values(), ids=list(FINE))
def test_what_is_fine(body: tuple[Stmt, ...]) -> None:
    run_on(body)


@pytest.mark.parametrize(("body", "message"), REPORTED.values(), ids=list(REPORTED))
def test_what_is_reported(body: tuple[Stmt, ...], message: str) -> None:
    with pytest.raises(gp.DeviceError) as error:
        run_on(body)
    assert str(error.value) == f"a GPU: kernel `k`: {message}"


@gp.operator
def racing(f):
    _localThreads(64)
    tile = _local(_floatArray(64))
    tile[_localColumn] = _readTensor(f)
    return tile[63 - _localColumn]


def test_races_of_programs_are_reported_with_their_line() -> None:
    with gp.use_device("reference:gpu"), pytest.raises(gp.DeviceError, match="no barrier stands between") as error:
        racing(gp.ScalarField(np.arange(128, dtype="f4"))).numpy()
    assert str(error.value).endswith("return tile[63 - _localColumn]")


@gp.operator
def agreeing(f):
    """Threads write equal values, and each reads its own: in any order it is that one."""
    _localThreads(64)
    largest = _local(_floatArray(2))
    largest[_localColumn % 2] = 7
    return largest[_localColumn % 2] + _readTensor(f)


@pytest.mark.parametrize("name", ["reference", "reference:gpu", "reference:sm_90", "reference:sm_75"])
def test_equal_values_are_no_race_for_those_that_wrote_them(name: str) -> None:
    x = np.arange(128, dtype="f4")
    with gp.use_device(name, checked=True):
        np.testing.assert_array_equal(agreeing(gp.ScalarField(x)).numpy(), x + 7)


@gp.operator
def asserting(f):
    _assert(_readTensor(f) < 60, "small")
    return _readTensor(f)


def test_assertions_are_checked_as_on_other_devices() -> None:
    with gp.use_device("reference:sm_90", checked=True):
        assert asserting(gp.arange(60)).numpy()[7] == 7
        with pytest.raises(
            gp.SemanticError, match="an assertion does not hold: small; the first thread seen is column 60"
        ):
            asserting(gp.arange(70)).numpy()


def test_windows_that_are_filled_step_by_step_read_what_does_not_count() -> None:
    """Layers in local memory begin with what is there, which is pushed out before it is used."""
    x = np.random.default_rng(0).random((18, 4, 12)).astype("f4")
    with used("reference:sm_90 as a gpu"), gp.schedule("layers"):
        actual = ndimage.uniform_filter(ndimage.uniform_filter(gp.ScalarField(x), 3), 3).numpy()
    np.testing.assert_allclose(actual, scipy.ndimage.uniform_filter(scipy.ndimage.uniform_filter(x, 3), 3), rtol=1e-5)


def test_graphs_pipelines_iterations_and_queues() -> None:
    x = np.arange(35, dtype="f4").reshape(5, 7)
    with gp.use_device("reference:sm_90") as backend:
        with gp.ComputeGraph() as graph:
            state = gp.ScalarField(x)
            state.next = state * 2 + 1
            graph.probe(state, "state")
        graph.step(3)
        np.testing.assert_array_equal(graph.read("state"), 8 * x + 7)
        np.testing.assert_array_equal(gp.iterate(lambda u: u + 1, gp.ScalarField(x), times=4).numpy(), x + 4)
        np.testing.assert_array_equal(gp.submit(gp.ScalarField(x) * 3).result(), x * 3)
        np.testing.assert_array_equal(gp.pipeline(lambda a: gp.ScalarField(a).sum(0))(x), x.sum(0))
        assert pickle.loads(pickle.dumps(backend)) is backend


OF_ANY_SIZE = {
    "points": lambda m, x: x * 2 + 1,
    "sums": lambda m, x: x.sum(0) + x.max(),
    "differences": lambda m, x: m.diff(x, axis=0) + m.roll(x, 3, 1)[1:],
}


@pytest.mark.parametrize("of", OF_ANY_SIZE)
@pytest.mark.parametrize("name", ["reference:sm_90", "reference:sm_90 as a gpu"])
def test_extents_that_are_arguments(name: str, of: str) -> None:
    """A kernel's text for all sizes runs on each of them, though it does not know them."""
    rng, spy = np.random.default_rng(5), mock.patch.object(gpu_device, "lower", side_effect=gpu_device.lower)
    with used(name), spy as lowered:
        pipeline = gp.pipeline(lambda a: OF_ANY_SIZE[of](np, gp.ScalarField(a)), dynamic=True)
        for shape in ((70, 81), (33, 130), (64, 64), (5, 17), (257, 3)):
            x = rng.integers(0, 9, shape).astype("f4")
            np.testing.assert_array_equal(pipeline(x), OF_ANY_SIZE[of](np, x))
    assert any(call.args[0].named for call in lowered.call_args_list), "each size has a text of its own"
