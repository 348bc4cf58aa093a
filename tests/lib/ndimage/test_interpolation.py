"""gpuop.ndimage's interpolation beside scipy.ndimage's: orders, modes, dtypes, shapes, wrong arguments, and what fuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.lib.ndimage.interpolation.coordinates import along_line
from gpuop.lib.ndimage.interpolation.periodic_zoom import blocks_of

IMAGE = np.random.default_rng(7).random((21, 23)) * 200
PLACES = np.random.default_rng(8).random((2, 6, 7)) * 60 - 20
TURN = np.array([[0.9, 0.2], [-0.3, 1.1]])
MODES = ("constant", "grid-constant", "nearest", "mirror", "reflect", "wrap", "grid-wrap")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("map_coordinates", {"coordinates": PLACES}),
    ("affine_transform", {"matrix": TURN, "offset": (1.5, -2)}),
    ("affine_transform", {"matrix": [0.9, 1.4], "offset": (1.5, -2)}),
    ("affine_transform", {"matrix": np.column_stack([TURN, [3, 4]]), "output_shape": (5, 30)}),
    ("shift", {"shift": (2.3, -1.5)}),
    ("zoom", {"zoom": (0.6, 1.8)}),
    ("zoom", {"zoom": 1.3, "grid_mode": True}),
    ("rotate", {"angle": 30}),
    ("rotate", {"angle": -100, "reshape": False, "prefilter": False}),
]


def beside_scipy(name: str, image: Any, **options: Any) -> None:
    """Equal for integers and float64, but for rounding; near for float32, which is computed in float32."""
    expected = getattr(scipy.ndimage, name)(image, **options)
    result = getattr(ndimage, name)(image, **options)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    exact = expected.dtype != np.float32 and image.dtype != np.complex64
    np.testing.assert_allclose(result, expected, rtol=1e-13 if exact else 3e-5, atol=1e-9 if exact else 2e-3)


@pytest.mark.filterwarnings("ignore:It is recommended")
@pytest.mark.parametrize("mode", MODES)
def test_modes(mode):
    with gp.use_device("reference"):
        for n, (name, options) in enumerate(CALLS):
            order = (n + MODES.index(mode)) % 3
            beside_scipy(name, IMAGE, mode=mode, cval=7.25, order=order, **options)


@pytest.mark.parametrize("order", range(6))
def test_orders(order):
    with gp.use_device("reference"):
        beside_scipy("map_coordinates", IMAGE, coordinates=PLACES, order=order, mode="mirror")
        beside_scipy("shift", IMAGE[0], shift=2.3, order=order, mode="grid-constant", cval=3.5)
        beside_scipy("spline_filter1d", IMAGE[:3].astype("f"), order=order, mode=MODES[order])


def test_columns_that_read_alike_in_each_block(device):
    """Zooms by fractions, of which CPUs pick lanes: nearer to SciPy's than float32 is, where it computes in double."""
    image = np.random.default_rng(9).random((9, 200)).astype("f")
    factors = ((0.8, 1.5), (1.2, 0.5), (1, 1.25), (1.5, 1.1))
    for n, zoom in enumerate(factors if device == "reference" else factors[:2]):
        expected = scipy.ndimage.zoom(image, zoom, order=1, mode=MODES[2 + n % 3], grid_mode=n < 3)
        result = ndimage.zoom(image, zoom, order=1, mode=MODES[2 + n % 3], grid_mode=n < 3)
        np.testing.assert_allclose(result, expected, rtol=0, atol=5e-7)


def test_blocks_of_columns():
    """The stated reads of columns are their true reads."""
    for zoom, repeats in ((1.5, True), (2, True), (0.5, True), (1.25, True), (1.1, False), (0.1, False)):
        taps = np.floor((np.arange(round(200 * zoom) * 3) + 0.5) / zoom - 0.5).astype(int)
        blocks = blocks_of(taps, 600)
        assert (blocks is not None) == repeats
        for n in range(blocks.first, blocks.last) if blocks else ():
            result = n * blocks.advance + np.array(blocks.ahead)
            np.testing.assert_array_equal(result, taps[n * blocks.width :][: blocks.width])


