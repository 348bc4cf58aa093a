"""`_sampleTensor` is scipy.ndimage.map_coordinates(order=1), and exact at points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage
from skimage import data

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.builtins import interpolation
from tests.borders import MODES
from tests.harness import fused, same_bits

from .compare import all_same, compute, has_double, same

rng = np.random.default_rng(41)
BORDERS: tuple[tuple[Any, dict[str, Any]], ...] = (
    *((rule, {"mode": mode}) for rule, (_, mode) in MODES.items()),
    (7.5, {"mode": "grid-constant", "cval": 7.5}),
)
RULES = [rule for rule, _ in BORDERS]


def floats(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def coordinates(grid: tuple[int, ...], count: int = 60) -> list[Any]:
    """For each axis: random coordinates within a few periods, all points, and what is closest to points."""
    axes = []
    for n in grid:
        whole = np.arange(-n - 2, 2 * n + 3).astype(np.float32)
        close = np.nextafter(whole, np.float32(np.inf)), np.nextafter(whole, np.float32(-np.inf))
        spread = rng.uniform(-3 * n - 2, 4 * n + 2, count).astype(np.float32)
        axes.append(rng.choice(np.concatenate([whole, *close, spread, spread]), 4 * count))
    return axes


def sample_all(field: gp.Field, axes: list[Any], rules: list[Any]) -> list[Any]:
    """The samples of a field at coordinates, one for each rule."""

    def body(f, *at):
        return tuple(_sampleTensor(f, *map(_readTensor, at), border=rule) for rule in rules)

    dtype = field.dtype if field.dtype.startswith(("float", "complex")) else "float32"
    kind = gp.FieldType(axes[0].shape, field.tensor_shape, dtype)
    result = compute(body, field, *map(gp.ScalarField, axes), outputs=(kind,) * len(rules))
    return result if len(rules) > 1 else [result]


def expected(a: Any, axes: list[Any], **how: Any) -> Any:
    """SciPy's samples of each tensor element, in double."""
    planes = a.astype(np.float64).reshape(*a.shape[: len(axes)], -1)
    results = [ndimage.map_coordinates(plane, axes, order=1, **how) for plane in np.moveaxis(planes, -1, 0)]
    return np.stack(results, -1).reshape(*axes[0].shape, *a.shape[len(axes) :])


GRIDS = [(1,), (2,), (7,), (1, 1), (1, 6), (5, 1), (5, 8), (1, 5, 1), (2, 3, 5)]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_borders(device: str, grid: tuple[int, ...]) -> None:
    a, axes = floats(*grid), coordinates(grid)
    for actual, (rule, how) in zip(sample_all(gp.ScalarField(a), axes, RULES), BORDERS, strict=True):
        np.testing.assert_allclose(actual, expected(a, axes, **how), rtol=1e-5, atol=1e-5, err_msg=str(rule))


@pytest.mark.parametrize("tensor", [(2,), (3,), (4,), (2, 2), (1, 3)], ids=str)
def test_tensors(device: str, tensor: tuple[int, ...]) -> None:
    a, axes = floats(5, 4, *tensor), coordinates((5, 4))
    for actual, (rule, how) in zip(sample_all(gp.Field(a, len(tensor)), axes, RULES), BORDERS, strict=True):
        np.testing.assert_allclose(actual, expected(a, axes, **how), rtol=1e-5, atol=1e-5, err_msg=str(rule))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(device: str, dtype: str) -> None:
    a, axes = (floats(6, 5) + 1j * floats(6, 5)).astype(dtype), coordinates((6, 5))
    for actual, (_, how) in zip(sample_all(gp.Field(a), axes, RULES[:-1]), BORDERS, strict=False):
        want = expected(a.real, axes, **how) + 1j * expected(a.imag, axes, **how)
        np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "unorm8", "int16", "uint32", "int64", "float16", "float64"])
