"""Fusion: which operators become one kernel, with the bits of separate ones."""

from __future__ import annotations

import functools
import inspect
import operator
import subprocess
import sys
import textwrap

import networkx as nx
import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.cost import saving
from gpuop.runtime.devices import current
from tests.harness import blur, fused, gamma, graph_of, half_and_double, image, matrix, same_bits, shift, tone

ODD = (37, 53)
a, b = gp.ScalarField(image(*ODD)), gp.ScalarField(image(*ODD))


def test_the_chain_that_was_promised(device):
    rgb = image(*ODD, 3)

    def build():
        return {"out": 2 * tone(matrix(gamma(gp.VectorField(rgb)))) - 0.5}

    _, results = fused(build, kernels=1)
    linear = np.where(rgb < 0.04045, rgb / 12.92, ((rgb.astype("d") + 0.055) / 1.055) ** 2.4)
    mixed = linear @ np.array([[0.4, 0.35, 0.2], [0.2, 0.7, 0.1], [0.02, 0.1, 0.9]]).T
    curved = np.where(mixed[..., 1:2] > 0.5, 1 - np.exp(-2 * mixed), mixed)
    np.testing.assert_allclose(results["out"], 2 * curved - 0.5, atol=1e-5)


def test_equal_operators_are_merged(device):
    @gp.operator
    def plus_one(f):
        return _readTensor(f) + 1

    @gp.operator
    def another_name(g):
        return _readTensor(g) + 1

    graph, _ = fused(lambda: {"out": (a + b) + (a + b)}, kernels=1)
    assert "1 kernel for 2 operators" in graph.explain()
    graph, results = fused(
        lambda: {"p": plus_one(a), "q": another_name(a), "r": plus_one(a) * another_name(a)}, kernels=1
    )
    assert "1 kernel for 2 operators" in graph.explain()
    same_bits(results["p"], results["q"])
    assert graph_of(lambda: {"p": plus_one(a), "q": another_name(a)}, optimize=False).kernel_count == 1


@gp.operator
def costly(f):
    return _sin(_exp(_cos(_readTensor(f))))


@gp.schedule("plain")  # others keep it for the neighbours
def test_a_gather_of_what_is_costly_needs_it_in_memory(device):
    graph, _ = fused(lambda: {"out": blur(costly(a))}, kernels=2)
    reasons = graph.explain()
    assert "costly → blur: `blur` reads `f` at other points (tests/harness.py:" in reasons
    assert "other threads' values are needed; computing `costly` at every read takes" in reasons
    fused(lambda: {"out": shift(costly(a))}, kernels=1)  # once for every point: no more than apart


def test_bytes_that_are_saved_or_cost_are_told_apart():
    assert saving(3 * 2**20) == "saves 3 MiB (worth 3.15e+07 operations)"
    assert saving(-518156) == "costs 506 KiB (worth 5.18e+06 operations)"


@gp.operator(outputs=gp.FieldType(()))
def median_level(counts):
    """The level that half of what is counted does not exceed."""
    below, level = _intVar(_readTensor(counts, 0)), _intVar(0)
    with _while(below < 50):
        level += 1
        below += _readTensor(counts, level)
    return _convert_float(level)


@gp.operator(outputs=gp.FieldType(()))
def first_two(counts):
    return _convert_float(_readTensor(counts, 0) + _readTensor(counts, 1))


def test_loops_that_end_as_values_say_run_once(device):
    """One thread runs them, and not every point that needs the result; what is done at once is done at each point."""
    counts = np.full(10, 10, "i")
    graph, results = fused(lambda: {"out": a * median_level(gp.ScalarField(counts))}, kernels=2)
    same_bits(results["out"], a.numpy() * np.float32(4))
    threads = ODD[0] * ODD[1]
    assert (
        f"each of {threads} threads would run the loop of `median_level`, whose iterations are not known"
        in graph.explain()
    )
    _, results = fused(lambda: {"out": a * first_two(gp.ScalarField(counts))}, kernels=1)
    same_bits(results["out"], a.numpy() * np.float32(20))


