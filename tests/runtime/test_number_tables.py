"""Tables of numbers that the host has: structures among the arguments of CUDA, constant memory of OpenCL, elsewhere buffers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.base.config import config
from gpuop.codegen.generate import generate, target_named
from gpuop.engine.evaluate import plan_ahead
from gpuop.engine.number_arguments import NumberArguments
from gpuop.fusion.program import program
from gpuop.runtime.cuda import launch
from gpuop.runtime.cuda.memory import Block, ForeignBlock
from tests.as_gpus import AS_A_GPU, used
from tests.runtime.cuda_on_host.compiled import COMPILER
from tests.runtime.cuda_on_host.host_device import ON_HOST
from tests.runtime.test_cuda_launches import Launches, driver, in_guarded  # noqa: F401

IMAGE = np.random.default_rng(5).random((19, 27), np.float32)
VALUES = (1.0, 1.25, 1.5)
DEVICES = [
    "opencl:0" + AS_A_GPU,
    "reference:sm_90" + AS_A_GPU,
    pytest.param(ON_HOST, marks=pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")),
]


@pytest.fixture(autouse=True)
def _arguments(monkeypatch):
    monkeypatch.setattr(config, "specialize", "auto")


def weights(v: float, *shape: int) -> np.ndarray:
    return np.random.default_rng(int(1000 * v)).random(shape)


def numbered(image: np.ndarray, *shape: int):
    """A correlation whose weights have changed, as a program with arguments."""
    numbers = NumberArguments(8)
    for v in VALUES[:2]:
        what = numbers.of(program([ndimage.correlate(gp.Field(image), weights(v, *shape)).node]))
    return what


def text_for(target: str, image: np.ndarray, *shape: int):
    (step,) = plan_ahead(numbered(image, *shape), target, None).launches
    return generate(step.kernel, target_named(target))


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("shape", "dtype"), [((9, 9), "float32"), ((12, 13), "float32"), ((12, 13), "float64"), ((1, 151), "uint8")]
)
def test_results_of_tables(on, shape, dtype):
    """Beside SciPy's; with new weights each time, and with the first ones again."""
    image = (IMAGE * 200).astype(dtype)
    with used(on):
        for v in (*VALUES, *VALUES[:2]):
            result = ndimage.correlate(image, weights(v, *shape) / 100)
            expected = scipy.ndimage.correlate(image.astype("float64"), weights(v, *shape) / 100)
            near = np.abs(result.astype("float64") - expected) <= (1 if dtype == "uint8" else 1e-4 * expected.max())
            assert result.dtype == dtype and near.all()


@pytest.mark.parametrize(("shape", "dtype", "kind"), [
    ((9, 9), "float32", "float, 81"), ((12, 13), "float32", "float, 156"), ((12, 13), "float64", "double, 156"),
    ((31, 31), "float32", "float, 961"), ((21, 21), "float64", "double, 441"),
])  # fmt: skip
def test_tables_of_cuda_are_structures(shape, dtype, kind):
    source = text_for("cuda:sm_90", IMAGE.astype(dtype), *shape)
    assert f"    const __grid_constant__ by_value<{kind}> numbers,\n" in source.text
    assert "numbers.at[" in source.text and "numbers[" not in source.text
    assert source.structures == {1} and not source.direct


@pytest.mark.parametrize(("shape", "dtype"), [((33, 33), "float32"), ((23, 23), "float64")])
def test_tables_beyond_the_room_of_arguments_are_buffers(shape, dtype):
    source = text_for("cuda:sm_90", IMAGE.astype(dtype), *shape)
    assert "*__restrict__ numbers,\n" in source.text and "by_value<" not in source.text
    assert not source.structures and source.direct


def test_tables_of_opencl_are_in_constant_memory_of_gpus():
    assert "    __constant const float *restrict numbers,\n" in text_for("opencl", IMAGE, 9, 9).text
    assert "    __global const float *restrict numbers,\n" in text_for("opencl:cpu", IMAGE, 9, 9).text


def test_only_some_of_several_tables_have_room():
    """The arguments of a kernel with two tables of 3,000 bytes."""
    numbers = NumberArguments(8)
    for v in VALUES[:2]:
        a, b = (ndimage.correlate(gp.Field(IMAGE), weights(w, 25, 30)) for w in (v, v + 7))
        what = numbers.of(program([(a - b).node]))
    (step,) = plan_ahead(what, "cuda:sm_90", None).launches
    source = generate(step.kernel, target_named("cuda:sm_90"))
    assert " by_value<float, 750> numbers," in source.text and "const float *__restrict__ numbers_1," in source.text
    assert source.structures == {1}


def test_numbers_that_follow_parameters_are_buffers():
    """Graphs change them in memory."""
    sigma = gp.Parameter(30.0)
    result = ndimage.gaussian_filter(gp.ScalarField(IMAGE), sigma, radius=70)
    params = [p for op in program([result.node]).ops for p in op.kernel.inputs]
    assert any(p.hint == "numbers" and p.type.planes > 64 for p in params) and not any(p.table for p in params)
    with gp.use_device("reference:sm_90"), gp.ComputeGraph() as graph:
        graph.probe(result, "result")
    for value in (30.0, 10.0):
        sigma.set(value)
        graph.step()
        expected = scipy.ndimage.gaussian_filter(IMAGE, value, radius=70)
        assert np.allclose(graph.read("result"), expected, rtol=1e-5)


def test_structures_are_set_where_they_have_changed(driver, monkeypatch):  # noqa: F811
    """The same memory is not copied again; other numbers are, whatever queue they come from."""
    field, places = ndimage.correlate(gp.Field(IMAGE), weights(1.0, 9, 9)), []
    monkeypatch.setattr("tests.runtime.test_cuda_launches.program", lambda nodes: numbered(IMAGE, 9, 9))
    launches, a = Launches(driver, field), in_guarded(IMAGE)
    set_one = launch.Arguments.set
    monkeypatch.setattr(launch.Arguments, "set", lambda self, n, value: places.append(n) or set_one(self, n, value))
    own, blocks = weights(2.0, 9, 9).astype("float32"), [Block(0), Block(0)]
    blocks[0].table, blocks[1].table = own.tobytes(), (2 * own).tobytes()
    (leaf,) = (v for v, node in launches.program.leaves.items() if node.name == "numbers")
    for block, factor, changes in (
        (blocks[0], 1, 1), (blocks[0], 1, 0), (ForeignBlock(blocks[0]), 1, 0), (blocks[1], 2, 1), (blocks[0], 1, 1),
    ):  # fmt: skip
        before = len(places)
        addresses, arrays = launches.values(*(in_guarded(own) if v == leaf else a for v in launches.program.leaves))
        given = {v: block if v == leaf else addresses[v] for v in launches.program.leaves}
        launches.list.run(given, {v: at for v, at in addresses.items() if v not in given})
        result = arrays[launches.prepared.plan.program.results[0]]
        assert np.allclose(result, scipy.ndimage.correlate(IMAGE, own.astype("float64") * factor), rtol=1e-5)
        assert len(places) - before == changes + 3 * (before == 0)
