"""Simulations on a grid that is spread over MPI's ranks: graphs step on windows, and exchange halos every few steps."""

from gpuop.mpi.domain import Domain

__all__ = ["Domain"]
