"""`gpuop.jax`: transformations of JAX; expected numbers from its own functions."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.frameworks.array_function import FrameworkFunction
from tests.frameworks.diffusion import diffused, halved

jax = pytest.importorskip("jax")
gj = pytest.importorskip("gpuop.jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def numbers_of_64_bits():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def diffused_by_jax(image, rate):
    rolled = [jnp.roll(image, step, axis) for axis in (-2, -1) for step in (1, -1)]
    return image + rate * (sum(rolled) - 4.0 * image) * image


wrapped = gj.wrap(diffused)
IMAGE, RATE = np.random.default_rng(5).random((4, 3)), np.float64(0.3)


def check(transform):
    own, expected = transform(wrapped), transform(diffused_by_jax)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), own, expected)


def test_values_and_gradients():
    def loss(f):
        return lambda image, rate: (f(image, rate) ** 2).sum()

    image, rate = jnp.asarray(IMAGE), jnp.asarray(RATE)
    check(lambda f: f(image, rate))
    check(lambda f: jax.jit(f)(image, rate))
    check(lambda f: jax.grad(loss(f), (0, 1))(image, rate))
    check(lambda f: jax.jit(jax.value_and_grad(loss(f)))(image, rate))
    check(lambda f: jax.jvp(f, (image, rate), (image, rate)))
    check(lambda f: jax.linearize(f, image, rate)[1](image, rate))
    check(lambda f: jax.hessian(loss(f))(image, rate))


def test_check_grads():
    from jax.test_util import check_grads

    check_grads(wrapped, (jnp.asarray(IMAGE), jnp.asarray(RATE)), order=2, modes=("fwd", "rev"))


def test_batches():
    images, rates = jnp.asarray(np.stack([IMAGE, 2 * IMAGE])), jnp.asarray([0.1, 0.2])
    check(lambda f: jax.vmap(f, (0, None))(images, RATE))
    check(lambda f: jax.vmap(f)(images, rates))
    check(lambda f: jax.vmap(f, (1, None), 2)(jnp.moveaxis(images, 0, 1), RATE))
    check(lambda f: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(images, rates))
    check(lambda f: jax.vmap(jax.grad(lambda image: (f(image, RATE) ** 2).sum()))(images))
    check(lambda f: jax.jacfwd(f)(images[0], rates[0]))
    check(lambda f: jax.jacrev(f)(images[0], rates[0]))


@gp.pipeline
def turned(z):
    return np.exp(gp.Field(z) * 1j)


def test_complex_numbers():
    z = jnp.asarray(IMAGE + 1j)
    own = jax.vjp(gj.wrap(turned), z)[1](z)[0]
    np.testing.assert_allclose(own, jax.vjp(lambda z: jnp.exp(z * 1j), z)[1](z)[0], rtol=1e-12)


@gp.pipeline
def parts(image, gain, bias=1.0):
    value = gp.ScalarField(image) * gain + bias
    return value, value.astype("int32")


def test_constants_and_several_results():
    image = jnp.asarray(IMAGE)
    value, digits = jax.jit(lambda image: gj.wrap(parts)(image, 2.5, bias=0.5))(image)
    np.testing.assert_allclose(value, IMAGE * 2.5 + 0.5)
    assert digits.dtype == np.int32 and (np.asarray(digits) == (IMAGE * 2.5 + 0.5).astype("int32")).all()
    slope = jax.grad(lambda image: gj.wrap(parts)(image, 2.5)[0].sum())(image)
    np.testing.assert_allclose(slope, np.full_like(IMAGE, 2.5))


@gp.pipeline
def doubled(image):
    return gp.ScalarField(image).astype("float64") * 2.0, np.argmax(gp.ScalarField(image))


def test_numbers_of_32_bits():
    jax.config.update("jax_enable_x64", False)
    image = jnp.asarray(IMAGE, "float32")
    assert wrapped(image, jnp.asarray(0.3)).dtype == np.float32
    assert jax.grad(lambda image: wrapped(image, jnp.asarray(0.3)).sum())(image).dtype == np.float32
    twice, place = jax.jit(gj.wrap(doubled))(image)
    assert (twice.dtype, place.dtype) == (np.float32, np.int32)
    np.testing.assert_array_equal(twice, IMAGE.astype("f") * 2)
    assert place == IMAGE.argmax()
    slope = jax.grad(lambda image: gj.wrap(doubled)(image)[0].sum())(image)
    assert slope.dtype == np.float32 and (slope == 2).all()


@gp.pipeline(optimize=False)
def stepwise(image):
    return (gp.ScalarField(image) * 2.0 + 1.0) * 0.25


def test_loops_of_jax():
    """The memory of arguments and results is that of XLA, which uses it again from turn to turn."""
    f = gj.wrap(stepwise)
    image = expected = jnp.asarray(IMAGE)
    many = jax.jit(lambda image: jax.lax.fori_loop(0, 9, lambda _, u: f(f(u)), image))
    for _ in range(18):
        expected = (expected * 2.0 + 1.0) * 0.25
    for _ in range(3):
        np.testing.assert_array_equal(many(image), expected)
    steps = jax.grad(lambda image: jax.lax.scan(lambda u, _: (f(u), None), image, length=3)[0].sum())(image)
    np.testing.assert_array_equal(steps, np.full_like(IMAGE, 0.125))


def test_numbers_and_empty_arrays():
    f = gj.wrap(stepwise)
    assert f(jnp.asarray(3.0)) == 1.75
    assert f(jnp.zeros((0, 3))).shape == (0, 3)


def test_calls_take_the_memory_of_arrays(monkeypatch):
    """Each call gets the memory of XLA for its results, and none is copied."""
    if jax.devices()[0].platform != "cpu":
        pytest.skip("addresses of the host")
    addresses, image = [], jnp.asarray(np.zeros((64, 64)))
    write = FrameworkFunction.write
    monkeypatch.setattr(
        FrameworkFunction,
        "write",
        lambda self, arrays, outs: (
            addresses.append((arrays[0].ctypes.data, outs[0].ctypes.data)) or write(self, arrays, outs)
        ),
    )
    result = jax.jit(gj.wrap(stepwise))(image)
    assert addresses == [(image.unsafe_buffer_pointer(), result.unsafe_buffer_pointer())]


def test_messages():
    with pytest.raises(gp.SemanticError, match=r"^gpuop.jax.wrap takes a pipeline, not "):
        gj.wrap(diffused_by_jax)
    with pytest.raises(gp.SemanticError, match="this call has none; call the pipeline itself"):
        wrapped(1.0, 2.0)
    with pytest.raises(gp.SemanticError, match=r"diffusion\.py"):  # at the user's line
        wrapped(jnp.asarray(IMAGE), "fast")


def test_what_has_no_gradient_is_refused():
    function = gj.wrap(gp.pipeline(lambda u: halved(gp.ScalarField(u))))
    np.testing.assert_allclose(
        jax.jvp(function, (jnp.asarray(8 * IMAGE),), (jnp.asarray(IMAGE),))[1].shape, IMAGE.shape
    )
    with pytest.raises(gp.SemanticError, match="_while"):
        jax.grad(lambda u: function(u).sum())(jnp.asarray(8 * IMAGE))
