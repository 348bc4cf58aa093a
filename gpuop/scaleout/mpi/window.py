"""A rank's window, which steps and has its halo updated."""

from __future__ import annotations

import math
import time
from typing import Any

from gpuop.engine.graphs.window import GraphWindow, WindowFaces, repeatable
from gpuop.scaleout.mpi.exchange import Exchanging, HostExchange
from gpuop.scaleout.mpi.grid import RankGrid, Region

ROUNDS = 3  # timed exchanges, with steps, after one that compiles; more of them within so many seconds
MEASURING, MOST_ROUNDS = 0.05, 20
MOST_TWICE = 0.25  # largest share of a window's points computed twice when exchanged points are computed first


class RankWindow:
    """A rank's window; all ranks create theirs together, and step alike.

    Args:
        comm: an mpi4py communicator.
        ranks: the owners of the parts around it.
        window: the window of this rank's part.
        exchanging: the exchange between ranks.

    Attributes:
        faces: the points for other ranks after its steps, if they are computed and sent before the rest.
    """

    def __init__(self, comm: Any, ranks: RankGrid, window: GraphWindow, exchanging: Exchanging) -> None:
        self.comm, self.window = comm, window
        gives, gets = _routes(ranks, comm.Get_rank(), window)
        self.exchange = exchanging(window, gives, gets)
        self._regions = {region for regions in gives.values() for region in regions}
        self.faces: WindowFaces | None = None

    def can_be_ahead(self) -> bool:
        """Return whether the points for other ranks can be computed first, on all ranks, and are few."""
        window = self.window
        faces = (window.footprint.window(*zip(*region, strict=True)) for region in self._regions)
        little = sum(map(_points, faces)) <= MOST_TWICE * _points(window.ends)
        can = isinstance(self.exchange, HostExchange) and window.backend.only_enqueues and repeatable(window)
        return all(self.comm.allgather(can and little))

    def be_ahead(self, ahead: bool) -> None:
        """Compute the points for other ranks first, or exchange them after the steps."""
        if ahead != (self.faces is not None):
            self.faces = WindowFaces(self.window, self._regions) if ahead else None

    @property
    def how(self) -> str:
        """The kind of exchange."""
        return self.exchange.how + (", while the interior is computed" if self.faces is not None else "")

    # --- running --------------------------------------------------------------------------------------------------

    def advance(self, left: int) -> None:
        """Take steps."""
        while left:
            self.refresh()
            now = min(left, self.window.left)
            if now == self.window.steps and self.faces is not None:
                self._step_ahead(self.faces)
            else:
                self.window.step(now)
            left -= now

    def refresh(self) -> None:
        """Update the halo for another step, or for a read."""
        if not self.window.left:
            self.exchange()

    def _step_ahead(self, faces: WindowFaces) -> None:
        """Take all steps that the halo allows, while the next halo is exchanged."""
        window, exchange = self.window, self.exchange
        assert isinstance(exchange, HostExchange)
        faces.run_ahead()
        exchange.give(faces.packed)
        window.step(window.steps)
        window.backend.record()  # the device has begun when the host waits
        exchange.get()

    # --- measuring ------------------------------------------------------------------------------------------------

    def seconds(self) -> float:
        """Return the seconds of a step, with its share of an exchange."""
        self.refresh()
        self._seconds()  # compiles
        each = [self._seconds() for _ in range(ROUNDS)]
        more = min(MOST_ROUNDS, int(MEASURING / max(each)))
        return min([*each, *(self._seconds() for _ in range(more))]) / self.window.steps

    def _seconds(self) -> float:
        """Return the seconds of an exchange and its steps on the slowest rank."""
        self.comm.barrier()
        start = time.perf_counter()
        if self.faces is None:
            self.exchange()
            self.window.step(self.window.steps)
        else:
            self._step_ahead(self.faces)
        self.window.synchronize()
        return float(max(self.comm.allgather(time.perf_counter() - start)))


def _routes(ranks: RankGrid, rank: int, window: GraphWindow) -> tuple[dict[int, list[Region]], dict[int, list[Region]]]:
    """Return the regions for each rank, and those from each rank; both sides have the pieces in the same order."""
    needed, gives, gets = window.footprint, dict[int, list[Region]](), dict[int, list[Region]]()
    for piece in ranks.around(rank, needed):
        gets.setdefault(piece.owner, []).append(piece.there)
    for other in range(ranks.ranks):
        for piece in ranks.around(other, needed):
            if piece.owner == rank:
                gives.setdefault(other, []).append(piece.own)
    return gives, gets


def _points(region: Region) -> int:
    return math.prod(last - first for first, last in region)
