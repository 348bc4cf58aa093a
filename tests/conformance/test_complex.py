"""Complex numbers: the kernels' functions of float2s, host algebra of complex fields, and which results are complex."""

from __future__ import annotations

import functools
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.dsl import *

from .accuracy import ENTRIES
from .compare import same

rng = np.random.default_rng(41)
Array = np.ndarray[Any, Any]
N = 200
CORNERS = np.float32([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 3e38, -1e-38, 90.0, 1e-45])
FUNCTIONS = {  # of one number or two: the exact one, and the error in ULP of the result's size
    "_complexMul": (lambda x, y: x * y, 4),
    "_complexDiv": (lambda x, y: x / y, 8),
    "_complexConj": (mpmath.conj, 0),
    "_complexAbs": (abs, 4),
    "_complexArg": (mpmath.arg, 6),
    "_complexExp": (mpmath.exp, 12),
    "_complexLog": (mpmath.log, 8),
    "_complexSqrt": (mpmath.sqrt, 8),
    "_complexPow": (mpmath.power, 0),  # by a bound of its own
}


def pairs(count: int, sizes: float, dtype: str) -> Array:
    """Complex numbers of every size up to 2**sizes and down to 2**-sizes, some of one part alone."""
    real = np.dtype(dtype).char.lower()
    parts = (
        rng.choice([-1, 1], (2, count))
        * 2.0 ** rng.uniform(-1, 1, (2, count))
        * 2.0 ** rng.uniform(-sizes, sizes, count)
    )
    parts[0, :20], parts[1, 10:30] = 0, 0
    return (parts[0].astype(real) + 1j * parts[1].astype(real)).astype(dtype)


