"""Fields of named dimensions, and of more than kernels' grids have: the values are NumPy's, the names labels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.dump import plan_for_text
from tests.harness import same_bits

IMAGES = gp.Dims("img:chan:y:x")
RNG = np.random.default_rng(6)
BATCH = RNG.integers(-9, 9, (2, 3, 5, 7)).astype(np.float32)
DEEP = RNG.integers(-9, 9, (2, 3, 2, 5, 40)).astype(np.float32)
TENSORS = RNG.integers(-9, 9, (4, 5, 2, 3, 4)).astype(np.float32)


def batch() -> gp.Field:
    return gp.ScalarField(BATCH, dims=IMAGES)


@pytest.fixture
def reference():
    with gp.use_device("reference"):
        yield


def numbers(field: gp.Field, axis: object) -> object:
    """The axes that names stand for."""
    if isinstance(axis, tuple):
        return tuple(numbers(field, a) for a in axis)
    return field.dims.names.index(axis) if isinstance(axis, str) else axis


# --- host algebra -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", ["img", "chan", "x", ("y", "x"), ("img", "y", "x"), ("img", "x"), None, (0, -2)])
def test_reductions_by_name(axis, reference):
    field, at = batch(), numbers(batch(), axis)
    left = [n for k, n in enumerate(field.dims.names) if axis is not None and k not in np.atleast_1d(at) % 4]
    total = field.sum(axis=axis)
    same_bits(total.numpy(), BATCH.sum(axis=at), "whole numbers have exact sums")
    assert total.type.names == tuple(left)
    maximum = np.max(field, axis=axis, keepdims=True)
    same_bits(maximum.numpy(), BATCH.max(axis=at, keepdims=True), "keepdims")
    assert maximum.type.names == field.type.names
    np.testing.assert_allclose(field.std(axis=axis).numpy(), BATCH.std(axis=at), rtol=1e-5, atol=1e-6)


def test_places_of_extremes(device):
    same_bits(batch().sum(axis=("img", "y", "x")).numpy(), BATCH.sum(axis=(0, 2, 3)), "around an axis that stays")
    summed = np.cumsum(batch(), axis="chan")
    same_bits(summed.numpy(), BATCH.cumsum(axis=1), "up to each")
    assert summed.type.names == IMAGES.names
    same_bits(batch().argmax(axis="chan").numpy(), BATCH.argmax(1), "along an axis")


@pytest.mark.parametrize("axis", [(3, 4), (0, 2, 4), (1, 3), 0, 2, 4, (0, 1, 2), None])
def test_five_dimensions_without_names(axis, reference):
    """Rows are long enough for work-groups, between and beside axes that stay."""
    field = gp.ScalarField(DEEP)
    same_bits(field.sum(axis=axis).numpy(), DEEP.sum(axis=axis), "sum")
    assert field.sum(axis=axis).type.names == ()
    if axis is None or isinstance(axis, int):
        same_bits(np.cumsum(field, axis=axis).numpy(), DEEP.cumsum(axis=axis), "up to each")


@pytest.mark.parametrize("axis", ["a", "b", ("a", "c"), ("y", "b"), ("a", "b", "c"), None])
def test_tensors_of_three_axes(axis, reference):
    field = gp.Field(TENSORS, 3, dims="y:x:a:b:c")
    at = numbers(field, axis)
    same_bits(field.sum(axis=axis).numpy(), TENSORS.sum(axis=at), "sum")
    same_bits(field[1:, ..., 0, ::2].numpy(), TENSORS[1:, ..., 0, ::2], "slice")


def test_names_stay_with_their_axes():
    field = batch()
    message = {
        "2×3×5×7 float32 (img:chan:y:x)": [field * 2, np.sqrt(abs(field)) + field, np.where(field > 0, field, -1)],
        "3×2×7×5 float32 (chan:img:x:y)": [np.transpose(field, (1, 0, 3, 2))],
        "7×5×3×2 float32 (x:y:chan:img)": [field.T],
        "2×7×5×3 float32 (img:x:y:chan)": [np.moveaxis(field, "chan", -1).swapaxes("x", "y")],
        "2×5×7 float32 (img:y:x)": [field[:, 1], field.max(axis="chan")],
        "2×1×3×2×3 float32 (img:_:chan:y:x)": [field[:, np.newaxis, :, ::3, 4:]],
        "2×15×7 float32 (img:_:x)": [field.reshape(2, 15, 7)],
        "2×3×5×7×1 float32 (img:chan:y:x:_)": [field.reshape(2, 3, 5, 7, 1)],
        "2×6×5×7 float32 (img:chan:y:x)": [np.concatenate([field, field], axis="chan")],
        "2×3×7×9 float32 (img:chan:y:x)": [np.pad(field, ((0, 0), (0, 0), (1, 1), (2, 0)), mode="wrap")],
        "2×3×5×7 int32 (n:chan:y:x)": [field.named("n:chan:y:x").astype("int32")],
        "3 bool (chan)": [(field > 3).any(axis=("img", "y", "x"))],
    }
    assert {str(f.type) for fields in message.values() for f in fields} == message.keys()
    other = field.named("_:chan:y:x")
    assert repr(other) == "<Field field 2×3×5×7 float32 (_:chan:y:x)>"  # the same value
    assert (batch() + gp.ScalarField(BATCH[0])).type.names == batch().type.names  # one side has none


def test_broadcasting_and_layouts_of_four_dimensions(reference):
    field = batch()
    centred = field - field.max(axis=("y", "x"), keepdims=True)
    same_bits(centred.numpy(), BATCH - BATCH.max(axis=(2, 3), keepdims=True), "extents of 1")
    same_bits((field * gp.ScalarField(BATCH[1, 2], dims="y:x")).numpy(), BATCH * BATCH[1, 2], "missing axes")
    rolled = np.roll(field, (1, -2), axis=("chan", "x"))[:, ::-1]
    same_bits(rolled.numpy(), np.roll(BATCH, (1, -2), axis=(1, 3))[:, ::-1], "roll and slice")
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        same_bits(np.pad(field, 1, mode=mode).numpy(), np.pad(BATCH, 1, mode=mode), mode)
    patched = gp.updated(field, np.s_[1, :, 2:4], BATCH[0, :, :2])
    want = BATCH.copy()
    want[1, :, 2:4] = BATCH[0, :, :2]
    same_bits(patched.numpy(), want, "updated")


# --- kernels ----------------------------------------------------------------------------------------------------------


@gp.operator(
    inputs={"images": IMAGES, "filters": gp.Dims("oc:chan:ky:kx"), "stride": gp.Dims("y:x")},
    outputs=lambda images, filters, stride: images.dims.replace(
        chan=filters.dims.oc,
        y=(images.dims.y - filters.dims.ky) // stride.y + 1,
        x=(images.dims.x - filters.dims.kx) // stride.x + 1,
    ),
)
def convolution(images, filters, stride):
    total = _var(0.0)
    with _for(images.dims.chan) as chan:
        for ky in range(filters.dims.ky):
            for kx in range(filters.dims.kx):
                value = _readTensor(images, chan=chan, y=_dim("y") * stride.y + ky, x=_dim("x") * stride.x + kx)
                total += value * _readTensor(filters, oc=_dim("chan"), chan=chan, ky=ky, kx=kx)
    return total


@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_convolution_of_images_in_batches(stride, device):
    filters = RNG.integers(-4, 4, (4, 3, 3, 2)).astype(np.float32)
    under = np.lib.stride_tricks.sliding_window_view(BATCH, (3, 2), axis=(2, 3))[:, :, :: stride[0], :: stride[1]]
    result = convolution(batch(), gp.ScalarField(filters), gp.Dims(y=stride[0], x=stride[1]))
    same_bits(result.numpy(), np.einsum("ncyxij,ocij->noyx", under, filters).astype(np.float32), "whole numbers")
    assert result.type.names == IMAGES.names


def test_neighbours_along_folded_dimensions(device):
    """A border holds along each dimension by itself: the channel before the first is not the image before's last."""

    @gp.operator
    def around(f):
        before = _readTensor(f, chan=_dim("chan") - 1, border="zero")
        other = _readTensor(f, img=_dim("img") + 1, border="wrap")
        last = _readTensor(f, _dim("img"), _dim("chan") + 2, _row, _column - 1, border="reflect")
        return before + 32 * other + 1024 * last + 2**15 * _readTensor(f, chan=7, y=-1)

    zero = np.pad(BATCH, ((0, 0), (1, 0), (0, 0), (0, 0)))[:, :-1]
    mirrored = np.pad(BATCH, ((0, 0), (0, 2), (0, 0), (1, 0)), mode="reflect")[:, 2:, :, :-1]
    corner = BATCH[:, 2:, :1]
    same_bits(
        around(batch()).numpy(), zero + 32 * np.roll(BATCH, -1, 0) + 1024 * mirrored + 2**15 * corner, "four borders"
    )