def test_types(device: str, dtype: str) -> None:
    """Floating fields give their own type, the others float."""
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    stored = (rng.random((6, 7)) * 200).astype("uint8" if dtype == "unorm8" else dtype)
    values = stored / np.float32(255) if dtype == "unorm8" else stored
    axes = coordinates((6, 7))
    (actual,) = sample_all(gp.ScalarField(stored, dtype), axes, ["symmetric"])
    own = gp.operator(lambda f: _sampleTensor(f, _row + 0.5, _column))(gp.ScalarField(stored, dtype))
    assert own.dtype == actual.dtype == (dtype if dtype.startswith("float") else "float32")
    tolerance = {"float16": 1e-3, "float64": 1e-13}.get(dtype, 1e-5)
    np.testing.assert_allclose(actual, expected(values, axes, mode="reflect"), rtol=tolerance, atol=tolerance)


def test_points_are_exact(device: str) -> None:
    """Whatever their neighbours hold; a constant field is constant between its points too."""
    a = rng.choice(np.float32([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -0.0, 0.1, 255]), (6, 9, 3))
    flat = np.full((4, 5), 255, np.uint8)

    def body(f):
        r, c = _convert_float(_row), _convert_float(_column)
        return tuple(_sampleTensor(f, r, c, border=rule) for rule in (*RULES, "unchecked"))

    for result in gp.operator(body)(gp.VectorField(a)):
        same_bits(np.nan_to_num(result.numpy(), nan=7), np.nan_to_num(a, nan=7))
    (actual,) = sample_all(gp.ScalarField(flat), coordinates((4, 5)), ["clamp"])
    same(actual, np.full(actual.shape, 255, np.float32))


