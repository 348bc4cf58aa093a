"""Pipelines of NumPy arrays: in their own memory where the device works there, whatever the array's layout; `out=`."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import _column, _out0, _readTensor, _row, _writeTensor
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.fusion.schedule_choice import scheduled
from gpuop.ir.layout import interleaved
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.devices import current

rng = np.random.default_rng(17)


@gp.pipeline
def blend(image):
    f = gp.VectorField(image)
    return 0.5 * f + 1, (f * f).sum(axis=-1)


def expected(image):
    return np.float32(0.5) * image + 1, (image * image)[..., 0] + (image * image)[..., 1] + (image * image)[..., 2]


@pytest.mark.parametrize("shape", [(1, 1, 3), (45, 67, 3), (2, 3, 5, 3), (64, 3)])
def test_interleaved_vectors(device, shape):
    image = rng.random(shape, np.float32)
    copy = image.copy()
    for result, right in zip(blend(image), expected(image), strict=True):
        np.testing.assert_array_equal(result, right)
        assert result.flags.c_contiguous and result.flags.writeable
    np.testing.assert_array_equal(image, copy)


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[:, ::-1], np.s_[1:, 3:]])
def test_views(device, view):
    image = rng.random((45, 67, 3), np.float32)
    for result, right in zip(blend(image[view]), expected(image[view]), strict=True):
        np.testing.assert_array_equal(result, right)


@gp.operator
def grey(image):
    c = _readTensor(image)
    return c.x + c.y + c.z


@gp.operator
def beside(f):
    return sum(_readTensor(f, _row, _column + k) for k in range(-3, 4))


@gp.operator
def above(f):
    return sum(_readTensor(f, _row + k, _column) for k in range(-3, 4))


def test_stages_of_interleaved_vectors(device):
    """A stage that no schedule computes of such arrays goes through memory: threads would compute it at each read."""
    image = rng.integers(0, 9, (65, 130, 3)).astype(np.float32)
    ways = []
    np.testing.assert_array_equal(
        gp.pipeline(lambda a: beside(above(grey(gp.VectorField(a)))))(image), boxes(boxes(image.sum(-1)).T).T
    )
    kind, backend = gp.FieldType((65, 130), (3,)), current()
    what = program([beside(above(grey(gp.VectorField(image)))).node])
    for launch in plan(what, True, backend.limits, dict.fromkeys(what.leaves, interleaved(kind))).launches:
        if launch.kernel.intermediates:
            where = ((p, interleaved(kind)) for p in launch.kernel.inputs if p.type == kind)
            ways.append(scheduled(replace(launch.kernel, layouts=tuple(where)), backend.target))
    assert None not in ways


def boxes(a):
    """Sums of seven along columns."""
    padded = np.pad(a, ((3, 3), (0, 0)), mode="edge")
    return sum(padded[k : k + len(a)] for k in range(7))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "bool"])
def test_tensors_of_one_point(device, dtype):
    """Their planes lie as the arrays do, so nothing is copied on CPUs."""
    a, b = (rng.random((3, 4, 5)) * 3 - 1).astype(dtype)[1:]
    function = gp.pipeline(
        lambda a, b: (
            (gp.MatrixField(a) ^ gp.MatrixField(b)) if dtype == "bool" else gp.MatrixField(a) * gp.MatrixField(b)
        )
    )
    with gp.profile() as profile:
        result = function(a, b)
    np.testing.assert_allclose(result, a ^ b if dtype == "bool" else a * b, rtol=1e-6)
    if device.startswith("opencl") and current().target.device == "cpu":
        assert "load" not in str(profile)


def test_read_only_and_unaligned_arrays(device):
    image = rng.random((5, 6, 3), np.float32)
    image.flags.writeable = False
    unaligned = np.frombuffer(b"x" + image.tobytes(), np.uint8)[1:].view(np.float32).reshape(5, 6, 3)
    for array in (image, unaligned):
        np.testing.assert_array_equal(blend(array)[0], expected(image)[0])


def test_results_in_arrays_of_the_callers(device):
    image = rng.random((45, 67, 3), np.float32)
    first, second = np.zeros((45, 134, 3), np.float32)[:, ::2], np.zeros((45, 67), np.float32)
    assert blend(image, out=(first, second))[1] is second
    np.testing.assert_array_equal(first, expected(image)[0])
    np.testing.assert_array_equal(second, expected(image)[1])


def test_a_result_in_the_place_of_its_argument(device):
    """A gather would read what is written already."""
    turned = gp.pipeline(lambda a: gp.ScalarField(a)[::-1] * 2)
    array = rng.random((300, 200), np.float32)
    right = array[::-1] * 2
    turned(array, out=array)
    np.testing.assert_array_equal(array, right)


def test_the_argument_as_a_result(device):
    same = gp.pipeline(lambda a: (gp.VectorField(a), gp.VectorField(a), gp.ScalarField(a)))
    array = rng.random((4, 5, 3), np.float32)
    with pytest.warns(UserWarning, match="use VectorField"):
        results = same(array)
    array[...] = 0
    for result in results:
        assert result.all() and not np.may_share_memory(result, array)


def test_results_between_one_another():
    """Views of one array that share none of its elements; what shares some is refused."""
    both = gp.pipeline(lambda a: (gp.ScalarField(a) * 2, gp.ScalarField(a) + 1))
    image, memory = rng.random((20, 30), np.float32), np.zeros((20, 30, 2), np.float32)
    both(image, out=(memory[..., 0], memory[..., 1]))
    np.testing.assert_array_equal(memory, np.stack([image * 2, image + 1], -1))
    with pytest.raises(gp.SemanticError, match="lie in the same memory; give each result its own"):
        both(image, out=(memory.reshape(20, 60)[:, :30], memory.reshape(20, 60)[:, 29:59]))
    one_row = np.lib.stride_tricks.as_strided(np.zeros(30, np.float32), (20, 30), (0, 4))
    with pytest.raises(gp.SemanticError, match="whose elements do not share memory, as those of this one do"):
        both(image, out=(one_row, np.zeros((20, 30), np.float32)))


@pytest.mark.parametrize("wrong", [np.zeros((5, 6), "f"), np.zeros((5, 6, 3), "d"), None, 3.0])
def test_out_of_another_kind(wrong):
    image = rng.random((5, 6, 3), np.float32)
    message = {np.ndarray: f"one of shape {np.shape(wrong)} and dtype", type(None): "None", float: "a float"}[
        type(wrong)
    ]
    expected = re.escape(f"`out=` takes an array of shape (5, 6, 3) and dtype float32, not {message}")
    with pytest.raises(gp.SemanticError, match=expected):
        blend(image, out=(wrong, np.zeros((5, 6), "f")))
    with pytest.raises(gp.SemanticError, match="pipeline `blend`: `out=` takes an array for each result, 2, not 1"):
        blend(image, out=np.zeros((5, 6, 3), "f"))


def twice(a, out):
    np.multiply(a, 2, out=out)


def test_libraries_get_planes(device):
    """Arrays that lie otherwise are copied for them, and results that are arguments too."""
    if not current().target.has_arrays:
        pytest.skip("a GPU of OpenCL")
    library = gp.pipeline(
        lambda a: (gp.DeviceOperator(twice, gp.ScalarField(a), outputs=gp.FieldType(a.shape)), gp.ScalarField(a))
    )
    base = rng.random((259, 270), np.float32)
    for array in (base[1:-1, 3:], base[::-2]):
        for result, right in zip(library(array), (2 * array, array), strict=True):
            np.testing.assert_array_equal(result, right)
    with_vectors = gp.pipeline(lambda a: gp.DeviceOperator(twice, gp.VectorField(a), outputs=gp.VectorField(a).type))
    vectors = rng.random((45, 67, 3), np.float32)
    np.testing.assert_array_equal(with_vectors(vectors), 2 * vectors)


def test_nothing_is_copied_where_the_device_works_in_the_hosts_memory(device, monkeypatch):
    backend = current()
    if type(backend).wrap is Backend.wrap or backend.target.device != "cpu":
        pytest.skip("it has memory of its own")

    def refuse(*_):
        raise AssertionError("a copy")

    for name in ("upload", "write", "download"):
        monkeypatch.setattr(type(backend), name, refuse)
    image = rng.random((45, 67), np.float32)
    double = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    base = rng.random((259, 270), np.float32)
    for array in (image, base[1:-1, 3:], base[::2]):
        np.testing.assert_array_equal(double(array), 2 * array)
        array.flags.writeable = False
        np.testing.assert_array_equal(double(array), 2 * array)
    library = gp.pipeline(lambda a: gp.DeviceOperator(twice, gp.ScalarField(a), outputs=gp.FieldType((45, 67))))
    for array in (image, image > 0.5):  # read-only, and of another type
        np.testing.assert_array_equal(library(array), 2 * array.astype("f"))
    vectors = rng.random((45, 67, 3), np.float32)
    np.testing.assert_array_equal(blend(vectors)[0], expected(vectors)[0])


def test_the_cpus_arrays_of_another_library(device):
    class Tensor:
        """The interface of an array of another library on the CPU."""

        def __init__(self, array):
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __array__(self, dtype=None, copy=None):
            return self.array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    image = rng.random((5, 6, 3), np.float32)
    np.testing.assert_array_equal(gp.VectorField(Tensor(image)).numpy(), image)
    if not device.startswith("cuda"):  # whose memory NumPy cannot read
        assert np.array_equal(np.from_dlpack(gp.VectorField(image) * 2), 2 * image)


def test_out_that_cannot_be_written_to_or_is_one_array_twice():
    image, plane = rng.random((5, 6, 3), np.float32), np.zeros((5, 6), "f")
    locked = np.zeros((5, 6, 3), "f")
    locked.flags.writeable = False
    with pytest.raises(gp.SemanticError, match="that can be written to; this one is read-only"):
        blend(image, out=(locked, plane))
    assert not plane.any()
    twice = gp.pipeline(lambda a: (gp.ScalarField(a) + 1, gp.ScalarField(a) + 2))
    memory = np.zeros(4, "f")
    for outs in ((memory[:3], memory[:3]), (memory[:3], memory[1:])):
        with pytest.raises(gp.SemanticError, match="the arrays of `out=` lie in the same memory"):
            twice(np.zeros(3, "f"), out=outs)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64", "complex128"])
def test_results_that_are_filled_first(device, dtype):
    """In memory of the host's too, and with other values than 0, of any size of pattern."""
    a = np.arange(1, 9).astype(dtype)
    apart = gp.operator(default=1 if dtype[0] != "c" else 0)(lambda f: _writeTensor(_out0, _readTensor(f), _column * 2))
    want = np.full(8, dtype[0] != "c").astype(dtype)
    want[::2] = a[:4]
    pipeline = gp.pipeline(lambda array: apart(gp.Field(array)))
    out = np.empty_like(a)
    assert (
        np.array_equal(pipeline(a), want) and np.array_equal(pipeline(a, out=out), want) and np.array_equal(out, want)
    )


@pytest.mark.parametrize("dtype", ["bool", "complex64", "complex128"])
def test_arguments_in_any_strides(dtype):
    """Of dtypes that are stored as others."""
    a = np.arange(24).reshape(4, 6).astype(dtype)
    copy = gp.pipeline(lambda array: gp.operator(lambda f: _readTensor(f))(gp.Field(array)))
    for value in (a.T, a[::-1, ::-1], a[::2, 1::3], a[0, ::-1], np.broadcast_to(a[0], (3, 6))):
        assert np.array_equal(copy(value), value)