def operands(name: str, dtype: str) -> list[Array]:
    whole = {"complex64": 120.0, "complex128": 1000.0}[dtype]
    sizes = {"_complexMul": whole / 2, "_complexExp": 5.0, "_complexPow": 2.0}.get(name, whole)
    results = [pairs(N, sizes, dtype), pairs(N, sizes, dtype)]
    if name == "_complexDiv":
        results[1][:20] = 2 - 3j
    if name == "_complexLog":  # near the unit circle
        turn = np.exp(1j * rng.uniform(-4, 4, N // 2)) * (1 + rng.uniform(-1e-3, 1e-3, N // 2))
        results[0][: N // 2] = turn
    return results[: ENTRIES[name[1:]].arity]


def of_pairs(numbers: Array) -> gp.Field:
    return gp.VectorField(numbers[:, None].view(numbers.real.dtype).copy())


def computed(name: str, numbers: list[Array]) -> Array:
    """The results of the kernel function, on vectors of two."""
    function = globals()[name]
    actual = gp.operator(lambda *z: function(*map(_readTensor, z)))(*map(of_pairs, numbers)).numpy()
    return actual.view(numbers[0].dtype)[:, 0] if actual.ndim > 1 else actual


@functools.cache
def case(name: str, dtype: str) -> tuple[list[Array], list[Any]]:
    """Operands, and the exact results."""
    numbers, function = operands(name, dtype), FUNCTIONS[name][0]
    with mpmath.workprec(200):
        exactly = [[mpmath.mpmathify(complex(z)) for z in operand] for operand in numbers]
        return numbers, [mpmath.mpmathify(function(*z)) for z in zip(*exactly, strict=True)]


def errors(actual: Array, exact: list[Any]) -> Array:
    """The distances from the exact results, in ULP of their sizes; where those fit the type."""
    info, results = np.finfo(actual.dtype), []
    with mpmath.workprec(200):
        for g, e in zip(actual, exact, strict=True):
            size = abs(e)
            if info.tiny < size < info.max / 2:
                results.append(float(abs(mpmath.mpmathify(complex(g)) - e) / (size * float(info.eps) / 2)))
    assert len(results) > len(actual) // 2
    return np.array(results)


def test_a_real_divisor_divides_both_parts() -> None:
    """Each correctly rounded, however much smaller one is."""
    z, real = pairs(N, 40.0, "complex64"), np.float32(2.0 ** rng.uniform(-20, 20, N))
    z.imag *= np.float32(2.0) ** rng.integers(-60, 60, N)
    quotient = (gp.ComplexField(z) / gp.ScalarField(real)).numpy()
    assert np.array_equal(quotient.real, z.real / real) and np.array_equal(quotient.imag, z.imag / real)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(device: str, name: str, dtype: str) -> None:
    """To within some ULP of the result's size. Near |x| = 1 a logarithm's real part is all that is small."""
    numbers, exact = case(name, dtype)
    off, bound = errors(computed(name, numbers), exact), FUNCTIONS[name][1]
    if name == "_complexPow":  # the exponential takes y · log x, which is rounded
        bound = 16 + 4 * float(np.max(np.abs(numbers[1]) * (np.abs(np.log(np.abs(numbers[0]) + 1e-3)) + 4)))
    assert off.max() <= bound, f"{off.max()} at {off.argmax()}"


def corners() -> Array:
    array = np.empty((len(CORNERS), len(CORNERS)), "complex64")
    array.real, array.imag = CORNERS[:, None], CORNERS
    return array.ravel()


def agree(actual: Array, want: Array, what: str, rtol: float = 1e-6) -> None:
    """Part by part: NaN and infinities where they are expected, signs of zeros too."""
    parts = ((actual.real, want.real), (actual.imag, want.imag)) if actual.dtype.kind == "c" else ((actual, want),)
    for g, w in parts:
        np.testing.assert_allclose(g, w, rtol, 2e-45, err_msg=what)
        zero = w == 0
        assert np.array_equal(np.signbit(g[zero]), np.signbit(w[zero])), what


def test_corner_values(device: str) -> None:
    """C's, which NumPy has too."""
    z = corners()
    z = z[
        ~((z.real == 90) & (z.imag == np.float32(1e-45)))
    ]  # the product of e⁹⁰ and a denormal, in one rounding or two
    field = gp.ComplexField(z)
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "sqrt", "abs", "angle", "conj"):
            agree(getattr(np, name)(field).numpy(), getattr(np, name)(z), name)


def test_quotients_of_corner_values() -> None:
    """Those of finite numbers by finite ones that are not zero are right, where NumPy overflows; zeros divide as in NumPy."""
    z = corners()
    x, y = (a.ravel() for a in np.meshgrid(z, z))
    finite = np.isfinite(x) & np.isfinite(y) & (y != 0)
    actual = (gp.ComplexField(x) / gp.ComplexField(y)).numpy()
    with np.errstate(all="ignore"):
        want = (x.astype("complex128") / y.astype("complex128")).astype("complex64")
        by_zero = z / np.complex64(0)
    fits = finite & np.isfinite(want)
    size = np.maximum(np.abs(want[fits]), np.float32(1e-38))
    assert np.all(np.abs(actual[fits] - want[fits]) <= 1e-6 * size) and fits.sum() > 3000
    agree((gp.ComplexField(z) / 0).numpy(), by_zero, "by zero")
    assert np.all(np.isnan(actual[np.isnan(y)]))


def test_scalars_are_real_numbers(device: str) -> None:
    z = pairs(8, 2.0, "complex64")

    @gp.operator
    def computed_with_scalars(f):
        a = _readTensor(f)
        return (
            _complexMul(a, 2.5),
            _complexMul(_float2(0, 1), a),
            _complexDiv(1, a),
            _complexPow(a, 3),
            _complexExp(a.x),
        )

    with np.errstate(all="ignore"):
        want = z * np.float32(2.5), 1j * z, 1 / z, z * z * z, np.exp(z.real) + 0j
    for actual, exact in zip(computed_with_scalars(of_pairs(z)), want, strict=True):
        np.testing.assert_allclose(actual.numpy().view("complex64")[:, 0], exact.astype("complex64"), 4e-6)


def test_halves_are_computed_as_floats(device: str) -> None:
    z = pairs(16, 3.0, "complex64")
    parts = z[:, None].view("float32").astype("float16")
    actual = gp.operator(lambda f: _complexDiv(_readTensor(f), _half2(3, -1)))(gp.VectorField(parts)).numpy()
    exact = parts.astype("float64").view("complex128")[:, 0] / (3 - 1j)
    same(actual, exact[:, None].view("float64").astype("float32").astype("float16"))


def test_which_results_are_complex() -> None:
    """A pair of floats is of the type of the first field whose tensors are pairs of floats; `outputs=` says otherwise."""
    z, v, r = gp.ComplexField(np.ones(4)), gp.VectorField(np.ones((4, 2), "f")), gp.ScalarField(np.ones(4, "f"))

    def conj(*fs):
        x, y = _readTensor(next(f for f in fs if f.type.planes == 2))
        return _float2(x, -y)

    for fields, kind in (
        ((z,), "4 complex64"), ((r, z), "4 complex64"), ((z, v), "4 complex64"), ((v, z), "4 float32[2]"), ((v,), "4 float32[2]"),
    ):  # fmt: skip
        assert str(gp.operator(conj)(*fields).type) == kind
    assert str(gp.operator(lambda f: conj(z))(r).type) == "4 complex64", "captured"
    assert str(gp.operator(outputs=v.type)(conj)(z).type) == "4 float32[2]"
    others = (_convert_int2, lambda v: _double2(v.x, 2), lambda v: _float3(v, 3))
    kinds = gp.operator(lambda f: (_readTensor(f), _readTensor(f).x, *(o(_readTensor(f)) for o in others)))(z)
    assert [str(k.type) for k in kinds] == ["4 complex64", "4 float32", "4 int32[2]", "4 float64[2]", "4 float32[3]"]


def test_a_scalar_is_written_as_a_real_number(device: str) -> None:
    kind = gp.FieldType(3, dtype="complex64")
    actual = gp.operator(outputs=[kind, kind])(lambda f: (_readTensor(f), 2))(gp.ScalarField(np.arange(3)))
    same(actual[0], np.arange(3).astype("complex64"))
    same(actual[1], np.full(3, 2, "complex64"))


# --- complex numbers as they stand in bodies ------------------------------------------------------------------------------


def test_numbers_stand_for_pairs(device: str) -> None:
    """Python's, NumPy's, those of parameters and of tables; real ones beside them have no imaginary part."""
    z, x = pairs(60, 2.0, "complex64")[-12:], rng.random(12, np.float32)
    numbers, kind = np.array([1j, 2 - 0.5j, -3]), gp.FieldType(12, (), "complex64")

    @gp.operator(outputs=[kind] * 8)
    def computed(f, g, p, w):
        a, real, table = _readTensor(f), _readTensor(g), _constantArray(w)
        total = _var(1j)
        total += a
        total -= w[1]
        chosen = _where(real > 0.5, real, np.complex64(2j))
        case = _switch(_column % 2, lambda: a + 1j, 3 - 2j)
        return 2j - a, real + 1j, chosen, total, _complexMul(a, table[_column % 3]), _complexDiv(w[0], a), a + p, case

    parameter = gp.Parameter(np.complex64(0.5 - 4j))
    actual = computed(gp.ComplexField(z), gp.ScalarField(x), parameter, numbers)
    at = np.arange(12)
    want = (
        *(2j - z, x + 1j, np.where(x > 0.5, x, 2j), 1j + z - numbers[1], z * numbers[at % 3], numbers[0] / z),
        *(z + (0.5 - 4j), np.where(at % 2, 3 - 2j, z + 1j)),
    )
    for one, exact in zip(gp.evaluate(*actual), want, strict=True):
        np.testing.assert_allclose(one.numpy(), exact.astype("complex64"), 2e-6, 1e-6)


@pytest.mark.parametrize("unroll", [True, 1], ids=["written out", "in a table"])
def test_windows_of_complex_weights(device: str, unroll: Any) -> None:
    z, weights = pairs(30, 1.0, "complex64").reshape(5, 6), pairs(36, 1.0, "complex64")[-6:].reshape(2, 3)

    @gp.operator
    def weighted(f, w):
        total = _float2Var()
        with _window(w, unroll=unroll) as (offset, weight):
            total += _complexMul(_readTensor(f, offset=offset, border="wrap"), weight)
        return total

    actual = weighted(gp.ComplexField(z), weights).numpy()
    np.testing.assert_allclose(actual, scipy.ndimage.correlate(z, weights.conj(), mode="wrap"), 2e-5, 2e-4)


def test_one_body_for_real_and_complex_tensors(device: str) -> None:
    """Loops over the elements of a field go through both parts."""
    z = pairs(5 * 9, 2.0, "complex64").reshape(5, 3, 3)

    @gp.operator(outputs="same")
    def differences(f):
        with _forEachTensorElement(f):
            _writeTensorElement(_out0, _readTensorElement(f, offset=1) - 2 * _readTensorElement(f, offset=0))

    fields = [
        gp.ComplexField(z[:, 0, 0]),
        gp.VectorField(z[:, 0]),
        gp.MatrixField(z),
        gp.VectorField(z[:, 0].real.copy()),
    ]
    for actual, x in zip(gp.evaluate(*map(differences, fields)), (z[:, 0, 0], z[:, 0], z, z[:, 0].real), strict=True):
        same(actual, x[[1, 2, 3, 4, 4]] - 2 * x)


def test_pairs_of_doubles_keep_their_digits() -> None:
    x = rng.random((4, 2))
    with gp.use_device("reference"):
        same(gp.operator(lambda f: _readTensor(f) + (0.1 + 0.3j))(gp.VectorField(x)), x + np.array([0.1, 0.3]))