def test_filters_in_blocks_by_name(device):
    """CUCL's xpose_filts: from four dimensions to six, with padding; what is not named is the thread's own."""
    filters = RNG.standard_normal((10, 3, 2, 5)).astype(np.float32)

    def blocks(filters):
        d = filters.dims
        return gp.Dims(blk=-(-d.out_chan // 6), in_chan=d.in_chan, y=d.y, x=d.x, reg=2, tile=3)

    @gp.operator(inputs={"filters": gp.Dims("out_chan:in_chan:y:x")}, outputs=blocks)
    def xpose(filters):
        count = blocks(filters)["blk:tile:reg"]
        return _readTensor(filters, out_chan=_ravel([_dim(n) for n in count.names], count), border="zero")

    result = xpose(gp.ScalarField(filters))
    padded = np.concatenate([filters, np.zeros((2, 3, 2, 5), np.float32)])
    same_bits(result.numpy(), padded.reshape(2, 3, 2, 3, 2, 5).transpose(0, 3, 4, 5, 2, 1), "six dimensions")
    assert result.type.names == ("blk", "in_chan", "y", "x", "reg", "tile")


def test_writes_and_elements_by_name(reference):
    @gp.operator(outputs=lambda f: gp.FieldType((2, 5), 3, dims="img:y:c"))
    def picked(f):
        _globalThreads(f.dims["img:chan:y"])
        value = _readTensor(f, x=_dim("y") + 1)
        _writeTensorElement(_out0, value, c=_dim("chan"), img=1 - _dim("img"))

    field = picked(batch())
    want = np.stack([BATCH[:, :, n, n + 1] for n in range(5)], 1)[::-1]
    same_bits(field.numpy(), want, "written by name")

    @gp.operator
    def second(f):
        return _readTensorElement(f, c=1) - _readTensorElement(f, c=0, y=0)

    same_bits(second(field).numpy(), want[..., 1] - want[:, :1, 0], "read by name")
    assert second(field).type.names == ("img", "y")


def test_threads_of_four_dimensions(reference):
    """Of plain extents too, and of dimensions without memory, which a linear index is taken apart by."""

    @gp.operator(outputs=gp.FieldType((2, 3, 4, 5), dtype="int32"))
    def places():
        a, b, c, d = _unravel(_index(), gp.Dims(a=2, b=3, c=4, d=5))
        own = ((_dim(0) * 3 + _dim(1)) * 4 + _dim(-2)) * 5 + _dim(3)
        _writeTensor(_out0, _where((a == _dim(0)) & (b == _dim(1)) & (c == _row) & (d == _column), own, -1), a, b, c, d)

    same_bits(places().numpy(), np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5), "own places")


# --- labels -----------------------------------------------------------------------------------------------------------


def test_names_are_no_part_of_plans():
    @gp.operator
    def blurred(f):
        return (_readTensor(f, _layer, _row - 1, _column) + _readTensor(f)) / 2

    cube = BATCH[0]
    fields = [gp.ScalarField(cube), gp.ScalarField(cube, dims="a:b:c"), gp.ScalarField(cube, dims="x:y:z")]
    calls = [blurred(f * 2) for f in fields]
    assert len({plan_for_text([f], "opencl").program.key for f in calls}) == 1
    assert [f.type.names for f in calls] == [(), ("a", "b", "c"), ("x", "y", "z")]
    assert len({f.type for f in fields}) == 1
    assert [f.dims.shape for f in fields] == [(3, 5, 7)] * 3


def test_an_operator_sees_the_names_of_each_call(reference):
    """The recording of a body is that of fields with these names, also where a captured one gets others."""

    @gp.operator
    def along_first(f):
        return _readTensor(f, **{f.dims.names[0]: _dim(0) + 1})

    @gp.operator(outputs=lambda: KIND["now"])
    def made():
        return 1.0

    for names in ("p:q", "q:p", "p:q"):
        result = along_first(gp.ScalarField(BATCH[0, 0], dims=names))
        same_bits(result.numpy(), BATCH[0, 0][[1, 2, 3, 4, 4]], names)
        assert result.type.names == tuple(names.split(":"))
        KIND["now"] = gp.FieldType((2, 3), dims=names)
        assert made().type.names == tuple(names.split(":"))


KIND: dict[str, gp.FieldType] = {}


# --- what stands around -----------------------------------------------------------------------------------------------


def test_pipelines(device):
    @gp.pipeline
    def layer(images):
        field = gp.ScalarField(images, dims=IMAGES)
        return np.maximum(field, 0), field.sum(axis=("img", "y")), gp.VectorField(images, dtype="float64") * 2

    for images in (BATCH, BATCH[:, ::2], BATCH.astype(np.float32, order="F")):
        want = np.maximum(images, 0), images.sum(axis=(0, 2)), images.astype(float) * 2
        for actual, one in zip(layer(images), want, strict=True):
            same_bits(actual, np.ascontiguousarray(one), "result")
    out = tuple(np.empty(w.shape, w.dtype) for w in want)
    layer(images, out=out)
    for actual, one in zip(out, want, strict=True):
        same_bits(actual, np.ascontiguousarray(one), "out=")


def test_graphs(device):
    calls: list[np.ndarray] = []
    with gp.ComputeGraph() as graph:
        frame = gp.Sensor(gp.FieldType(BATCH.shape, dims=IMAGES), iter([BATCH, BATCH + 1]))
        total = gp.ScalarField(np.zeros_like(BATCH), dims=IMAGES)
        total.next = total + frame
        graph.probe(total, "total")
        means = graph.probe(frame.sum(axis=("img", "y", "x")))
        gp.Actuator(total * 2, calls.append)
    graph.step()
    same_bits(graph.read("total"), BATCH, "state")
    same_bits(calls[-1], BATCH * 2, "actuator")
    same_bits(graph.read(means), (BATCH + 1).sum(axis=(0, 2, 3)), "probe")


@gp.operator(inout="images", inputs={"images": IMAGES})
def weighted(images):
    _writeTensor(images, _readTensor(images) * _convert_float(_dim("chan")))


def test_python_may_ask_for_any_attribute():
    some = gp.Dims("y:x", x=3)
    assert (hasattr(some, "x"), hasattr(some, "z"), hasattr(some, "y")) == (True, False, False)
    assert getattr(some, "numpy", None) is None
    with pytest.raises(gp.SemanticError, match="there is no dimension 'z' in"):
        some.z


def test_pictures(reference):
    """Of many dimensions as of layers."""
    shown = batch()._repr_html_()
    assert "2×3×5×7 float32 (img:chan:y:x)" in shown and "<img" in shown


def test_evaluated_iterated_fetched_and_pickled(reference):
    kept = gp.evaluate(batch() + 1)
    doubled = gp.iterate(lambda u: u * 2, batch(), times=3)
    copied = pickle.loads(pickle.dumps(batch()))
    turned = gp.HostOperator(lambda a: a[::-1], batch(), outputs=batch().type)
    filled = gp.DeviceOperator(lambda a, out: np.copyto(out, a[:, ::-1]), batch(), outputs=batch().type)
    updated = weighted(batch())
    channels = np.arange(3, dtype=np.float32)[:, np.newaxis, np.newaxis]
    expected = {
        "kept": BATCH + 1, "doubled": BATCH * 8, "copied": BATCH, "turned": BATCH[::-1], "filled": BATCH[:, ::-1],
        "updated": BATCH * channels,
    }  # fmt: skip
    fields = (kept, doubled, copied, turned, filled, updated)
    for (name, want), field in zip(expected.items(), fields, strict=True):
        assert field.type.names == IMAGES.names
        same_bits(field.numpy(), np.ascontiguousarray(want), name)
    same_bits(gp.submit(kept).result(), BATCH + 1, "submitted")
    same_bits(kept.fetch(out=np.empty_like(BATCH)).result(), BATCH + 1, "fetched")
    same_bits(np.from_dlpack(kept), BATCH + 1, "lent")
    assert pickle.loads(pickle.dumps(convolution)).inputs == convolution.inputs


@pytest.mark.parametrize("shape", [(0, 3, 4, 5), (2, 0, 4, 5), (1, 1, 1, 1), (2, 3, 0, 5, 1), (1, 1, 1, 1, 1, 1)])
def test_empty_and_single(shape, reference):
    array = np.ones(shape, np.float32)
    field = gp.ScalarField(array)
    same_bits((field * 2).numpy(), array * 2, "pointwise")
    same_bits(field.sum(axis=(0, 2)).numpy(), array.sum(axis=(0, 2)), "sum")
    same_bits(np.transpose(field).numpy(), array.T.copy(), "transpose")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint64", "float16", "float64", "complex64", "complex128"])
def test_dtypes(dtype, reference):
    array = np.abs(BATCH).astype(dtype)
    field = gp.ScalarField(array, dims=IMAGES)
    same_bits(np.concatenate([field[:, 1:], field[:, :1]], axis="chan").numpy(), np.roll(array, -1, 1), "moved")
    same_bits((field == field.T.T).all(axis="x").numpy(), np.ones((2, 3, 5), bool), "compared")
