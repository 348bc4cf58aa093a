"""`explain`, `source` and `profile` of a call of a pipeline, for arrays in their own layout."""

from __future__ import annotations

import json
import re
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.base.lru import BoundedCache
from gpuop.dsl import *
from gpuop.engine.dump import source
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.layout import Layout, interleaved
from gpuop.ir.values import Leaf, LeafSource
from gpuop.passes.coarsening_factor import refused_layouts
from gpuop.runtime.base.compiled import CompilingBackend
from gpuop.runtime.devices import current
from tests.harness import image, same_bits


@gp.operator
def luma(photo):
    c = _readTensor(photo)
    return 0.299 * c.x + 0.587 * c.y + 0.114 * c.z


@gp.operator
def across(f):
    return sum(_readTensor(f, _row, _column + k) for k in range(-3, 4))


@gp.operator
def down(f):
    return sum(_readTensor(f, _row + k, _column) for k in range(-3, 4))


@gp.pipeline
def light(photo, gain=1.0):
    return down(across(luma(gp.VectorField(photo)))) * gain


@gp.pipeline
def planes(plane, gain=2.0):
    f = gp.ScalarField(plane)
    return across(f) * gain, f.sum(axis=0)


@gp.pipeline
def toned(photo):
    return gp.VectorField(photo) * 0.75


@gp.pipeline
def framed(plane):
    """A pipeline in a pipeline, a host function and an iteration."""
    first = planes(plane, 1.5)[0]
    flipped = gp.HostOperator(np.flipud, first, outputs=first.type)
    return gp.iterate(lambda u: across(u) * 0.125, flipped, times=3)


