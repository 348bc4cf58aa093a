"""gpuop.ndimage's measurements beside scipy.ndimage's: values, dtypes, shapes, labels that are missing, wrong arguments."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.engine.jit.pipeline import Pipeline

random = np.random.default_rng(11)
DOTS = random.random((23, 37)) > 0.55
VALUES = np.round(random.normal(0, 50, (23, 37)))
LABELS = scipy.ndimage.label(DOTS)[0]
SKEW = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]], bool)
STATISTICS = (
    "sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "median", "center_of_mass", "minimum_position",
    "maximum_position", "extrema",
)  # fmt: skip


def alike(result: Any, expected: Any, dtypes: bool = True) -> None:
    """Equal in structure and dtypes; sums of float64 may be made in another order."""
    if isinstance(expected, (tuple, list)):
        assert type(result) is type(expected) and len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            alike(one, other, dtypes)
        return
    assert not dtypes or np.asarray(result).dtype == np.asarray(expected).dtype
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "structure"),
    [
        ((23, 37), SKEW),
        ((23, 37), np.eye(3) * 0 + [0, 1, 0]),
        ((5, 7, 9), scipy.ndimage.generate_binary_structure(3, 2)),
        ((3, 4, 5, 6), None),
        ((0, 4), None),
        ((), None),
    ],
)
def test_labels(shape, structure):
    mask = np.random.default_rng(2).random(shape) > 0.5
    expected, count = scipy.ndimage.label(mask, structure)
    with gp.use_device("reference"):
        result, many = ndimage.label(mask, structure)
        field, number = ndimage.label(gp.Field(mask, 0), structure)
    assert type(many) is int and many == count == number.numpy()
    assert result.dtype == expected.dtype and np.array_equal(result, expected)
    assert np.array_equal(field.numpy(), expected)


def test_labels_on_devices(device):
    """Trees are joined late, as those of noise are, also in a row that is looked at in segments."""
    mask, structure = np.random.default_rng(5).random((3, 9000)) > 0.4, np.ones((3, 3))
    expected, count = scipy.ndimage.label(mask, structure)
    result, many = ndimage.label(mask, structure)
    assert many == count and np.array_equal(result, expected)


def test_labels_into_arrays():
    into = np.zeros(DOTS.shape, "uint16")
    with gp.use_device("reference"):
        assert ndimage.label(DOTS, output=into) == LABELS.max()
        assert np.array_equal(into, LABELS)
        assert ndimage.label(DOTS * 0.5, output="float32")[0].dtype == np.float32
        with pytest.raises(RuntimeError, match="insufficient bit-depth"):
            ndimage.label(np.arange(600) % 2, output="uint8")


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name):
    ours, theirs = getattr(ndimage, name), getattr(scipy.ndimage, name)
    calls: list[tuple[Any, ...]] = [(), (LABELS, 2), (LABELS[:1] * 0.5 - 1, [-0.5, 7, 0, -0.5])]
    if name == "median":
        calls.pop()  # SciPy gives any value for labels that there are not
    with gp.use_device("reference"), np.errstate(all="ignore"):
        for call in calls:
            alike(ours(VALUES, *call), theirs(VALUES, *call))


def test_shapes_and_dtypes():
    small = VALUES.astype("int16"), LABELS
    with gp.use_device("reference"):
        for name in ("sum_labels", "maximum", "median"):
            for index in (None, [[2, 1], [3, 2]]):
                alike(getattr(ndimage, name)(*small, index), getattr(scipy.ndimage, name)(*small, index))


def test_statistics_on_devices(device):
    image, labels = gp.ScalarField(VALUES.astype("f")), gp.ScalarField(LABELS)
    for name, missing in (("mean", np.nan), ("minimum_position", 0)):
        result = getattr(ndimage, name)(image * 2, labels, [3, 1, 400, 1]).numpy()
        expected = np.array(getattr(scipy.ndimage, name)(VALUES.astype("f") * 2, LABELS, [3, 1, 2, 1]), float)
        expected[2] = missing
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=name)


def test_calls_are_traced_once(monkeypatch):
    """The trace for the types of arrays comes from the cache, whatever `index=` holds."""
    traced: list[Any] = []
    result = Pipeline._trace_results
    monkeypatch.setattr(
        Pipeline, "_trace_results", lambda self, returned: traced.append(self) or result(self, returned)
    )
    with gp.use_device("reference"):
        for _ in range(2):
            ndimage.label(DOTS[:5])
            ndimage.label(DOTS[:5], output=np.zeros((5, 37), "uint16"))
            ndimage.sum_labels(VALUES[:5], LABELS[:5], np.arange(3000))
            ndimage.distance_transform_edt(DOTS[:5], 2)
            gp.linalg.matmul(np.ones((5, 13)), np.ones((13, 3)))  # of shapes that no other test has
            gp.linalg.inv(np.eye(11))
    assert len(traced) == 6


OTHER_INDEXES = [
    ([*range(1, 20)], [*range(4, 33)]),
    ([3, 1, 40, 3], [[7, 2, 1000], [2, -5, 11]]),
    (7, 1000),
]


@pytest.mark.parametrize("index", OTHER_INDEXES, ids=["in a row", "of any shape", "a number"])
@pytest.mark.parametrize("name", [*STATISTICS, "histogram", "labeled_comprehension"])
def test_other_indexes_compile_nothing(name, index, monkeypatch):
    """Labels, and how many there are, are arguments of the kernels; bits are those of the labels as constants."""
    calls = {
        "histogram": lambda v, labels, index: ndimage.histogram(v, -50, 50, 5, labels, index),
        "labeled_comprehension": lambda v, labels, index: ndimage.labeled_comprehension(
            v, labels, index, np.sum, float, 0
        ),
    }
    measure = calls.get(name, getattr(ndimage, name))
    traced: list[Any] = []
    result = Pipeline._trace_results
    monkeypatch.setattr(
        Pipeline, "_trace_results", lambda self, returned: traced.append(self) or result(self, returned)
    )
    with gp.use_device("reference"):
        measure(VALUES, LABELS, index[0])
        traced.clear()
        second = measure(VALUES, LABELS, index[1])
        assert not traced
        of_fields = measure(gp.ScalarField(VALUES), gp.ScalarField(LABELS), index[1])
        for one, other in zip(*((m if name == "extrema" else (m,)) for m in (second, of_fields)), strict=True):
            rows = one if name == "histogram" and np.ndim(one) else [one]
            bins = [np.zeros(5) if row is None else row for row in np.ravel(rows)] if name == "histogram" else one
            theirs = other.numpy() if isinstance(other, gp.Field) else other
            if name == "center_of_mass" and np.ndim(theirs) == 3:
                theirs = theirs.swapaxes(0, 1)  # tuples of arrays, as SciPy gives them
            np.testing.assert_array_equal(np.ravel(bins), np.ravel(theirs))


class Tensor:
    """An array of another library, in the memory of the host."""

    device = "cpu"
    is_cuda = False
    __module__ = "torch"

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.shape, self.dtype = self.array.shape, f"torch.{self.array.dtype}"

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.array

    def __getitem__(self, place: Any) -> Tensor:
        return Tensor(self.array[place])

    def reshape(self, *shape: int) -> Tensor:
        return Tensor(self.array.reshape(shape))

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()  # type: ignore[return-value]


@pytest.mark.parametrize("index", OTHER_INDEXES, ids=["in a row", "of any shape", "a number"])
@pytest.mark.parametrize("name", ["sum_labels", "center_of_mass", "minimum_position", "median"])
def test_other_indexes_of_other_libraries_compile_nothing(name, index, monkeypatch):
    torch = SimpleNamespace(
        as_tensor=lambda array, device: Tensor(array), from_dlpack=lambda lent: Tensor(np.from_dlpack(lent))
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    measure, expected = getattr(ndimage, name), getattr(scipy.ndimage, name)
    values, labels = Tensor(VALUES), Tensor(LABELS)
    traced: list[Any] = []
    field = Pipeline._trace_results
    monkeypatch.setattr(Pipeline, "_trace_results", lambda self, returned: traced.append(self) or field(self, returned))
    with gp.use_device("reference"):
        measure(values, labels, index[0])
        traced.clear()
        other = index[1]
        if name in ("minimum_position", "median"):  # SciPy gives any value for labels that there are not
            present = [n for n in np.ravel(other) if n in LABELS]
            other = present if np.ndim(other) else LABELS.max()
        result = measure(values, labels, other)
        assert not traced
    with np.errstate(all="ignore"):
        theirs = expected(VALUES, LABELS, other if name == "center_of_mass" else np.ravel(other))
        np.testing.assert_allclose(np.ravel(result), np.ravel(theirs), rtol=1e-12)


def test_more_objects_compile_nothing(monkeypatch):
    traced: list[Any] = []
    result = Pipeline._trace_results
    monkeypatch.setattr(
        Pipeline, "_trace_results", lambda self, returned: traced.append(self) or result(self, returned)
    )
    with gp.use_device("reference"):
        ndimage.find_objects(np.minimum(LABELS, 20))
        traced.clear()
        for most in (19, 30):
            few = np.minimum(LABELS, most)
            assert ndimage.find_objects(few) == scipy.ndimage.find_objects(few)
        assert not traced


def test_extremes_of_any_numbers():
    numbers = np.array([np.nan, 3, -np.inf, -0.0, 2**63, -5])
    labels = [1, 1, 2, 3, 4, 4]
    with gp.use_device("reference"):
        for dtype in ("float16", "float32", "float64"):
            with np.errstate(over="ignore"):
                values = numbers.astype(dtype)
            alike(ndimage.maximum(values, labels, [1, 2, 3, 4]), scipy.ndimage.maximum(values, labels, [1, 2, 3, 4]))
            alike(ndimage.minimum(values, labels, [1, 2, 3, 4]), scipy.ndimage.minimum(values, labels, [1, 2, 3, 4]))
        for dtype in ("bool", "int8", "uint16", "int32", "uint64", "int64"):
            ends = (
                np.array([0, 1], "bool")
                if dtype == "bool"
                else np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
            )
            result = ndimage.extrema(ends[::-1], [7, 7], [7])
            assert [f.tolist() for f in result[:2]] == [[ends[0]], [ends[1]]] and result[2:] == ([(1,)], [(0,)])


def test_parts():
    objects, field = scipy.ndimage.find_objects(LABELS), gp.ScalarField(LABELS)
    holes = np.where(LABELS == 2, 0, LABELS)
    bins = (VALUES, -50, 50, 7, LABELS)
    result, expected = (
        ndimage.value_indices(LABELS, ignore_value=0),
        scipy.ndimage.value_indices(LABELS, ignore_value=0),
    )
    assert list(result) == list(expected) and all(np.array_equal(result[n], expected[n]) for n in expected)
    with gp.use_device("reference"):
        assert ndimage.find_objects(LABELS) == objects == ndimage.find_objects(field)
        assert ndimage.find_objects(LABELS, LABELS.max()) == scipy.ndimage.find_objects(LABELS, LABELS.max())
        assert ndimage.find_objects(holes, 3) == scipy.ndimage.find_objects(holes, 3)
        alike(ndimage.histogram(*bins, 3), scipy.ndimage.histogram(*bins, 3))
        mine, theirs = ndimage.histogram(*bins, [2, 999, 1]), scipy.ndimage.histogram(*bins, [2, 999, 1])
        assert mine[1] is None and theirs[1] is None
        assert ndimage.histogram(*bins, 999) is None and scipy.ndimage.histogram(*bins, 999) is None
        assert np.array_equal(mine[0], theirs[0]) and np.array_equal(mine[2], theirs[2])
        truth, rest = VALUES > 0, (0, 1, 3, LABELS, 3)
        alike(ndimage.histogram(truth, *rest), scipy.ndimage.histogram(truth.astype("uint8"), *rest))
        with pytest.raises(TypeError, match="Complex type not supported"):
            ndimage.histogram(VALUES.astype("complex64"), *rest)


@pytest.mark.parametrize(
    "values",
    [np.array([[3, -2, 3], [100000, -2, 0]]), np.array([2**63, 1, 2**63], "uint64"), LABELS[None, :4, :5], DOTS[:0]],
)
def test_places_of_values(values):
    expected = {n: np.nonzero(values == n) for n in np.unique(values).tolist()}
    with gp.use_device("reference"):
        for value in (values, gp.Field(values, 0)):
            result = ndimage.value_indices(value)
            assert list(result) == list(expected)
            alike(list(result.values()), list(expected.values()))
        assert ndimage.value_indices(np.array(4)) == {4: ()}


def test_functions_of_each_label():
    def span(values, places):
        return values.max() - values.min() + places.min()

    call = (VALUES, LABELS, [4, 999, 2], span, float, -1, True)
    with gp.use_device("reference"):
        alike(ndimage.labeled_comprehension(*call), scipy.ndimage.labeled_comprehension(*call))
        fields = gp.ScalarField(VALUES), gp.ScalarField(LABELS)
        alike(ndimage.labeled_comprehension(*fields, *call[2:]), scipy.ndimage.labeled_comprehension(*call))
        assert ndimage.labeled_comprehension(VALUES, LABELS, None, np.size, int, 0) == np.count_nonzero(LABELS)
        for index in (4, 999):
            for function in (np.sum, np.max):
                one = VALUES, LABELS, index, function, "f4", -5
                result, expected = ndimage.labeled_comprehension(*one), scipy.ndimage.labeled_comprehension(*one)
                assert result == expected and result.dtype == expected.dtype


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", [(2,), (2, 2), (1, 2, 3)])
def test_centers_of_an_index_of_any_shape(shape):
    index = np.resize([4, 2, 1, 999], shape)
    with gp.use_device("reference"):
        centers = ndimage.center_of_mass(VALUES, LABELS, index)
    expected = scipy.ndimage.center_of_mass(VALUES, LABELS, index)
    assert [len(row) for row in centers] == [len(row) for row in expected]
    np.testing.assert_allclose(np.array(centers), np.array(expected), rtol=1e-6)


@pytest.mark.parametrize("index", [2, [3, 1], [[2, 1], [1, 3]]], ids=str)
def test_places_in_an_array_without_axes(index):
    with gp.use_device("reference"):
        for name in ("minimum_position", "maximum_position"):
            call = np.float32(4), 2, index
            assert getattr(ndimage, name)(*call) == getattr(scipy.ndimage, name)(*call)
        assert ndimage.extrema(np.float32(4), 2, index)[2:] == scipy.ndimage.extrema(np.float32(4), 2, index)[2:]


def check_distances(mask, sampling):
    """Distances are SciPy's; the nearest points are outside, and as far as they say."""
    result, places = ndimage.distance_transform_edt(mask, sampling, return_indices=True)
    expected, theirs = scipy.ndimage.distance_transform_edt(mask, sampling, return_indices=True)
    alike(result, expected)
    assert places.dtype == theirs.dtype and places.shape == theirs.shape and not mask[tuple(places)].any()
    steps = (places - np.indices(mask.shape)).astype(float)
    lengths = np.ones(mask.ndim) if sampling is None else np.array(sampling)
    alike(np.sqrt(np.einsum("i...,i->...", steps**2, lengths**2)), expected)


