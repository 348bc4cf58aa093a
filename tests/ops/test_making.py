"""Fields that are made on the device: constants, ranges, coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from tests.conformance.compare import has_double
from tests.harness import fused, image, same_bits


def test_constants(device):
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "complex64", "complex128", "int64"):
        same_bits(gp.zeros((3, 4), dtype).numpy(), np.zeros((3, 4), dtype))
        same_bits(gp.ones(5, dtype).numpy(), np.ones(5, dtype))
        same_bits(gp.full((), 1, dtype).numpy(), np.full((), 1, dtype))
    same_bits(gp.zeros((0, 3)).numpy(), np.zeros((0, 3), "f"))
    same_bits(gp.full((2, 3, 4), 2 - 3j).numpy(), np.full((2, 3, 4), 2 - 3j, "c8"))
    same_bits(gp.full(3, np.int64(2**62)).numpy(), np.full(3, 2**62))
    same_bits(gp.full(3, -0.0).numpy(), np.full(3, -0.0, "f"))
    assert np.isnan(gp.full(3, float("nan")).numpy()).all()
    assert gp.full(3, 7).dtype == "int32" and gp.full(3, True).dtype == "bool" and gp.full(3, 0.5).dtype == "float32"


def test_constant_tensors(device):
    kind = gp.FieldType((4, 5), (2, 3), "float32")
    same_bits(gp.ones(kind).numpy(), np.ones((4, 5, 2, 3), "f"))
    same_bits(gp.zeros(kind, "int16").numpy(), np.zeros((4, 5, 2, 3), "i2"))
    same_bits(gp.full(gp.FieldType(3, 7, "complex64"), 1j).numpy(), np.full((3, 7), 1j, "c8"))
    colour = gp.full((4, 5), [0.5, 1.0, 0.25])
    assert colour.type == gp.FieldType((4, 5), 3)
    same_bits(colour.numpy(), np.broadcast_to(np.float32([0.5, 1, 0.25]), (4, 5, 3)).copy())
    assert gp.full(gp.FieldType(2, 4, "unorm8"), [0, 0.5, 1, 1]).numpy().tolist() == [[0, 128, 255, 255]] * 2
    v = gp.VectorField(image(4, 5, 3))
    same_bits(np.full_like(v, 2.5).numpy(), np.full((4, 5, 3), 2.5, "f"))
    same_bits(np.full_like(v, 10**30).numpy(), np.full((4, 5, 3), 10**30, "f"))
    assert np.ones_like(v, dtype="int8").type == gp.FieldType((4, 5), 3, "int8")


RANGES = [
    (7,), (0,), (-3,), (2, 9), (2, 9, 3), (9, 2, -2), (0.5, 3), (0, 1, 0.1), (1, 0, -0.125), (5, 5), (3, 1),
    (2.0, 2000.0, 0.7), (-5, 6, 4),
]  # fmt: skip


def test_ranges(device):
    for args in RANGES:
        whole = all(isinstance(a, int) for a in args)
        same_bits(gp.arange(*args).numpy(), np.arange(*args, dtype="int32" if whole else "float32"), str(args))
        same_bits(gp.arange(*args, dtype="float16").numpy(), np.arange(*args, dtype="float16"), str(args))
        if has_double():
            same_bits(gp.arange(*args, dtype=np.float64).numpy(), np.arange(*args, dtype="float64"), str(args))
    same_bits(gp.arange(250, 0, -3, dtype="uint8").numpy(), np.arange(250, 0, -3, dtype="uint8"))
    same_bits(gp.arange(2**62, 2**62 + 5, dtype="int64").numpy(), np.arange(2**62, 2**62 + 5))
    same_bits(gp.arange(2**63, 2**63 + 5, dtype="uint64").numpy(), np.arange(2**63, 2**63 + 5, dtype="uint64"))


def test_linspace(device):
    for args in ((0, 1), (0, 1, 480), (5, -3, 7), (2.5, 2.5, 3), (0, 1, 1), (0, 1, 0), (1e-3, 1e3, 1000)):
        for endpoint in (True, False):
            want = np.linspace(*args, endpoint=endpoint)
            actual = gp.linspace(*args, endpoint=endpoint).numpy()
            assert (actual.dtype, actual.shape) == (np.dtype("f"), want.shape)
            np.testing.assert_allclose(actual, want, rtol=0, atol=1.2e-7 * max(map(abs, args[:2])))
            assert not endpoint or len(want) < 2 or (actual[0], actual[-1]) == tuple(np.float32(args[:2]))
            if has_double():
                same_bits(gp.linspace(*args, endpoint=endpoint, dtype="float64").numpy(), want)
                whole = np.linspace(*args, endpoint=endpoint, dtype="int16")
                same_bits(gp.linspace(*args, endpoint=endpoint, dtype="int16").numpy(), whole)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
def test_meshgrid(device, indexing, sparse):
    arrays = [image(4), image(6), image(3)]
    for count in (1, 2, 3):
        want = np.meshgrid(*arrays[:count], indexing=indexing, sparse=sparse)
        fields = [gp.ScalarField(a) for a in arrays[:count]]
        for value in (gp.meshgrid, np.meshgrid):
            actual = value(*fields, indexing=indexing, sparse=sparse)
            for one, other in zip(actual, want, strict=True):
                same_bits(one.numpy(), np.array(other, order="C"))
    same_bits(gp.meshgrid(arrays[0], 2.0)[1].numpy(), np.full((1, 4), 2, "f"))


def test_nothing_is_written_for_a_constant(device):
    f = gp.ScalarField(image(16, 24))
    graph, results = fused(lambda: {"x": f * gp.full((16, 24), 3.0) + gp.arange(24) + gp.zeros((16, 1))}, kernels=1)
    same_bits(results["x"], f.numpy() * 3 + np.arange(24, dtype="f"))
    assert "full" in graph.explain()


def test_made_fields_begin_states(device):
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(gp.zeros((3, 4)).numpy())
        state.next = state + 1
        graph.probe(state, "state")
    graph.step(3)
    same_bits(graph.read("state"), np.full((3, 4), 3, "f"))
