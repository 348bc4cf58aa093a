"""Which values share memory: a buffer is free again after the last kernel that reads it."""

from __future__ import annotations

from dataclasses import dataclass

from gpuop.fusion.launch_frequency import Rate
from gpuop.fusion.plan import Plan
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf


@dataclass(frozen=True)
class Allocation:
    """Buffers of a plan.

    Attributes:
        of: the buffer of each value that a kernel writes, by number; none where it is written over a state.
        kinds: the type of each buffer.
    """

    of: dict[int, int]
    kinds: tuple[FieldType, ...]

    @property
    def nbytes(self) -> int:
        return sum(kind.nbytes for kind in self.kinds)


def nbytes_of(plan: Plan) -> int:
    """What is worked on: leaves that are not passed by value, and what is written; an iteration's own turns take more."""
    leaves = (node for node in plan.program.leaves.values() if not (isinstance(node, Leaf) and node.by_value))
    return sum(node.type.nbytes for node in leaves) + allocation(plan).nbytes


def allocation(plan: Plan) -> Allocation:
    """Give values buffers in the order of the launches; those that outlive a step's launches have some of their own."""
    types, own = plan.program.types, set(plan.program.wanted) | _lasting(plan)
    over = {value for launch in plan.launches for value, _ in launch.over}
    last = {value: n for n, launch in enumerate(plan.launches) for value in (*launch.inputs, *launch.outputs)}
    of: dict[int, int] = {}
    kinds: list[FieldType] = []
    free: dict[object, list[int]] = {}
    for n, launch in enumerate(plan.launches):
        replaced = {
            v: given
            for v, given in launch.replaced.items()
            if given in of and last[given] == n and not {v, given} & (own | over)
        }
        of |= {v: of[given] for v, given in replaced.items()}
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


def _lasting(plan: Plan) -> set[int]:
    """What is read after other launches ran again: by what runs more often than they do, or when the next step begins."""
    kept = {value for launch in plan.launches if launch.rate is not Rate.EVERY_STEP for value in launch.outputs}
    found = {v for launch in plan.launches if launch.rate is not Rate.ONCE for v in launch.inputs if v in kept}
    return found | {v for launch in plan.launches if launch.over for v in launch.inputs}


def _layout(kind: FieldType) -> object:
    """What must be equal for two values to share a buffer."""
    return kind.storage, kind.planes, kind.field_shape.points
