"""The gradient of examples/deconvolution.py by the picture, in gpuop, JAX and PyTorch."""

from __future__ import annotations

from typing import Any

import deconvolution
import numpy as np


def arrays(size: int) -> tuple[Any, ...]:
    """A picture, the logits of the blur, and the picture that the camera sees."""
    rng = np.random.default_rng(0)
    return tuple(rng.random(shape, np.float32) for shape in ((size, size), (9, 9), (size, size)))


def with_gpuop(size: int) -> Any:
    import gpuop as gp

    both, inputs = gp.value_and_grad(deconvolution.energy), arrays(size)

    return lambda: both(inputs[0], softmax(inputs[1]), inputs[2], 0.1)


def softmax(logits: Any) -> Any:
    return np.exp(logits) / np.exp(logits).sum()


def with_jax(size: int) -> Any:
    import jax
    import jax.numpy as jnp

    def energy(image: Any, psf: Any, seen: Any) -> Any:
        padded = jnp.pad(image, 4, "symmetric")
        blurred = jax.lax.conv(padded[None, None], psf[None, None], (1, 1), "VALID")[0, 0]
        down, right = (jnp.diff(image, axis=axis, append=image.take(jnp.array([-1]), axis)) for axis in (0, 1))
        return ((blurred - seen) ** 2).sum() + 0.1 * jnp.sqrt(down**2 + right**2 + 1e-4).sum()

    image, logits, seen = arrays(size)
    both, inputs = jax.jit(jax.value_and_grad(energy)), jax.device_put((image, softmax(logits), seen))
    return lambda: jax.block_until_ready(both(*inputs))


def with_torch(size: int) -> Any:
    import torch

    def energy(image: Any, psf: Any, seen: Any) -> Any:
        rows = torch.cat([image[:4].flip(0), image, image[-4:].flip(0)])
        padded = torch.cat([rows[:, :4].flip(1), rows, rows[:, -4:].flip(1)], 1)
        blurred = torch.nn.functional.conv2d(padded[None, None], psf[None, None])[0, 0]
        down = torch.diff(image, dim=0, append=image[-1:])
        right = torch.diff(image, dim=1, append=image[:, -1:])
        return ((blurred - seen) ** 2).sum() + 0.1 * torch.sqrt(down**2 + right**2 + 1e-4).sum()

    image, logits, seen = arrays(size)
    fixed, energy = [torch.from_numpy(a) for a in (softmax(logits), seen)], torch.compile(energy)

    def both() -> Any:
        variable = torch.from_numpy(image).requires_grad_()
        loss = energy(variable, *fixed)
        return loss.detach(), torch.autograd.grad(loss, variable)[0]

    return both
