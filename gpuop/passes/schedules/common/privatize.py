"""Privatization of histograms and other scatters: threads update copies of the outputs, which are added to these in the end.

Only integer operations whose order does not matter qualify: addition, minimum, maximum, and bitwise ones.

    CPUs: a thread has a strip of the grid, and copies of its own

      grid     | strip of thread 0    | strip of thread 1    | ...
      point p  | copy p mod 4         | copy p mod 4         |         (`copies` is 4)
                 \\__ added up, then added to the output by one atomic operation for each element __/

    GPUs: a work-group has one copy, in local memory

      clear | barrier | each thread: its points, a work-group apart, by local atomics | barrier | add to the output

CPUs whose compiler makes vectors of threads have copies for work-groups too, where vectors of a strip cannot be used.
"""

from __future__ import annotations

from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Barrier, Declare, Print
from gpuop.ir.visit import walk
from gpuop.passes.coarsening_factor import tells_groups
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.private_outputs import computes, updates
from gpuop.passes.schedules.common.strips import GroupStrips, ThreadStrips

MOST_BYTES = 1 << 18  # bytes of a copy, which lies on the stack of a thread
COPIES = 4  # private copies of a thread, used round-robin
COPIED = 1 << 16  # upper limit of all copies in bytes; large outputs are seldom updated twice at an element
STRIPS = (64, 32, 16, 8)  # numbers of strips, each a thread with copies
POINTS = (128, 64, 32, 16, 8)  # points of a thread where a work-group has a copy: more mean fewer copies to add up
WORTH = 8  # least updates for each element of a copy, without which adding it up costs more than it saves
LEAST = 64  # least points of a strip


def refuse(kernel: Kernel) -> str:
    outputs = updates(kernel)
    if not outputs:
        return "it has no updates of an output that may be reordered"
    if kernel.intermediates:
        return "it has stages"
    if tells_groups(kernel) or kernel.whole:
        return "it uses indices of its work-groups"
    for stmt in walk(kernel.body):
        if isinstance(stmt, (Barrier, Print)) or (isinstance(stmt, Declare) and stmt.array.space == "local"):
            return f"it has {'local memory' if isinstance(stmt, Declare) else f'{type(stmt).__name__.lower()}s'}"
    most = kernel.machine.local_memory_bytes // 2 if of_groups(kernel) else MOST_BYTES
    needed = nbytes(kernel)
    if needed > most:
        return f"copies of what it updates take {needed} bytes, over {most}"
    return "" if candidates(kernel) else f"its {kernel.domain.threads} points are few beside what it updates"


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    points, busy, size = kernel.domain.threads, kernel.machine.least_threads, nbytes(kernel)
    if of_groups(kernel):
        return tuple({"points": n} for n in POINTS if points >= n * busy)
    least = max(WORTH * size // 4, LEAST) if kernel.pin is None else 1
    copies = COPIES if COPIES * size <= COPIED else 1
    return tuple({"strips": n, "copies": copies, "lanes": lanes(kernel, n)} for n in STRIPS if points >= n * least)


def of_groups(kernel: Kernel) -> bool:
    """Return whether each work-group has a copy, instead of each thread."""
    alone = computes(kernel) and lanes(kernel, STRIPS[0]) == 1  # points of a strip would run one after another
    return kernel.machine.device != "cpu" or (kernel.machine.widening == "vector" and alone)


def nbytes(kernel: Kernel) -> int:
    """The bytes of a copy of all outputs that a kernel updates; elements have 32 bits."""
    return sum(4 * field.type.field_shape.points * field.type.planes for field in updates(kernel))


def lanes(kernel: Kernel, strips: int) -> int:
    """The number of points whose indices a vector computes; 1 where that is not worth it, or not possible."""
    count = 1 if kernel.target is None else kernel.machine.vector_length
    kernel = without_dead_code(kernel)
    several = count > 1 and computes(kernel) and not ThreadStrips(kernel, strips, COPIES, count).obstacle()
    return count if several else 1


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    """The numbers of strips and of points that result from dividing the grid."""
    kernel = without_dead_code(kernel)
    if "strips" not in parameters:
        return {"points": GroupStrips(kernel, parameters["points"]).of_thread}
    strips, copies = parameters["strips"], min(parameters["copies"], COPIES, max(COPIED // nbytes(kernel), 1))
    count = lanes(kernel, strips) if parameters["lanes"] > 1 else 1
    return {"strips": ThreadStrips(kernel, strips, copies, count).strips, "copies": copies, "lanes": count}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    kernel = without_dead_code(kernel)
    if "strips" in parameters:
        return ThreadStrips(kernel, parameters["strips"], parameters["copies"], parameters["lanes"]).kernel()
    return GroupStrips(kernel, parameters["points"]).kernel()


PRIVATIZE = Method("privatize", ("strips", "copies", "lanes", "points"), refuse, candidates, legalize, apply)
