"""`_tile` that is written wrongly: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import BIG, SCALAR, Wrongs

WRONGS = Wrongs()


def wrong(*extents, field=SCALAR, **more):
    """A kernel with one tile."""

    @gp.operator
    def tiled(f):
        _localThreads(2, 2)
        place = more.pop("thread", None)
        if place is not None:
            more["at"] = (_groupRow * 2, _row if place == "row" else _var(_localColumn))
        t = _tile(f, *extents, **more)  # here
        return t[0, 0]

    tiled(field)


CASES = [
    ("the field is 2D: write `_tile(f, rows, columns)`, not 1 extents", (4,), {}),
    ("the dimensions of an array are positive Python integers", (4, 0), {}),
    ("`halo=` is how many points lie around a block, one number or 2, in Python; not -1", (4, 4), {"halo": -1}),
    ("`halo=` is how many points lie around a block, one number or 2, in Python; not (1, 2, 3)", (4, 4), {"halo": (1, 2, 3)}),
    ("there is no border='edge': ", (4, 4), {"border": "edge"}),
    ("`at=` is the first point of a block, (row, column), not 1 coordinates", (4, 4), {"at": 3}),
    ("a coordinate of _tile is a scalar integer, not a float", (4, 4), {"at": (0, 0.5)}),
    ("the whole work-group loads one tile, and `at=` or `element=` may differ between its threads", (4, 4), {"thread": "row"}),
    ("the whole work-group loads one tile, and `at=` or `element=` may differ between its threads", (4, 4), {"thread": "var"}),
    ("the field has big tensors (7 elements), of which `_tile` loads one: name it by `element=`", (4, 4), {"field": BIG}),
]  # fmt: skip


@pytest.mark.parametrize(("message", "extents", "more"), CASES, ids=lambda x: str(x)[:40])
def test_arguments(message, extents, more):
    with pytest.raises(gp.SemanticError) as caught:
        wrong(*extents, **more)
    assert message in caught.value.message
    assert "# here" in str(caught.value)


@WRONGS.add("`_tile` takes a Field, not an ndarray; wrap arrays, as in `gp.ScalarField(array)`")
def an_array():
    @gp.operator
    def tiled(f):
        t = _tile(np.ones((4, 5)), 4, 4)  # here
        return t[0, 0] + _readTensor(f)

    tiled(SCALAR)


@WRONGS.add("`_tile` takes a Field with a grid, and this one is 0D; read it with `_readTensor`")
def a_number():
    @gp.operator
    def tiled(f, n):
        t = _tile(n)  # here
        return t[0] + _readTensor(f)

    tiled(SCALAR, gp.Parameter(1.0))


@WRONGS.add(
    "`_tile(…)` is not reached by all threads of a work-group together: the condition of `with _if(_column > 2):` (line "
)
def under_a_varying_condition():
    @gp.operator
    def tiled(f):
        _localThreads(2, 4)
        found = _var(0.0)
        with _if(_column > 2):
            t = _tile(f, 2, 4)  # here
            found @= t[0, 0]
        return found

    tiled(SCALAR)


@WRONGS.add("index 5 is outside tile `t`, whose extent is 4, and its halo 1")
def outside():
    @gp.operator
    def tiled(f):
        _localThreads(4, 4)
        t = _tile(f, 4, 4, halo=1)
        return t[-1, 0] + t[4, 0] + t[0, 5]  # here

    tiled(SCALAR)


@WRONGS.add("tile `t` is 2D: give 2 indices, not 1")
def an_index_too_few():
    @gp.operator
    def tiled(f):
        _localThreads(4, 4)
        t = _tile(f, 4, 4)
        return t[_localRow]  # here

    tiled(SCALAR)


@WRONGS.add("the field is 2D and the threads 1D: say where the block begins by `at=(row, column)`")
def threads_of_other_dimensions():
    @gp.operator(outputs=gp.FieldType(5))
    def tiled(f):
        t = _tile(f, 4, 4)  # here
        return t[0, 0]

    tiled(SCALAR)


@pytest.mark.parametrize("program", WRONGS.all)
def test_message_and_line(program):
    program.check()