@pytest.mark.parametrize(("order", "mode"), [(0, "nearest"), (1, "constant"), (3, "mirror")])
def test_shifts_that_are_fields(order, mode):
    """A Parameter, which may be set; one among numbers; and a place that was computed."""
    with gp.use_device("reference"):
        field, step = gp.ScalarField(IMAGE), gp.Parameter(1.25)
        place = ndimage.center_of_mass(field)
        center = scipy.ndimage.center_of_mass(IMAGE)
        row, column = place[0], place[1]
        by_step = ndimage.shift(field, step, order=order, mode=mode)
        both = ndimage.shift(field, (-0.75, -step), order=order, mode=mode)
        for shift, result in (
            (1.25, by_step),
            ((-0.75, -1.25), both),
            (center, ndimage.shift(field, place, order=order, mode=mode)),
            ((center[1], center[0]), ndimage.shift(field, (column, row), order=order, mode=mode)),
        ):
            expected = scipy.ndimage.shift(IMAGE, shift, order=order, mode=mode)
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-9)
        step.set(-2.5)
        expected = scipy.ndimage.shift(IMAGE, -2.5, order=order, mode=mode)
        np.testing.assert_allclose(by_step.numpy(), expected, rtol=1e-12, atol=1e-9)


def test_spline_filters():
    with gp.use_device("reference"):
        for mode in MODES[:5]:
            beside_scipy("spline_filter", IMAGE.astype("f"), order=2, mode=mode)
        beside_scipy("spline_filter", IMAGE, output=np.int16)
        beside_scipy("spline_filter1d", IMAGE, axis=0, output=None)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint64", "float32", "complex64", "complex128"])
def test_dtypes(dtype):
    image = (IMAGE - (0 if dtype[0] in "bu" else 100)).astype(dtype)
    order = 0 if dtype == "bool" else 2
    with gp.use_device("reference"):
        beside_scipy("map_coordinates", image, coordinates=PLACES.astype("f"), order=1, cval=3)
        beside_scipy("shift", image, shift=0.4, mode="mirror", order=order)
        beside_scipy("affine_transform", image, matrix=TURN, order=1, output="float64" if dtype[0] != "c" else None)


@pytest.mark.parametrize("shape", [(40,), (7, 8, 9), (2, 3, 4, 3), (1, 30), (0, 4)])
def test_numbers_of_axes(shape):
    image = np.random.default_rng(9).random(shape).astype("f")
    with gp.use_device("reference"):
        beside_scipy("zoom", image, zoom=1.5, order=1)
        if image.size:
            beside_scipy("shift", image, shift=0.7, mode="mirror", order=2)
            where = np.random.default_rng(10).random((len(shape), 5)) * 6
            beside_scipy("map_coordinates", image, coordinates=where, order=1, mode="wrap")
        if len(shape) == 3:
            beside_scipy("rotate", image, angle=20, axes=(0, -1), order=2)


def test_splines_go_through_the_values_of_short_lines():
    """SciPy's first coefficient of mode reflect is inexact there."""
    line = np.random.default_rng(11).random(5)
    with gp.use_device("reference"):
        np.testing.assert_allclose(ndimage.shift(line, 0.0, order=5, mode="reflect"), line, rtol=1e-13)


def test_places_that_are_no_numbers():
    wild = np.array([[np.nan, np.inf, -np.inf, 1e30, 2], [1, 2, 3, 4, np.nan]])
    with gp.use_device("reference"):
        beside_scipy("map_coordinates", IMAGE, coordinates=wild, order=1, cval=-3)


def test_on_devices(device):
    image = IMAGE.astype("f")
    near = PLACES.astype("f")
    result = ndimage.map_coordinates(gp.ScalarField(image) * 2, gp.ScalarField(near) / 2, order=2, mode="mirror") + 1
    expected = scipy.ndimage.map_coordinates(image * 2, near / 2, order=2, mode="mirror") + 1
    np.testing.assert_allclose(result.numpy(), expected, rtol=3e-5, atol=2e-3)
    beside_scipy("zoom", IMAGE.astype("uint8"), zoom=(1.7, 0.8), order=1, mode="reflect")