@gp.schedule("plain")
def test_what_neighbours_need_in_memory_is_all_that_goes_there(device):
    """A multiple of it is computed where it is read, and not written beside it."""

    def build():
        middle = costly(a)
        return {"out": blur(middle) - 6 * middle}

    graph, results = fused(build, kernels=2)
    assert [len(launch.outputs) for launch in graph.plan.launches] == [1, 1]
    middle = costly(a)
    same_bits(results["out"], blur(middle).numpy() - np.float32(6) * middle.numpy())


@gp.operator
def weighed(*fields):
    return sum(_readTensor(field) * (n + 1) for n, field in enumerate(fields))


@gp.schedule("plain")
@pytest.mark.parametrize(("count", "written"), [(2, [2, 1]), (3, [4, 1])])
def test_what_reads_more_than_twice_its_bytes_is_computed_beside_that(count, written):
    """A value of three in memory is written beside these, and read once; one of two is computed from them where it is read."""

    def build():
        middles = [costly(a + n) for n in range(count)]
        return {"out": sum(map(blur, middles[1:]), blur(middles[0])) - weighed(*middles)}

    with gp.use_device("reference"):
        graph, results = fused(build, kernels=2)
        assert [len(launch.outputs) for launch in graph.plan.launches] == written
        middles = [costly(a + n) for n in range(count)]
        blurred = sum((blur(middle).numpy() for middle in middles[1:]), blur(middles[0]).numpy())
        weights = sum((middle.numpy() * np.float32(n + 1) for n, middle in enumerate(middles)), np.float32(0))
        same_bits(results["out"], blurred - weights)


@gp.schedule("plain")
def test_a_gather_of_what_is_wanted_reads_it(device):
    graph, results = fused(lambda: {"out": shift(a * 10 + 1), "probed": a * 10 + 1}, kernels=2)
    want = (a.numpy() * np.float32(10) + 1)[:, [*range(1, ODD[1]), ODD[1] - 1]]
    same_bits(results["out"], want)
    line = inspect.getsourcelines(shift.function)[1] + 2
    assert f"add → shift: `shift` reads `f` at other points (tests/harness.py:{line})" in graph.explain()


def test_a_scatter_keeps_its_consumers_apart(device):
    @gp.operator(outputs=lambda f: f.type)
    def mirror(f):
        _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)

    graph, results = fused(lambda: {"out": mirror(a + 1) * 2}, kernels=2)
    same_bits(results["out"], (a.numpy() + 1)[:, ::-1] * 2)
    assert "mirror → multiply: `mirror` writes out0 at computed places (tests/fusion/test_fusion.py:" in graph.explain()


def test_a_probed_intermediate_adds_no_kernel(device):
    def build():
        middle = a * 3 + b
        return {"middle": middle, "out": middle.__class__.of(middle.node) * middle - 1}

    graph, results = fused(build, kernels=1)
    same_bits(results["out"], results["middle"] * results["middle"] - 1)
    assert "writes 15.3 KiB" in graph.explain()


@gp.operator(outputs=lambda f, dims: gp.FieldType(f.field_shape.points))
def turned(f, dims):
    """Filters by tap, then channel."""
    tap, channel = _unravel(_index(), dims[::-1])
    return _readTensor(f, channel, tap)


@gp.operator(outputs=lambda signal, filters, dims: gp.FieldType(gp.Shape(dims).points))
def convolved(signal, filters, dims):
    """A thread for each value of the output, which lies in blocks of channels."""
    block, column, lane = _unravel(_index(), dims)
    channels = dims[0] * dims[2]
    total = _var(0.0)
    with _for(3) as tap:
        weight = _readTensor(filters, tap * channels + block * dims[2] + lane)
        total += weight * _readTensor(signal, column + tap - 1, border="zero")
    return total