def test_unchecked_takes_nothing_outside(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The points that are read, at all whole coordinates: those alone."""
    samples: list[Any] = []
    read = interpolation._readTensor
    monkeypatch.setattr(
        interpolation, "_readTensor", lambda f, *at, border: samples.extend(at) or read(f, *at, border=border)
    )

    def body(f):
        _sampleTensor(f, _convert_float(_row), _convert_double(_column), border="unchecked")
        return tuple(samples)

    results = gp.operator(body)(gp.ScalarField(floats(3, 5)))
    rows, columns = np.indices((3, 5), np.int32)
    all_same(results, [rows, columns] * 4)


def test_far_coordinates(device: str) -> None:
    """Those that int does not hold count as its ends, NaN gives NaN."""
    a = floats(7)
    far = np.float32([np.inf, 3e38, 4e9, 2.0**31, 2.0**24 + 2])
    for sign, edge in ((1, a[-1]), (-1, a[0])):
        clamped, zero, fill = sample_all(gp.ScalarField(a), [sign * far], ["clamp", "zero", 2.5])
        same(clamped, np.full(5, edge))
        same(zero, np.zeros(5, np.float32))
        same(fill, np.full(5, 2.5, np.float32))
    for actual in sample_all(gp.ScalarField(a), [np.concatenate([far, -far])], ["wrap", "reflect", "symmetric"]):
        assert np.isin(actual, a).all()
    for actual in sample_all(gp.ScalarField(a), [np.float32([np.nan])], [*RULES, "unchecked"]):
        assert np.isnan(actual).all()


def test_coordinates_of_other_types(device: str) -> None:
    """double is exact where float is not; half and integers convert; numbers and 0D fields serve."""
    if not has_double():
        pytest.skip("no double")
    a = floats(9)
    x = np.array([2 / 3, 2**31 - 1.5, 2**31 - 0.5, -(2.0**31) - 0.5, 7.999999999, 1e15])
    (actual,) = sample_all(gp.ScalarField(a), [x], ["clamp"])
    np.testing.assert_allclose(actual, ndimage.map_coordinates(a.astype("d"), [x], order=1, mode="nearest"), rtol=1e-6)
    assert actual.dtype == np.float32
    long, x = floats(2**17), rng.uniform(2**16, 2**17, 20)
    (actual,) = sample_all(gp.ScalarField(long), [x], ["clamp"])
    np.testing.assert_allclose(
        actual, ndimage.map_coordinates(long.astype("d"), [x], order=1, mode="nearest"), rtol=1e-5
    )
    (actual,) = sample_all(gp.ScalarField(a), [np.float16([0.25, 7.5])], ["clamp"])
    np.testing.assert_allclose(actual, [0.75 * a[0] + 0.25 * a[1], (a[7] + a[8]) / 2], rtol=1e-6)
    for dtype in (np.uint8, np.int16, np.int64):
        (actual,) = sample_all(gp.ScalarField(a), [np.array([0, 8, 3, 100], dtype)], ["clamp"])
        same(actual, a[[0, 8, 3, 8]])
    half = gp.Parameter(0.5)
    numbers = gp.operator(lambda f: (_sampleTensor(f, 3), _sampleTensor(f, 3.5), _sampleTensor(f, half + 3)))
    between = a[3] + (a[4] - a[3]) * np.float32(0.5)
    all_same(numbers(gp.ScalarField(a)), [np.full(9, a[3]), np.full(9, between), np.full(9, between)])


def test_zero_dimensional_fields(device: str) -> None:
    level = gp.ScalarField(np.int16(7))
    actual = gp.operator(lambda f, g: _sampleTensor(f, _column + 0.5) * _sampleTensor(g))(
        gp.ScalarField(floats(3) * 0 + 2), level
    )
    same(actual, np.full(3, 14, np.float32))


def test_fused_is_unfused(device: str) -> None:
    """Its value feeds what follows through registers; own points, in integers, are read as such."""
    a, b = gp.VectorField(floats(15, 17, 3)), gp.ScalarField(rng.random((15, 17), np.float32))

    @gp.operator
    def warp(image, move, scale):
        r, c = _row + 7 * _readTensor(move), _column * scale
        return _sampleTensor(image, r, c, border="reflect")

    @gp.operator
    def own(image):
        return _sampleTensor(image, _row, _column)

    fused(lambda: {"out": warp(a, b * b + 1, 0.9) * 3 - a}, kernels=1)
    fused(lambda: {"out": warp(a / 3, b, 1.1) * 3 - a}, kernels=1)
    fused(lambda: {"out": own(a / 3) + 1}, kernels=1)


def test_nothing_is_computed_twice() -> None:
    """Two roundings and one fraction an axis, 2ᵈ reads and 2ᵈ - 1 blends, however the coordinates are written."""

    @gp.operator
    def shrink(f):
        return _sampleTensor(f, _layer * 0.3, _row * 0.5, _column * 0.7)

    text = shrink.source(gp.FieldType((5, 6, 7)), target="opencl")
    body = text[text.index("// shrink") :]
    assert body.count("floor(") == 3 and body.count("f[") == 8
    assert body.count(" - t") == 3 + 7  # fractions and blends


def test_rotation_of_a_photograph(device: str) -> None:
    """By 30° about its centre: what scipy.ndimage.affine_transform and map_coordinates give."""
    photo = data.camera()[64:-63:2, 96:-31:2]
    turn = np.radians(30)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    centre = (np.array(photo.shape) - 1) / 2
    offset = centre - matrix @ centre

    @gp.operator
    def rotate(image, border):
        r, c = (m[0] * _row + m[1] * _column + o for m, o in zip(matrix.tolist(), offset.tolist(), strict=True))
        return _sampleTensor(image, r, c, border=border)

    for border, mode in (("zero", "grid-constant"), ("clamp", "nearest"), ("reflect", "mirror")):
        actual = rotate(gp.ScalarField(photo), border).numpy()
        want = ndimage.affine_transform(photo.astype("d"), matrix, offset, order=1, mode=mode)
        np.testing.assert_allclose(actual, want, atol=0.02)  # of 255: coordinates in float are off by 1e-4
    at = np.tensordot(matrix, np.indices(photo.shape), 1) + offset[:, None, None]
    axes = list(at.astype(np.float32))
    (actual,) = sample_all(gp.ScalarField(photo), axes, ["zero"])
    np.testing.assert_allclose(actual, expected(photo, axes, mode="grid-constant"), atol=1e-4)
