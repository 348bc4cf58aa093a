"""bfloat16 of PyTorch and JAX: values as in float32, rounded once; gradients beside those of float32."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
import gpuop.ndimage as ndi
from tests.bfloat16 import codes, nearest

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # by PyTorch itself
rng = np.random.default_rng(8)
IMAGE, GAIN = nearest(rng.random((9, 14))), nearest(rng.normal(size=(9, 14)))


@gp.pipeline
def scaled(image):
    field = gp.ScalarField(image)
    return field * 2 + 1, field.max()


@gp.pipeline
def smoothed(image, gain):
    return ndi.gaussian_filter(gp.ScalarField(image), 1.0) * gp.ScalarField(gain)


def near(own, wide, greatest):
    np.testing.assert_allclose(own, wide, atol=2**-6 * greatest)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    image = torch.from_numpy(IMAGE).bfloat16()
    expected = (image * 2) + 1
    into = torch.empty_like(image), torch.empty((), dtype=torch.bfloat16)
    for _ in range(3):  # traced, prepared, and prepared again
        result, most = scaled(image)
        assert result.dtype is most.dtype is torch.bfloat16
        assert torch.equal(result, expected) and most == image.max()
        into[0].zero_()
        scaled(image, out=into)
        assert torch.equal(into[0], expected)
    turned = scaled(image.T)[0]
    assert torch.equal(turned, expected.T)
    field = gp.ScalarField(image)
    assert field.dtype == "bfloat16" and np.array_equal(field.numpy(), IMAGE)
    assert torch.equal(torch.from_dlpack(field).cpu(), image.cpu())
    with pytest.raises(
        gp.ArgumentError, match=r"`out=` takes an array of shape .* and dtype bfloat16, not one of .* float64"
    ):
        scaled(image, out=(torch.empty((9, 14), dtype=torch.float64), into[1]))


def test_gradients_of_torch():
    torch = pytest.importorskip("torch")
    wrapped = pytest.importorskip("gpuop.torch").wrap(smoothed)

    def gradients(dtype, function):
        arguments = [torch.from_numpy(each).to(dtype).requires_grad_() for each in (IMAGE, GAIN)]
        function(*arguments).float().square().sum().backward()
        return [argument.grad for argument in arguments]

    for function in (wrapped, torch.compile(wrapped, fullgraph=True, backend="eager")):
        for own, wide in zip(gradients(torch.bfloat16, function), gradients(torch.float32, wrapped), strict=True):
            assert own.dtype is torch.bfloat16
            near(own.float(), wide, wide.abs().max())
    image, gain = torch.from_numpy(IMAGE).bfloat16(), torch.from_numpy(GAIN).bfloat16()
    slope = torch.func.jvp(wrapped, (image, gain), (image, gain))[1]
    assert slope.dtype is torch.bfloat16
    near(slope.float(), 2 * wrapped(image.float(), gain.float()), 4)


def test_autocast_of_torch():
    """Tensors keep their dtypes in a wrapped pipeline, whatever PyTorch's own operators do there."""
    torch = pytest.importorskip("torch")
    wrapped = pytest.importorskip("gpuop.torch").wrap(smoothed)
    image, gain = torch.from_numpy(IMAGE), torch.from_numpy(GAIN)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.mm(image, gain.T).dtype is torch.bfloat16
        assert wrapped(image, gain).dtype is torch.float32
        assert wrapped(image.bfloat16(), gain.bfloat16()).dtype is torch.bfloat16
        assert wrapped(image.bfloat16(), gain).dtype is torch.float32


def test_training_in_autocast():
    torch = pytest.importorskip("torch")
    gt = pytest.importorskip("gpuop.torch")
    model = gt.Module(smoothed, gain=torch.nn.Parameter(torch.ones(9, 14)))
    with torch.autocast("cpu", torch.bfloat16):
        loss = (model(torch.from_numpy(IMAGE).bfloat16()) - 0.5).square().mean()
    loss.backward()
    assert model.gain.grad.dtype is torch.float32
    wide = ndi.gaussian_filter(gp.ScalarField(IMAGE, dtype="bfloat16"), 1.0).numpy()
    near(model.gain.grad, 2 * wide * (wide - 0.5) / wide.size, 0.01)


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    image = jax.numpy.asarray(IMAGE, jax.numpy.bfloat16)
    for _ in range(3):
        result, most = scaled(image)
        assert result.dtype == most.dtype == jax.numpy.bfloat16
        assert (result == image * 2 + 1).all() and most == image.max()
    array = np.asarray(image)  # of ml_dtypes
    assert gp.ScalarField(array).dtype == array.dtype
    assert np.array_equal(scaled(array)[0], nearest(nearest(IMAGE * 2) + 1))
    into = np.empty_like(array), np.empty((), array.dtype)
    scaled(array, out=into)
    assert np.array_equal(into[0].view(np.uint16), codes(nearest(nearest(IMAGE * 2) + 1)))
    assert (jax.dlpack.from_dlpack(gp.ScalarField(image)) == image).all()


def test_gradients_of_jax():
    jax = pytest.importorskip("jax")
    wrapped = pytest.importorskip("gpuop.jax").wrap(smoothed)

    def gradients(function, dtype):
        arguments = [jax.numpy.asarray(each, dtype) for each in (IMAGE, GAIN)]
        return jax.grad(lambda *xs: (function(*xs).astype("float32") ** 2).sum(), (0, 1))(*arguments)

    wide = gradients(wrapped, "float32")
    for function in (wrapped, jax.jit(wrapped), lambda x, y: jax.vmap(wrapped)(x[None], y[None])[0]):
        for own, expected in zip(gradients(function, jax.numpy.bfloat16), wide, strict=True):
            assert own.dtype == jax.numpy.bfloat16
            near(own.astype("float32"), expected, abs(expected).max())
