"""The gradient of examples/seismic.py through all steps of six shots, in gpuop and JAX; both with checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import seismic

SEGMENTS = 20  # of JAX, which has no binomial checkpoints


def arrays(size: int) -> tuple[Any, ...]:
    """The speeds, the shots, and records that are silent."""
    seismic.ROWS, seismic.COLUMNS = size * 7 // 12, size
    shots = np.int32(np.linspace(14, size - 15, seismic.SHOTS))
    return seismic.ground(), shots, np.zeros((len(shots), seismic.STEPS, size), np.float32)


def with_gpuop(size: int) -> Any:
    import gpuop as gp

    both, inputs = gp.value_and_grad(seismic.misfit), arrays(size)
    return lambda: both(*inputs)


def with_jax(size: int) -> Any:
    import jax
    import jax.numpy as jnp

    inputs = jax.device_put(arrays(size))
    fade, wavelet = seismic.sponge(), seismic.ricker().reshape(SEGMENTS, -1)

    def misfit(speed: Any, shot: Any, observed: Any) -> Any:
        rate = (speed * seismic.COURANT) ** 2

        def step(state: Any, now: Any) -> Any:
            (p, before, sums), (pressure, heard) = state, now
            wide = jnp.pad(p, 1)
            around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
            after = 2 * p - fade * before + rate * (around - 4 * p)
            after = fade * after.at[seismic.SURFACE, shot].add(pressure)
            return (after, p, sums + (p[seismic.SURFACE] - heard) ** 2), None

        @jax.checkpoint
        def segment(state: Any, times: Any) -> Any:
            return jax.lax.scan(step, state, times)

        start = (jnp.zeros_like(speed), jnp.zeros_like(speed), jnp.zeros(speed.shape[1]))
        times = wavelet, observed.reshape(*wavelet.shape, -1)
        return jax.lax.scan(segment, start, times)[0][2].sum()

    def of_all(speed: Any, shots: Any, observed: Any) -> Any:
        return jax.vmap(misfit, (None, 0, 0))(speed, shots, observed).sum()

    both = jax.jit(jax.value_and_grad(of_all))
    return lambda: jax.block_until_ready(both(*inputs))
