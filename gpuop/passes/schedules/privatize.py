"""Histograms and other scatters: outputs that many threads update at computed places are updated in copies first.

On CPUs a thread handles a strip of the grid with copies of its own; on GPUs a work-group has one in local memory. Integers are
added, compared or combined bit by bit, which gives the same in any order.
"""

from __future__ import annotations

from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Barrier, Declare, Print
from gpuop.ir.visit import walk
from gpuop.passes.points_per_thread import tells_groups
from gpuop.passes.schedules.later_updates import computes
from gpuop.passes.schedules.method import Method, Parameters
from gpuop.passes.schedules.private_outputs import updates
from gpuop.passes.schedules.strips import OfGroups
from gpuop.passes.schedules.strips_of_threads import OfThreads

MOST_BYTES = 1 << 18  # of outputs that a thread has copies of, which lie on its stack
COPIES = 4  # that a thread uses in turns,
COPIED = 1 << 16  # as long as they are no more bytes than these; large outputs are seldom updated twice at a place
STRIPS = (64, 32, 16, 8)  # threads on CPUs
POINTS = (32, 16, 64, 8)  # of a thread on GPUs
WORTH = 8  # updates of an element in a copy, for each one of the output
LEAST = 64  # points of a strip


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    found = updates(kernel)
    if not found:
        return "it updates no output in a way whose order does not matter"
    if kernel.intermediates:
        return "it has stages"
    if tells_groups(kernel) or kernel.whole:
        return "it can tell its work-groups"
    for stmt in walk(kernel.body):
        if isinstance(stmt, (Barrier, Print)) or (isinstance(stmt, Declare) and stmt.array.space == "local"):
            return f"it has {'local memory' if isinstance(stmt, Declare) else f'{type(stmt).__name__.lower()}s'}"
    most = MOST_BYTES if kernel.target.device == "cpu" else kernel.target.local_memory_bytes // 2
    needed = nbytes(kernel)
    if needed > most:
        return f"copies of what it updates take {needed} bytes, over {most}"
    return "" if candidates(kernel) else f"its {kernel.domain.threads} points are few beside what it updates"


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    assert kernel.target is not None
    points, least = kernel.domain.threads, WORTH * nbytes(kernel) // 4
    if kernel.target.device == "cpu":
        found = (n for n in STRIPS if points >= n * max(least, LEAST))
        copies = COPIES if COPIES * nbytes(kernel) <= COPIED else 1
        return tuple({"strips": n, "copies": copies, "lanes": lanes(kernel, n)} for n in found)
    busy = kernel.target.least_threads
    return tuple({"points": n} for n in POINTS if points >= n * busy)


def nbytes(kernel: Kernel) -> int:
    """Of one copy of what it updates, whose numbers have 32 bits."""
    return sum(4 * field.type.field_shape.points * field.type.planes for field in updates(kernel))


def lanes(kernel: Kernel, strips: int) -> int:
    """How many points' places are found at once; 1 where that is not worth it, or not possible."""
    count = 1 if kernel.target is None else kernel.target.vector_length
    kernel = without_dead_code(kernel)
    several = count > 1 and computes(kernel) and not OfThreads(kernel, strips, COPIES, count).obstacle()
    return count if several else 1


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    kernel = without_dead_code(kernel)
    if "strips" in parameters:
        strips = parameters["strips"]
        count = lanes(kernel, strips) if parameters["lanes"] > 1 else 1
        return OfThreads(kernel, strips, parameters["copies"], count).kernel()
    return OfGroups(kernel, parameters["points"]).kernel()


PRIVATIZE = Method("privatize", refuse, candidates, apply)