def test_places_of_several_fields_and_elements_of_tensors():
    image = np.random.default_rng(12).random((8, 9, 3)).astype("f")
    rows, columns = (np.random.default_rng(n).random((4, 5)).astype("f") * 7 for n in (13, 14))
    with gp.use_device("reference"):
        places = (gp.ScalarField(rows), gp.ScalarField(columns))
        result = ndimage.map_coordinates(gp.VectorField(image), places, order=1).numpy()
        assert np.array_equal(ndimage.map_coordinates(gp.VectorField(image), [rows, columns], order=1).numpy(), result)
        assert np.array_equal(
            ndimage.map_coordinates(gp.VectorField(image), [places[0], columns], order=1).numpy(), result
        )
    for n in range(3):
        expected = scipy.ndimage.map_coordinates(image[..., n], [rows, columns], order=1)
        np.testing.assert_allclose(result[..., n], expected, rtol=1e-5, atol=1e-6)


def test_the_way_there_and_back_is_part_of_one_kernel():
    best = gp.devices()[0].name
    if best == "reference":
        pytest.skip("no driver for which schedules are chosen")
    with gp.use_device(best):
        moved = gp.pipeline(lambda a: ndimage.affine_transform(gp.ScalarField(a) * 2, TURN, order=1) * 0.5)
        assert "1 kernel for 3 operators" in moved.explain(np.zeros((64, 64), "f"))


def test_results_in_arrays():
    into = np.zeros((5, 6), ">f8")
    with gp.use_device("reference"):
        assert ndimage.affine_transform(IMAGE, TURN, output=into, order=1) is into
        np.testing.assert_allclose(into, scipy.ndimage.affine_transform(IMAGE, TURN, output_shape=(5, 6), order=1))
        with pytest.raises(ValueError, match=r"takes an array of shape \(21, 23\)"):
            ndimage.shift(IMAGE, 1, output=np.zeros(3))


