"""Accesses of schedules are shown to be inside their arrays; what an interpreter finds outside is never shown to be inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage as scipy_ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.base.errors import DeviceError
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.fusion.report.explain import explain
from gpuop.ir.build import Builder
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.nodes import Apply, Array, Block, Const, Declare, Expr, For, If, Index, Let, Ref, Stmt, Store, Var
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import FLOAT, INT, Shape, Type
from gpuop.ir.visit import map_blocks
from gpuop.passes.bounds_proof import unproved
from gpuop.passes.pipeline import PIPELINE, not_inside, pass_by_pass
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.gpu import tile_chain
from gpuop.passes.vectorize import vectorize
from gpuop.runtime.reference.gpu_threads import run_as_gpu

GPU = replace(target_named("cuda:sm_90"), least_threads=1)


@gp.operator
def around(f):
    return _readTensor(f, _row - 2, _column + 1, border="reflect") + 2 * _readTensor(
        f, _row + 1, _column - 1, border="wrap"
    )


@gp.operator
def near(f):
    return _readTensor(f, _row + 1, _column - 2, border="clamp") - _readTensor(f, _row, _column + 1, border="clamp")


@gp.operator(outputs=lambda f: f.type.replace(field_shape=f.type.field_shape[::-1]))
def turned(f):
    return _readTensor(f, _column, _row)


@gp.operator
def along_layers(f):
    up = _readTensor(f, _layer - 1, _row, _column, border="symmetric")
    return up + _readTensor(f, _layer + 1, _row + 1, _column, border="symmetric")


def heated(f: gp.Field, border: str) -> gp.Field:
    return neighbours(f, border, f.type.field_shape)


@gp.operator(dynamic=False)
def neighbours(f, border, shape):
    """The sum of those along each axis."""
    at = (_layer, _row, _column)[-len(shape) :]
    near = [
        _readTensor(f, *(place + step * (axis == along) for along, place in enumerate(at)), border=border)
        for axis in range(len(at))
        for step in (-1, 1)
    ]
    return sum(near[1:], near[0])


MADE = {
    "roll": lambda: around(field(9, 20)),
    "tile": lambda: near(near(field(17, 19))),
    "layers": lambda: along_layers(along_layers(field(5, 4, 12))),
    "layers of clamped places": lambda: heated(heated(field(3, 4, 8), "clamp"), "clamp"),
    "tile of mirrored places": lambda: heated(heated(field(5, 6), "symmetric"), "symmetric"),
    "transpose": lambda: turned(field(70, 33)),
    "shifted rows": lambda: np.roll(field(5, 67), 3, axis=1),
    "ragged words": lambda: near(field(5, 67, dtype="uint8")),
}


def field(*shape: int, dtype: str = "float32") -> gp.Field:
    return gp.ScalarField(np.random.default_rng(5).integers(0, 9, shape).astype(dtype))


def kernel_of(method: str) -> Kernel:
    (launch, *_) = plan(program([MADE[method]().node]), limits=Limits(target=GPU)).launches
    assert isinstance(launch.kernel, Kernel)
    return replace(launch.kernel, target=GPU, pin=Pin(method.split(" of ")[0]))


def before_vectors(kernel: Kernel) -> Kernel:
    return next(each.kernel for each in pass_by_pass(kernel, GPU) if each.name == "load_ahead")


def mutants(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel with one of its bounds an element further."""
    count = [0]

    def sites(number: int) -> Kernel:
        count[0] = 0

        def block(stmts: Block) -> Block:
            return tuple(map_blocks(changed(stmt), block) for stmt in stmts)

        def changed(stmt):
            match stmt:
                case Let(value=Apply(op="min" | "max" | "lt" | "le" | "ge" as op, args=(a, Const() as b), type=kind)):
                    count[0] += 1
                    if count[0] - 1 == number and b.type.kind == "i":
                        moved = Const(b.value + (-1 if op in ("max", "ge") else 1), b.type)
                        return replace(stmt, value=Apply(op, (a, moved), kind))
            return stmt

        return replace(kernel, body=block(kernel.body))

    sites(-1)
    for n in range(count[0]):
        yield sites(n)


def is_outside(kernel: Kernel) -> bool:
    """Return whether an interpreter that checks each access meets one outside."""
    steps = [step for step, _ in PIPELINE]
    for step in steps[steps.index(vectorize) :]:
        kernel = step(kernel)
    fields = {p: np.zeros((*p.type.field_shape, *p.type.tensor_shape), p.type.memory_dtype) for p in kernel.inputs}
    fields |= {p: np.zeros((*p.type.field_shape, *p.type.tensor_shape), p.type.memory_dtype) for p in kernel.written}
    try:
        run_as_gpu("reference:sm_90", kernel, fields)
    except DeviceError as error:
        return ", outside of " in str(error)
    return False


@pytest.mark.parametrize("method", MADE)
def test_schedules_are_inside(method: str) -> None:
    kernel = kernel_of(method)
    assert not unproved(before_vectors(kernel))
    assert not is_outside(before_vectors(kernel))


@pytest.mark.parametrize("method", MADE)
def test_what_is_outside_is_not_shown_to_be_inside(method: str) -> None:
    """Of each bound that is an element too far, as an interpreter sees it; and some bounds count in every schedule."""
    results = list(mutants(before_vectors(kernel_of(method))))
    outcome = [bool(unproved(mutant)) for mutant in results]
    wrong = [number for number, mutant in enumerate(results) if not outcome[number] and is_outside(mutant)]
    assert not wrong
    assert any(outcome)


