"""`gpuop.torch`: derivatives, transformations and compilers of PyTorch; expected numbers from its own operators."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gpuop as gp
from tests.frameworks.diffusion import diffused, halved

torch = pytest.importorskip("torch")
gt = pytest.importorskip("gpuop.torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # by PyTorch itself
PLACES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=PLACES)
def place(request):
    return request.param


def diffused_by_torch(image, rate):
    rolled = [torch.roll(image, step, axis) for axis in (-2, -1) for step in (1, -1)]
    return image + rate * (sum(rolled) - 4.0 * image) * image


wrapped = gt.wrap(diffused)


def tensors(place, shape=(5, 4), dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    image = torch.rand(shape, generator=generator, dtype=dtype).to(place).requires_grad_()
    return image, torch.tensor(0.3, dtype=dtype, device=place, requires_grad=True)


def gradients(function, image, rate, weights):
    return torch.autograd.grad((function(image, rate) * weights).sum(), (image, rate))


def test_values_and_gradients(place):
    image, rate = tensors(place)
    weights = torch.rand(5, 4, dtype=torch.float64, device=place)
    torch.testing.assert_close(wrapped(image, rate), diffused_by_torch(image, rate))
    for own, expected in zip(
        gradients(wrapped, image, rate, weights), gradients(diffused_by_torch, image, rate, weights), strict=True
    ):
        torch.testing.assert_close(own, expected)


def test_gradcheck(place):
    assert torch.autograd.gradcheck(wrapped, tensors(place), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(wrapped, tensors(place))


def test_opcheck(place):
    """Schema, autograd, fake tensors, and compilers with symbolic sizes."""
    from gpuop.frameworks.array_function import function_of
    from gpuop.frameworks.torch_operator import call

    done = torch.library.opcheck(call, (list(tensors(place)), function_of(diffused, "11", (), ()).name))
    assert set(done.values()) == {"SUCCESS"} and len(done) == 4


def test_compiled_whole(place):
    image, rate = tensors(place)

    def loss(image, rate):
        return (wrapped(image.sin(), rate=rate) ** 2).mean()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        torch.autograd.grad(compiled(image, rate), (image, rate)), torch.autograd.grad(loss(image, rate), (image, rate))
    )


def test_transformations(place):
    image, rate = tensors(place, (3, 3))
    images = torch.stack([image, 2 * image, image - 1]).detach()

    def check(transform):
        torch.testing.assert_close(transform(wrapped), transform(diffused_by_torch))

    check(lambda f: torch.vmap(f, in_dims=(0, None))(images, rate))
    check(lambda f: torch.vmap(f, in_dims=(2, None), out_dims=1)(images, rate))
    check(lambda f: torch.func.jacrev(f)(image, rate))
    check(lambda f: torch.func.jacfwd(f)(image, rate))
    check(lambda f: torch.func.hessian(lambda u: (f(u, rate) ** 2).sum())(image))
    check(lambda f: torch.vmap(torch.func.grad(lambda u: (f(u, rate) ** 2).sum()))(images))


@pytest.mark.parametrize("kind", ["expanded", "strided", "transposed", "offset"])
def test_layouts_of_tensors_and_cotangents(place, kind):
    many = torch.rand(11, 11, device=place)
    views = {
        "expanded": many[:1, :6].expand(6, 6),
        "strided": many[::2, ::2],
        "transposed": many[:6, :6].T,
        "offset": many.view(-1)[1:37].view(6, 6),
    }
    view, rate = views[kind], torch.tensor(0.3, device=place)
    torch.testing.assert_close(wrapped(view, rate), diffused_by_torch(view, rate))
    image = torch.rand(6, 6, device=place, requires_grad=True)
    (own,), (expected,) = (torch.autograd.grad(f(image, rate), image, view) for f in (wrapped, diffused_by_torch))
    torch.testing.assert_close(own, expected)


def test_again_and_again(place):
    """A backward pass consumes nothing, and leaves nothing behind."""
    image, rate = tensors(place)
    loss = wrapped(image, rate).sum()
    first = torch.autograd.grad(loss, image, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, image)[0])
    with torch.no_grad():
        assert not wrapped(image, rate).requires_grad


@gp.pipeline
def turned(z):
    return np.exp(gp.Field(z) * 1j), np.abs(gp.Field(z))


def test_complex_numbers(place):
    """PyTorch's gradients are conjugates of those of JAX."""
    z = torch.randn(4, dtype=torch.complex128, device=place, requires_grad=True)
    weights = torch.randn(4, dtype=torch.complex128, device=place)

    def loss(first, second):
        return (first * weights).real.sum() + (second**2).sum()

    (own,) = torch.autograd.grad(loss(*gt.wrap(turned)(z)), z)
    (expected,) = torch.autograd.grad(loss(torch.exp(z * 1j), z.abs()), z)
    torch.testing.assert_close(own, expected)
    assert torch.autograd.gradcheck(gt.wrap(turned), (z,))


