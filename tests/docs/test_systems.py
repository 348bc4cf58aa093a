"""Claims of docs/how-to/port-from-other-systems.md that no other test is about, in groups; and the table itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.jit.pipeline import Pipeline

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "port-from-other-systems.md"
ROWS = {"B": 43, "K": 38, "C": 24, "J": 37}
ROW = re.compile(
    r"^\| ([BKCJ]\d\d) \| (.+?) \| (?:guide|code|both) \| (.+?) \| (?:(in part: )?`(tests/[\w/]+\.py): (\w+)`|–) \|$",
    re.M,
)
HEAD = re.compile(r"Of 142 rows \d+ work, \d+ work in part, and \d+ are not there: .*; \d+ are missing\.")
DEVICES = list(dict.fromkeys([gp.devices()[0].name, "reference"]))


@pytest.fixture(params=DEVICES)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    with gp.use_device(request.param):
        yield request.param


def same(actual, want):
    actual = actual.numpy() if isinstance(actual, gp.Field) else actual
    assert actual.dtype == want.dtype and np.array_equal(actual, want)


# --- the table --------------------------------------------------------------------------------------------------------


def test_every_row_is_there_once(request):
    """And the numbers at the page's head are those of the table."""
    text = PAGE.read_text()
    rows = ROW.findall(text)
    assert len(rows) == len(re.findall(r"^\| [BKCJ]\d\d ", text, re.M)), "a row has another form"
    keys = {f"{system}{n:02}" for system, count in ROWS.items() for n in range(1, count + 1)}
    assert {number for number, *_ in rows} <= keys
    assert [number for number, count in Counter(number for number, *_ in rows).items() if count > 1] == []
    tested, part = (sum(bool(row[at]) for row in rows) for at in (-1, 3))
    results = (tested - part, part, len(rows) - tested, sum(ROWS.values()) - len(rows))
    head = (
        "Of 142 rows {} work, {} work in part, and {} are not there: what does not belong here, and what is not yet there; "
        "{} are missing."
    ).format(*results)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(HEAD.sub(head, text))
    assert head in PAGE.read_text(), "run this with --update-golden"


def test_tests_of_rows_exist():
    for number, _, _, _, path, test in ROW.findall(PAGE.read_text()):
        if path:
            result = (ROOT / path).exists() and re.search(rf"^def {test}\(", (ROOT / path).read_text(), re.M)
            assert result, f"{number} names {path}: {test}, which is not there"


# --- one body, all targets --------------------------------------------------------------------------------------------


@gp.operator
def mul2(a):
    return 2 * _readTensor(a)


@gp.operator
def halves_swapped(a):
    _localThreads(32)
    values = _local(_tensorArray(a, 32))
    values[_localColumn] = _readTensor(a)
    _syncThreadsLocal()
    return values[_localColumn ^ 16]


def test_one_body_for_all_targets(name):
    for shape in ((32, 32), (1024, 1024), (13, 21)):
        a = np.random.default_rng(1).random(shape, np.float32)
        same(mul2(gp.ScalarField(a)), 2 * a)
    b = np.arange(64, dtype="f")
    same(halves_swapped(gp.ScalarField(b)), b.reshape(-1, 2, 16)[:, ::-1].reshape(-1))
    opencl, cuda = (halves_swapped.source(gp.FieldType(64), target=t) for t in ("opencl", "cuda:sm_90"))
    messages = ["void gpuop_halves_swapped(", "__local float values[32]", "barrier(", "reqd_work_group_size(32, 1, 1)"]
    assert [word for word in [*messages, "__global const float *restrict a"] if word not in opencl] == []
    messages = ["gpuop_halves_swapped(", "float values[32]", "__syncthreads()", "__launch_bounds__(32)"]
    assert [word for word in [*messages, "const float *__restrict__ a"] if word not in cuda] == []


