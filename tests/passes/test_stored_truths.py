"""`any` and `all` of fields in memory: CPUs read a row no further than they need to."""

import numpy as np
import pytest

import gpuop as gp

CPUS = [d.name for d in gp.devices() if d.name.startswith("opencl") and gp.device(d.name).target.device == "cpu"]
SHAPES = [(130, 600), (3, 40, 700), (2, 8192 * 5 + 1)]  # rows, blocks and chunks that end early


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CPUS)
def test_wherever_the_only_other_value_is(name, shape):
    with gp.use_device(name):
        for truth, row, column in ((True, 0, 0), (False, -1, -1), (True, -1, 511), (False, 1, shape[-1] // 2)):
            field = np.full(shape, truth)
            field.reshape(-1, shape[-1])[row, column] = not truth
            source = gp.ScalarField(field)
            each, one = gp.evaluate(*((np.all if truth else np.any)(source, axis=axis) for axis in (-1, None)))
            assert np.array_equal(each.numpy(), (field.all if truth else field.any)(axis=-1))
            assert bool(one.numpy()) == (not truth)


@pytest.mark.parametrize("name", CPUS[:1])
def test_what_is_computed_is_not_asked_for_one_by_one(name):
    with gp.use_device(name):
        image = gp.ScalarField(np.ones((128, 600), "f"))
        stored = gp.evaluate(image > 0.5)
        for truths, leaves in ((stored, True), (image > 0.5, False)):
            with gp.ComputeGraph() as graph:
                graph.probe(np.all(truths, axis=1), "all")
            assert ("break" in graph.source()) == leaves
            graph.reset()
            assert graph.read("all").all()
