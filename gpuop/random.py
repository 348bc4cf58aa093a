"""Random numbers by explicit keys, as in jax.random: the same bits on every device and in every fusion."""

from typing import NoReturn

from gpuop.base import lazy
from gpuop.base.errors import MissingError

FUNCTIONS = {
    "distributions": "bernoulli bits choice exponential integers normal permutation poisson uniform",
    "keys": "fold_in key split",
}
_NAMES = lazy.defined("gpuop.lib.random", FUNCTIONS)
globals().update(_NAMES)
__all__ = [*sorted(_NAMES)]

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
