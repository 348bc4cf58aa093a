"""gpuop.fft beside scipy.fft: values, lengths, axes, norms, wrong arguments, who computes, and what fuses."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage

import gpuop as gp
from gpuop import fft
from gpuop.lib.fft import array_calls
from gpuop.lib.fft.kernels import vendor_library
from tests.conformance.compare import has_double
from tests.counted import counted

rng = np.random.default_rng(11)
REAL = {"rfft", "ihfft"}
FAST = [n for n in range(1, 500) if all(n % p or p < 7 for p in range(2, n + 1) if all(p % q for q in range(2, p)))]


def numbers(*shape, dtype="complex64"):
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.startswith("c") else real).astype(dtype)


def close(result, expected, most=None):
    """Within a part of the greatest value, as errors of transforms are."""
    most = most or (1e-14 if expected.dtype in ("float64", "complex128") else 2e-6)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert np.max(np.abs(result - expected), initial=0) <= most * np.max(np.abs(expected), initial=1e-30)


@pytest.mark.parametrize("lengths", [(1, 2, 3, 5, 8), (13, 34, 60), (67, 1000)], ids=str)
def test_passes_of_every_length(lengths):
    with gp.use_device("reference"):
        for n in lengths:
            z = numbers(2, n, dtype="complex128" if n in (5, 34, 67) else "complex64")
            close(fft.fft(z, method="passes"), scipy.fft.fft(z))
            if n < 67:
                close(fft.ifft(z, method="passes"), scipy.fft.ifft(z))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_on_devices(device, dtype):
    """Values in registers, sums, and the library, with what comes before and after."""
    if dtype == "complex128" and not has_double():
        pytest.skip("no double")
    f = gp.ScalarField(numbers(17, 12, dtype=dtype))
    by_passes, by_any = fft.fft2(f * 2, method="passes").real + 1, fft.ifft2(f * 2) * 3
    gp.evaluate(by_passes, by_any)
    close(by_passes.numpy(), scipy.fft.fft2(f.numpy() * 2).real + 1)
    close(by_any.numpy(), 3 * scipy.fft.ifft2(f.numpy() * 2))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("method", ["library", "passes"])
@pytest.mark.parametrize("kind", ["", "2", "n"])
def test_kinds_axes_and_norms(kind, method, dtype):
    with gp.use_device("reference"):
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
            values = numbers(3, 4, 5, dtype=np.dtype(dtype).type(0).real.dtype.name if name in REAL else dtype)
            norm = {"": "ortho", "2": "forward", "n": None}[kind]
            some = {"n": 7, "axis": 0} if kind == "" else {"s": (5, 8), "axes": (2, 0)}
            for options in ({"norm": norm}, some) if method == "library" else (some,):
                expected = getattr(scipy.fft, name + kind)(values, **options)
                close(getattr(fft, name + kind)(values, method=method, **options), expected)


@pytest.mark.parametrize("name", ["dct", "dst", "idct", "idst"])
def test_cosines_and_sines(name):
    with gp.use_device("reference"):
        for kind in (1, 2, 3, 4):
            for options in ({"norm": "ortho"}, {"n": 8, "axis": 0}):
                x = numbers(3, 7, dtype="float64")
                close(getattr(fft, name)(x, kind, **options), getattr(scipy.fft, name)(x, kind, **options), 1e-14)
        z, wide = numbers(4, 5), numbers(4, 5, dtype="complex128")
        for value in (z, wide):  # an array alone is the library's
            close(getattr(fft, name + "n")(value), getattr(scipy.fft, name + "n")(value))
            close(getattr(fft, name + "n")(gp.ScalarField(value)).numpy(), getattr(scipy.fft, name + "n")(value))


def test_numbers_of_other_kinds():
    with gp.use_device("reference"):
        x = numbers(2, 6, dtype="float64")
        close(fft.fft(x), scipy.fft.fft(x))
        close(fft.fft(x, method="library"), scipy.fft.fft(x))
        close(fft.irfft(fft.rfft(x), 6), x)
        close(np.fft.fft(gp.ScalarField(x)).numpy(), np.fft.fft(x))
        close(fft.fftn(gp.ScalarField(x), axes=()).numpy(), x.astype("complex128"))
        close(fft.fft([1, 2, 4j]), scipy.fft.fft([1, 2, 4j]))
        close(fft.rfft(np.array([[True, False, True]])), scipy.fft.rfft([[1.0, 0, 1]]).astype("complex64"))
        close(fft.fftn(numbers(0, 4), axes=1), np.zeros((0, 4), "complex64"))
        many = numbers(2, 3, 2, 4)
        close(fft.fftn(many, axes=(1, 3)), scipy.fft.fftn(many, axes=(1, 3)))


@pytest.mark.parametrize(("elements", "method"), [(3, "library"), (6, "passes")])
def test_elements_of_tensors_are_transformed_by_themselves(elements, method):
    real, complex_ = numbers(4, 6, elements, dtype="float32"), numbers(4, 6, elements)
    with gp.use_device("reference"):
        close(fft.fft2(gp.VectorField(complex_), method=method).numpy(), scipy.fft.fft2(complex_, axes=(0, 1)))
        close(fft.rfft(gp.VectorField(real), method=method).numpy(), scipy.fft.rfft(real, axis=1))
        close(fft.dct(gp.VectorField(real), axis=0).numpy(), scipy.fft.dct(real, axis=0))
        named = fft.rfft(gp.VectorField(real, dims="y:x:c"), method=method)
        assert (str(named.type.dims), named.field_shape) == (
            str(gp.FieldType((4, 4), elements, dims="y:x:c").dims),
            (4, 4),
        )


def test_who_computes_is_told():
    z = numbers(64, 32)
    best = gp.devices()[0].name
    with gp.use_device(best):
        by = {
            method: gp.pipeline(lambda a, m=method: abs(fft.fft2(gp.ComplexField(a) * 2, method=m)))
            for method in ("library", "passes", None)
        }
        text = by["library"].explain(z)
        assert "fft_library on the device's arrays" in text
        # what comes before, and after, is no pass more
        assert "multiply_fft_take_fft_interleave on 64×32 threads" in text
        assert "fft_take_apart_fft_give_absolute on 64×32 threads" in text
        text = by["passes"].explain(z)
        assert "fft_library" not in text and text.startswith("3 kernels")
        assert "fused through registers: fft_sum4" in text and "absolute" in text
        assert ("fft_library" in by[None].explain(z)) == gp.device().target.has_arrays
        columns = gp.pipeline(lambda a: fft.fft(gp.ComplexField(a), axis=0))
        assert "fft_library" not in columns.explain(np.zeros((64, 64), "complex64"))
        if gp.device().target.device == "cpu":
            text = by[None].explain(np.zeros((64, 64), "complex64"))
            assert "fft_library" in text and "fft_radix16" in text and "fft_sum4_fft_give_absolute" in text
        close(by[None](z), abs(scipy.fft.fft2(2 * z)))


@pytest.mark.parametrize("axes", [(0,), (0, 2), (2, 1), (0, 1)], ids=str)
def test_passes_along_columns_by_default(axes):
    z = numbers(3, 4, 64)
    with gp.use_device("reference"):
        close(fft.ifftn(gp.ComplexField(z), axes=axes).numpy(), scipy.fft.ifftn(z, axes=axes))


def test_numpys_library_and_arrays_alone(monkeypatch):
    """NumPy serves where there is no SciPy; arrays alone go there as they lie, and are checked as fields are."""
    z = numbers(4, 5)
    calls = []
    monkeypatch.setattr(array_calls, "host_library", lambda: (calls.append(1) or np.fft, {}))
    monkeypatch.setattr(vendor_library, "host_library", lambda: (calls.append(2) or np.fft, {}))
    with gp.use_device("reference"):
        close(fft.fft2(z), scipy.fft.fft2(z))
        close(fft.ifft2(z, method="library", norm="ortho"), scipy.fft.ifft2(z, norm="ortho"))
        close(fft.rfftn(z.real, method="library"), scipy.fft.rfftn(z.real))
        close(fft.irfft(z, 7, method="library"), scipy.fft.irfft(z, 7))
        close(fft.hfft2(z), scipy.fft.hfft2(z))  # NumPy has none along several axes
        with pytest.raises(gp.ArgumentError, match="axis 3 is out of range"):
            fft.fft(z, axis=3)
        with pytest.raises(gp.ArgumentError, match="Invalid norm value"):
            fft.irfft(z, norm="none")
    assert calls == [1, 2, 2, 2, 1, 2]


class Tensor:
    """An array of PyTorch on a CUDA device, as far as transforms look at it."""

    __module__, is_cuda, device = "torch", True, "cuda:0"

    def __init__(self, array):
        self.array = array

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: f"torch.{self.array.dtype}")

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **_):
        raise AssertionError("the library transforms its own arrays")


def test_tensors_are_transformed_by_their_library(monkeypatch):
    ran = []

    def by(name):
        def transform(tensor, *, dim, norm, **lengths):
            ran.append(name)
            place = {"axes": dim} if name.endswith("n") else {"axis": dim}
            return Tensor(getattr(scipy.fft, name)(tensor.array, norm=norm, **place, **lengths))

        return transform

    module = ModuleType("torch.fft")
    for name in ("fft", "fftn", "rfft", "irfftn", "hfft"):
        setattr(module, name, by(name))
    monkeypatch.setitem(sys.modules, "torch.fft", module)
    z = numbers(4, 6)
    with gp.use_device("reference:sm_90"):
        for _ in range(3):
            close(fft.fft(Tensor(z)).array, scipy.fft.fft(z))
            close(fft.fft2(Tensor(z), norm="ortho").array, scipy.fft.fft2(z, norm="ortho"))
            close(fft.rfft(Tensor(z.real), 9, axis=0).array, scipy.fft.rfft(z.real, 9, axis=0))
            close(fft.irfftn(Tensor(z), s=(4, 8)).array, scipy.fft.irfftn(z, s=(4, 8)))
            close(fft.hfft(Tensor(z)).array, scipy.fft.hfft(z))
        assert ran == ["fft", "fftn", "rfft", "irfftn", "hfft"] * 3
        tensor = Tensor(z)
        assert counted(lambda: fft.fft(tensor)) <= 40 + counted(lambda: scipy.fft.fft(z, axis=-1, norm=None))


def test_spectra_in_graphs():
    x = numbers(16, 12, dtype="float32")
    with gp.use_device("reference"), gp.ComputeGraph() as graph:
        state = gp.ScalarField(x)
        spectrum = fft.rfft2(state)
        state.next = fft.irfft2(spectrum * 0.5, s=(16, 12))
        graph.probe(state, "state")
    graph.step(2)
    close(graph.read("state"), x / 4)


@pytest.mark.parametrize("shape", [(9,), (6, 7), (4, 5, 6)], ids=str)
def test_filters_of_spectra(shape):
    calls = [("fourier_gaussian", 1.3), ("fourier_uniform", 3.5), ("fourier_shift", -1.4), ("fourier_ellipsoid", 5.0)]
    with gp.use_device("reference"):
        for name, value in calls:
            for dtype, options in (
                ("complex64", {}),
                ("complex128", {}),
                ("float64", {"n": 2 * shape[0] - 1, "axis": 0}),
            ):
                x = numbers(*shape, dtype=dtype)
                expected = getattr(scipy.ndimage, name)(x, value, **options)
                most = 1e-6 if expected.dtype == "complex64" else 1e-14
                close(getattr(gp.ndimage, name)(x, value, **options), expected, most)


def test_a_blur_by_its_spectrum():
    image = numbers(20, 24, dtype="float32")
    expected = scipy.ndimage.fourier_ellipsoid(scipy.fft.rfft2(image), (5, 6), n=24)
    with gp.use_device("reference"):
        spectrum = gp.ndimage.fourier_ellipsoid(fft.rfft2(gp.ScalarField(image)), (5, 6), n=24)
        close(fft.irfft2(spectrum).numpy(), scipy.fft.irfft2(expected))


def test_frequencies_and_shifts():
    z = numbers(5, 4)
    with gp.use_device("reference"):
        for name in ("fftshift", "ifftshift"):
            for axes in (None, 0, (1,)):
                assert np.array_equal(getattr(fft, name)(z, axes), getattr(scipy.fft, name)(z, axes))
    assert np.array_equal(fft.fftfreq(7, 0.5), scipy.fft.fftfreq(7, 0.5))
    assert np.array_equal(fft.rfftfreq(6), scipy.fft.rfftfreq(6))
    assert [fft.next_fast_len(n) for n in range(1, 480)] == [min(m for m in FAST if m >= n) for n in range(1, 480)]
    assert fft.prev_fast_len(97) == scipy.fft.prev_fast_len(97, True)


def test_signatures():
    """All that SciPy's functions take is taken, by the same names, in the same order."""
    for name in fft.__all__:
        ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (fft, scipy.fft))
        assert [n for n in ours if n != "method"] == list(theirs), name
        assert all(ours[n].default == p.default for n, p in theirs.items()), name
        assert getattr(fft, name).__name__ == name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: fft.fft(f, axis=2), "axis 2 is out of range: the field has 2 axes"),
        (lambda f: fft.fft(f, 0), r"fft: invalid number of data points \(0\) specified"),
        (lambda f: fft.fft(f, norm="none"), "Invalid norm value 'none', should be"),
        (lambda f: fft.fft(f, method="fastest"), '`method` is "library", "passes", or None'),
        (lambda f: fft.rfft(f), "rfft: x must be a real sequence"),
        (lambda f: fft.fftn(f, (1, 2, 3)), "shape requires more axes than are present"),
        (lambda f: fft.fft2(f, (1, 2, 3)), "axes and shape arguments have to be of the same length"),
        (lambda f: fft.fftn(f, axes=(0, 0)), "axes must be unique"),
        (lambda f: fft.dct(f, 5), "invalid DCT/DST type 5"),
        (lambda f: fft.dct(f.real, 1, n=1), "Type 1 DCT requires at least two data points"),
        (lambda f: fft.fft(f, plan=1), "`plan=` is not taken"),
        (lambda f: fft.fht(f), "gpuop.fft has no `fht`"),
    ],
)
def test_messages(call, message):
    with gp.use_device("reference"), pytest.raises(gp.SemanticError, match=message) as caught:
        call(gp.ComplexField(numbers(3, 4)))
    assert isinstance(caught.value, (ValueError, TypeError, AttributeError))
    assert "test_fft.py" in str(caught.value)


