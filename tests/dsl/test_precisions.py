"""The choice of a precision, and its effects: operators, graphs, pipelines, `with`; plans, text, pickles and bundles."""

from __future__ import annotations

import json
import pickle
import threading

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.engine.bundles.bundle import save_bundle
from gpuop.ir.kernel import PRECISIONS
from gpuop.ir.nodes import Apply, Const
from gpuop.ir.text import identity, show
from gpuop.ir.values import Leaf
from gpuop.passes.pipeline import lower
from tests.codegen.nvrtc import compile_cuda
from tests.harness import same_bits

A = np.float32([1 + 2.0**-12, 3, -5])
JOINED = np.float32([2.0**-24, 0, 0])  # a · a - rounded(a · a), which is not 0 where the product is not rounded


@gp.operator
def rest(f, g):
    return _readTensor(f) * _readTensor(f) - _readTensor(g)


@gp.operator(precision="exact")
def exact_rest(f, g):
    return _readTensor(f) * _readTensor(f) - _readTensor(g)


@gp.operator(precision="contract")
def joined_rest(f, g):
    return _readTensor(f) * _readTensor(f) - _readTensor(g)


@gp.pipeline(precision="contract")
def joined_pipeline(a):
    return rest(a if isinstance(a, gp.Field) else gp.ScalarField(a), gp.ScalarField(A * A))


@gp.pipeline
def pipeline(a):
    return rest(a if isinstance(a, gp.Field) else gp.ScalarField(a), gp.ScalarField(A * A))


def fields():
    return gp.ScalarField(A), gp.ScalarField(A * A)


def precision_of(field):
    return field.node.call.kernel.precision


@pytest.fixture(autouse=True)
def _on_the_reference():
    with gp.use_device("reference"):
        yield


def test_the_innermost_choice_counts():
    assert precision_of(rest(*fields())) == precision_of(fields()[0] + 1) == "exact"
    with gp.precision("contract"):
        assert precision_of(rest(*fields())) == "contract"
        assert precision_of(exact_rest(*fields())) == "exact"
        with gp.precision("fast"):
            assert precision_of(rest(*fields())) == precision_of(fields()[0] + 1) == "fast"
        with gp.ComputeGraph(precision="fast"):
            assert precision_of(rest(*fields())) == "fast"
            with gp.precision("exact"):
                assert precision_of(rest(*fields())) == "exact"
        with gp.ComputeGraph():
            assert precision_of(rest(*fields())) == "contract"
        with gp.GPUOperator(gp.FieldType(3), precision="fast") as op:
            _writeTensor(_out0, _readTensor(fields()[0]))
        assert precision_of(op.output) == "fast"
    with pytest.raises(ZeroDivisionError), gp.precision("fast"):
        raise ZeroDivisionError
    assert precision_of(rest(*fields())) == "exact"


def test_it_is_this_thread_s():
    calls = []
    with gp.precision("fast"):
        other = threading.Thread(target=lambda: calls.append(precision_of(rest(*fields()))))
        other.start()
        other.join()
    assert calls == ["exact"]


def test_results_follow_the_choice():
    for call, want in ((rest, 0 * JOINED), (joined_rest, JOINED), (exact_rest, 0 * JOINED)):
        same_bits(call(*fields()).numpy(), want)
    with gp.precision("contract"):
        same_bits(rest(*fields()).numpy(), JOINED)
        same_bits(exact_rest(*fields()).numpy(), 0 * JOINED)
    same_bits(rest(*fields()).numpy(), 0 * JOINED)  # not what was recorded inside


def test_pipelines_are_traced_for_each_precision():
    same_bits(joined_pipeline(A), JOINED)
    same_bits(pipeline(A), 0 * JOINED)
    with gp.precision("contract"):
        same_bits(pipeline(A), JOINED)
    same_bits(pipeline(A), 0 * JOINED)
    assert precision_of(joined_pipeline(gp.ScalarField(A))) == "contract"  # as a plain function too

    @gp.pipeline(precision="exact")
    def outer(a):
        return joined_pipeline(a), pipeline(a)

    with gp.precision("contract"):
        for actual, want in zip(outer(A), (JOINED, 0 * JOINED), strict=True):
            same_bits(actual, want)


def test_products_of_host_algebra_are_operators_of_their_own():
    f, g = fields()
    with gp.precision("contract"):
        same_bits((f * f - g).numpy(), 0 * JOINED)
        assert precision_of(f * f) == "contract"


def test_iterations_and_states_have_that_of_their_calls():
    f, g = fields()
    with gp.precision("contract"):
        same_bits(gp.iterate(lambda u: rest(u, g), f, times=1).numpy(), JOINED)
    with gp.ComputeGraph(precision="contract") as graph:
        state = gp.ScalarField(A)
        state.next = rest(state, g)
        graph.probe(state, "state")
    graph.step()
    same_bits(graph.read("state"), JOINED)