def test_layers_of_a_network(device):
    """An operator behind a convolution is part of it, its output lies in blocks, and filters that several take are turned once."""
    filters, signals = image(12, 3) - 0.5, [image(40) for _ in range(2)]
    dims = 3, 40, 4

    def build():
        f = gp.ScalarField(filters)
        return {
            str(k): np.maximum(convolved(gp.ScalarField(s), turned(f, (12, 3)), dims), 0) for k, s in enumerate(signals)
        }

    _, results = fused(build, kernels=2)
    for k, s in enumerate(signals):
        layer = np.maximum([np.convolve(s, each[::-1], "same") for each in filters], 0)
        np.testing.assert_allclose(results[str(k)].reshape(dims), layer.reshape(3, 4, 40).swapaxes(1, 2), atol=1e-5)


def test_diamonds_and_several_outputs(device):
    def build():
        low, high = half_and_double(a)
        return {"out": (low - high) * (low + high), "high": high}

    fused(build, kernels=1)
    fused(lambda: {"out": half_and_double(a)[1]}, kernels=1)
    fused(lambda: {"out": half_and_double(half_and_double(a)[0])[1] + half_and_double(a)[1]}, kernels=1)


def test_what_nobody_wants_is_not_computed(device):
    def build():
        blur(a) + shift(b)
        return {"out": a + b}

    fused(build, kernels=1)


def test_values_written_in_branches_and_variables_that_change(device):
    @gp.operator(outputs=lambda f: f.type, default=0.25)
    def where_large(f):
        v = _readTensor(f)
        with _if(v > 0.5):
            _writeTensor(_out0, v * v)
            with _if(v > 0.75):
                _writeTensor(_out0, -v)

    @gp.operator(outputs=lambda f: (f.type, f.type))
    def then_changed(f):
        v = _var(_readTensor(f))
        _writeTensor(_out0, v)
        v += 1
        _writeTensor(_out1, v)
        v @= 0

    def build():
        first, second = then_changed(where_large(a) * 2)
        return {"first": first, "sum": first + second, "large": where_large(a)}

    _, results = fused(build, kernels=1)
    x = a.numpy()
    large = np.where(x > 0.75, -x, np.where(x > 0.5, x * x, np.float32(0.25)))
    same_bits(results["large"], large)
    same_bits(results["first"], large * 2)
    same_bits(results["sum"], large * 2 + (large * 2 + 1))


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "uint8", "int16", "int64", "bool", "unorm8", "complex64"]
)
def test_intermediates_round_as_memory_does(device, dtype):
    grid = (17, 33)
    x = gp.ScalarField(image(*grid) * 4 - 1)

    @gp.operator(outputs=gp.FieldType(grid, (), dtype))
    def narrow(f):
        v = _readTensor(f)
        _writeTensor(_out0, _float2(v / 3, v) if dtype == "complex64" else v / 3 if dtype == "unorm8" else v * 7)

    def build():
        middle = narrow(x)
        if dtype == "complex64":
            return {"out": abs(middle * middle + 1)}
        return {"out": (middle + middle) * 3, "root": np.sqrt(abs(middle + narrow(x * x)))}

    fused(build, kernels=1)


@pytest.mark.parametrize("shape", [(1,), (179,), (15, 31), (1, 65), (3, 5, 67)])
def test_functions_give_the_same_bits_fused(device, shape):
    """Vectorised loops and their remainders, spilled or not: the same sin."""
    x = gp.ScalarField(image(*shape) * 6 + 0.1)

    def build():
        s, e = np.sin(x * 3), np.exp(-x)
        mixed = np.log(x + e) * s / (x * x + 1) + np.power(x, 1.7) * np.tanh(s) - np.arctan2(s, e)
        return {"out": mixed * mixed + mixed, "s": s, "t": np.cbrt(mixed) + np.log1p(e) + np.sqrt(x) / 3}

    graph, _ = fused(build, kernels=1)
    assert graph.kernel_count == 1


