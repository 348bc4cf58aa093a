"""NumPy's functions that move values: fields give what arrays give, whatever the shapes, axes and dtypes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuop as gp
from gpuop.dsl import *
from tests.fuzz.common import profile
from tests.harness import fused, half_and_double, image, same_bits

from .layout_calls import NAMES, Call, calls, chains

# what fields refuse and arrays do not: tensors without elements, axes of 0D arrays
LIMITS = ("a tensor has at least one", "keeps no tensor element", "out of bounds for a 0D")


def results(value: object) -> list[np.ndarray]:
    """The array, or the arrays, of what a call gives."""
    many = value if isinstance(value, (list, tuple)) else [value]
    return [v.numpy() if isinstance(v, gp.Field) else np.array(v, order="C") for v in many]


def check(call: Call) -> str:
    """A field's result, or its refusal, is that of NumPy's; what became of it."""
    try:
        want = results(call.of(call.arrays))
    except (ValueError, IndexError):
        with pytest.raises(gp.SemanticError):
            call.of_fields()
        return "refused"
    try:
        actual = results(call.of_fields())
    except gp.SemanticError as error:
        refused = str(error)
        if not any(limit in refused for limit in LIMITS):
            raise
        return "too many"
    assert len(actual) == len(want)
    for one, other in zip(actual, want, strict=True):
        same_bits(one, other, str(call))
    return call.name


@pytest.mark.parametrize("name", NAMES)
def test_each_as_numpy(name):
    counts: Counter[str] = Counter()

    @profile("reference", 25, 0)
    @given(calls((name,)))
    def run(call):
        counts[check(call)] += 1

    with gp.use_device("reference"):
        run()
    assert counts[name] >= 5, counts


def test_as_numpy(device):
    @profile(device, 100, 24)
    @given(calls())
    def run(call):
        check(call)

    run()


def test_chains(device):
    """Functions one after another, with arithmetic between them, fused and looked at in part."""
    counts: Counter[str] = Counter()

    @profile(device, 150, 30)
    @given(chains(), st.booleans())
    def run(chain, between):
        array, order, steps = chain
        field = gp.Field(array, order)
        looked_at = [(field, array)]
        for name, args in steps:
            f, a = looked_at[-1]
            try:
                f = getattr(np, name)(f * 2 + 1 if between else f, *args)
            except gp.SemanticError:
                break
            looked_at.append((f, getattr(np, name)(a * 2 + 1 if between else a, *args)))
        gp.evaluate(looked_at[-1][0])
        counts[str(len(looked_at))] += 1
        for f, a in looked_at[:0:-2]:
            same_bits(f.numpy(), np.array(a, order="C"), str(steps))

    run()
    assert counts["4"] + counts["5"] + counts["6"] > 5, counts


INDEX = st.one_of(
    st.integers(-4, 3),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-5, 5))] * 2, st.sampled_from((None, 1, 2, -1, -3))),
)


@st.composite
def updates(draw):
    """An array, how many of its axes are tensors', an index, and values for it, an array or a field of some order."""
    shape = (*draw(st.lists(st.integers(4, 6), max_size=3)), *draw(st.sampled_from(((), (4,), (4, 5)))))
    order = max(len(shape) - 3, draw(st.integers(0, min(2, len(shape)))))
    dtype = draw(st.sampled_from(("float32", "int16", "bool", "complex64", "complex128", "int64")))
    array = np.random.default_rng(len(shape)).integers(0, 99, shape).astype(dtype)
    index = tuple(draw(st.lists(INDEX, max_size=len(shape))))
    part = array[index].shape
    some = tuple(1 if draw(st.booleans()) else n for n in part)[draw(st.integers(0, len(part))) :]
    number = draw(st.booleans())
    values = array.dtype.type(1) if number else np.arange(np.prod(some)).reshape(some).astype(dtype)
    return array, min(order, 2), index, values, draw(st.booleans())