def test_reports_and_text_name_what_is_not_exact():
    with gp.ComputeGraph() as graph:
        f, g = fields()
        graph.probe(joined_rest(f, g) + 1, "out")
    (kernel,) = json.loads(graph.explain(format="json"))["kernels"]
    assert [op["precision"] for op in kernel["operators"]] == ["contract", "exact"]
    assert "joined_rest [contract] (" in graph.explain() and "add (" in graph.explain()
    for target in ("opencl", "cuda"):
        text = graph.source(target)
        assert "// joined_rest [contract]\n" in text and "// add\n" in text and text.count("fma(") == 1


def test_kernels_keep_it_and_what_it_allowed():
    kernels = {}
    for name in PRECISIONS:
        with gp.precision(name):
            kernels[name] = rest(*fields()).node.call.kernel
    assert len({identity(kernel) for kernel in kernels.values()}) == 3
    for name, kernel in kernels.items():
        assert (f"group None {name}\n" in show(kernel)) == (name != "exact")
        for target in ("opencl", "cuda:sm_90"):
            lowered = lower(kernel, target_named(target))
            assert lowered.precision == name
            assert ("fma(" in show(lowered)) == ("fma(" in show(kernel)) == (name != "exact")
    assert precision_of(pickle.loads(pickle.dumps(joined_rest))(*fields())) == "contract"
    assert pickle.loads(pickle.dumps(joined_pipeline)) is joined_pipeline


def test_pickled_fields_keep_it():
    with gp.precision("contract"):
        f = rest(*fields())
    same_bits(pickle.loads(pickle.dumps(f)).numpy(), JOINED)


def test_bundles_are_compiled_with_it(tmp_path):
    kinds = {name: gp.Field.of(Leaf(gp.FieldType(3))) for name in ("f", "g")}
    save_bundle(tmp_path / "f.gpuop", "rest", kinds, joined_rest(*kinds.values()), [target_named("opencl")])
    card = next((d.name for d in gp.devices() if d.name.startswith("opencl")), None)
    if card is None:
        pytest.skip("no device but the reference works")
    with gp.use_device(card):
        same_bits(gp.load_bundle(tmp_path / "f.gpuop")(A, A * A), JOINED)


@gp.operator(precision="fast")
def functions(f):
    x, y = _readTensor(f), _readTensor(f, _column + 1)
    waves = _sin(x) + _cos(x) + _tan(x)
    return _exp(x) + _log(y) + waves + x / y + y / (x + 1) + _sqrt(x) + _pow(y, 0.5) + 0.0 * x


def test_fast_calls_what_the_language_has():
    cuda = functions.source(gp.FieldType(64), target="cuda")
    for call in ("native_exp2(", "__log2f(", "__sinf(", "__cosf(", "__tanf(", "__fdividef(", "native_sqrt(", "fma("):
        assert call in cuda, call
    compile_cuda(cuda, "sm_90")
    opencl = functions.source(gp.FieldType(64), target="opencl")
    for call in ("native_exp2(", "native_log2(", "native_sin(", "native_cos(", "native_tan(", " / ", "sqrt(", "fma("):
        assert call in opencl, call


LEFT = {  # what "fast" makes of a body: its operations, with their constants
    "quotient of a constant": (lambda x: x / 8, ["mul 0.125"]),
    "constants are joined": (lambda x: -(x * 3) * 2 / 8, ["mul -0.75"]),
    "plus 0.0": (lambda x: x + 0.0 - 0.0, []),
    "times 0.0": (lambda x: x * 0.0 + x, []),
    "exponential": (lambda x: _exp(x * -2), ["mul -2.885390043258667", "native_exp2"]),
    "equal reciprocals": (
        lambda x: (x / (y := x + 1)) + 3 / y,
        ["add 1.0", "native_divide 1.0", "mul", "native_divide 1.0", "fma 3.0"],
    ),
    "through 0": (lambda x: x / 0, ["native_divide 0.0"]),
    "root": (lambda x: 2 / _sqrt(x), ["rsqrt", "mul 2.0"]),
    "power": (lambda x: x**-0.5, ["native_log2", "mul -0.5", "native_exp2"]),
    "whole power": (lambda x: _pow(x, 3.0), ["pow 3.0"]),
    "vector": (lambda x: (_float2(x, x) / 4).x + 0.0, ["mul"]),
    "variable": (lambda x: doubled(_var(x)), ["mul 3.0", "mul 2.0"]),
}


def doubled(v):
    """A product of a variable that has changed since: its constants stay apart."""
    product = v * 3
    v @= 5.0
    return product * 2


@pytest.mark.parametrize("name", LEFT)
def test_fast_leaves_less_to_do(name):
    body, left = LEFT[name]
    kernel = gp.operator(precision="fast")(lambda f: body(_readTensor(f)))(gp.ScalarField(A)).node.call.kernel
    applied = [stmt.value for stmt in kernel.body if isinstance(getattr(stmt, "value", None), Apply)]
    assert [" ".join([e.op, *(a.text for a in e.args if isinstance(a, Const))]) for e in applied] == left, show(kernel)
