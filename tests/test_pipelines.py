"""The pipelines that are measured compute what NumPy does, whatever the size, fused and not."""

from __future__ import annotations

import pytest

import gpuop as gp
from benchmarks.pipelines.catalogue import CATALOGUE
from benchmarks.pipelines.pipeline import as_tuple

LARGE = {"nlm", "pyramid_blend", "local_laplacian"}  # seconds to plan and to compile
SHARES = 8  # of the pipelines, one for each device: drivers take their time


def differs(name, size, **options):
    pipeline = CATALOGUE[name]
    arrays = pipeline.inputs((*size, 9) if len(pipeline.shapes["cpu"]) == 3 else size)
    expected = as_tuple(pipeline.expected(*arrays))
    graph = pipeline.graph(arrays, **options)
    return pipeline.differs(tuple(graph.read(f"result{n}") for n in range(len(expected))), expected)[0]


@pytest.mark.parametrize("name", CATALOGUE)
def test_pipelines_on_the_reference(name):
    with gp.use_device("reference"):
        assert not differs(name, (17, 33))
        assert not differs(name, (3, 1), optimize=False)


def test_pipelines_on_devices(device, request):
    names = [name for name in CATALOGUE if name not in LARGE]
    for name in names[request.node.callspec.indices["device"] :: SHARES]:
        assert not differs(name, (50, 31)), name
