"""Legality of fusion: the rules in `refusals`, in order; `explain` shows the sentence of the first one that refuses.

A refusal leaves both groups in kernels of their own, and values between them go through memory. A new rule is a function and
its name in that list. Rules apply to producers and consumers, to operators that read the same value, and to recomputation.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuop.fusion.cross_thread import needs_other_threads
from gpuop.fusion.groups import Groups
from gpuop.fusion.intermediates import MOST_REACH, is_plain, reach, unstaged
from gpuop.fusion.tail_threads import unfit
from gpuop.ir.analysis.size import MOST_STATEMENTS

MAX_OPERATORS = 2048  # beyond this compilation takes longer than fusion saves
Refusal = Callable[[Groups, int, int], str | None]


def refuse(groups: Groups, a: int, b: int, recomputed: bool = False) -> str | None:
    """The reason why groups a and b cannot become one kernel; None if they can.

    Args:
        recomputed: True if one group recomputes a value of the other, and takes nothing else from it.
    """
    for rule in refusals:
        if not (recomputed and rule in OF_WHOLE_KERNELS):
            reason = rule(groups, a, b)
            if reason is not None:
                return reason
    return None


def without_body(groups: Groups, a: int, b: int) -> str | None:
    """Functions of the host, iterations and compiled kernels have no statements to fuse."""
    for group in (a, b):
        kernel = groups.members[group][0].kernel  # alone in its group, because of this rule
        if kernel.unfusible:
            return f"`{kernel.name}` {kernel.unfusible}"
    return None


def too_large(groups: Groups, a: int, b: int) -> str | None:
    """Compilation of the fused kernel would take longer than fusion saves."""
    count = len(groups.members[a]) + len(groups.members[b])
    if count > MAX_OPERATORS:
        return f"together they would be {count} operators, more than {MAX_OPERATORS}"
    if groups.size[a] + groups.size[b] > MOST_STATEMENTS:
        return f"together they would have more than {MOST_STATEMENTS} statements"
    return None


def too_many_arguments(groups: Groups, a: int, b: int) -> str | None:
    """The device passes a kernel no more than `Limits.arguments`."""
    most = groups.limits.arguments
    if groups.owed[a] + groups.owed[b] <= most:  # wanted values are arguments in any case
        inputs, exports = groups.interface(a, b)
        if groups.arguments((*inputs, *exports)) <= most:
            return None
    return f"together they would have more than {most} arguments"


def different_work_groups(groups: Groups, a: int, b: int) -> str | None:
    """A launch has work-groups of one shape."""
    kernels = [op.fusible for op in groups.shaped[a] + groups.shaped[b]]
    for kernel in kernels[1:]:
        if kernel.group != kernels[0].group:
            shapes = " and ".join("×".join(map(str, k.group or ())) for k in (kernels[0], kernel))
            return f"`{kernels[0].name}` and `{kernel.name}` run in different work-groups, {shapes}"
    return None


def too_much_local_memory(groups: Groups, a: int, b: int) -> str | None:
    """A work-group has no more than `Limits.local_bytes`."""
    arrays = {}
    for op in groups.shaped[a] + groups.shaped[b]:
        declared = [stmt.array for stmt in op.fusible.shared("local")]
        if declared:
            arrays[op] = declared
    if len(arrays) < 2:
        return None
    for op, own in arrays.items():
        if any(not isinstance(n, int) for array in own for n in array.shape):
            return f"how much local memory `{op.kernel.name}` uses depends on the target"
    need = sum(array.nbytes for own in arrays.values() for array in own)
    if need > groups.limits.local_bytes:
        return f"together they would use {need} bytes of local memory, more than {groups.limits.local_bytes}"
    return None


def unfit_for_tail_threads(groups: Groups, a: int, b: int) -> str | None:
    """Threads beyond the grid, which the one needs to complete its work-groups, would run the other too."""
    for op in groups.shaped[a] + groups.shaped[b]:
        if op.fusible.whole:
            return unfit((*groups.members[a], *groups.members[b]))
    return None


def not_in_registers(groups: Groups, a: int, b: int) -> str | None:
    """Values between the two must pass in registers, which hold only a thread's own values, or in intermediates."""
    for producer, consumer, value in groups.edges(a, b):
        reason = needs_other_threads(producer, consumer, value)
        refusal = unstaged(groups, producer, consumer, value) if reason is not None else None
        if refusal is not None:
            return "; ".join(filter(None, (reason, refusal)))
    return None


def unfit_for_stages(groups: Groups, a: int, b: int) -> str | None:
    """A kernel with intermediates computes points, and some of them for several groups of threads."""
    if not groups.limits.has_stages or not groups.has_stages(a, b):
        return None
    ops = (*groups.members[a], *groups.members[b])
    odd = next((op for op in ops if not is_plain(op)), None)
    if odd is not None:
        return f"`{odd.kernel.name}` does more than to compute its own points, and neighbours would be computed twice"
    far = reach(ops)
    return (
        f"results would be computed from values up to {far} points away, more than {MOST_REACH}"
        if far > MOST_REACH
        else None
    )


def slower_together(groups: Groups, a: int, b: int) -> str | None:
    """One kernel is predicted to take longer than two."""
    if not groups.severed:
        return None
    pairs = ((op.number, n) for op in groups.members[a] for n in groups.severed.get(op.number, ()) if groups.of[n] == b)
    return next((groups.severed[n][other] for n, other in pairs), None)


def computed_again(groups: Groups, a: int, b: int) -> str | None:
    """Operators that compute values again would do so beside those that computed them first, and all would be in memory."""
    if not groups.again:
        return None
    edges = list(groups.edges(a, b))
    for producer, consumer, _ in edges:
        if consumer.number in groups.again and producer.number not in groups.again:
            return f"`{consumer.kernel.name}` computes again, by `gp.checkpoint`, what is not to be kept until then"
    first, second = (any(op.number in groups.again for op in groups.members[group]) for group in (a, b))
    if not edges and first != second:
        return "one of them computes again, by `gp.checkpoint`, what is not to be kept until then"
    return None


def detour(groups: Groups, a: int, b: int) -> str | None:
    """The order of kernels would be cyclic."""
    if groups.order.detour(a, b):
        return "another kernel stands between them: it needs the one and feeds the other"
    return None


refusals: tuple[Refusal, ...] = (
    without_body,
    too_large,
    too_many_arguments,
    different_work_groups,
    too_much_local_memory,
    unfit_for_tail_threads,
    not_in_registers,
    unfit_for_stages,
    slower_together,
    computed_again,
    detour,
)
# the others are of whole kernels; for a recomputed copy `recompute.py` has limits of its own
OF_WHOLE_KERNELS = {*refusals} - {without_body, slower_together}