def test_updated(device):
    @profile(device, 100, 16)
    @given(updates())
    def run(case):
        array, order, index, values, wrapped = case
        want = np.array(array)
        want[index] = values
        given_values = (
            gp.Field(values, max(0, values.ndim - 3)) if wrapped and isinstance(values, np.ndarray) else values
        )
        actual = gp.updated(gp.Field(array, order), index, given_values)
        same_bits(actual.numpy(), want, f"{array.shape} {order} {index} {np.shape(values)}")

    run()


def test_new_axes_and_broadcasting(device):
    x, y, v = image(5), image(7), image(4, 5, 3)
    f, g, w = gp.ScalarField(x), gp.ScalarField(y), gp.VectorField(v)
    same_bits((f[:, np.newaxis] * g).numpy(), x[:, None] * y)
    same_bits((g[None, :, None] - f).numpy(), y[None, :, None] - x)
    same_bits((w - w.mean(axis=0)).numpy().round(3), (v - v.mean(axis=0)).round(3))
    same_bits(np.where(f[:, None] > 0.5, g, 0).numpy(), np.where(x[:, None] > 0.5, y, np.float32(0)))
    same_bits(w[1, None, ..., None, 1:].numpy(), v[1, None, ..., None, 1:])
    assert w[..., None].tensor_shape == (3, 1) and w[:, :, None].field_shape == (4, 5, 1)
    same_bits((gp.VectorField(v[:, :1]) + w).numpy(), v[:, :1] + v)


def test_which_axes_are_the_tensors():
    v, m = gp.VectorField(image(4, 5, 3)), gp.MatrixField(image(4, 5, 2, 3))
    for actual, grid, tensor in (
        (np.transpose(v, (1, 0, 2)), (5, 4), (3,)),
        (np.transpose(v, (2, 0, 1)), (3, 4, 5), ()),
        (np.swapaxes(m, -1, -2), (4, 5), (3, 2)),
        (v.reshape(20, 3), (20,), (3,)),
        (v.reshape(4, 15), (4, 15), ()),
        (m.reshape(4, 5, 6), (4, 5), (6,)),
        (v.reshape(-1), (60,), ()),
        (np.stack([v, v], axis=2), (4, 5), (2, 3)),
        (np.stack([v, v]), (2, 4, 5), (3,)),
        (np.dstack([v[..., 0], v[..., 1]]), (4, 5), (2,)),
        (np.broadcast_to(v, (2, 4, 5, 3)), (2, 4, 5), (3,)),
        (v[:, :, None], (4, 5, 1), (3,)),
        (np.expand_dims(v, -1), (4, 5), (3, 1)),
        (v[..., 0, None], (4, 5, 1), ()),
        (np.concatenate([v, v], axis=-1), (4, 5), (6,)),
        (v[..., 0].with_tensor_order(1), (4,), (5,)),
        (m.with_tensor_order(0), (4, 5, 2, 3), ()),
        (m.with_tensor_order(3), (4,), (5, 2, 3)),
        (gp.ScalarField(v.numpy(), dims="y:x:c").with_tensor_order(1), (4, 5), (3,)),
    ):
        assert (actual.field_shape, actual.tensor_shape) == (grid, tensor)


def test_axes_become_the_tensors(device):
    x = image(4, 5, 6)
    planes = gp.ScalarField(x, dims="y:x:c")
    vectors = (planes * 2).with_tensor_order(1)
    assert vectors.type.names == ("y", "x", "c") and np.array_equal(vectors.numpy(), 2 * x)
    assert np.array_equal((vectors.sum(axis=-1)).numpy().shape, (4, 5))
    assert np.array_equal((vectors.with_tensor_order(2) + 1).with_tensor_order(0).numpy(), 2 * x + 1)
    assert planes.with_tensor_order(0) is planes


def test_take_by_a_field(device):
    x, at = image(6, 7), np.array([[3, -2], [9, 0]], "i")
    f, indices = gp.ScalarField(x), gp.ScalarField(at)
    for mode in ("clip", "wrap"):
        for axis in (0, 1, None):
            same_bits(np.take(f, indices[0] * 2, axis, mode=mode).numpy(), np.take(x, at[0] * 2, axis, mode=mode))
        same_bits(np.take(f[0], indices, mode=mode).numpy(), np.take(x[0], at, mode=mode))
    far = np.array([2**40, 1 - 2**33])  # farther than coordinates reach
    same_bits(np.take(f, gp.ScalarField(far), mode="wrap").numpy(), x.ravel()[far % 42])  # NumPy's "wrap" takes seconds


