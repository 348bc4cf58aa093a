"""The sizes that a pipeline is called with: kernels of one size, or kernels that get their extents as arguments.

The first size has kernels of its own. From the second one on, the arguments whose extents change are dynamic, so that sizes share
kernels. A size that comes several times has kernels of its own too, compiled behind the calls. The tier changes no bit of a result.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

from gpuop.base.config import config
from gpuop.base.lru import BoundedCache
from gpuop.engine.evaluate import plan_on, prepare
from gpuop.engine.jit.call import Trace
from gpuop.engine.jit.tier import Family, Tier
from gpuop.engine.open_programs import OpenPrograms
from gpuop.fusion.iteration import kernels
from gpuop.fusion.plan import Plan, plan_for
from gpuop.fusion.program import Program
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Const
from gpuop.ir.target import Target
from gpuop.ir.text import content
from gpuop.ir.visit import expressions
from gpuop.passes.dynamic_extents import Opened, opened
from gpuop.runtime.base.background import later
from gpuop.runtime.devices import current

OFTEN = 3  # calls of one size until kernels are compiled for it
LEAST_EXTENT = 8  # smaller numbers of a kernel are hardly extents
FAMILIES_KEPT, SIZES_KEPT = 32, 128
PROBES = (
    (8, 32),
    (5, 1),
    (-2, 1),
)  # other sizes differ by a part of its extents, a multiple of that; the last one is larger
MOST_TEXTS = 12  # sizes with texts of their own, if these are more than half of all, until each size has
Shapes = Callable[
    [tuple[int, ...], tuple[int, ...]], tuple[int, ...]
]  # of an argument's shape, and that of the first call
ArrayTypes = tuple[tuple[str, tuple[int, ...], Any], ...]  # name, shape and dtype of each array argument


class Sizes:
    """The families of a pipeline."""

    def __init__(self) -> None:
        self._families: BoundedCache[Any, Family] = BoundedCache(FAMILIES_KEPT)

    def family(self, types: ArrayTypes, rest: Any, new: bool) -> Family | None:
        """The family of a call with such arrays, and with other arguments by content; `new` ones if there is none yet."""
        key = tuple((name, len(shape), dtype) for name, shape, dtype in types), rest
        if new:
            return self._families.find(key, lambda: Family(tuple(shape for _, shape, _ in types)))
        known: Family | None = self._families.get(key)
        return known


def tier_of(family: Family, types: ArrayTypes) -> Tier | None:
    """The tier of a size; None for the first one, and where no size shares kernels."""
    if config.specialize == "1":
        return None
    changed = frozenset(name for (name, shape, _), other in zip(types, family.first, strict=True) if shape != other)
    if config.specialize == "0":
        changed = frozenset(name for name, _, _ in types)
    if not changed:
        return None
    family.changing |= changed
    return Tier(family, family.changing, family.reason)


def with_numbers(family: Family, trace: Trace, other: Callable[[Shapes], Trace]) -> Trace:
    """The trace with open extents of a size, in whose kernels the numbers that Python has computed from extents are arguments.

    Args:
        other: returns such a trace for arguments of other shapes.
    """
    target = current().target
    if target not in family.checked:
        family.checked.add(target)
        began = family.began()
        known = set[str]() if began is None else set(_constants(began.program))
        if not known.issuperset(_constants(trace.program)):
            programs = family.programs[target] = OpenPrograms(target)
            programs.note(other(lambda shape, first: first).program)
    if target not in family.programs:
        return trace
    programs = family.programs[target]
    if programs.note(trace.program):
        for program in filter(None, (_probe(other, *each) for each in PROBES)):
            programs.note(program)
    return replace(trace, program=programs.with_arguments(trace.program), sized=trace.program, target=target)


def _probe(other: Callable[[Shapes], Trace], part: int, unit: int) -> Program | None:
    """The program of other arrays; None if the function does not take them: it may count on an extent that stays."""
    for shapes in (_probed, _probed_where_changed):
        try:
            return other(partial(shapes, part, unit)).program
        except Exception:  # noqa: BLE001 - of the user's function, and no call has these arrays
            continue
    return None


def _probed(part: int, unit: int, shape: tuple[int, ...], first: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that is likely to have kernels of the same form, with other numbers: words of 32 bits end where rows do, or not."""
    away = (-(-(n // part + (n > 2)) // unit) * unit for n in shape)
    each = zip(shape, away, strict=True)
    return tuple(n - far if far < n and n > 1 else n - (n > 1) * (n // part + (n > 2)) for n, far in each)


def _probed_where_changed(part: int, unit: int, shape: tuple[int, ...], first: tuple[int, ...]) -> tuple[int, ...]:
    """The same along the axes whose extents differ from those of the first call."""
    others = zip(_probed(part, unit, shape, first), shape, first, strict=True)
    return tuple(n if n == before else other for other, n, before in others)


def fits(tier: Tier, plan: Plan, target: Target) -> bool:
    """Return whether sizes share kernels of a plan; else the tier has the reason.

    Kernels that have no range of extents, or are out of it, are compiled for this size beside those that are shared. A family is
    refused open extents if its only kernels have no range, or if most sizes have kernels that those before had not.
    """
    family, texts, own = tier.family, set[str](), list[tuple[Kernel, Opened]]()
    for kernel in kernels(plan_for(plan, target)):
        general = opened(kernel, target) if kernel.dynamic else None
        if general is not None and general.kernel is None:
            own.append((kernel, general))
        else:
            texts.add(content(kernel) if general is None else general.key)
    family.sizes += 1
    family.others += not texts <= family.texts
    family.texts |= texts
    reasons = {kernel.name: general.reason for kernel, general in own}
    if own and not texts:
        tier.reason = "; ".join(f"of `{name}`, {reason}" for name, reason in reasons.items())
        if not all(general.outside for _, general in own):
            family.reason = tier.reason
    elif family.others > max(MOST_TEXTS, family.sizes // 2):
        family.reason = tier.reason = "its kernels differ from size to size"
    tier.apart = "; ".join(f"`{name}` for this size: {reason}" for name, reason in reasons.items())
    return not tier.reason


def _constants(what: Program) -> Iterator[str]:
    """The numbers of a program's kernels that may follow from extents."""
    for op in what.ops:
        if isinstance(op.kernel, Kernel):
            for e in expressions(op.kernel.body):
                if isinstance(e, Const) and not (e.type.kind in "iu" and abs(e.value) < LEAST_EXTENT):
                    yield e.text


# --- compiling behind the calls ---------------------------------------------------------------------------------------


def called(trace: Trace) -> None:
    """Count a call of a trace with open extents; the last of several has its size compiled."""
    tier = trace.tier
    if tier is None or tier.reason or tier.own is not None:
        return
    tier.calls += 1
    if tier.calls < OFTEN or config.specialize != "auto":
        return
    if tier.calls == OFTEN:
        tier.job = later(partial(copy_context().run, _compile_size, weakref.ref(trace)))
    if tier.job is not None:
        tier.job.give_turn()


def _compile_size(reference: Callable[[], Trace | None]) -> None:
    """Compile the plans of a trace for its size; from then on its calls run these."""
    trace = reference()
    tier = None if trace is None else trace.tier
    if trace is None or tier is None:
        return
    try:
        own = trace.of_size()
        for key in trace.plans:
            backend, pin, _, layouts = key
            plan = own.plans.find(key, partial(plan_on, backend, own.program, pin, own.optimize, dict(layouts)))
            if trace.prepared.get(key) is not None:
                planned = partial(own.plans.get, key, plan)
                own.prepared[key] = prepare(own.program, backend, pin, own.optimize, dict(layouts), planned)
    except Exception as failed:  # noqa: BLE001 - the kernels that there are go on, and `explain` says it
        tier.failed = str(failed)
    else:
        tier.own = own