def test_grids_of_several_shapes(device):
    level, vectors = gp.ScalarField(np.float32(3)), gp.VectorField(image(*ODD, 4))
    big = gp.MatrixField(image(5, 7, 7, 7))
    small = gp.ScalarField(image(5, 7))
    _, results = fused(lambda: {"out": a * (level + 1) * 2}, kernels=1)
    same_bits(results["out"], a.numpy() * np.float32(4) * 2)
    fused(lambda: {"out": (vectors * a + 1) * vectors}, kernels=1)
    graph, results = fused(lambda: {"out": (big * small + 1) * big, "sum": (small + 1) * big + 1}, kernels=2)
    same_bits(results["out"], (big.numpy() * small.numpy()[..., None, None] + 1) * big.numpy())
    assert "add → multiply: `add` runs on 5×7 threads, `multiply` on 5×7 × 49 elements" in graph.explain()


def test_one_input_gathered_the_other_not(device):
    @gp.operator
    def edge(near, far):
        return _readTensor(near) - _readTensor(far, _row, _column - 1)

    fused(lambda: {"out": edge(a * 2, b)}, kernels=1)
    fused(lambda: {"out": edge(a, b * 2)}, kernels=1)
    fused(lambda: {"out": edge(a, blur(b) * 2)}, kernels=1)
    fused(lambda: {"out": edge(blur(a * 2), blur(b * 2))}, kernels=1)
    _, results = fused(lambda: {"out": (lambda x: edge(x, x))(a * 2)}, kernels=1)
    x = a.numpy() * 2
    same_bits(results["out"], x - x[:, [0, *range(ODD[1] - 1)]])
    fused(lambda: {"out": edge(a, a) + edge(a * 1, a)}, kernels=1)  # one field twice, read in two ways


@gp.schedule("plain")
def test_the_kernels_stay_acyclic(device):
    def around():
        first = costly(a)
        return {"out": first + blur(first)}  # first → blur → add, and first → add

    def crossed():
        x, y = costly(a), costly(b)
        return {"p": blur(x) + y, "q": blur(y) + x}  # either could take the other's producer, not both

    graph, _ = fused(around, kernels=2)
    assert nx.is_directed_acyclic_graph(graph.network)
    reasons = graph.explain()
    assert "blur" in reasons and "another kernel stands between them" in reasons
    graph, _ = fused(crossed)
    assert graph.kernel_count in (2, 3) and nx.is_directed_acyclic_graph(graph.network)
    graph, _ = fused(lambda: {"out": blur(blur(costly(a)) + costly(a)) + costly(a)}, kernels=3)
    assert list(nx.topological_sort(graph.network)) == [0, 1, 2]


def test_more_arguments_than_a_kernel_has(device):
    most = current().limits.arguments
    many = [gp.ScalarField(image(9)) for _ in range(most + 24)]

    def build():
        total = many[0] * 1
        for f in many[1:]:
            total = total + f
        return {"out": total}

    graph, results = fused(build)
    assert 2 <= graph.kernel_count <= 3
    assert f"more than {most} arguments" in graph.explain()
    total = many[0].numpy()
    for f in many[1:]:
        total = total + f.numpy()
    same_bits(results["out"], total)


