"""Simulations on a grid spread over MPI ranks: graphs step on windows, and exchange halos every few steps."""

from typing import TYPE_CHECKING, NoReturn

from gpuop.base.errors import missing
from gpuop.scaleout.mpi.domain import Domain

__all__ = ["Domain"]


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # a checker is to say of a name that there is none

    def __getattr__(name: str) -> NoReturn:
        raise missing(__name__, name, __all__)
