"""Generated text, and the IR on the way to it: readable, stable, and the text accepted by the compilers.

Refresh the files with `pytest --update-golden`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import _readTensor
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import interleaved
from gpuop.ir.target import Target
from gpuop.ir.text import show
from gpuop.ir.verify import Form
from gpuop.passes.pipeline import pass_by_pass
from tests.codegen.nvrtc import compile_cuda

from .kernels import GOLDEN

HERE = Path(__file__).parent
CUDA = target_named("cuda")
TARGETS = {"cl": target_named("opencl"), "cu": replace(CUDA, widening="scalar")}
WIDE = {"cl": replace(TARGETS["cl"], widening="unrolled", least_threads=1), "cu": replace(CUDA, least_threads=1)}
VECTOR = replace(TARGETS["cl"], device="cpu", simd_width=8, widening="vector", least_threads=1)
VECTORS = WIDE | {"cl": VECTOR}
PHOTOS = ("photo_points", "photo_stencil")  # whose elements alternate in memory
WIDENED = {"wide_lanes": WIDE, "spaced_lanes": WIDE, "vector_lanes": VECTORS, **dict.fromkeys(PHOTOS, VECTORS)}
FORMS = {"lowered.ir": Form.LOWERED, "printable.ir": Form.PRINTABLE}
SUFFIXES = ("ir", *FORMS, *TARGETS)


def kernels(name: str) -> list:
    """The kernels that a golden graph is planned into."""
    result = GOLDEN[name]()
    fields = result if isinstance(result, tuple) else (result,)
    what = program([f.node for f in fields])
    kinds = what.types.items() if name in PHOTOS else ()
    layouts = {value: replace(interleaved(kind), behind=0) for value, kind in kinds}
    return [step.kernel for step in plan(what, layouts=layouts).launches]


def in_form(kernel: Kernel, form: Form, target: Target) -> Kernel:
    """The kernel after the last pass of a form."""
    return next(left.kernel for left in reversed([*pass_by_pass(kernel, target)]) if left.form is form)


def text(name: str, suffix: str) -> str:
    """Generated text, or the IR: as recorded, and on its way to OpenCL's text."""
    targets = WIDENED.get(name, TARGETS)
    if suffix == "ir":
        return "\n\n".join(map(show, kernels(name))) + "\n"
    if suffix in FORMS:
        return "\n\n".join(show(in_form(kernel, FORMS[suffix], targets["cl"])) for kernel in kernels(name)) + "\n"
    return "\n".join(generate(kernel, targets[suffix]).text for kernel in kernels(name))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", GOLDEN)
def test_text_is_the_golden_one(name: str, suffix: str, request: pytest.FixtureRequest) -> None:
    path = HERE / "text" / f"{name}.{suffix}"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text(name, suffix))
    assert path.exists(), "no golden file: run pytest --update-golden and read what it writes"
    assert text(name, suffix) == path.read_text()


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in (HERE / "text").iterdir()} == {f"{name}.{s}" for name in GOLDEN for s in SUFFIXES}


def test_the_prolog_has_the_names_of_the_guide() -> None:
    source = text("half", "cl")
    for name in (
        "field_rows = 512",
        "field_columns = 512",
        "field_tensorElements = 1",
        "field_rowStride = 512",
        "_rows = 512",
    ):
        assert name in source, source
    assert "field[_row * field_rowStride + _column] / 2.0f" in source


@pytest.mark.parametrize("name", GOLDEN)
def test_cuda_text_compiles_for_hopper(name: str) -> None:
    source = text(name, "cu")
    try:
        compile_cuda(source, "sm_90")
    except RuntimeError as refused:
        pytest.fail(f"{refused}\n{source}")


def test_the_cuda_compiler_refuses_nonsense() -> None:
    with pytest.raises(RuntimeError, match="error"):
        compile_cuda("this is not CUDA", "sm_90")


@pytest.mark.parametrize("name", ["t", "at", "inside"])
def test_a_value_keeps_its_name_though_temporaries_have_it_too(name: str) -> None:
    body = f"def doubled(f):\n    {name} = _readTensor(f) * 2\n    shown.append(repr({name}))\n    return {name} + 1\n"
    shown: list[str] = []
    names = {"_readTensor": _readTensor, "shown": shown}
    exec(compile(body, "doubled.py", "exec"), names)
    result = gp.operator(names["doubled"])(gp.ScalarField(np.ones((5, 7), "f")))
    (launch,) = plan(program([result.node])).launches
    assert f"const float {name} = " in generate(launch.kernel, TARGETS["cl"]).text
    assert shown == [f"<float {name}>"]
