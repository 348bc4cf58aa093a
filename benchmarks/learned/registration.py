"""The gradient of examples/registration.py for a picture, by 33×33 knots, in gpuop and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import registration

KNOTS = 33


def arrays(size: int) -> tuple[Any, ...]:
    """Knots, displacements, and two pictures."""
    rng = np.random.default_rng(0)
    knots = rng.standard_normal((KNOTS, KNOTS, 2)).astype(np.float32)
    return knots, registration.displacements((size, size)), *(rng.random((size, size), np.float32) for _ in range(2))


def with_gpuop(size: int) -> Any:
    import gpuop as gp

    both, inputs = gp.value_and_grad(registration.difference), arrays(size)
    return lambda: both(*inputs)


def with_jax(size: int) -> Any:
    import jax
    import jax.numpy as jnp
    from jax.scipy.ndimage import map_coordinates

    here = jnp.indices((size, size), jnp.float32)

    def difference(knots: Any, moves: Any, moving: Any, fixed: Any) -> Any:
        places = list(here * ((KNOTS - 1) / (size - 1)))
        total = [moves[..., k] + map_coordinates(knots[..., k], places, 1, mode="nearest") for k in range(2)]
        result = map_coordinates(moving, [x + d for x, d in zip(here, total, strict=True)], 1, mode="nearest")
        return ((result - fixed) ** 2).sum()

    both, inputs = jax.jit(jax.value_and_grad(difference)), jax.device_put(arrays(size))
    return lambda: jax.block_until_ready(both(*inputs))
