"""The plan of a program: operators grouped into kernels by contracting edges of a graph that stays acyclic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gpuop.base.records import dataclass
from gpuop.fusion.cross_thread import needs_other_threads
from gpuop.fusion.groups import MOST_COMPARED, Groups
from gpuop.fusion.inplace import in_place
from gpuop.fusion.intermediates import unstaged
from gpuop.fusion.kernel_limits import LEAST, Limits
from gpuop.fusion.launch import Invariant, PlannedLaunch, Rates
from gpuop.fusion.legality import refuse
from gpuop.fusion.program import Op, Program
from gpuop.fusion.recompute import Recomputing
from gpuop.fusion.register_split import Piece, Spliced, Splitting
from gpuop.fusion.schedule_choice import ill_staged, placed
from gpuop.fusion.thread_per_element import shared_once, with_elements
from gpuop.fusion.unfuse import Parting, Severed, Severing
from gpuop.fusion.variant_selection import Choices, settled
from gpuop.ir.device_model import LAUNCH
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.layout import Layout
from gpuop.ir.target import Target
from gpuop.passes.resolve_target import for_target


@dataclass(frozen=True)
class Apart:
    """Two operators left in different kernels although one feeds the other."""

    producer: Op
    consumer: Op
    value: int
    reason: str


@dataclass(frozen=True, eq=False)
class Plan:
    """Launches in order, none of them beyond the limits if it could be less.

    What does not run at every step comes first, what waits for the next one last.
    """

    program: Program
    launches: tuple[PlannedLaunch, ...]
    apart: tuple[Apart, ...]
    limits: Limits


def plan(
    program: Program,
    optimize: bool = True,
    limits: Limits = LEAST,
    layouts: Mapping[int, Layout] = MappingProxyType({}),
) -> Plan:
    """Fuse what the rules allow and the costs advise, split what a device has no room for, and order the kernels.

    Args:
        layouts: layouts of values in the caller's memory, besides those of borrowed leaves; some schedules do not take them.
    """
    layouts = {**layouts, **program.layouts}
    program = settled(program, limits.choices)
    program, spread = with_elements(program) if optimize else (program, frozenset())
    pieces, apart = _kernels(program, limits, layouts, optimize)
    launches = [_launched(piece, spread, limits.pin, layouts, program.dynamic) for piece in pieces]
    timed = _timed(launches, program, limits) if optimize else launches
    chosen = timed if limits.pin is not None else [_chosen(launch, limits.choices) for launch in timed]
    return Plan(program, tuple(chosen), apart, limits)


def _kernels(
    program: Program, limits: Limits, layouts: Mapping[int, Layout], optimize: bool
) -> tuple[list[Piece], tuple[Apart, ...]]:
    """The kernels in the order of launches, and the pairs that are not fused.

    If no schedule suits a kernel with intermediates, it is cut at those with the fewest bytes; if an operator keeps others
    from vectors, it is cut before that operator. Then everything is fused again.
    """
    memory: set[int] = set()  # values that are no intermediates
    severed: Severed = {}
    spliced: Spliced = {}
    while True:
        groups = Groups(program, limits, memory, severed)
        refused = _fuse(groups, program, Invariant(program, groups)) if optimize else []
        order = groups.order.sorted(key=groups.first.__getitem__)
        splitting = Splitting(groups, program.types, spliced)
        whole = [splitting.whole(groups.members[group]) for group in order]
        cut = _ill_staged(whole, limits, layouts, program.dynamic)
        if not cut:  # else it is too early to ask for registers, which takes long
            pieces = [piece for each in whole for piece in splitting.pieces(each)]
            cut = _ill_staged([piece for piece in pieces if piece not in whole], limits, layouts, program.dynamic)
        if cut:
            memory |= cut
            continue
        edges = Severing(program, limits, splitting.whole).severed(pieces)
        edges = edges or Parting(program, limits, spliced).severed(pieces)
        if not edges:
            apart = [a for a in refused if groups.are_apart(a.producer, a.consumer)]
            return pieces, (*apart, *(Apart(*each) for each in splitting.apart))
        severed, memory = severed | edges, set()


def _ill_staged(
    pieces: Iterable[Piece], limits: Limits, layouts: Mapping[int, Layout], dynamic: frozenset[int]
) -> set[int]:
    return set[int]().union(*(ill_staged(piece, limits, layouts, dynamic) for piece in pieces))


def _launched(
    piece: Piece, spread: frozenset[int], pin: Pin | None, layouts: Mapping[int, Layout], dynamic: frozenset[int]
) -> PlannedLaunch:
    ops = {op.number for each in piece.ops for op in (each, *each.recomputed)}
    kernel = piece.kernel
    if isinstance(kernel, Kernel) and not spread.isdisjoint(ops):
        kernel = shared_once(kernel)
    if isinstance(kernel, Kernel):
        kernel = placed(kernel if pin is None else replace(kernel, pin=pin), piece, layouts, dynamic)
    return PlannedLaunch(kernel, piece.inputs, piece.outputs, piece.ops)


def _chosen(launch: PlannedLaunch, choices: Choices) -> PlannedLaunch:
    """The launch with the schedule that was measured to be best, where one was."""
    kernel = launch.kernel
    pin = choices.pin(kernel) if isinstance(kernel, Kernel) and not kernel.dynamic else None
    return (
        replace(launch, kernel=replace(kernel, pin=pin)) if pin is not None and isinstance(kernel, Kernel) else launch
    )


def _timed(launches: list[PlannedLaunch], program: Program, limits: Limits) -> list[PlannedLaunch]:
    """The launches of a graph, with what is known of when they run."""
    if program.cycle is None:
        return launches
    rates = Rates(program)
    timed = [replace(launch, rate=rates.add(launch.kernel, launch.inputs, launch.outputs)) for launch in launches]
    return in_place(sorted(timed, key=lambda launch: launch.rate), program, limits.target)


def _fuse(groups: Groups, program: Program, steady: Invariant) -> list[Apart]:
    """Contract edges in topological order of their consumers, then join kernels that read the same; what was refused, and why."""
    refused: list[Apart] = []
    recomputing = Recomputing(program, groups, steady)
    for original in program.ops:
        op = recomputing.apply(original)
        if recomputing.is_late(op):
            continue
        for value in dict.fromkeys(op.inputs):
            producer = groups.maker.get(value)
            if producer is None or groups.of[producer.number] == groups.of[op.number]:
                continue
            a, b = groups.of[producer.number], groups.of[op.number]
            reason = needs_other_threads(producer, op, value)
            if reason is None or unstaged(groups, producer, op, value) is None:
                reason = _merge(groups, a, b, steady)
            if reason is not None:
                refused.append(Apart(producer, op, value, "; ".join(filter(None, (reason, recomputing.reason(value))))))
    groups.drop_dead()
    refused += _join(groups, program, steady)
    _join_small(groups, program, steady)
    return refused


def _merge(groups: Groups, a: int, b: int, steady: Invariant) -> str | None:
    """Make one kernel of two groups; or why not."""
    reason = refuse(groups, a, b) or steady.refuse(a, b)
    if reason is None:
        groups.merge(a, b)
    return reason


def _join(groups: Groups, program: Program, steady: Invariant) -> list[Apart]:
    """Make one kernel of those on the same grid that read a value from memory: it is read once then."""
    refused: list[Apart] = []
    for value, kind in program.types.items():
        if kind.field_shape:
            for a, b, reason in _joined(groups, groups.using.get(value, {}).values(), steady):
                refused.append(Apart(a, b, value, f"both read it, but {reason}"))
    return refused


def _join_small(groups: Groups, program: Program, steady: Invariant) -> None:
    """Make one kernel of those on the same grid that read little, of what one kernel makes: a launch less."""
    done: set[int] = set()
    for op in program.ops:
        group = groups.of[op.number]
        if group in groups.members and group not in done:
            done.add(group)
            small = (v for each in groups.members[group] for v in each.outputs if program.types[v].nbytes <= LAUNCH)
            readers = {n: each for v in small for n, each in groups.using.get(v, {}).items() if groups.of[n] != group}
            _joined(groups, (readers[n] for n in sorted(readers)), steady)


def _joined(groups: Groups, readers: Iterable[Op], steady: Invariant) -> list[tuple[Op, Op, str]]:
    """Join the kernels of operators on the same grid; who could not be, and why."""
    refused = []
    kernels: list[Op] = []  # one operator of each kernel that reads the value
    for op in readers:
        for other in kernels:
            a, b = groups.of[other.number], groups.of[op.number]
            if a == b or other.kernel.grid != op.kernel.grid:
                continue
            reason = _merge(groups, a, b, steady)
            if reason is not None:
                refused.append((other, op, reason))
        if groups.of[op.number] not in {groups.of[k.number] for k in kernels}:
            kernels = [*kernels[-MOST_COMPARED:], op]  # older ones refused, being full or of another kind
    return refused


def plan_for(plan: Plan, target: Target) -> Plan:
    """The plan with one branch of each `_codegenIf`, without inputs and kernels that are then unused.

    Raises:
        SemanticError: a table has no entry for the target.
    """

    def resolved(launch: PlannedLaunch) -> PlannedLaunch:
        kernel = for_target(launch.kernel, target) if isinstance(launch.kernel, Kernel) else launch.kernel
        if kernel is launch.kernel:
            return launch
        inputs = (v for param, v in zip(launch.kernel.inputs, launch.inputs, strict=True) if param in kernel.inputs)
        return replace(launch, kernel=kernel, inputs=tuple(inputs))

    launches = [resolved(launch) for launch in plan.launches]
    if all(new is old for new, old in zip(launches, plan.launches, strict=True)):
        return plan
    needed, remaining = set(plan.program.results), []
    for launch in reversed(launches):
        if not needed.isdisjoint(launch.outputs):
            remaining.append(launch)
            needed.update(launch.inputs)
    return replace(plan, launches=tuple(reversed(remaining)))