def test_distances():
    mask = np.random.default_rng(7).random((11, 9, 8)) > 0.02
    with gp.use_device("reference"):
        check_distances(mask, (0.7, 2.1, 1.5))
        far = np.random.default_rng(9).random((150, 7)) > 0.004  # what is nearest is blocks away
        check_distances(far, None)
        check_distances(far, (0.5, 3.0))


def test_distances_on_devices(device):
    mask = np.random.default_rng(8).random((19, 33)) > 0.03
    check_distances(mask, None)
    for metric in ("chessboard", "taxicab"):
        for image in (mask, np.ones_like(mask)):  # nothing is outside of the second one
            result = ndimage.distance_transform_cdt(gp.ScalarField(image), metric)
            assert np.array_equal(result.numpy(), scipy.ndimage.distance_transform_cdt(image, metric))


@pytest.mark.parametrize(
    "mask", [np.ones((4, 5)), np.ones(()), np.zeros((0, 3)), np.ones((1, 3, 1)) * [[[1], [0], [1]]]]
)
def test_distances_of_odd_masks(mask):
    with gp.use_device("reference"):
        alike(*(m.distance_transform_edt(mask, return_indices=True) for m in (ndimage, scipy.ndimage)))
        if mask.ndim:
            alike(*(m.distance_transform_cdt(mask, return_indices=True) for m in (ndimage, scipy.ndimage)))
        for metric in ("euclidean", "taxicab"):
            alike(ndimage.distance_transform_bf(mask, metric), scipy.ndimage.distance_transform_bf(mask, metric))