def test_the_front_end_runs_once():
    runs = []

    @gp.operator
    def counted(f):
        runs.append(1)
        return _readTensor(f) + 1

    field = gp.ScalarField(np.zeros((4, 5), "f"))
    with gp.ComputeGraph() as graph:
        graph.probe(counted(field), "y")
    texts = {
        target: graph.source(target) for target in ("opencl", "opencl:cpu", *(f"cuda:sm_{n}" for n in (70, 75, 80, 90)))
    }
    assert len(runs) == 1 and all("counted" in text for text in texts.values())


def test_devices_are_chosen_and_named(name):
    assert name in [d.name for d in gp.devices()] and gp.device().name == name
    assert len(gp.device().description) > len(name)
    exact = gp.ScalarField(np.float64([1 + 2**-40])) - 1
    if gp.device().target.has_fp64:
        same(exact, np.float64([2**-40]))
    else:
        with pytest.raises(gp.DeviceError, match="double"):
            exact.numpy()
    with pytest.raises(gp.DeviceError, match=r"there is no device 'cuda:99'; found: .*reference"):
        gp.device("cuda:99")
    f = mul2(gp.ScalarField(np.arange(4, dtype="f")))
    same(f, np.array([0, 2, 4, 6], "f"))
    with gp.use_device("reference"):  # a field moves with what reads it
        same(f + 1, np.array([1, 3, 5, 7], "f"))
    gp.device().synchronize()


def test_places_of_arrays_decide(name):
    @gp.pipeline
    def doubled(a):
        return gp.ScalarField(a) * 2

    assert isinstance(doubled(np.ones(3, "f")), np.ndarray)
    with pytest.raises(gp.SemanticError, match="fields are made of numbers, not of Python objects"):
        doubled(object())


# --- Python writes the kernel -----------------------------------------------------------------------------------------


