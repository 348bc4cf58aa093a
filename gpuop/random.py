"""Random numbers by explicit keys, as in jax.random: the same bits on every device and in every fusion."""

from typing import NoReturn

from gpuop.base.errors import MissingError
from gpuop.lib.random.distributions import exponential, normal, poisson
from gpuop.lib.random.keys import fold_in, key, split
from gpuop.lib.random.permutations import choice, permutation
from gpuop.lib.random.uniform import bernoulli, bits, integers, uniform

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

INSTEAD = {
    "rand": "uniform(key, shape)",
    "random": "uniform(key, shape)",
    "random_sample": "uniform(key, shape)",
    "randn": "normal(key, shape)",
    "standard_normal": "normal(key, shape)",
    "randint": "integers(key, low, high, shape)",
    "standard_exponential": "exponential(key, shape)",
    "shuffle": "permutation(key, x)",
    "permuted": "permutation(key, x)",
    "seed": "key(seed)",
    "default_rng": "key(seed)",
    "RandomState": "key(seed)",
    "PRNGKey": "key(seed)",
}  # names of NumPy's and JAX's


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    way = f"write `gp.random.{INSTEAD[name]}`" if name in INSTEAD else f"it has {', '.join(__all__)}"
    raise MissingError(f"gpuop.random has no `{name}`; {way}")