def test_coordinates_that_change_from_step_to_step():
    """Given as a field for each axis, they are part of the graph."""
    rows, columns = np.indices(IMAGE.shape).astype(np.float32)
    with gp.use_device("reference"):
        away = gp.Parameter(0.0)
        with gp.ComputeGraph() as graph:
            places = [gp.ScalarField(rows) + away, gp.ScalarField(columns)]
            graph.probe(ndimage.map_coordinates(gp.ScalarField(IMAGE.astype("f")), places, order=1), "moved")
        away.set(2.5)
        result = graph.read("moved")
    expected = scipy.ndimage.map_coordinates(IMAGE.astype("f"), [rows + 2.5, columns], order=1)
    np.testing.assert_allclose(result, expected, rtol=3e-5, atol=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: ndimage.shift(a, 1, order=6), r"spline order not supported: it is an integer in 0 … 5, not 6"),
        (lambda a: ndimage.zoom(a, 2, mode="clamp"), "boundary mode not supported: `mode` is one of constant"),
        (
            lambda a: ndimage.map_coordinates(a, np.zeros((3, 4))),
            "invalid shape for coordinate array: its first axis has 2",
        ),
        (lambda a: ndimage.map_coordinates(a, np.zeros((2, 4), "F")), "Complex type not supported"),
        (lambda a: ndimage.affine_transform(a, np.zeros((3, 2))), "affine matrix has wrong number of rows, 3"),
        (lambda a: ndimage.affine_transform(a, np.ones((3, 3))), "bottom row .* was not equal to"),
        (lambda a: ndimage.rotate(a, 5, axes=(0, 2)), "invalid rotation plane specified"),
        (lambda a: ndimage.shift(gp.ScalarField(a), gp.ScalarField(a)), "`shift` is a number, or one for each of"),
        (lambda a: ndimage.shift(a, (1, 2, 3)), "`shift`: sequence argument must have length equal to input rank"),
        (lambda a: ndimage.shift(a, 1, cval=1j), "`cval` of a real field is a real number"),
        (lambda a: ndimage.zoom(np.float32(3), 2), "input and output rank must be > 0"),
    ],
)
def test_messages(call, message):
    with gp.use_device("reference"), pytest.raises(gp.SemanticError, match=message) as caught:
        call(IMAGE)
    assert isinstance(caught.value, (ValueError, RuntimeError, TypeError))
    assert "test_interpolation.py" in str(caught.value)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_the_last_point_of_a_zoom_is_the_last_point(order: int, device: str) -> None:
    """Of SciPy it is `cval` where the last coordinate is rounded to more than n - 1, as of 40 pairs of sizes below 100."""
    pairs = [(n, m) for n in range(2, 60) for m in range(2, 60) if np.arange(m)[-1] * ((n - 1) / (m - 1)) != n - 1]
    assert len(pairs) > 10
    for n, m in [*pairs[:: len(pairs) // 8], (768, 96)]:
        row = np.linspace(10, 20, n)
        result = ndimage.zoom(gp.ScalarField(row), m / n, order=order, cval=-1.0).numpy()
        assert len(result) == m
        np.testing.assert_allclose(result[[0, -1]], [10, 20], rtol=1e-12)


def test_all_sizes_of_zooms_have_their_last_points() -> None:
    """Of every pair of sizes: what a ramp is at the exact coordinates, `cval` nowhere."""
    with gp.use_device("reference"):
        for n in (2, 3, 7, 10, 29, 50, 64, 70):
            ramp, sizes = np.arange(1.0, n + 1), range(2, 71)
            results = [ndimage.zoom(gp.ScalarField(ramp), m / n, order=1, cval=-1e3) for m in sizes]
            gp.evaluate(*results)
            for m, row in zip(sizes, results, strict=True):
                exact = [float(1 + Fraction(i * (n - 1), m - 1)) for i in range(m)]
                np.testing.assert_allclose(row.numpy(), exact, rtol=1e-14, err_msg=f"{n} to {m}")


def test_coordinates_along_lines_are_rounded_once() -> None:
    """`matrix=[-m], offset=n - 1` begins at the last point: SciPy's `(0 + offset / matrix) * matrix` is beyond it at times."""
    sizes = [(n, m) for n in range(2, 71) for m in range(2, 71, 5)]
    apart = 0
    for n, m in sizes:
        step = (n - 1) / (m - 1)
        for factor, offset in ((-step, n - 1.0), (step, n - 1 - (m - 1) * step), (step, step / 2 - 0.5)):
            exact = [float(Fraction(i) * Fraction(factor) + Fraction(offset)) for i in range(m)]
            assert along_line(m, factor, offset).tolist() == exact
            apart += ((np.arange(m) + offset / factor) * factor).tolist() != exact
    assert apart > 100


@pytest.mark.parametrize("square", [False, True], ids=["diagonal", "matrix"])
def test_the_last_point_of_a_turned_line_is_the_last_point(square: bool, device: str) -> None:
    """By a diagonal, and by a matrix that a kernel reads."""
    steps = [(n, (n - 1) / (m - 1)) for n in range(2, 71) for m in range(2, 71)]
    cases = [(n, step) for n, step in steps if (n - 1) / -step * -step > n - 1]  # as SciPy has it
    assert len(cases) > 3
    for n, step in cases[:: len(cases) // 4]:
        ramp = np.arange(1.0, n + 1)
        matrix = [[-step]] if square else [-step]
        result = ndimage.affine_transform(gp.ScalarField(ramp), matrix, n - 1.0, order=1, cval=-1e3).numpy()
        assert result[0] == n


TURNS = [((29, 3), 150, (11, 8)), ((9, 47), 30, (15, 14)), ((12, 33), 300, (28, 13)), ((13, 35), 210, (14, 30))]


@pytest.mark.parametrize(("shape", "angle", "place"), TURNS)
def test_halves_of_turns_lie_on_points(
    shape: tuple[int, int], angle: float, place: tuple[int, int], device: str
) -> None:
    """A sine of 1/2 and no cosine, counted from the middle, is a place on the edge, which is inside."""
    result = ndimage.rotate(gp.ScalarField(np.ones(shape)), angle, order=1, cval=-1e3).numpy()
    way = np.subtract(place, (np.array(result.shape) - 1) / 2)
    radians = np.radians(angle)
    turn = np.array([[np.cos(radians), np.sin(radians)], [-np.sin(radians), np.cos(radians)]])
    read = turn @ way + (np.array(shape) - 1) / 2
    ends = np.concatenate([read, read - np.array(shape) + 1])
    assert np.abs(ends).min() < 1e-12  # at an edge, to rounding
    np.testing.assert_allclose(result[place], 1.0, rtol=1e-14)
