"""Pipelines as functions of arrays of JAX: `jit`, `grad`, `jvp`, `vmap`, in both modes and of any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

try:
    import jax as _  # noqa: F401 - what is missing is said here
except ImportError as _missing:
    raise ImportError(f"gpuop.jax works on arrays of JAX ({_missing}): `pip install jax`") from None

from gpuop.base.errors import missing
from gpuop.frameworks.jax_primitive import wrap

__all__ = ["wrap"]


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # a checker is to say of a name that there is none

    def __getattr__(name: str) -> NoReturn:
        raise missing(__name__, name, __all__)
