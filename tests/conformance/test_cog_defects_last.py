"""Cases 21 and 22 of those that follow from the defects of Cog: failures, and operators of every kind."""

from __future__ import annotations

import pytest

import gpuop as gp
from gpuop.base.errors import Loc
from gpuop.codegen.opencl.dialect import OPENCL
from gpuop.dsl import *
from tests.codegen.nvrtc import compile_cuda
from tests.errors.wrong import SCALAR, check_line, check_usable, marked
from tests.golden.kernels import field as typed

from .compare import all_same
from .kinds import KINDS, Kind


def test_21_a_failure_names_the_line_and_ends_nothing(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cog prints the kernel and exits. The reference compiles nothing: its turn is an error of recording."""

    def wrong() -> None:
        gp.operator(lambda f: _readTensor(f).y)(SCALAR)  # here

    with pytest.raises(gp.SemanticError) as caught:
        wrong()
    check_line(caught.value, wrong)
    if device.startswith("opencl"):

        @gp.operator
        def refused(f):
            return _floor(_readTensor(f))  # here

        monkeypatch.setitem(OPENCL.calls, "floor", "no_such_function({0})")
        with pytest.raises(gp.CompileError) as failure:
            refused(SCALAR).numpy()
        assert "no_such_function" in failure.value.source
        assert str(Loc(__file__, marked(refused.function))) in str(failure.value)
        monkeypatch.undo()
    check_usable(gp.devices()[-1].name if device in ("lowered", "sm_90", "vectorized") else device)


def made(kind: Kind) -> tuple[gp.Field, ...]:
    operator = gp.operator(kind.body) if kind.outputs is None else gp.operator(outputs=kind.outputs)(kind.body)
    results = operator(*kind.fields)
    return results if isinstance(results, tuple) else (results,)


def test_22_all_devices_agree_on_operators_of_every_kind(device: str) -> None:
    for name, kind in KINDS.items():
        results = made(kind)
        gp.evaluate(*results)
        all_same(results, kind.expected, [f"{name}, output {k}" for k in range(len(results))])


@pytest.mark.parametrize("name", KINDS)
def test_22_cuda_compiles_operators_of_every_kind(name: str) -> None:
    kind = KINDS[name]
    fields = [f if f.node.by_value else typed(f.field_shape, f.tensor_shape, f.dtype) for f in kind.fields]
    with gp.ComputeGraph() as graph:
        for k, result in enumerate(made(Kind(kind.body, tuple(fields), (), kind.outputs))):
            graph.probe(result, f"out{k}")
    compile_cuda(graph.source("cuda"), "sm_90")