@pytest.mark.parametrize(("shape", "tensor"), [((5, 150), 0), ((170,), 0), ((3, 140, 2), 1)])
def test_far_rolls(device, shape, tensor):
    """Of which rows have two parts."""
    x = image(*shape)
    f, last = gp.Field(x, tensor), len(shape) - 1 - tensor
    shifts = {last: 70, 0: 2, len(shape) - 1: 1} if tensor or last else {0: -99}
    shifts[last] = 70
    same_bits(
        np.roll(f, tuple(shifts.values()), tuple(shifts)).numpy(), np.roll(x, tuple(shifts.values()), tuple(shifts))
    )
    same_bits((np.roll(f, -80, last) * 2).numpy(), np.roll(x, -80, last) * 2)


def test_rows_of_cpus_are_numbered_by_ints(device):
    """Intel's compiler scatters what it writes at places that could have been made shorter; others than rows it knows."""
    x = image(6, 7)
    with gp.ComputeGraph() as graph:
        graph.probe(np.ravel(gp.ScalarField(x)), "row")
    same_bits(graph.read("row"), x.ravel())
    if device.startswith("opencl") and gp.device().target.device == "cpu":
        assert "__builtin_assume(_columnId < 0x7fffffff);" in str(graph.source())
    assert "__builtin_assume" not in str(graph.source("opencl")) + str(graph.source("cuda"))


def test_take_evenly():
    x = image(6, 7)
    f = gp.ScalarField(x)
    for at in ([0, 2, 4], [5, 3, 1], [2, 1, 0], [-1, -2], [3], [1, 1], [[0, 1], [2, 3]], [0, 2, 3]):
        for axis in (0, 1):
            same_bits(np.take(f, at, axis).numpy(), np.take(x, at, axis))


def test_joining_dtypes():
    a, b = np.arange(5, dtype="int16"), np.arange(5, dtype="float32")
    f, g = gp.ScalarField(a), gp.ScalarField(b)
    same_bits(np.concatenate([f, g]).numpy(), np.concatenate([a, b]))
    same_bits(np.stack([f, g], dtype="int64").numpy(), np.concatenate([a, b]).reshape(2, 5).astype("int64"))
    assert np.hstack([f, gp.ScalarField(b.astype("int32"))]).dtype == "int32"
    assert np.concatenate([gp.ScalarField(a.astype("int32")), g]).dtype == "float32"  # float64 in NumPy
    shades = np.arange(12, dtype="uint8").reshape(3, 4)
    grey = gp.ScalarField(shades, dtype="unorm8")
    joined = np.concatenate([grey, np.pad(grey, 1, constant_values=1.0)[1:4, :4]])
    assert joined.dtype == "unorm8"
    same_bits(joined.numpy(), np.concatenate([shades, np.pad(shades, 1, constant_values=255)[1:4, :4]]))


def test_many_fields():
    arrays = [image(2, n % 5 + 1) for n in range(40)]
    same_bits(np.concatenate([gp.ScalarField(a) for a in arrays], 1).numpy(), np.concatenate(arrays, 1))


def test_one_kernel(device):
    """Moves of values fuse with the operators before and after them."""
    f, g, v = gp.ScalarField(image(24, 40)), gp.ScalarField(image(24, 40)), gp.VectorField(image(24, 40, 3))
    for name, make in {
        "transposed": lambda: np.sqrt((f * 2).T + 1),
        "planes": lambda: np.transpose(v * 2, (2, 0, 1)) + 1,
        "vectors": lambda: np.stack([f * 2, g + 1, f], axis=-1) * 0.5,
        "beside": lambda: np.concatenate([f * 2, g + 1], axis=1) * 0.5,
        "below": lambda: np.vstack([f * 2, g + 1]) * 0.5,
        "shifted": lambda: np.roll(f * 2, (1, -3), (0, 1)) - f,
        "bordered": lambda: np.pad(f * 2, 2, mode="reflect") + 1,
        "turned": lambda: np.rot90(f * 2) + 1,
        "reshaped": lambda: (f * 2).reshape(40, 24) + 1,
        "larger": lambda: np.repeat(np.tile(f * 2, (1, 2)), 2, axis=0) + 1,
        "updated": lambda: gp.updated(f * 2, np.s_[2:9, ::3], 0.25) + 1,
        "constants": lambda: gp.zeros((24, 40)) + f * gp.full((24, 40), 3.0),
    }.items():
        fused(lambda make=make, name=name: {name: make()}, kernels=1)


