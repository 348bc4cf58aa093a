"""The coarsening factor: the number of points of a thread, their form, and the reason if it is one.

Only kernels that read and write own points alone are coarsened. A thread then accesses 16 bytes of memory at a time, four floats
or sixteen bytes, which GPUs need to copy at full speed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpuop.base.config import config
from gpuop.base.records import dataclass
from gpuop.ir.axis_limit import MOST_COUNTED
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Assign, Const, Declare, Expr, FieldParam, Index, Let, Read, Stmt, Store, Write
from gpuop.ir.types import HALF, INT
from gpuop.ir.visit import expressions, walk
from gpuop.passes.vectorization_legality import demand, halves, obstacle

ACCESS = 16  # bytes of a thread's widest access
MOST_HELD = 256  # bytes of fields that a thread holds in registers at once
MOST_VALUES = 1024  # values that the copies of a body compute
MANY_VALUES = (
    128  # of a body that reads no field: two accesses share what threads have in common, as keys of random numbers
)
SMALL = 16  # a grid is small on a CPU with a 16th of the threads that keep a GPU busy
STREAMED = 1 << 25  # bytes of outputs that CPUs write past their caches, which few caches hold
LINE = 64  # bytes of a cache line of CPUs
WORD = 32  # bits of a word of memory
MOST_PARTS = 4  # partly written lines of a thread that CPUs still combine into whole ones past their caches
LONG_ROW = 2048  # columns of a row that are enough for groups with spaced points
ONE_BY_ONE = "one point per thread is as fast on the device"

Place = tuple[FieldParam, Expr]  # a field, and an element of its tensor


@dataclass(frozen=True)
class PointsPerThread:
    """The coarsening of threads.

    Attributes:
        count: the number of points of a thread.
        form: "scalar", one point; "wide", neighbours that are accessed at once; "spaced", points that are a work-group
            apart, where wide accesses would not be aligned; "vector", neighbours in the vectors of a CPU.
        flat: whether the grid is flattened to one axis.
        reason: the reason against more lanes, or against wide ones.
    """

    count: int = 1
    form: str = "scalar"
    flat: bool = False
    reason: str = ""


def points_per_thread(kernel: Kernel) -> PointsPerThread:
    """The coarsening that suits a recorded kernel on its target."""
    refusal = _refusal(kernel)
    if refusal:
        return PointsPerThread(reason=refusal)
    if kernel.machine.vector_length > 1:
        if is_small(kernel):
            return PointsPerThread(reason="its grid is small, and vectors take longer to compile")
        refusal = (demand(kernel.body, streams(kernel)) if kernel.machine.widening == "functions" else "") or obstacle(
            kernel.body
        )
        return PointsPerThread(reason=refusal) if refusal else _placed(kernel, kernel.machine.vector_length, "vector")
    count, reason = lanes_of_accesses(kernel)
    return PointsPerThread(reason=reason) if count == 1 else _placed(kernel, count, "wide", reason)


def is_small(kernel: Kernel, each: float = 1.0) -> bool:
    """Return whether a CPU runs a grid sooner than it compiles vectors for it; never where extents are arguments.

    Args:
        each: the number of threads that one counts as.
    """
    return not kernel.named and kernel.domain.threads * each * SMALL < kernel.machine.least_threads


def is_streamed(kernel: Kernel, field: FieldParam) -> bool:
    """Return whether vectors of an output are written past the caches, which saves the fetch of each line, a third of the time."""
    kind, size = field.type, field.type.storage.bits // 8
    aligned = kind.planes == 1 or (not kernel.named and kind.field_shape.points * size % ACCESS == 0)
    return (kernel.large if kernel.named else is_large(field)) and aligned and kind.storage is not HALF


def streams(kernel: Kernel) -> bool:
    return any(is_streamed(kernel, field) for field in kernel.written)


def is_large(field: FieldParam) -> bool:
    return field.type.nbytes >= STREAMED


def streamed(kernel: Kernel) -> set[FieldParam]:
    """The outputs whose vectors a lowered kernel writes past the caches."""
    large = {field for field in kernel.written if is_streamed(kernel, field)}
    stores = [s for s in walk(kernel.body) if isinstance(s, Store) and s.memory in large]
    parts = [s for s in stores if s.value.type.lanes * s.value.type.dtype.bits // 8 < LINE]
    few = stores if len(parts) <= MOST_PARTS else [s for s in stores if s not in parts]
    return {s.memory for s in few if isinstance(s.memory, FieldParam)}


def _placed(kernel: Kernel, count: int, form: str, reason: str = "") -> PointsPerThread:
    """Lanes along rows where they divide these and the body uses positions, to avoid divisions; else along the flat grid."""
    columns, points = kernel.domain.extent("column"), kernel.domain.shape.points
    if kernel.named and form == "wide":  # along rows, whose last thread may have fewer
        return PointsPerThread(count, form, False, reason)
    if kernel.named and columns < count:
        return PointsPerThread(reason="its rows are too short for vectors")
    if not kernel.layouts_in_rows:
        return _alternating(kernel, count, form, reason)
    if kernel.layouts or kernel.named:  # whose rows lie apart, or begin anywhere
        if form == "wide" and columns % count:
            if columns >= LONG_ROW:
                return PointsPerThread(count, "spaced", False, f"{count} lanes do not divide rows of {columns}")
            count = math.gcd(count, columns)
        return PointsPerThread(count, form if count > 1 else "scalar", False, reason)
    indices = (e for e in expressions(kernel.body) if isinstance(e, Index) and e.kind == "global")
    has_positions = any(index.axis in GRID_AXES for index in indices)
    flat = points <= MOST_COUNTED and not (columns % count == 0 and has_positions)
    aligned = math.gcd(count, points if flat else columns)
    if form == "wide" and 1 < aligned >= count // 2:
        return PointsPerThread(aligned, form, flat, reason)
    if not flat and aligned < count:
        reason = f"its {points} points are too many to count, and lanes do not divide rows of {columns}"
        return PointsPerThread(reason=reason)
    if form == "wide":
        return PointsPerThread(count, "spaced", True, f"{count} lanes do not divide {points} points")
    return PointsPerThread(count, form, flat, reason)


def _alternating(kernel: Kernel, count: int, form: str, reason: str) -> PointsPerThread:
    """The coarsening of a kernel with fields whose points' elements alternate: as many points as accesses to all of them may take.

    Words of 4 bytes are read as fast one by one, as the threads of a warp read neighbouring ones.
    """
    if form == "vector":
        refusal = _refused_overlap(kernel, count)
        return PointsPerThread(reason=refusal) if refusal else PointsPerThread(count, form, False, reason)
    apart = [param for param, layout in kernel.layouts if not layout.in_rows()]
    if all(param.type.storage.bits >= WORD for param in apart):
        return PointsPerThread(reason="the elements of its points alternate in memory")
    columns, is_row = kernel.domain.extent("column"), len(kernel.domain.shape) == 1  # whose last thread may have fewer
    while count > 1 and (
        (columns % count and not is_row) or not all(kernel.layout(param).aligned(count) for param in apart)
    ):
        count //= 2
    return PointsPerThread(count, "wide" if count > 1 else "scalar", False, reason)


def _refused_overlap(kernel: Kernel, count: int) -> str:
    """Return the reason why the last vector of a row cannot overlap the one before it; empty where it can, or need not."""
    columns = kernel.domain.extent("column")
    if columns < count:
        return "its rows are too short for vectors"
    if columns % count == 0 and not kernel.named:
        return ""
    return "the last points of its rows would be updated twice" if kernel.shared_memory else halves(kernel)


def is_own(field: FieldParam) -> bool:
    """Return whether each thread has a point of its own in a field, unlike in one that is passed by value."""
    return not field.by_value and len(field.type.field_shape) > 0


def elements(field: FieldParam, element: Expr | None) -> list[Expr]:
    """The elements of a tensor that an access refers to."""
    return [element] if element is not None else [constant(k, INT) for k in range(field.type.planes)]


def places(kernel: Kernel) -> tuple[list[Place], list[Place]]:
    """The elements that a thread reads, and those that it writes, at its own point, each once."""
    here = (e for e in expressions(kernel.body) if isinstance(e, Read) and e.point is None)
    reads = [(e.field, e.element) for e in here if is_own(e.field)]
    writes = [(stmt.field, stmt.element) for stmt in kernel.body if isinstance(stmt, Write)]
    read, written = (
        list(dict.fromkeys((field, e) for field, element in accesses for e in elements(field, element)))
        for accesses in (reads, writes)
    )
    return read, written


# --- may it have lanes ------------------------------------------------------------------------------------------------


def _refusal(kernel: Kernel) -> str:
    if kernel.target is None or kernel.machine.widening == "scalar":
        return ONE_BY_ONE
    if not config.widen:
        return "GPUOP_WIDEN is 0"
    # a row in memory of gpuop, whose groups of neighbours are aligned whatever the extent
    is_row = len(kernel.domain.shape) == kernel.domain.elements == 1 and not kernel.layouts
    if kernel.named and kernel.machine.vector_length == 1 and (kernel.pin or not is_row):
        return "its extents are arguments"
    if not kernel.domain.shape:
        return "its grid is one point"
    if kernel.points is not None:
        return "a schedule has given its points to threads"
    return others_points(kernel)


def others_points(kernel: Kernel) -> str:
    """Return the reason why a kernel is not pointwise: threads share something, or use points of others; empty where it is."""
    if reason := refusal_of_thread(kernel, alternating=True):
        return reason
    for e in expressions(kernel.body):
        if isinstance(e, Read) and is_own(e.field):
            if e.point is not None or e.field.type.field_shape != kernel.domain.shape:
                return "it reads points that are not the thread's own"
            if not is_plain(e.field, e.element, kernel):
                return "it reads computed elements of tensors"
    return ""


def refusal_of_thread(kernel: Kernel, alternating: bool = False) -> str:
    """Return the reason why the statements of a thread cannot be copied for several points, whatever they read; else empty.

    Args:
        alternating: whether the elements of points may alternate in memory.
    """
    if reason := refused_layouts(kernel, alternating):
        return reason
    if tells_groups(kernel):
        return "it uses indices of its work-groups"
    return next(filter(None, (unrepeatable(stmt, kernel) for stmt in walk(kernel.body))), "")


def refused_layouts(kernel: Kernel, alternating: bool = False) -> str:
    """Return the reason why the layouts of users' arrays rule out several points of a thread: columns are no neighbours.

    Args:
        alternating: whether the elements of points may alternate, where all of these are accessed at once.
    """
    apart = [param for param, layout in kernel.layouts if not layout.in_rows()]
    if alternating:
        apart = [param for param in apart if not alternates(kernel, param)]
    names = ", ".join(f"`{param.hint}`" for param in apart)
    return names and f"the array of the user for {names} is not planar"


def alternates(kernel: Kernel, param: FieldParam) -> bool:
    """Return whether the elements of a field's points alternate in memory, and are all written if any is."""
    writes = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Write) and stmt.field is param]
    parts = {stmt.element.value for stmt in writes if isinstance(stmt.element, Const)}
    whole = are_whole(writes) or parts == {*range(param.type.planes)}
    return kernel.layout(param).alternates(param.type) and whole