def test_distances_into_arrays():
    distances, indices = np.zeros(DOTS.shape), np.zeros((2, *DOTS.shape), "int32")
    with gp.use_device("reference"):
        assert ndimage.distance_transform_edt(DOTS, None, True, True, distances, indices) is None
        alike(distances, scipy.ndimage.distance_transform_edt(DOTS))
        assert not DOTS[tuple(indices)].any()


def test_floods():
    """Regions that grow until nothing changes are connected components."""
    seeds, mask = DOTS & (VALUES > 60), np.random.default_rng(9).random(DOTS.shape) > 0.4
    options = {"mask": mask, "border_value": 1, "iterations": -1}
    with gp.use_device("reference"):
        for name, start in (("binary_dilation", seeds), ("binary_erosion", ~seeds)):
            assert np.array_equal(
                getattr(ndimage, name)(start, **options), getattr(scipy.ndimage, name)(start, **options)
            )


def check_watersheds(shape, structure, dtype, most):
    rng = np.random.default_rng(12)
    image = rng.integers(0, most, shape).astype(dtype)
    markers = (rng.random(shape) < 0.15) * rng.integers(-2, 4, shape).astype("int16")
    expected = scipy.ndimage.watershed_ift(image, markers, structure)
    alike(ndimage.watershed_ift(image, markers, structure), expected)


