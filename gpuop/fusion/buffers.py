"""Buffer allocation by liveness: values share memory, and a buffer is free again after the last kernel that reads it."""

from __future__ import annotations

from gpuop.base.records import dataclass
from gpuop.fusion.launch import Rate
from gpuop.fusion.plan import Plan
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf


@dataclass(frozen=True)
class Allocation:
    """The buffers of a plan.

    Attributes:
        of: the number of the buffer of each value that a kernel writes; values written over states have none.
        kinds: the type of each buffer.
    """

    of: dict[int, int]
    kinds: tuple[FieldType, ...]

    @property
    def nbytes(self) -> int:
        return sum(kind.nbytes for kind in self.kinds)


def nbytes_of(plan: Plan) -> int:
    """The bytes of a plan's leaves and written values; the states that an iteration keeps are not included."""
    leaves = (node for node in plan.program.leaves.values() if not (isinstance(node, Leaf) and node.by_value))
    return sum(node.type.nbytes for node in leaves) + allocation(plan).nbytes


def allocation(plan: Plan) -> Allocation:
    """Allocate buffers in the order of launches; values that outlive the launches of a step have buffers of their own."""
    types, launches = plan.program.types, plan.launches
    once = {v for launch in launches if launch.rate is not Rate.EVERY_STEP for v in launch.outputs}
    later = {v for launch in launches if launch.rate is not Rate.ONCE for v in launch.inputs}
    before = {v for launch in launches if launch.over for v in launch.inputs}  # when the next step begins
    own = {*plan.program.results, *(once & later), *before}  # they are read after later launches have run again
    over = {value for launch in plan.launches for value, _ in launch.over}
    last = {value: n for n, launch in enumerate(plan.launches) for value in (*launch.inputs, *launch.outputs)}
    of: dict[int, int] = {}
    kinds: list[FieldType] = []
    free: dict[object, list[int]] = {}
    for n, launch in enumerate(plan.launches):
        replaced = {
            v: source
            for v, source in launch.replaced.items()
            if source in of and last[source] == n and not {v, source} & (own | over)
        }
        of |= {v: of[source] for v, source in replaced.items()}
        for value in (v for v in launch.outputs if v not in over and v not in replaced):
            same = free.get(_layout(types[value]))
            if same and value not in own:  # values that outlive the step share no buffer
                of[value] = same.pop()
            else:
                of[value] = len(kinds)
                kinds.append(types[value])
        for value in dict.fromkeys((*launch.inputs, *launch.outputs)):
            if value in of and last[value] == n and value not in own and value not in replaced.values():
                free.setdefault(_layout(types[value]), []).append(of[value])
    return Allocation(of, tuple(kinds))


def _layout(kind: FieldType) -> object:
    """The key of a buffer's layout: equal for values that can share it."""
    return kind.storage, kind.planes, kind.field_shape.points
