"""The gradient of examples/pattern_fit.py through a thousand iterations, in gpuop, JAX and PyTorch; each with checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pattern_fit

STEPS, CHECKPOINTS = 1000, 20
AROUND = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]


def arrays(size: int) -> tuple[Any, ...]:
    """Rates, the start and a target."""
    u, v = pattern_fit.seeds(size)
    return np.float32(pattern_fit.GUESS), u, v, np.roll(v, 3, 0)


def with_gpuop(size: int) -> Any:
    import gpuop as gp

    both, inputs = gp.value_and_grad(pattern_fit.misfit), arrays(size)
    return lambda: both(*inputs, STEPS, CHECKPOINTS)


def with_jax(size: int) -> Any:
    import jax
    import jax.numpy as jnp

    def react(state: Any, rates: Any) -> Any:
        u, v = state
        of_u, of_v, feed, kill = rates
        spread = [sum(jnp.roll(x, at, (0, 1)) * (0.05 if all(at) else 0.2) for at in AROUND) - x for x in state]
        eaten = u * v * v
        return u + of_u * spread[0] - eaten + feed * (1 - u), v + of_v * spread[1] + eaten - (feed + kill) * v

    @jax.checkpoint
    def some(state: Any, rates: Any) -> Any:
        return jax.lax.scan(lambda s, _: (react(s, rates), None), state, length=STEPS // CHECKPOINTS)[0]

    def misfit(rates: Any, u: Any, v: Any, target: Any) -> Any:
        state = jax.lax.scan(lambda s, _: (some(s, rates), None), (u, v), length=CHECKPOINTS)[0]
        return ((state[1] - target) ** 2).mean()

    both, inputs = jax.jit(jax.value_and_grad(misfit)), jax.device_put(arrays(size))
    return lambda: jax.block_until_ready(both(*inputs))


def with_torch(size: int) -> Any:
    import torch
    from torch.utils.checkpoint import checkpoint

    def react(u: Any, v: Any, rates: Any) -> Any:
        of_u, of_v, feed, kill = rates
        spread = [sum(torch.roll(x, at, (0, 1)) * (0.05 if all(at) else 0.2) for at in AROUND) - x for x in (u, v)]
        eaten = u * v * v
        return u + of_u * spread[0] - eaten + feed * (1 - u), v + of_v * spread[1] + eaten - (feed + kill) * v

    react = torch.compile(react)

    def some(u: Any, v: Any, rates: Any) -> Any:
        for _ in range(STEPS // CHECKPOINTS):
            u, v = react(u, v, rates)
        return u, v

    def misfit(rates: Any, u: Any, v: Any, target: Any) -> Any:
        for _ in range(CHECKPOINTS):
            u, v = checkpoint(some, u, v, rates, use_reentrant=False)
        return ((v - target) ** 2).mean()

    rates, *rest = map(torch.from_numpy, arrays(size))

    def both() -> Any:
        variable = rates.clone().requires_grad_()
        loss = misfit(variable, *rest)
        return loss.detach(), torch.autograd.grad(loss, variable)[0]

    return both
