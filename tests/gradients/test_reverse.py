"""`gp.grad`, `gp.value_and_grad` and `gp.vjp`: values, types and errors; expected numbers from closed forms and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import gpuop as gp
from gpuop.dsl import *
from tests.gradients.differences import check

A = np.random.default_rng(1).random((4, 5)) + 0.3


@gp.operator
def branched(u):
    value = _readTensor(u)
    total = _var(value * value)
    with _if(value > 0.8):
        total @= total * _exp(-value)
    with _else():
        total @= total + value
    return total + _where(value > 0.9, _sqrt(value - 0.9), 0.0)


def branched_array(a):
    total = np.where(a > 0.8, a * a * np.exp(-a), a * a + a)
    return total + np.where(a > 0.9, np.sqrt(np.maximum(a - 0.9, 0)), 0)


def test_branches_and_choices(device):
    check(branched, branched_array, A)


@gp.operator
def guarded(u):
    value = _readTensor(u)
    return _where(value > 0, _sqrt(value), 0.0)


def test_arm_that_is_not_taken(device):
    """The slope of a root at 0 is infinite, and not NaN by a product with 0."""
    _, pull = gp.vjp(guarded, gp.ScalarField(np.array([0.0, -1.0, 4.0])))
    assert pull(gp.ScalarField(np.array([1.0, 1.0, 1.0])))[0].numpy().tolist() == [0.0, 0.0, 0.25]


@gp.operator
def scaled(u, k):
    return _readTensor(u) * _readTensor(k) * _readTensor(k)


def test_parameter(device):
    k = gp.Parameter(np.float64(3.0))
    gradient = gp.grad(lambda u, k: scaled(u, k).sum(), argnums=1)(gp.ScalarField(A), k)
    assert gradient.type == gp.FieldType((), (), "float64")
    np.testing.assert_allclose(gradient.numpy(), 6 * A.sum())
    k.set(5.0)
    np.testing.assert_allclose(gp.grad(lambda u, k: scaled(u, k).sum(), 1)(gp.ScalarField(A), k).numpy(), 10 * A.sum())


def test_two_arguments_and_their_order(device):
    x, y = gp.ScalarField(A), gp.ScalarField(A + 1)
    by_y, by_x = gp.grad(lambda x, y: (x * x * y).sum(), argnums=(1, 0))(x, y)
    np.testing.assert_allclose(by_y.numpy(), A * A)
    np.testing.assert_allclose(by_x.numpy(), 2 * A * (A + 1))


def test_one_field_as_two_arguments():
    x = gp.ScalarField(A)
    np.testing.assert_allclose(gp.grad(lambda x, y: (x * x * y).sum())(x, x).numpy(), 2 * A * A)


def test_captured_field_is_constant():
    x = gp.ScalarField(A)
    np.testing.assert_allclose(gp.grad(lambda u: (u * u * x).sum())(x).numpy(), 2 * A * A)


def test_unused_argument_has_a_gradient_of_zeros():
    gradient = gp.grad(lambda x, y: (x * x).sum(), argnums=1)(gp.ScalarField(A), gp.VectorField(A))
    assert gradient.type == gp.FieldType((4,), (5,), "float64")
    assert not gradient.numpy().any()


def test_value_beside_the_gradient():
    value, gradient = gp.value_and_grad(lambda u: (u * u).mean())(gp.ScalarField(A))
    np.testing.assert_allclose(value.numpy(), (A * A).mean())
    np.testing.assert_allclose(gradient.numpy(), 2 * A / A.size)


def test_aux():
    def loss(u):
        squares = u * u
        return squares.sum(), {"squares": squares, "n": 3}

    gradient, aux = gp.grad(loss, has_aux=True)(gp.ScalarField(A))
    np.testing.assert_allclose(gradient.numpy(), 2 * A)
    np.testing.assert_allclose(aux["squares"].numpy(), A * A)
    assert aux["n"] == 3
    (value, _), gradient = gp.value_and_grad(loss, has_aux=True)(gp.ScalarField(A))
    np.testing.assert_allclose(value.numpy(), (A * A).sum())
    np.testing.assert_allclose(gradient.numpy(), 2 * A)


def test_pull_again_gives_the_same():
    _, pull = gp.vjp(lambda u: u * u, gp.ScalarField(A))
    bar = gp.ScalarField(A + 1)
    first, again = (pull(bar)[0].numpy() for _ in range(2))
    assert first.tobytes() == again.tobytes()


def test_results_of_several_outputs(device):
    check(lambda x, y: (x * y, x + y * y), lambda x, y: (x * y, x + y * y), A, A + 1)


def test_array_that_changes_after_vjp_changes_nothing():
    array = A.copy()
    _, pull = gp.vjp(lambda u: u * u, gp.ScalarField(array))
    array[:] = 0
    np.testing.assert_allclose(pull(gp.ScalarField(np.ones_like(A)))[0].numpy(), 2 * A)


def test_second_order():
    """d/dx of the sum of squares of 3x² is 36x³."""
    x = gp.ScalarField(A)
    inner = gp.grad(lambda u: (u * u * u).sum())
    np.testing.assert_allclose(gp.grad(lambda u: (inner(u) ** 2).sum())(x).numpy(), 36 * A**3)


def test_complex_cotangents_are_as_in_jax():
    """Of |z|² it is 2·conj(z); pulls of holomorphic functions multiply by the derivative."""
    z = A + 1j * A[::-1]
    gradient = gp.grad(lambda z: (z.real * z.real + z.imag * z.imag).sum())(gp.ComplexField(z))
    np.testing.assert_allclose(gradient.numpy(), 2 * z.conj(), rtol=1e-6)
    _, pull = gp.vjp(lambda z: z * z * z, gp.ComplexField(z))
    np.testing.assert_allclose(pull(gp.ComplexField(z + 1))[0].numpy(), 3 * z * z * (z + 1), rtol=1e-5)


def test_broadcasts(device):
    check(lambda u, v: u * v + v, lambda u, v: u * v + v, A, A[0])
    check(lambda u, v: u * v * v, lambda u, v: u * v * v, A, A[:, :1])


def test_reductions_along_an_axis(device):
    check(lambda u: (u * u).mean(axis=0), lambda u: (u * u).mean(axis=0), A)
    check(lambda u: (u * u).sum(axis=1), lambda u: (u * u).sum(axis=1), A)


def test_vectors_and_their_lanes(device):
    @gp.operator
    def turned(v, s):
        value = _readTensor(v)
        return _double2(value.y * value.x, value.x) * _readTensor(s)

    def expected(v, s):
        return np.stack([v[..., 1] * v[..., 0], v[..., 0]], -1) * s[..., None]

    vectors = np.random.default_rng(3).random((3, 2)) + 0.5

    def make(a):
        return gp.VectorField(a) if a.ndim == 2 else gp.ScalarField(a)

    check(turned, expected, vectors, vectors[:, 0], make=make)


def test_float32_beside_double():
    a = A.astype(np.float32)
    gradient = gp.grad(lambda u: branched(u).sum())(gp.ScalarField(a)).numpy()
    wide = gp.grad(lambda u: branched(u).sum())(gp.ScalarField(a.astype(np.float64))).numpy()
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, wide, rtol=1e-5)


# --- errors -------------------------------------------------------------------------------------------------------------


def message(make) -> str:
    with pytest.raises(gp.SemanticError) as error:
        make()
    return error.value.message


def test_result_that_is_no_number():
    text = message(lambda: gp.grad(branched)(gp.ScalarField(A)))
    assert text == (
        "grad: `branched` gives a 4×5 float64 field; a gradient is of a real 0D field, as `f.sum()` is; for other results there is "
        "`gp.vjp(branched, …)`"
    )


def test_integers_have_no_gradient():
    text = message(lambda: gp.grad(lambda n: n.sum())(gp.ScalarField(np.arange(3))))
    assert text == (
        "grad: argument 0 of `lambda` is a 3 int64 field, and int64 has no gradient; convert it, as in "
        '`.astype("float32")`, or leave it out of `argnums=`'
    )


def test_argument_that_is_no_field():
    assert message(lambda: gp.grad(lambda n: n)(3)) == (
        "grad: argument 0 of `lambda` is a number, which is a constant; give a `gp.Parameter`, or an array without axes"
    )


def test_position_without_an_argument():
    text = message(lambda: gp.grad(lambda u: u.sum(), argnums=2)(gp.ScalarField(A)))
    assert text == "grad: `argnums=2` is no argument: `lambda` is called with 1 by position, from 0 on"


def test_cotangent_of_another_type():
    _, pull = gp.vjp(branched, gp.ScalarField(A))
    assert message(lambda: pull(gp.ScalarField(A[0]))) == (
        "vjp: `branched` gives a 4×5 float64 field, and a cotangent has its type; this one is a 5 float64 field"
    )


def test_while_is_refused_at_its_line():
    @gp.operator
    def halved(u):
        value = _var(_readTensor(u))
        with _while(lambda: value > 1.0):
            value @= value * 0.5
        return value

    with pytest.raises(gp.SemanticError) as error:
        gp.grad(lambda u: halved(u).sum())(gp.ScalarField(A))
    assert error.value.message.startswith(
        "`halved` has no gradient: a `_while` has any number of iterations; give them a bound"
    )
    assert "_while" in error.value.loc.text


def test_bits_are_refused():
    @gp.operator
    def bits(u):
        return _as_double(_as_long(_readTensor(u)))

    assert "bits have no derivative" in message(lambda: gp.grad(lambda u: bits(u).sum())(gp.ScalarField(A)))


def test_function_on_the_host_is_refused():
    def loss(u):
        return gp.HostOperator(lambda a: a * 2, u, outputs=u.type).sum()

    text = message(lambda: gp.grad(loss)(gp.ScalarField(A)))
    assert text.endswith(
        "`lambda` has no gradient: it runs on the host; call it in a function under `gp.pipeline`, and give that one a rule with "
        "`defvjp` or `defjvp`; or pass `gp.stop_gradient(x)` for what is a constant"
    )


def test_two_fields_of_one_array(device):
    """Each field that a pipeline makes of an array has a share of the gradient, in the dtype of the array."""

    @gp.pipeline
    def loss(a):
        return (gp.ScalarField(a) ** 2).sum() + 3.0 * gp.ScalarField(a).sum()

    np.testing.assert_allclose(gp.grad(loss)(A), 2 * A + 3)

    @gp.pipeline
    def narrow(a):
        return (gp.ScalarField(a, dtype="float32") ** 2).sum()

    gradient = gp.grad(narrow)(A)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, 2 * A, rtol=1e-6)


@gp.pipeline
def misfit(u, k):
    error = gp.ScalarField(u) * gp.ScalarField(k) - 1.0
    return (error * error).sum()


@gp.pipeline
def misfit_and_error(u, k):
    error = gp.ScalarField(u) * gp.ScalarField(k) - 1.0
    return (error * error).sum(), (error, error + 1.0)


def test_nested_results_of_pipelines():
    k = np.array(0.5)
    slopes = 2 * (A * 0.5 - 1) * 0.5, (2 * (A * 0.5 - 1) * A).sum()
    for _ in range(2):  # traced, then from the cache
        value, gradients = gp.value_and_grad(misfit, argnums=(0, 1))(A, k)
        np.testing.assert_allclose(value, ((A * 0.5 - 1) ** 2).sum())
        for own, expected in zip(gradients, slopes, strict=True):
            np.testing.assert_allclose(own, expected)
    (value, (error, more)), gradient = gp.value_and_grad(misfit_and_error, has_aux=True)(A, k)
    np.testing.assert_allclose(error, A * 0.5 - 1)
    np.testing.assert_allclose(more, A * 0.5)
    np.testing.assert_allclose(gradient, slopes[0])
    (_, second), (error, _) = gp.grad(misfit_and_error, (0, 1), has_aux=True)(A, k)
    np.testing.assert_allclose(second, slopes[1])


def test_integer_arrays_and_numbers_are_refused():
    """A gradient by integers would be zeros, without a word."""
    for array in (np.array(1), (A * 100).astype("uint8"), A > 1):
        with pytest.raises(gp.SemanticError, match=r'has no gradient; convert it, as in `\.astype\("float32"\)`'):
            gp.grad(misfit, 1)(A, array) if array.ndim == 0 else gp.grad(misfit)(array, np.array(0.5))
    for number in (1, 0.5, np.float32(0.5)):
        with pytest.raises(
            gp.SemanticError, match=r"is a number, which is a constant; give a `gp\.Parameter`, or an array"
        ):
            gp.grad(misfit, 1)(A, number)


def test_pull_takes_one_cotangent():
    _, pull = gp.vjp(lambda u: (u * 2, u * 3), gp.ScalarField(A))
    with pytest.raises(
        gp.SemanticError, match=r"takes one cotangent, of the type of the result: a tuple where that is one"
    ):
        pull(gp.ScalarField(A), gp.ScalarField(A))
    np.testing.assert_allclose(pull((gp.ScalarField(A), gp.ScalarField(A)))[0].numpy(), 5 * A)


@gp.operator
def gammas(u):
    x = _readTensor(u)
    return _lgamma(x) + _tgamma(x)


def test_gamma_functions(device):
    """Their slopes are ψ and Γψ, and the second ones ψ₁ and Γ(ψ² + ψ₁)."""
    x = np.array([0.3, 1.7, 4.5, -1.6])
    u = gp.ScalarField(x)
    gamma, psi, second = (
        f(x) for f in (scipy.special.gamma, scipy.special.digamma, lambda x: scipy.special.zeta(2, x))
    )
    second[3] = scipy.special.zeta(2, 0.4) + 1 / 1.6**2 + 1 / 0.6**2
    np.testing.assert_allclose(gp.grad(lambda u: gammas(u).sum())(u).numpy(), psi + gamma * psi, 1e-12)
    curved = gp.hvp(lambda u: gammas(u).sum(), (u,), (gp.ScalarField(np.ones(4)),)).numpy()
    np.testing.assert_allclose(curved, second + gamma * (psi * psi + second), 1e-11)