def weighted(f, taps, border="clamp"):
    """A helper of several operators."""
    return sum(w * _readTensor(f, _row, _column + n - len(taps) // 2, border=border) for n, w in enumerate(taps))


@gp.operator
def smoothed(f, taps, bias=None):
    total = weighted(f, taps)
    return total if bias is None else total + _readTensor(bias)


def unused(x):
    raise ValueError("never reached")


@gp.operator
def powers(f, count):
    power, total = _tensorVar(f), _tensorVar(f)
    power @= 1
    with _for(count, unroll=True):
        power *= _readTensor(f)
        total += power
    return total


def test_python_is_the_template(name):
    a = np.random.default_rng(2).integers(-9, 9, (6, 7)).astype("f")
    f, p = gp.ScalarField(a), np.pad(a, ((0, 0), (1, 1)), mode="edge")
    want = p[:, :-2] + 2 * p[:, 1:-1] + 4 * p[:, 2:]
    same(smoothed(f, (1.0, 2.0, 4.0)), want)  # constants, helpers, a loop of Python's
    same(smoothed(f, (1.0, 2.0, 4.0), bias=f), want + a)  # an argument that may be left out
    for dtype in ("int32", "uint8", "float64"):
        b = a.astype(dtype) if dtype != "uint8" else np.abs(a).astype(dtype)
        same(powers(gp.ScalarField(b), 3), b + b * b + b * b * b)  # any element type
    text = powers.source(gp.FieldType((6, 7)), 3, target="opencl")
    assert "for (" not in text and "unused" not in text and text.count("power * ") == 3


def power(x, n):
    """By squares, as a function that calls itself."""
    if n == 0:
        return 1
    half = power(x, n // 2)
    return half * half * (x if n % 2 else 1)


def test_functions_that_call_themselves(name):
    a = np.arange(-3, 4, dtype="int32")
    same(gp.operator(lambda f: power(_readTensor(f), 5))(gp.ScalarField(a)), a**5)


def test_a_pipeline_is_traced_once_for_all_threads(name, monkeypatch):
    traced, trace = [], Pipeline._trace
    monkeypatch.setattr(Pipeline, "_trace", lambda self, *args: traced.append(self) or trace(self, *args))

    @gp.pipeline
    def scaled(a, by=2):
        return gp.ScalarField(a) * by

    arrays = [np.full((5, 6), n, "f") for n in range(12)]
    scaled(arrays[0])
    with ThreadPoolExecutor(4) as pool:
        for a, actual in zip(arrays, pool.map(scaled, arrays), strict=True):
            same(actual, 2 * a)
    assert traced == [scaled]


def test_literals_and_arguments(name):
    a, gain = np.arange(5, dtype="f"), gp.Parameter(3.0)
    same(gp.ScalarField(a) * gain, 3 * a)
    gain.set(-2.0)
    same(gp.ScalarField(a) * gain, -2 * a)
    literal = smoothed.source(gp.FieldType((6, 7)), (2.5,), target="opencl")
    assert "2.5f" in literal


def test_reachable_functions_only():
    @gp.operator
    def careful(f):
        try:
            value = _readTensor(f)
        finally:
            pass
        return value if f.dtype == np.float32 else unused(value)

    same(careful(gp.ScalarField(np.ones(3, "f"))), np.ones(3, "f"))
    with pytest.raises(ValueError, match="never reached"):
        careful(gp.ScalarField(np.ones(3, "int32")))


# --- memory -----------------------------------------------------------------------------------------------------------


def test_padded_arrays_are_shared(name):
    """Rows of 37 values that lie 40 apart: two pipelines write and read them where they are."""

    @gp.pipeline
    def raised(a):
        return gp.ScalarField(a) + 1

    padded = gp.pinned((30, 40), "float32")
    padded[...] = -7
    inner, a = padded[:20, :37], np.random.default_rng(4).random((20, 37), np.float32)
    raised(a, out=inner)
    same(inner, a + 1)
    same(raised(inner), a + 1 + np.float32(1))
    assert (padded[20:] == -7).all() and (padded[:, 37:] == -7).all()
    assert padded.ctypes.data % 128 == 0 and inner.strides == (160, 4)


def test_slots_by_name_and_bytes_required(name):
    @gp.pipeline
    def mixed(frame, mask, amount=0.5):
        f = gp.ScalarField(frame) * amount
        return f + gp.ScalarField(mask), f.sum(axis=0)

    frame, mask = np.ones((6, 8), "f"), np.full((6, 8), 2, "f")
    out = np.empty((6, 8), "f"), np.empty(8, "f")
    mixed(mask=mask, frame=frame, out=out)
    same(out[0], np.full((6, 8), 2.5, "f"))
    assert mixed.nbytes(frame, mask) == 4 * (2 * 48 + 48 + 8)
    with pytest.raises(gp.SemanticError, match="missing a required argument: 'mask'"):
        mixed(frame)
    with pytest.raises(gp.SemanticError, match="`out=` takes an array of shape"):
        mixed(frame, mask, out=(out[0][:3], out[1]))


def test_memory_begins_defined_and_is_given_back(name):
    with gp.ComputeGraph() as graph:
        count = gp.ScalarField(np.zeros(5, "f"))
        count.next = count + gp.ones(5)
        graph.probe(count + gp.zeros(5), "count")
    graph.step(3)
    same(graph.read("count"), np.full(5, 3, "f"))
    graph.reset()
    same(graph.read("count"), np.zeros(5, "f"))
    graph.release()
    with pytest.raises(gp.GpuopError):
        graph.read("count")


def test_bytes_of_a_graph(name, monkeypatch):
    """The bytes in its report are the bytes that it allocates; the reference keeps a second buffer of what is updated in place."""
    backend, allocated = gp.device(), []
    empty = type(backend).empty
    monkeypatch.setattr(type(backend), "empty", lambda self, kind: allocated.append(kind.nbytes) or empty(self, kind))
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.zeros((20, 30), "f"))
        table, gain = gp.ScalarField(np.ones((20, 30), "int16")), gp.Parameter(2.0)
        state.next = mul2(state) + gain
        graph.probe(gp.HostOperator(np.sort, state * table, outputs=state.type) + 1, "y")
    expected = (
        4 + 2
    ) * 600 + 4 * 600 * 4  # a state and a table; what the next state, the product and both functions write
    assert graph.nbytes == expected and allocated == []
    graph.step(2)
    assert name == "reference" or sum(allocated) == expected


# --- order and shapes -------------------------------------------------------------------------------------------------


def test_data_flow_orders(name):
    f = gp.ScalarField(np.arange(6, dtype="int32"))
    want = np.arange(6, dtype="int32")
    three = gp.Parameter(3)
    for _ in range(20):
        f, want = gp.evaluate(f * three - 1), want * 3 - 1
    same(f, want)


def test_grids_of_any_size_and_none(name):
    for shape in [(13, 21), (3, 5, 7), (0,), (3, 0), (2, 0, 5), (1, 1031)]:
        a = np.random.default_rng(5).random(shape, np.float32)
        same(mul2(gp.ScalarField(a)), 2 * a)
    assert float(gp.ScalarField(np.zeros((3, 0), "f")).sum()) == 0


# --- operators that are written ---------------------------------------------------------------------------------------


@gp.operator
def convolved(x, weights, bias):
    """3 × 3, with a bias, over the channels of a vector."""
    total = _var(_readTensor(bias))
    for dy in range(3):
        for dx in range(3):
            around = _readTensor(x, _row + dy - 1, _column + dx - 1, border="zero")
            total += _dot(around, _float3(*(_readTensorElement(weights, dy, dx, c) for c in range(3))))
    return total


def test_layers_of_networks(name):
    rng = np.random.default_rng(6)
    x, w = rng.integers(-3, 4, (9, 11, 3)).astype("f"), rng.integers(-3, 4, (3, 3, 3)).astype("f")
    with gp.ComputeGraph() as graph:
        y = convolved(gp.VectorField(x), gp.VectorField(w), gp.Parameter(0.5))
        graph.probe(np.maximum(y, 0), "relu")
    p = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    want = sum((p[r : r + 9, c : c + 11] * w[r, c]).sum(-1) for r in range(3) for c in range(3)) + np.float32(0.5)
    same(graph.read("relu"), np.maximum(want, 0).astype("f"))
    assert graph.kernel_count == 1
    scores = rng.standard_normal((5, 8)).astype("f")
    f = np.exp(gp.ScalarField(scores) - gp.ScalarField(scores).max(axis=1)[:, np.newaxis])
    soft = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose((f / f.sum(axis=1)[:, np.newaxis]).numpy(), soft / soft.sum(1, keepdims=True), rtol=1e-5)
    pooled = gp.ScalarField(scores[:4]).reshape(2, 2, 8).max(axis=1)
    same(pooled, scores[:4].reshape(2, 2, 8).max(axis=1))


@gp.operator(outputs=lambda a, b: gp.FieldType((a.field_shape[0], b.field_shape[1])))
def product(a, b):
    """In blocks of 8 × 8, whose factors the work-group loads together."""
    size = 8
    _localThreads(size, size, whole_groups=True)
    total = _floatVar()
    left, right = (_local(_floatArray(size, size + 1)) for _ in range(2))
    with _for(-(-a.field_shape[1] // size)) as step:
        left[_localRow, _localColumn] = _readTensor(a, _row, step * size + _localColumn, border="zero")
        right[_localRow, _localColumn] = _readTensor(b, step * size + _localRow, _column, border="zero")
        _syncThreadsLocal()
        for n in range(size):
            total += left[_localRow, n] * right[n, _localColumn]
        _syncThreadsLocal()
    return total


def test_products_of_matrices_in_blocks(name):
    rng = np.random.default_rng(7)
    a, b = rng.integers(-4, 5, (19, 30)).astype("f"), rng.integers(-4, 5, (30, 13)).astype("f")
    same(product(gp.ScalarField(a), gp.ScalarField(b)), a @ b)