def are_whole(writes: Iterable[Write]) -> bool:
    """Return whether each of the writes is one of all elements of a point."""
    return all(stmt.element is None for stmt in writes)


def tells_groups(kernel: Kernel) -> bool:
    """Return whether a kernel has a work-group of the user, or uses the position of a thread in it."""
    of_group = (isinstance(e, Index) and e.kind not in ("global", "global_size") for e in expressions(kernel.body))
    return kernel.group is not None or any(of_group)


def unrepeatable(stmt: Stmt, kernel: Kernel) -> str:
    """Return the reason why a statement cannot be copied for each point; empty where it has no effect but writes of own points."""
    match stmt:
        case Declare(array=array) if array.space == "local":
            return "it has local memory"
        case _ if stmt.effect:
            return f"it has {type(stmt).__name__.lower()}s"
        case Write(field=field, point=point, element=element):
            if point is not None or field.type.field_shape != kernel.domain.shape:
                return "it writes points that are not the thread's own"
            if stmt not in kernel.body or not is_plain(field, element, kernel):
                return "it does not write the same elements in every thread"
    return ""


def is_plain(field: FieldParam, element: Expr | None, kernel: Kernel) -> bool:
    """Return whether the element of an access is known: all, a constant, or the thread's own where the tensor has as many."""
    if isinstance(element, Index):
        return element == Index("global", "element") and field.type.planes == kernel.domain.elements
    return element is None or isinstance(element, Const)


# --- how many ---------------------------------------------------------------------------------------------------------


def lanes_of_accesses(kernel: Kernel) -> tuple[int, str]:
    """The lanes of the widest accesses; fewer, and the reason, where threads would be few or large."""
    sizes = [field.type.storage.bits // 8 for elements_ in places(kernel) for field, _ in elements_]
    if not sizes:
        return 1, "it touches no field"
    values = sum(stmt.var.type.lanes for stmt in walk(kernel.body) if isinstance(stmt, (Let, Assign)))
    limits = [
        (MOST_VALUES // max(values, 1), f"its body computes {values} values"),
        (MOST_HELD // sum(sizes), f"a point is {sum(sizes)} bytes"),
    ]
    if not kernel.named:
        limits.insert(
            0, (kernel.domain.threads // kernel.machine.least_threads, "more lanes would leave too few threads")
        )
    count = ACCESS // max(sizes)
    least, reason = min(limits, key=lambda limit: limit[0])
    if least >= count:
        twice = not places(kernel)[0] and values >= MANY_VALUES and limits[0][0] >= 2 * count
        return count * (2 if twice else 1), ""
    return 1 << max(least, 1).bit_length() - 1, reason