def test_every_number_of_a_parameter_is_an_argument(device):
    """Fewer parameters than a kernel may have arguments, and more numbers."""
    most = current().limits.arguments
    vectors = [gp.Parameter(image(4)) for _ in range(most // 4 + 2)]

    def build():
        total = a
        for v in vectors:
            total = total * v.sum()
        return {"out": total}

    graph, results = fused(build)
    by_value = [v for v, leaf in graph.plan.program.leaves.items() if leaf.by_value]
    words = [sum(4 if v in by_value else 1 for v in (*s.inputs, *s.outputs)) for s in graph.plan.launches]
    assert max(words) <= most and graph.kernel_count > 1
    want = a.numpy()
    with np.errstate(over="ignore"):  # of thousands of numbers, where kernels may have so many arguments
        for v in vectors:
            want = want * v.sum().numpy()
    same_bits(results["out"], want)


def test_an_operator_computes_for_itself_what_it_has_arguments_for(device):
    """Each of the twelve fields that it reads elsewhere is a chain of many."""
    most = current().limits.arguments
    chains = [[gp.ScalarField(image(9)) for _ in range(most // 10)] for _ in range(12)]

    @gp.operator
    def shifted_sum(*fields):
        total = _readTensor(fields[0], _column + 1)
        for f in fields[1:]:
            total += _readTensor(f, _column + 1)
        return total

    def build():
        return {"out": shifted_sum(*(functools.reduce(operator.add, chain[1:], chain[0]) for chain in chains))}

    graph, results = fused(build)
    assert max(len(s.inputs) + len(s.outputs) for s in graph.plan.launches) <= most
    sums = [functools.reduce(operator.add, (f.numpy() for f in chain)) for chain in chains]
    want = functools.reduce(operator.add, (np.append(x[1:], x[-1]) for x in sums))
    same_bits(results["out"], want)


@pytest.fixture
def interpreter():
    with gp.use_device("reference"):
        yield


@pytest.mark.usefixtures("interpreter")  # on which no value is computed twice for one kernel less
def test_explain_and_network():
    graph = graph_of(lambda: {"out": blur(gamma(a) + 1) * b})
    network = graph.network
    assert isinstance(network, nx.DiGraph) and list(network.edges) == [(0, 1)]
    assert network.nodes[0]["operators"] == ["gamma", "add"] and network.nodes[1]["operators"] == ["blur", "multiply"]
    text = graph.explain()
    here = inspect.currentframe().f_lineno - 5
    assert text.startswith(
        "2 kernels for 4 operators\nkernel 1: gamma_add on 37×53 threads; reads 7.66 KiB, writes 7.66 KiB\n"
    )
    assert (
        f"fused through registers: gamma (tests/fusion/test_fusion.py:{here}), add (tests/fusion/test_fusion.py:{here})"
        in text
    )
    assert graph_of(lambda: {"out": a}).explain() == "0 kernels for 0 operators"


def test_explain_names_the_graph_itself():
    """Plans are shared by structure; names and lines are not."""
    texts = []
    for name in ("one", "two"):
        op = gp.operator(lambda f: _readTensor(f) + 41, name=name)
        graph = graph_of(lambda op=op: {"out": op(a)})
        graph.reset()
        texts.append(graph.explain())
    assert "kernel 1: one" in texts[0] and "kernel 1: two" in texts[1]


PROGRAM = """
    import sys
    import numpy as np, gpuop as gp
    from tests.harness import *
    f = gp.VectorField(np.ones((9, 13, 3), "f"))
    with gp.ComputeGraph() as graph:
        x = matrix(gamma(f))
        graph.probe(blur(tone(x) + 1) * x + half_and_double(x)[0], "out")
        graph.probe(x * gp.Parameter(2.0), "x")
    for target in ("opencl", "cuda"):
        sys.stdout.write(graph.source(target))
    sys.stdout.write(graph.explain())
"""


def test_text_does_not_depend_on_the_hash_seed():
    texts = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM)],
            env={"PYTHONHASHSEED": seed, "GPUOP_DEVICE": "reference", "PYTHONPATH": "."},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert texts[0] == texts[1]
    assert "__kernel" in texts[0] and "__global__" in texts[0]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint32"])
def test_integers_wrap_fused_too(device, dtype):
    """C's compilers may conclude from `x + 1 > x` that nothing overflows."""
    ends = np.iinfo(dtype)
    x = np.array([ends.max, ends.max - 1, ends.min, 0, 5] * 7, dtype)
    f = gp.ScalarField(x)

    def build():
        return {
            "up": (f + 1) > f,
            "down": (f - 1) < f,
            "negative": (-f) > 0,
            "half": f * 2 // 2,
            "absolute": abs(f) < 0,
        }

    _, results = fused(build)
    with np.errstate(over="ignore"):
        wants = {"up": x + 1 > x, "down": x - 1 < x, "negative": -x > 0, "half": x * 2 // 2, "absolute": abs(x) < 0}
    for name, want in wants.items():
        same_bits(results[name], want.astype(results[name].dtype), name)