@pytest.mark.parametrize("border", ["clamp", "symmetric", "reflect", "zero", "wrap"])
@pytest.mark.parametrize("shape", [(512, 512, 512), (9, 130, 33), (1, 3, 16), (2048, 2048), (7, 45)])
def test_places_at_borders_are_shown_to_be_inside_of_local_arrays(shape, border):
    """Two steps, the second of which reads the first one's values from local memory at places that borders move."""
    result = heated(heated(gp.zeros(shape), border), border)
    (launch, *_) = plan(program([result.node]), limits=Limits(target=GPU)).launches
    for pin in ("layers", "tile", "roll"):
        kernel = replace(launch.kernel, target=GPU, pin=Pin(pin))
        chosen = schedules.choice(kernel)
        if chosen is not None and chosen[0].name == pin:
            assert not not_inside(kernel, GPU)
            assert not unproved(before_vectors(kernel))


def test_a_schedule_that_is_not_shown_to_be_inside_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile that takes slices for what goes on beyond the grid."""
    monkeypatch.setattr(tile_chain, "_knows_positions", lambda part: False)
    x = np.arange(64 * 17, dtype="int32").reshape(64, 17)
    with gp.use_device("reference:sm_90"):
        result = ndimage.sobel(gp.ScalarField(x)[1:], 1, mode="wrap")
        lowering = plan(program([result.node]), limits=Limits(target=GPU))
        (launch,) = lowering.launches
        why = "it reads `a` at places -4 … 1105 as far as ranges show, of 0 … 1087"
        assert not_inside(replace(launch.kernel, pin=Pin("tile")), GPU) == why
        assert f"  not taken: tile, as {why}\n" in explain(lowering, target=GPU)
        np.testing.assert_array_equal(result.numpy(), scipy_ndimage.sobel(x[1:], 1, mode="wrap"))


@gp.operator
def looked_up(f, table):
    near = _readTensor(f, _row - 1, _column) + _readTensor(f, _row + 1, _column) + _readTensor(f, _row, _column - 1)
    return near + _readTensor(table, _convert_int(_readTensor(f)) % 5, border="unchecked")


def test_own_accesses_of_many_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own accesses are looked for in each stage, not in all of them inlined, which takes as long as 4 ** stages."""
    f, table = field(96, 128), field(9)
    for _ in range(3):
        f = looked_up(f, table)
    (launch,) = plan(program([f.node]), limits=Limits(target=GPU)).launches
    inlined: list[Kernel] = []
    monkeypatch.setattr(schedules, "without_intermediates", lambda kernel: inlined.append(kernel) or kernel)
    assert len(launch.kernel.intermediates) == 2
    assert unproved(before_vectors(launch.kernel))
    assert not not_inside(launch.kernel, GPU)
    assert not inlined


@pytest.mark.parametrize("rows", [35, 36])
def test_quotients_of_strips_round_down(rows):
    """Strips of four rows, of which 288 are in the middle of a tile, 32 a row; a turn takes 256 of them.

    The last row, 4 * (8 * turn + column / 32) + 3, is 35 in strip 287: the quotient is 8, not 287 / 32.
    """
    body: list[Stmt] = []

    def bound(expr: Expr) -> Expr:
        body.append(Let(Var("t", expr.type), expr))
        return Ref(body[-1].var)

    def loop(var: Var, stop: int, *inside: Stmt) -> For:
        return For(var, Const(0, Type(INT)), Const(stop, Type(INT)), Const(1, Type(INT)), inside)

    b, column = Builder(bound), Index("local", "column")
    turn, down, right = (Var(hint, Type(INT)) for hint in ("turn", "down", "right"))
    array = Array("a", Type(FLOAT), (64 * rows,), "local")
    strip = b.apply("add", b.apply("mul", Ref(turn), 256), column)
    in_middle, in_range = b.apply("lt", strip, 288), b.apply("lt", strip, 414)
    before, body[:] = tuple(body), []
    side = b.apply("sub", strip, 288)
    middle = b.apply("add", b.apply("mul", Ref(turn), 8), b.apply("div", column, 32))
    row = b.apply("choose", in_middle, middle, b.apply("div", side, 14))
    top = b.apply("mul", row, 4)
    across = b.apply("choose", in_middle, b.apply("mod", column, 32), b.apply("add", b.apply("mod", side, 14), 32))
    values, body[:] = tuple(body), []
    flat = b.apply("mul", b.apply("add", top, Ref(down)), 64)
    place = b.apply("add", flat, b.apply("add", across, Ref(right)))
    store = Store(array, (place,), Const(0.0, Type(FLOAT)))
    stores = loop(down, 4, loop(right, 3, *body, store))
    grid = loop(turn, 2, *before, If(in_range, (*values, stores)))
    kernel = Kernel("strips", (), (), Domain(Shape(1, 256)), (Declare(array), grid), Shape(1, 1, 256))
    assert bool(unproved(kernel)) == (rows == 35)


@pytest.mark.parametrize("width", [512, 1025, 2048])
@pytest.mark.parametrize("reach", [1, 6])
def test_strips_of_line_buffers_are_shown_to_be_inside(width, reach):
    """Of grids that are wider than a strip too, whose outer columns are filled where a strip has an edge."""
    field = gp.zeros((width, width))

    @gp.operator
    def along_columns(f):
        return sum(_readTensor(f, _row + k, _column) for k in range(-reach, reach + 1))

    @gp.operator
    def along_rows(f):
        return sum(_readTensor(f, _row, _column + k) for k in range(-reach, reach + 1))

    for result in (along_rows(along_columns(field)), along_columns(along_rows(field))):
        with gp.ComputeGraph() as graph:
            graph.probe(result)
        assert "not taken: line buffers" not in graph.explain()
