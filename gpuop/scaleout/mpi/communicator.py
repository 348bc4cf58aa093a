"""The ranks of a program, which all end when one fails, as the others would wait for it forever."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import cache
from types import TracebackType
from typing import Any

from gpuop.base.errors import SemanticError, described

NEEDED = ("Dup", "Get_rank", "Get_size", "Irecv", "Isend", "allgather", "barrier", "gather")
HEARD = 0.5  # seconds: MPI launchers may lose output right before the end


def communicator(comm: Any) -> Any:
    """Return a duplicate of an mpi4py communicator, all whose ranks end when one fails.

    Raises:
        SemanticError: it is no communicator.
    """
    if not all(hasattr(comm, name) for name in NEEDED):
        raise SemanticError(
            f"`comm` is a communicator of mpi4py's (`pip install mpi4py`), such as MPI.COMM_WORLD, not {described(comm)}"
        )
    _fail_together(comm)
    return comm.Dup()


def agreed(comm: Any, facts: Mapping[str, object]) -> None:
    """Check that all ranks have the same value; otherwise they would wait for ever, or exchange the wrong points.

    Raises:
        SemanticError: on all ranks, if one has another value.
    """
    answers = comm.allgather({name: str(value) for name, value in facts.items()})
    for name, value in answers[0].items():
        for rank, other in enumerate(answers):
            if other[name] != value:
                raise SemanticError(
                    f"all ranks have the same graph and arguments, but rank 0 has {name} {value}, and rank {rank} {other[name]}"
                )


def _fail_together(comm: Any) -> None:
    """Make an uncaught exception end all ranks of the program, once it is printed, as `python -m mpi4py` does."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and isinstance(comm, mpi.Comm) and comm.Get_size() > 1:
        _have_hook(mpi)


@cache
def _have_hook(mpi: Any) -> None:
    hook = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        hook(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(HEARD)
        mpi.COMM_WORLD.Abort(1)

    sys.excepthook = end