def test_numpys_names_take_fields() -> None:
    values = rng.random((6, 8)).astype("float32")
    field = gp.ScalarField(values)
    with gp.use_device("reference"):
        for name in ("fft", "ihfft", "rfft2", "ifftn", "fftshift"):
            result, expected = getattr(np.fft, name)(field).numpy(), getattr(np.fft, name)(values)
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5, err_msg=name)
        np.testing.assert_allclose(
            np.fft.fft(field, 16, 0, "ortho").numpy(), np.fft.fft(values, 16, 0, "ortho"), atol=1e-5
        )
    with pytest.raises(gp.UnsupportedError, match=r"numpy\.fft\.fft of Fields takes x, n, axis, norm"):
        np.fft.fft(field, out=values)


def test_arrays_alone_are_told_apart_by_what_is_passed():
    """A call that was made before is known by its arguments' values and types."""
    x = numbers(6, 8, dtype="float32")
    with gp.use_device("reference"):
        for _ in range(2):
            close(fft.rfft(x, axis=1), scipy.fft.rfft(x, axis=1))
            close(fft.rfft(x, axis=0), scipy.fft.rfft(x, axis=0))
            close(fft.rfft(x=x, n=6), scipy.fft.rfft(x, n=6))
            close(fft.rfft(x[:3]), scipy.fft.rfft(x[:3]))
            with pytest.raises(gp.UnsupportedError, match="axes must be an integer"):
                fft.rfft(x, axis=1.0)
            with pytest.raises(TypeError, match="multiple values"):
                fft.rfft(x, x=x)


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_both_parts_are_orthogonalized(name):
    """SciPy's own scales one of them alone."""
    z, theirs = numbers(8), getattr(scipy.fft, name)
    with gp.use_device("reference"):
        for options in ({"type": 2, "orthogonalize": True}, {"type": 3, "norm": "ortho", "orthogonalize": False}):
            close(getattr(fft, name)(z, **options), theirs(z.real, **options) + 1j * theirs(z.imag, **options))
