"""A ComputeGraph whose grid is distributed over ranks."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.cache.atomic_files import Path
from gpuop.base.errors import SemanticError, StaysHere, described
from gpuop.base.misspelt import hinted, hinted_methods
from gpuop.dsl.fields.field import Field
from gpuop.engine.graphs.compute_graph import ComputeGraph
from gpuop.engine.graphs.saving import read, write
from gpuop.engine.graphs.stepper import times
from gpuop.engine.graphs.window import GraphWindow, WindowFaces, repeatable
from gpuop.ir.types import is_integer
from gpuop.scaleout.axes import different_axes
from gpuop.scaleout.mpi.exchange import Exchanging, HostExchange, exchanging
from gpuop.scaleout.mpi.grid import RankGrid, Region

ROUNDS = 3  # timed exchanges, with steps, after one that compiles; more of them within so many seconds
MEASURING, MOST_ROUNDS = 0.05, 20
MOST_TWICE = 0.25  # largest share of a window's points computed twice when exchanged points are computed first
NEEDED = ("Dup", "Get_rank", "Get_size", "Irecv", "Isend", "allgather", "barrier", "gather")
HEARD = 0.5  # seconds: MPI launchers may lose output right before the end
Array = NDArray[Any]
SLOWER = 1.1  # times the best: more steps between exchanges are not tried once they are this much slower


@hinted_methods
class Domain(StaysHere):
    """A ComputeGraph on a grid that is spread over ranks: each steps its part, on its own device, with the bits of the whole.

        graph = heat()  # the same ComputeGraph on each rank
        domain = gpuop.mpi.Domain(MPI.COMM_WORLD, graph)
        domain.step(1000)
        whole = domain.gather("u")  # on rank 0, None on the others

    All ranks call its methods together. A part is a window of the states with the halo of `every` steps (`graph.footprint`);
    it stays in device memory. Halos are exchanged once in so many steps, during these steps if that is faster: the points
    for other ranks are then computed first, and a second time with the rest.
    Parameters belong to each rank: set them alike. An exception that a rank does not catch ends all ranks.

    Args:
        comm: an mpi4py communicator; the Domain uses a duplicate.
        graph: a ComputeGraph, defined alike on all ranks; it keeps its own states, and need not run.
        axes: the axes of the grid that are divided.
        every: the number of steps between two exchanges; "auto": 1, 2, 4 … are timed, until that is slower, by steps from
            the initial states. So is, for each number, the exchange during steps.

    Attributes:
        every: the argument, or the number chosen.

    Raises:
        SemanticError: more ranks than points, or an operator that cannot be computed in parts, with its line.
    """

    stays = "a Domain is of all ranks together; each makes its own, and takes states from a file by `domain.save` and `domain.load`"

    @hinted
    def __init__(self, comm: Any, graph: ComputeGraph, axes: Sequence[int] = (0,), every: int | str = "auto") -> None:
        if not isinstance(graph, ComputeGraph):
            raise SemanticError(f"`graph` is a ComputeGraph, not {described(graph)}")
        if every != "auto" and (not is_integer(every) or int(every) < 1):
            raise SemanticError(f'`every` is "auto" or a number of steps, 1 or more, not {every!r}')
        self._comm, self._graph = communicator(comm), graph
        needed = graph.footprint(1)
        grid = needed.grid
        agreed(self._comm, {"extents": grid, "`axes=`": axes, "`every=`": every, "halos of a step": needed.halo})
        divided = different_axes(axes, len(grid), f"the grid {tuple(grid)}", least=1)
        self._rank, self._ranks = comm.Get_rank(), RankGrid.of(grid, comm.Get_size(), divided)
        self.measured: dict[int, float] = {}
        self.overlapped: dict[int, float] = {}
        self._exchanging: Exchanging | None = None
        self._part = self._best_window(None if every == "auto" else int(every))
        self.every = self._window.steps

    # --- the window -----------------------------------------------------------------------------------------------

    @property
    def _window(self) -> GraphWindow:
        return self._part.window

    def _parted(self, steps: int) -> RankWindow:
        window = self._graph.window(*self._ranks.own(self._rank), steps, self._comm.allgather)
        if self._exchanging is None:
            self._exchanging = exchanging(self._comm, window.backend)
        return RankWindow(self._comm, self._ranks, window, self._exchanging)

    def _best_window(self, every: int | None) -> RankWindow:
        """Return the fastest window on the slowest rank, with `every` steps between exchanges, or with the best number."""
        part, several = self._parted(every or 1), self._ranks.ranks > 1
        if several and every is None:
            part = self._fastest(part)
        if several and part.can_be_ahead():
            part = self._overlapping(part, every)
        if self.measured:
            part.window.reset()
        return part

    def _fastest(self, best: RankWindow) -> RankWindow:
        """Return the window with the number of steps between exchanges that takes the least time a step; 1 is tried first."""
        steps = 1
        self.measured[steps] = best.seconds()
        while self._reaches(2 * steps):
            steps *= 2
            other = self._parted(steps)
            self.measured[steps] = other.seconds()
            if self.measured[steps] < self.measured[best.window.steps]:
                best = other
            elif self.measured[steps] > SLOWER * self.measured[best.window.steps]:
                break
        return best

    def _overlapping(self, part: RankWindow, every: int | None) -> RankWindow:
        """Return the window, or one that computes the exchanged points first, if that is faster; fewer steps are tried too."""
        steps = part.window.steps
        least, best = self.measured.get(steps) or part.seconds(), (part, False)
        self.measured[steps] = least
        while part.can_be_ahead():
            part.be_ahead(True)
            self.overlapped[steps] = seconds = part.seconds()
            if seconds < least:
                least, best = seconds, (part, True)
            if seconds > SLOWER * least or every is not None or steps == 1:
                break
            steps //= 2
            part = self._parted(steps)
        best[0].be_ahead(best[1])
        return best[0]

    def _reaches(self, steps: int) -> bool:
        """Return whether the halos of so many steps are no larger than the parts."""
        needed = self._graph.footprint(steps)
        divided = [axis for axis, count in enumerate(self._ranks.counts) if count > 1]
        least = {axis: self._ranks.grid[axis] // self._ranks.counts[axis] for axis in divided}
        return not any(axis in needed.whole or max(needed.halo[axis]) > least[axis] for axis in divided)

    # --- running --------------------------------------------------------------------------------------------------

    @property
    def tick(self) -> int:
        """The number of steps since the initial states."""
        return self._window.tick

    def step(self, n: int = 1, until: Field | str | None = None, every: int = 1) -> bool:
        """All states take their `.next` values, n times, or until a condition holds.

        Args:
            n: how many steps; 0 or more.
            until: a probed 0D field of bool, or a probe's name; steps end when it is true.
            every: the number of steps between two reads of it; the first read is after so many.

        Returns:
            Whether `until` was true.

        Raises:
            SemanticError: n is negative, or no integer; as of `gather`, or a condition that is no 0D bool.
        """
        left = times(n)
        if until is None:
            self._part.advance(left)
            return False
        if not is_integer(every) or every < 1:
            raise SemanticError(f"`every` is a number of steps, 1 or more, not {every!r}")
        while left:
            now = min(left, every)
            self._part.advance(now)
            left -= now
            if self._holds(until):
                return True
        return False

    def _holds(self, until: Field | str) -> bool:
        """Return rank 0's value of the condition, so that all ranks agree."""
        value = self._read(until)
        if value.shape or value.dtype != bool:
            what = f"{value.dtype} of {value.shape}" if value.shape else str(value.dtype)
            raise SemanticError(f"`until` is a 0D field of bool, not {what}: probe a condition, as `u.max() < 1e-3`")
        return bool(self._comm.allgather(bool(value))[0])

    def gather(self, what: Field | str) -> Array | None:
        """The whole of what is probed, as of `tick`.

        Args:
            what: a probed Field, or a probe's name.

        Returns:
            An array on rank 0, None on the others.

        Raises:
            SemanticError: it is not probed, or is not computed in parts.
        """
        return self._joined(self._read(what), self._window.probes[self._window.name_of(what)])

    def _read(self, what: Field | str) -> Array:
        self._part.refresh()
        return self._window.read(what)

    def save(self, path: Path) -> None:
        """Write states and tick to a file, as `graph.save` does: any number of ranks can `load` it, and a graph by itself.

        Rank 0 writes it, and has the whole in its memory.

        Args:
            path: of the file, which is replaced where it exists.

        Raises:
            OSError: it cannot be written.
            SemanticError: another rank could not.
        """
        states = self._window.states
        values = [self._joined(a, state.parted) for a, state in zip(self._window.values(), states, strict=True)]
        whole = [(s.name, s.kind, a) for s, a in zip(states, values, strict=True) if a is not None]
        self._all(lambda: write(path, self.tick, whole) if self._rank == 0 else None)

    def load(self, path: Path) -> None:
        """Take states and tick from a file that `save` of a Domain or a graph wrote; each rank reads it.

        Args:
            path: of the file.

        Raises:
            SemanticError: as of `graph.load`, here or on another rank; nothing changes.
            OSError: it cannot be opened.
        """
        tick, states = self._all(lambda: read(path, [(state.name, state.kind) for state in self._window.states]))
        self._window.load(states, tick)

    def _all(self, work: Callable[[], Any]) -> Any:
        """Run a function on all ranks; if it fails on one, all raise."""
        result, failed = None, None
        try:
            result = work()
        except (SemanticError, OSError) as error:
            failed = error
        failures = self._comm.allgather(None if failed is None else str(failed))
        if failed is not None:
            raise failed
        for rank, text in enumerate(failures):
            if text is not None:
                raise SemanticError(f"rank {rank}: {text}")
        return result

    def _joined(self, part: Array, parted: bool) -> Array | None:
        """Return the whole on rank 0, None on the others."""
        parts = self._comm.gather(np.asarray(part, order="C"), root=0)
        if parts is None or not parted:
            return None if parts is None else np.asarray(parts[0])
        axes = len(self._ranks.grid)
        whole = np.empty((*self._ranks.grid, *part.shape[axes:]), part.dtype)
        for rank, array in enumerate(parts):
            whole[tuple(map(slice, *self._ranks.own(rank)))] = array
        return whole

    # --- what is told ---------------------------------------------------------------------------------------------

    @property
    def recomputed(self) -> float:
        """Return the share of these points that are computed besides the ranks' own."""
        needed, ranks = self._window.footprint, self._ranks
        windows = (needed.window(*ranks.own(rank)) for rank in range(ranks.ranks))
        return sum(math.prod(b - a for a, b in ends) for ends in windows) / math.prod(ranks.grid) - 1

    def explain(self) -> str:
        """The parts, the halos, the share of points that are computed twice, and what was measured."""
        counts = "×".join(map(str, self._ranks.counts))
        halo = [f"axis {axis}: {before} before, {after} after" for axis, (before, after) in self._halos()]
        lines = [
            f"grid {'×'.join(map(str, self._ranks.grid))} in {counts} parts, one for each rank",
            f"halos are exchanged every {self.every} steps, {'; '.join(halo)}" if halo else "no halos",
            f"{self.recomputed:.1%} of the points are computed besides",
        ]
        gets, how = self._part.exchange.gets, self._part.how
        sent = sum(kind.nbytes for regions in gets.values() for kind in self._window.parts(regions))
        lines += [f"rank {self._rank} gets {sent} bytes of {len(gets)} ranks at each exchange, {how}"] if halo else []
        for each, when in ((self.measured, ""), (self.overlapped, ", meanwhile")):
            lines += [f"measured: every {n} steps{when}: {s * 1e3:.3g} ms a step" for n, s in each.items()]
        return "\n".join(lines)

    def _halos(self) -> list[tuple[int, tuple[int, int]]]:
        """Return the halos along the divided axes."""
        return [(axis, self._window.footprint.halo[axis]) for axis, n in enumerate(self._ranks.counts) if n > 1]


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
