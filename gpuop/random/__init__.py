"""Random numbers by explicit keys, as jax.random's: the same bits on every device and wherever they are fused."""

from gpuop.random.distributions import exponential, normal, poisson
from gpuop.random.keys import fold_in, key, split
from gpuop.random.numbers import bernoulli, bits, integers, uniform
from gpuop.random.orders import choice, permutation

__all__ = [
    "bernoulli",
    "bits",
    "choice",
    "exponential",
    "fold_in",
    "integers",
    "key",
    "normal",
    "permutation",
    "poisson",
    "split",
    "uniform",
]