def test_transposes_are_scheduled_as_such(device):
    if not device.startswith("opencl"):
        pytest.skip("it has no schedules")
    for make in (lambda f: f.T, lambda f: np.transpose(f + 1) * 2):
        with gp.ComputeGraph() as graph:
            graph.probe(make(gp.ScalarField(image(512, 512))), "x")
        assert "schedule: transpose" in graph.explain()


def test_states_are_updated_in_place(device):
    x = image(32, 48)
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(x)
        state.next = gp.updated(state, np.s_[1:9, 2:20:3], gp.full((8, 6), 0.5) * 3)
        graph.probe(state, "state")
    graph.reset()
    assert "in place, when the next step begins: state.next" in graph.explain()
    graph.step(2)
    want = x.copy()
    want[1:9, 2:20:3] = 1.5
    same_bits(graph.read("state"), want)


@pytest.mark.parametrize("channels", [96, 100])
def test_filters_in_blocks(device, channels):
    """Filters of output channels, in blocks of 16 that lie side by side for each weight: padded, split and transposed."""
    x = image(channels, 363)  # 3×11×11 weights of each
    blocks = -(-channels // 16)
    vectors = (
        gp.device().target.widening == "vector"
    )  # nothing is padded then, and the parts are predicted to be faster
    _, results = fused(
        lambda: {
            "filters": np.transpose(
                np.pad(gp.ScalarField(x), ((0, -channels % 16), (0, 0))).reshape(blocks, 16, 363), (0, 2, 1)
            )
        },
        kernels=2 if vectors and channels == 96 else 1,
    )
    padded = np.pad(x, ((0, -channels % 16), (0, 0)))
    same_bits(results["filters"], np.ascontiguousarray(padded.reshape(blocks, 16, 363).transpose(0, 2, 1)))


def test_in_graphs_and_pipelines(device):
    x = image(6, 8)
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(x)
        low, high = half_and_double(state)
        state.next = np.roll(np.where(np.flip(state) > 0.25, low, high), 1, axis=0)
        graph.probe(state.T[::2], "part")
    graph.step(3)
    want = x.copy()
    for _ in range(3):
        want = np.roll(np.where(np.flip(want) > 0.25, want / 2, want * 2), 1, axis=0)
    same_bits(graph.read("part"), np.ascontiguousarray(want.T[::2]))
    piped = gp.pipeline(lambda a: np.pad(gp.ScalarField(a).T, 1, mode="wrap").reshape(-1))
    same_bits(piped(x), np.pad(x.T, 1, mode="wrap").reshape(-1))
    turned = gp.iterate(lambda u: np.rot90(u) * 2, gp.ScalarField(x[:, :6]), times=3)
    same_bits(turned.numpy(), np.ascontiguousarray(np.rot90(x[:, :6], 3) * 8))


def test_nothing_to_do_costs_nothing():
    f = gp.VectorField(image(4, 5, 3))
    for same in (
        np.transpose(f, (0, 1, 2)), np.roll(f, 8, axis=0), np.roll(f, 0), f.reshape(4, 5, 3), np.rot90(f, 4), np.pad(f, 0),
        np.squeeze(f), np.broadcast_to(f, (4, 5, 3)), np.tile(f, 1), np.repeat(f, 1, axis=0), np.concatenate([f]), np.diff(f, 0),
        np.moveaxis(f, 1, -2), np.concatenate([f, f[:0]]), gp.updated(f, np.s_[2:2], 5),
    ):  # fmt: skip
        assert same is f