def test_watersheds_on_devices(device):
    """Ties are broken as SciPy breaks them: by which markers are above 0, and by who was in a queue last."""
    check_watersheds((11, 9), None, "uint8", 9)


def test_watersheds_along_several_axes():
    with gp.use_device("reference"):
        check_watersheds((3, 2, 4), SKEW[None] | SKEW[:, None], "uint16", 300)


def test_watersheds_of_fields_and_into_arrays():
    image, markers = (VALUES[:6, :5] % 4).astype("uint8"), np.zeros((6, 5), "int8")
    markers[2, 3], markers[5, 0], into = 3, -1, np.zeros((6, 5), "int64")
    expected = scipy.ndimage.watershed_ift(image, markers)
    with gp.use_device("reference"):
        result = ndimage.watershed_ift(gp.ScalarField(image), gp.ScalarField(markers))
        alike((result * 2).numpy(), expected * 2)
        assert ndimage.watershed_ift(image, markers, output=into) is into and np.array_equal(into, expected)
        assert ndimage.watershed_ift(image[:0], markers[:0]).shape == (0, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ndimage.watershed_ift(VALUES, LABELS), "only 8 and 16 unsigned inputs are supported"),
        (lambda: ndimage.watershed_ift(LABELS.astype("u1"), LABELS[1:]), "input and markers must have equal shape"),
        (lambda: ndimage.watershed_ift(LABELS.astype("u1"), DOTS), "marker should be of integer type"),
        (lambda: ndimage.watershed_ift(LABELS.astype("u1"), LABELS, output="f"), "output should be of integer type"),
        (
            lambda: ndimage.watershed_ift(LABELS.astype("u1"), LABELS, [1]),
            "watershed_ift: structure and input must have equal rank",
        ),
        (lambda: ndimage.label(DOTS, [1, 1, 1]), "label: structure and input must have equal rank, not 1 and 2"),
        (lambda: ndimage.label(DOTS, np.ones((3, 5))), "label: structure dimensions must be equal to 3"),
        (lambda: ndimage.label(DOTS, [[1, 1, 0], [0, 1, 0], [0, 0, 0]]), "structuring element is not symmetric"),
        (lambda: ndimage.label(DOTS * 1j), "Complex type not supported"),
        (lambda: ndimage.label(gp.ScalarField(DOTS), output=np.zeros(2)), "with a Field `output=` cannot be an array"),
        (
            lambda: ndimage.distance_transform_edt(DOTS, 1, False),
            "at least one of return_distances/return_indices must be True",
        ),
        (
            lambda: ndimage.distance_transform_edt(DOTS, distances=np.zeros(3)),
            "distances shape not correct, wrong shape",
        ),
        (lambda: ndimage.distance_transform_cdt(DOTS, "euclidean"), "invalid metric provided: 'euclidean' is not"),
        (lambda: ndimage.distance_transform_bf(DOTS, "far"), "distance metric not supported: 'far' is none of"),
        (lambda: ndimage.sum_labels(VALUES, LABELS[:2]), "input and labels must have the same shape"),
        (
            lambda: ndimage.sum_labels(VALUES, LABELS, gp.ScalarField([1])),
            r"outside of a pipeline give `f.numpy\(\)`",
        ),
        (
            lambda: gp.pipeline(lambda v, index: ndimage.sum_labels(gp.ScalarField(v), LABELS, index))(
                VALUES, LABELS[0]
            ),
            "computed later: .*; in a pipeline take it from outside of the pipeline, or as an argument that is a tuple",
        ),
        (lambda: ndimage.find_objects(VALUES), "find_objects takes integers, not float64"),
        (lambda: ndimage.labeled_comprehension(VALUES, None, 1, np.max, float, 0), "index without defined labels"),
        (lambda: ndimage.histogram(VALUES, 0, 1, 3, None, 1), "index without defined labels"),
        (lambda: ndimage.histogram(gp.ScalarField(VALUES), 0, 1, 3, None, [1]), "index without defined labels"),
        (lambda: ndimage.histogram(VALUES, 0, 1, 3, LABELS, [1.5]), "Cannot convert index values from <float64> to <"),
        (
            lambda: ndimage.histogram(VALUES, 0, 1, 3, LABELS > 0, 7),
            "Cannot convert index values from <int64> to <bool>",
        ),
        (
            lambda: ndimage.labeled_comprehension(VALUES, LABELS, 1.5, np.max, float, 0),
            "Cannot convert index values from",
        ),
    ],
)
def test_messages(call, message):
    with gp.use_device("reference"), pytest.raises(gp.SemanticError, match=message) as caught:
        call()
    assert "test_measurements.py" in str(caught.value)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_after_an_empty_index(dtype: str) -> None:
    """Kernels for indexes without numbers are not those for one number."""
    x, labels = np.arange(60).reshape(3, 4, 5)[::-1].copy(), (np.arange(60).reshape(3, 4, 5) % 2).astype(dtype)
    with gp.use_device("reference"):
        for index in ([], [1], [], [0], [0, 1]):
            assert np.array_equal(gp.ndimage.sum_labels(x, labels, index), scipy.ndimage.sum_labels(x, labels, index))
            places = gp.ndimage.minimum_position(x, labels, index)
            assert index == [] or places == scipy.ndimage.minimum_position(x, labels, index)