@gp.pipeline
def parts(image, gain, bias=1.0, digits=False):
    value = gp.ScalarField(image) * gain + bias
    return (value, value.astype("int32")) if digits else value


def test_constants_and_several_results(place):
    image, _ = tensors(place)
    both = gt.wrap(parts)
    value, digits = both(image, 2.0, digits=True)
    assert not digits.requires_grad and digits.dtype == torch.int32 and value.requires_grad
    assert torch.equal(digits, (image * 2 + 1).to(torch.int32))
    torch.testing.assert_close(torch.autograd.grad(value.sum(), image)[0], torch.full_like(image, 2.0))
    torch.testing.assert_close(both(image, 3, bias=0.5), image * 3 + 0.5)  # 3 and 3.0 are other constants
    torch.testing.assert_close(both(image, 3.0, bias=0.5), image * 3 + 0.5)


def test_module_is_trained(place):
    """Gradient descent finds the rate that made an image."""
    image, _ = tensors(place)
    image = image.detach()
    goal = diffused_by_torch(image, 0.2)
    module = gt.Module(diffused, rate=torch.nn.Parameter(torch.tensor(0.0, dtype=torch.float64))).to(place)
    assert list(module.state_dict()) == ["rate"] and module.rate.device.type == place
    optimizer = torch.optim.LBFGS(module.parameters())

    def loss():
        optimizer.zero_grad()
        result = ((module(image) - goal) ** 2).sum()
        result.backward()
        return result

    for _ in range(3):
        optimizer.step(loss)
    assert module.rate.item() == pytest.approx(0.2, abs=1e-6)
    twin = copy.deepcopy(module)
    torch.testing.assert_close(twin(image), module(image))
    assert torch.equal(pickle.loads(pickle.dumps(wrapped))(image, module.rate), wrapped(image, module.rate))


def test_messages():
    image, rate = tensors("cpu")
    with pytest.raises(gp.SemanticError) as none:
        gt.wrap(diffused_by_torch)
    assert str(none.value).startswith("gpuop.torch.wrap takes a pipeline, not ")
    with pytest.raises(gp.SemanticError, match=r"^pipeline `diffused` has no argument `rat`; it has `image`, `rate`"):
        gt.Module(diffused, rat=1.0)
    assert str(gt.Module(diffused, rate=rate)) == "Module(diffused, rate)"
    with pytest.raises(gp.SemanticError, match=r"convert it, as with `torch\.from_numpy\(array\)`"):
        wrapped(np.zeros((3, 3)), rate)
    with pytest.raises(gp.SemanticError) as plain:
        diffused(image, rate)
    assert "`gpuop.torch.wrap(pipeline)` is a function of tensors with gradients" in str(plain.value)
    with torch.no_grad():
        torch.testing.assert_close(diffused(image, rate), diffused_by_torch(image, rate))
    with pytest.raises(gp.SemanticError) as empty:
        wrapped(1.0, 2.0)
    assert "this call has none; call the pipeline itself" in str(empty.value)


@pytest.mark.parametrize("with_gradients", [True, False])
def test_captured_parameters_are_refused(with_gradients):
    weight = torch.nn.Parameter(torch.tensor(2.0))
    scaled = gt.wrap(gp.pipeline(lambda x: gp.ScalarField(x) * gp.ScalarField(weight)))
    message = "the wrapped pipeline captures it, so it would get none: make it an argument of the pipeline"
    with torch.set_grad_enabled(with_gradients), pytest.raises(gp.SemanticError, match=message):
        scaled(torch.ones(4, requires_grad=True))


def test_what_has_no_gradient_is_refused_in_the_backward_pass():
    image, _ = tensors("cpu")
    result = gt.wrap(gp.pipeline(lambda u: halved(gp.ScalarField(u))))(image).sum()
    with pytest.raises(gp.SemanticError, match="_while"):
        result.backward()
