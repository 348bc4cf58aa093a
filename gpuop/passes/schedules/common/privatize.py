"""Histograms and other scatters: outputs that many threads update at computed places are updated in copies first.

On CPUs a thread handles a strip of the grid with copies of its own; on GPUs a work-group has one in local memory, and on CPUs
whose compiler makes vectors of threads, if ours cannot be used. Integers are added, compared or combined bit by bit, which gives
the same in any order.
"""

from __future__ import annotations

from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Barrier, Declare, Print
from gpuop.ir.visit import walk
from gpuop.passes.coarsening_factor import tells_groups
from gpuop.passes.schedules.common.deferred_updates import computes
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.private_outputs import updates
from gpuop.passes.schedules.common.strips import OfGroups
from gpuop.passes.schedules.common.thread_strips import OfThreads

MOST_BYTES = 1 << 18  # of outputs that a thread has copies of, which lie on its stack
COPIES = 4  # that a thread uses in turns,
COPIED = 1 << 16  # as long as they are no more bytes than these; large outputs are seldom updated twice at a place
STRIPS = (64, 32, 16, 8)  # threads that have copies
POINTS = (128, 64, 32, 16, 8)  # of a thread, where a work-group has a copy: the more, the fewer copies are joined
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
    most = kernel.target.local_memory_bytes // 2 if of_groups(kernel) else MOST_BYTES
    needed = nbytes(kernel)
    if needed > most:
        return f"copies of what it updates take {needed} bytes, over {most}"
    return "" if candidates(kernel) else f"its {kernel.domain.threads} points are few beside what it updates"


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    assert kernel.target is not None
    points, busy, size = kernel.domain.threads, kernel.target.least_threads, nbytes(kernel)
    if of_groups(kernel):
        return tuple({"points": n} for n in POINTS if points >= n * busy)
    least = max(WORTH * size // 4, LEAST) if kernel.pin is None else 1
    copies = COPIES if COPIES * size <= COPIED else 1
    return tuple({"strips": n, "copies": copies, "lanes": lanes(kernel, n)} for n in STRIPS if points >= n * least)


def of_groups(kernel: Kernel) -> bool:
    """Whether a work-group has a copy, not a thread."""
    assert kernel.target is not None
    alone = computes(kernel) and lanes(kernel, STRIPS[0]) == 1  # a point of a strip after the other
    return kernel.target.device != "cpu" or (kernel.target.widening == "vector" and alone)


def nbytes(kernel: Kernel) -> int:
    """Of one copy of what it updates, whose numbers have 32 bits."""
    return sum(4 * field.type.field_shape.points * field.type.planes for field in updates(kernel))


def lanes(kernel: Kernel, strips: int) -> int:
    """How many points' places are found at once; 1 where that is not worth it, or not possible."""
    count = 1 if kernel.target is None else kernel.target.vector_length
    kernel = without_dead_code(kernel)
    several = count > 1 and computes(kernel) and not OfThreads(kernel, strips, COPIES, count).obstacle()
    return count if several else 1


def taken(kernel: Kernel, parameters: Parameters) -> Parameters:
    """The strips and the points that come of dividing the grid."""
    kernel = without_dead_code(kernel)
    if "strips" not in parameters:
        return {"points": OfGroups(kernel, parameters["points"]).of_thread}
    strips, copies = parameters["strips"], min(parameters["copies"], COPIES, max(COPIED // nbytes(kernel), 1))
    count = lanes(kernel, strips) if parameters["lanes"] > 1 else 1
    return {"strips": OfThreads(kernel, strips, copies, count).strips, "copies": copies, "lanes": count}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    kernel = without_dead_code(kernel)
    if "strips" in parameters:
        return OfThreads(kernel, parameters["strips"], parameters["copies"], parameters["lanes"]).kernel()
    return OfGroups(kernel, parameters["points"]).kernel()


PRIVATIZE = Method("privatize", ("strips", "copies", "lanes", "points"), refuse, candidates, taken, apply)
