"""Checked execution: barriers that not all threads of a work-group reach."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import Loc
from gpuop.dsl import *
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Apply, Barrier, FieldParam, If, Index, Let, Ref, Var, Write
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, INT, FieldType, Shape, Type
from gpuop.runtime.reference.device import Reference

from .planted import checked

LINE = gp.ScalarField(np.arange(40, dtype="f"))


def divergent(axis: str, fence: str) -> Kernel:
    """Recording refuses what may diverge, so this is written in the IR: `with _if(_localRow < 1): barrier`."""
    out, test = FieldParam("out0", FieldType((3, 8), (), "int32")), Var("t", Type(BOOL))
    body = (
        Let(test, Apply("lt", (Index("local", axis), constant(1, INT)), Type(BOOL))),
        If(Ref(test), (Barrier(fence, Loc("kernel.py", 7)),)),
        Write(out, constant(3, INT)),
    )
    return Kernel("diverges", (), (Output(out),), Domain(Shape(3, 8)), body, Shape(1, 2, 4))


@pytest.mark.parametrize(("fence", "name"), [("local", "_syncThreadsLocal"), ("global", "_syncThreadsGlobal")])
@pytest.mark.parametrize(("axis", "missing"), [("row", "row 1, column 0"), ("column", "row 0, column 1")])
def test_divergent_barriers(fence: str, name: str, axis: str, missing: str) -> None:
    device = Reference(checked=True)
    buffer = device.empty(FieldType((3, 8), (), "int32"))
    with pytest.raises(gp.SemanticError) as caught:
        device.bind(device.compile(divergent(axis, fence)), [buffer]).run()
    assert caught.value.message == (
        f"`{name}()` is reached by thread (row 0, column 0) and not by thread ({missing}) of its work-group; put the "
        "barrier outside, and what depends on the thread inside"
    )
    assert caught.value.loc == Loc("kernel.py", 7)


def test_barriers_that_all_reach() -> None:
    """A value that differs between groups may decide, and threads that the grid does not have are not waited for."""
    device = Reference(checked=True)
    buffer = device.empty(FieldType((3, 8), (), "int32"))
    kernel = divergent("layer", "local")
    device.bind(device.compile(kernel), [buffer]).run()
    assert (buffer == 3).all()

    @gp.operator
    def even(f):
        _localThreads(16)
        shared = _local(_floatArray(16))
        with _for(_groupColumn) as k:
            shared[_localColumn] = _readTensor(f) + k
            _syncThreadsLocal()
        return _readTensor(f)

    with checked():
        assert np.array_equal(even(LINE).numpy(), LINE.numpy())
