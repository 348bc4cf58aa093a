"""In-place updates of states.

A kernel that computes only next values can wait until the next step begins. It may then write them over the states, unless it
reads a state at other points than a thread's own, or another waiting kernel, or another state, needs the old value. It keeps
two buffers too if no schedule suits the kernel in place: threads that overlap must not overwrite their inputs, and a schedule
gains more than a buffer saves. An output that starts from a state (`inout=`) is always written over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuop.fusion.cross_thread import AccessPattern, access_pattern
from gpuop.fusion.launch import PlannedLaunch, Rate
from gpuop.fusion.program import Program
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Effect, FieldParam, Write
from gpuop.ir.target import Target
from gpuop.ir.visit import effects, walk
from gpuop.passes.lowering_cache import suited

Over = dict[int, int]  # next values, each with the state that it is written over


def in_place(launches: Sequence[PlannedLaunch], program: Program, target: Target | None) -> list[PlannedLaunch]:
    """Order launches: those that wait for the next step come last, in the order in which they can run then.

    Args:
        target: the target of schedules; None if there are none.
    """
    assert program.cycle is not None
    counts = Counter((*program.results, *(v for launch in launches for v in launch.inputs)))
    results = {value for _, value in program.cycle.nexts}
    targets = {
        value: state for state, value in program.cycle.nexts if counts[value] == 1 and state not in results
    }  # only the state needs the value, and no other state takes what it overwrites
    waiting = {
        n: over
        for n, launch in enumerate(launches)
        if (over := _over(launch, targets)) and not _loses_its_schedule(launch, over, target)
    }
    order = _ordered(launches, waiting)
    return [
        *(launch for n, launch in enumerate(launches) if n not in order),
        *(_written_over(launches[n], waiting[n]) for n in order),
    ]


def _over(launch: PlannedLaunch, targets: Mapping[int, int]) -> Over:
    """The next values that a kernel can write over their states; none if it cannot wait."""
    kernel = launch.kernel
    if (
        launch.rate is not Rate.EVERY_STEP
        or not isinstance(kernel, Kernel)
        or not targets.keys() >= set(launch.outputs)
    ):
        return {}
    if kernel.intermediates or effects(kernel.body) & Effect.HOST:
        return {}  # stages compute points of neighbours, from states that the neighbours would overwrite
    access = access_pattern(kernel)
    outputs = zip(launch.outputs, kernel.outputs, strict=True)
    return {v: targets[v] for v, output in outputs if _is_own(kernel, output, _param(launch, targets[v]), access)}


def _loses_its_schedule(launch: PlannedLaunch, over: Over, target: Target | None) -> bool:
    kernel, written = launch.kernel, _written_over(launch, over).kernel
    assert isinstance(kernel, Kernel) and isinstance(written, Kernel)
    if target is None or kernel.pin is not None or kernel.dynamic or not access_pattern(kernel).gathers:
        return False
    return suited(kernel, target) and not suited(written, target)


def _param(launch: PlannedLaunch, value: int) -> FieldParam | None:
    return launch.kernel.inputs[launch.inputs.index(value)] if value in launch.inputs else None


def _is_own(kernel: Kernel, output: Output, state: FieldParam | None, access: AccessPattern) -> bool:
    """Return whether a thread reads only those points of a state that it overwrites, before it writes."""
    if state is None:
        return True
    if output.param in kernel.replaced:
        return output.initial is state
    writes = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Write) and stmt.field is output.param]
    alone = state.type.field_shape == kernel.domain.shape and kernel.domain.elements in (1, state.type.planes)
    last = len(writes) == 1 and writes[0] in kernel.body and output.fill is None
    return alone and last and state not in access.gathers and output.param not in access.scatters


def _ordered(launches: Sequence[PlannedLaunch], waiting: Mapping[int, Over]) -> list[int]:
    """Kernels in an order in which each state is read before it is overwritten; one kernel of each cycle does not wait."""
    before = _before(launches, waiting)
    after: dict[int, list[int]] = {n: [] for n in waiting}
    for n, readers in before.items():
        for reader in readers:
            after[reader].append(n)
    order: list[int] = []
    ready = [n for n in waiting if not before[n]]
    while before:
        if not ready:  # of a cycle: follow it until it must have been entered
            at = next(iter(before))
            for _ in before:
                at = min(before[at])
            ready.append(at)
        chosen = ready.pop()
        if not before.pop(chosen):
            order.append(chosen)
        for n in filter(before.__contains__, after[chosen]):
            before[n].discard(chosen)
            if not before[n]:
                ready.append(n)
    return order


def _before(launches: Sequence[PlannedLaunch], waiting: Mapping[int, Over]) -> dict[int, set[int]]:
    """For each kernel the others that read a state which it overwrites."""
    writer = {state: n for n, over in waiting.items() for state in over.values()}
    before: dict[int, set[int]] = {n: set() for n in waiting}
    for n in waiting:
        for value in launches[n].inputs:
            if writer.get(value, n) != n:
                before[writer[value]].add(n)
    return before


def _written_over(launch: PlannedLaunch, over: Over) -> PlannedLaunch:
    """A launch whose kernel writes over states after all other statements."""
    kernel = launch.kernel
    assert isinstance(kernel, Kernel)
    pairs = zip(launch.outputs, kernel.outputs, strict=True)
    states = {output.param: _param(launch, over[v]) for v, output in pairs if v in over}
    outputs = tuple(replace(output, over=states.get(output.param)) for output in kernel.outputs)
    last = {output.param for output in kernel.outputs if output.initial is None} & states.keys()
    body = sorted(kernel.body, key=lambda stmt: isinstance(stmt, Write) and stmt.field in last)
    return replace(launch, kernel=replace(kernel, outputs=outputs, body=tuple(body)), over=tuple(over.items()))