PHOTO, PLANE = image(65, 96, 3), image(65, 96)
CALLS = {
    "interleaved": (light, (PHOTO,), {}),
    "transposed": (light, (np.asfortranarray(PHOTO),), {"gain": 3.0}),
    "parameter": (light, (PHOTO, gp.Parameter(1.25)), {}),
    "several": (planes, (PLANE,), {}),
    "views": (planes, (PLANE[::2, ::-1],), {}),
    "results": (toned, (PHOTO,), {}),
    "into an array": (toned, (PHOTO[:, :31],), {"out": np.full((65, 31, 3), 7, "f")}),
    "into a view": (toned, (PHOTO[:, :33],), {"out": np.full((65, 66, 3), 7, "f")[:, ::2]}),
    "nested": (framed, (PLANE,), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_told_is_what_runs(device, name, tmp_path, monkeypatch):
    function, arrays, options = CALLS[name]
    pipeline = gp.pipeline(function.function)
    before = [np.copy(each) for each in (*arrays, options.get("out")) if isinstance(each, np.ndarray)]
    report, text = json.loads(pipeline.explain(*arrays, format="json", **options)), pipeline.source(*arrays, **options)
    after = [each for each in (*arrays, options.get("out")) if isinstance(each, np.ndarray)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), "nothing ran"
    assert all(
        f"// {kernel['name']}: " in text for kernel in report["kernels"] if kernel["lanes"] or kernel["schedule"]
    )
    monkeypatch.setattr("gpuop.engine.evaluate._plans", BoundedCache(1))  # what ran before would not be compiled
    monkeypatch.setattr(config, "dump", str(tmp_path))
    pipeline(*arrays, **options)
    ran = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    if isinstance(current(), CompilingBackend):
        assert ran and all(each in text for each in ran)
        assert len(text) == sum(map(len, ran)) + len(ran) - 1, "and nothing else"


def test_types_stand_for_arrays():
    """So that plans and texts of large arrays are seen without them; other arguments are as ever."""
    grey, photo, waves = (
        gp.FieldType((64, 90)),
        gp.FieldType((64, 90), 3, "uint8"),
        gp.FieldType((9, 9), dtype="complex64"),
    )
    for kind, constructor in ((grey, gp.ScalarField), (photo, gp.VectorField), (waves, gp.ComplexField)):
        doubled = gp.pipeline(lambda a, by, kind=constructor: kind(a) * by)
        array = np.ones(kind.array_shape, kind.array_dtype)
        assert doubled.source(kind, 2) == doubled.source(array, by=2)
        assert doubled.source(a=kind, by=2, target="cuda") == doubled.source(array, 2, target="cuda")
        assert doubled.explain(kind, by=2) == doubled.explain(array, 2)
    increased = gp.pipeline(lambda a: gp.ScalarField(a) + 1)
    assert "20000x30000 float32" in increased.source(gp.FieldType((20000, 30000)), target="cuda")


@pytest.mark.parametrize(
    "constructor", [gp.ScalarField, gp.VectorField, gp.ColorField, lambda a: gp.ScalarField(a, dtype="f")]
)
def test_tracing_copies_no_array(constructor):
    array = np.zeros((1500, 2000, 4), np.uint8) if constructor is gp.ColorField else np.zeros((1000, 500, 5), np.int32)
    pipeline = gp.pipeline(lambda a: constructor(a) + 1)
    pipeline.signature, gp.devices()
    tracemalloc.start()
    try:
        bound, values = pipeline._bound((array,), {})
        pipeline._trace(bound, values, False)
        assert tracemalloc.get_traced_memory()[1] < array.nbytes // 2
    finally:
        tracemalloc.stop()


def test_a_kernel_for_each_operator():
    """`optimize=False`; a pipeline that calls this one decides for both."""
    apart = gp.pipeline(optimize=False)(light.function)
    same_bits(apart(PHOTO), light(PHOTO))
    assert apart.explain(PHOTO).startswith("4 kernels for 4 operators")
    together = light.explain(PHOTO).partition("\n")[0]
    assert together != "4 kernels for 4 operators"
    assert gp.pipeline(lambda photo: apart(photo)).explain(PHOTO).startswith(f"{together}\n")
    messages = ["defjvp", "defvjp", "explain", "footprint", "name", "profile", "signature", "source", "window"]
    assert [name for name in dir(apart) if name[0] != "_"] == messages


def test_profile(device):
    out = np.full_like(PHOTO, 7)
    result = toned.profile(PHOTO, steps=3)
    assert result.steps == 3 and [row.name for row in result.rows] == ["multiply"] and result.rows[0].median_ms > 0
    assert result.rows[0].nbytes == 2 * PHOTO.nbytes and result.rows[0].runs == "at every step"
    same_bits(toned(PHOTO), PHOTO * np.float32(0.75))
    names = [row.name for row in framed.profile(PLANE, steps=2).rows]
    assert "flipud" in names and names == [
        k["name"] for k in json.loads(framed.explain(PLANE, format="json"))["kernels"]
    ]
    with pytest.raises(
        gp.SemanticError, match="pipeline `toned` is measured with results of its own; leave out `out=`"
    ):
        toned.profile(PHOTO, out=out)
    for wrong in (0, 2.5, True):
        with pytest.raises(gp.SemanticError, match=f"profile takes a number of steps, 1 or more, not {wrong}"):
            toned.profile(PHOTO, steps=wrong)
    assert (out == 7).all()


def test_arrays_as_they_lie(device):
    """The text has the strides of a photo, whichever the target; a graph of a copy has planes."""
    with gp.ComputeGraph() as graph:
        graph.probe(luma(gp.VectorField(PHOTO)))
    grey = gp.pipeline(lambda photo: luma(gp.VectorField(photo)))
    wrapped = current().target.device == "cpu" and isinstance(current(), CompilingBackend)
    if wrapped:
        assert "photo_columnStride = 3" in grey.source(PHOTO, target="cuda").replace("image_", "photo_")
    assert "columnStride" not in graph.source("cuda")


def test_photos_that_are_read_around_points(device):
    """They are used as they lie where vectors take them so, else copied to planes, also where only a result is a photo."""
    photo = np.random.default_rng(5).random((40, 70, 3), np.float32)

    @gp.operator
    def across(f):
        return _readTensor(f, _row, _column + 1) - _readTensor(f, _row - 1, _column)

    @gp.pipeline
    def edges(image):
        return across(gp.VectorField(image) * 2)

    doubled = photo * 2
    want = doubled[:, [*range(1, 70), 69]] - doubled[[0, *range(39)]]
    np.testing.assert_array_equal(edges(photo), want)
    out = np.empty_like(photo)
    np.testing.assert_array_equal(edges(photo[:, ::-1], out=out), edges(np.ascontiguousarray(photo[:, ::-1])))
    if current().target.widening in ("vector", "functions") and isinstance(current(), CompilingBackend):
        assert "  used as they lie, the elements of their points side by side: a, out0" in edges.explain(photo)
        assert "columnStride" in edges.source(photo)
    else:
        assert "columnStride" not in edges.source(photo) + edges.source(photo, out=out)
    assert "is not planar" not in edges.explain(photo)


def test_complex_numbers_are_used_as_they_lie_beside_tables(device):
    waves = (np.arange(2800).reshape(40, 70) * (1 + 2j)).astype("c8")
    factors = np.arange(70, dtype="f")
    scaled = gp.pipeline(lambda given: gp.ComplexField(given) * gp.ScalarField(factors[None]))
    np.testing.assert_array_equal(scaled(waves), waves * factors)
    wrapped = current().target.device == "cpu" and isinstance(current(), CompilingBackend)
    if wrapped:
        assert scaled.source(waves).count("columnStride = 2") == 2


def test_memory_that_is_not_in_planes_is_named():
    f, other = gp.VectorField(PHOTO), gp.VectorField(PHOTO)
    kernel = plan(program([(f * other).node])).launches[0].kernel
    apart = [(param, interleaved(param.type)) for param in (kernel.inputs[1], kernel.outputs[0].param)]
    message = "the array of the user for `b`, `out0` is not planar"
    assert refused_layouts(replace(kernel, layouts=tuple(apart))) == message and not refused_layouts(kernel)


def test_schedules_are_those_that_are_pinned_at_the_call(device):
    with gp.schedule("plain"):
        assert "schedule:" not in planes.explain(PLANE)
    if current().target.device == "cpu" and isinstance(current(), CompilingBackend):
        assert "schedule:" in planes.explain(PLANE)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), {}),
        ((PHOTO, 1, 2), {}),
        ((PHOTO,), {"gian": 2}),
        ((PHOTO, [PHOTO]), {}),
        ((PHOTO, {}), {}),
        ((PHOTO,), {"out": PHOTO}),
        ((PHOTO,), {"out": (PLANE, PLANE)}),
        ((gp.VectorField(PHOTO), PLANE), {}),
    ],
)
def test_wrong_arguments_are_told_as_of_a_call(arguments, named):
    with pytest.raises(gp.SemanticError) as called:
        light(*arguments, **named)
    for word in (light.explain, light.source):
        with pytest.raises(gp.SemanticError) as error:
            word(*arguments, **named)
        assert error.value.message == called.value.message


def test_other_errors():
    with pytest.raises(
        gp.SemanticError, match="`light` is a plain function of Fields here, and has no plan of its own"
    ):
        light.explain(gp.VectorField(PHOTO))
    with pytest.raises(gp.SemanticError, match="there is no format 'xml'"):
        light.explain(PHOTO, format="xml")
    with pytest.raises(gp.SemanticError, match="there is no target 'metal'"):
        light.source(PHOTO, target="metal")


@dataclass(frozen=True, eq=False)
class Interleaved(LeafSource):
    """Another library's memory."""

    layout: Layout | None

    def read(self):
        raise AssertionError("it stays where it is")


def test_a_plan_knows_how_borrowed_fields_lie():
    kind = gp.FieldType((4, 5), (3,))
    field = gp.Field.of(Leaf(kind, Interleaved(interleaved(kind))))
    kernel = plan(program([luma(field).node])).launches[0].kernel
    assert kernel.layouts == ((kernel.inputs[0], interleaved(kind)),)


OTHERS = [("cuda", "opencl:cpu"), ("opencl", "opencl:cpu"), ("opencl:cpu", "cuda")]


@pytest.mark.parametrize(("target", "other"), OTHERS)
def test_texts_for_a_target_are_planned_for_it(target, other):
    """Whichever device is in use: thread grids of scans follow the target."""
    values = np.arange(1 << 16, dtype="f")[::-1].copy()
    with gp.use_device("reference"):
        with gp.ComputeGraph() as graph:
            graph.probe(np.cumsum(gp.ScalarField(values)), "sums")
        pipeline = gp.pipeline(lambda a: np.cumsum(gp.ScalarField(a)))
        text = graph.source(target)
        assert text == pipeline.source(values, target=target) == source([np.cumsum(gp.ScalarField(values))], target)
        threads = [re.findall(r"// (\S+): ([\dx]+) threads", each) for each in (text, graph.source(other))]
        assert threads[0] and threads[0] != threads[1]
