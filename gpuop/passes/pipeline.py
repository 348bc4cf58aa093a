"""The pipeline from a recorded kernel to a printable one: a list of passes, each in a file of its own, read top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

from gpuop.base.config import config
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.ir.analysis.stages import stages
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.target import Target
from gpuop.ir.text import show
from gpuop.ir.verify import Form, verifiable, verify
from gpuop.passes.assertions import drop_asserts
from gpuop.passes.bfloat16_bits import bfloat16_as_bits
from gpuop.passes.bounds_proof import Unproved, unproved
from gpuop.passes.coarsen import widen
from gpuop.passes.constant_nans import hide_constant_nans
from gpuop.passes.double_as_pairs import double_as_pairs
from gpuop.passes.fast_minmax import quick_extremes
from gpuop.passes.flat_points import flat_points
from gpuop.passes.half_rounding import half_as_float
from gpuop.passes.load_hoisting import load_ahead
from gpuop.passes.loop_fusion import join_loops
from gpuop.passes.loop_vectorization import loop_lanes
from gpuop.passes.lower_fields import lower_fields
from gpuop.passes.narrow_integers import narrow
from gpuop.passes.negations import hide_negations
from gpuop.passes.pack import pack
from gpuop.passes.regions.guard_domain import guard_domain
from gpuop.passes.resolve_target import resolve_target
from gpuop.passes.safe_division import define_division
from gpuop.passes.scaled_sums import scaled_sums
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.common.method import Method
from gpuop.passes.schedules.methods import schedule
from gpuop.passes.simplify import simplify
from gpuop.passes.sure_conversions import sure_conversions
from gpuop.passes.temporaries import inline_once
from gpuop.passes.unroll import drop_hints, unroll
from gpuop.passes.vectorize import vectorize
from gpuop.passes.wraparound import wrap_integers

Pass = Callable[[Kernel], Kernel]
Steps = tuple[tuple[Pass, Form], ...]
Lowering = tuple[Steps, tuple[Method, ...], tuple[object, ...]]

PIPELINE: Steps = (
    (resolve_target, Form.RECORDED),  # `_target` becomes constants, and one branch of each `_codegenIf` is left
    (bfloat16_as_bits, Form.RECORDED),  # the memory of bfloat16 is that of 16-bit integers
    (drop_asserts, Form.RECORDED),  # assertions go, unless `report_asserts` has made them part of the kernel
    (unroll, Form.RECORDED),  # loops that the user wants expanded
    (join_loops, Form.RECORDED),  # loop fusion: loops of fused operators with equal iterations
    (simplify, Form.RECORDED),  # common subexpressions, constants, dead code
    (drop_hints, Form.RECORDED),  # unroll hints go where they ask for too much text
    (narrow, Form.RECORDED),  # integers of few bits are computed in few bits, in vectors
    (pack, Form.RECORDED),  # SWAR on GPUs: four bytes of a word are computed at once
    (flat_points, Form.RECORDED),  # photos that are computed point by point are rows of elements, or of points
    (schedule, Form.RECORDED),  # the threads of points, and the memory of intermediates
    (loop_lanes, Form.RECORDED),  # loop vectorization on CPUs, in work-groups of one thread
    (quick_extremes, Form.RECORDED),  # minima and maxima of floats by one instruction, checked afterwards
    (widen, Form.RECORDED),  # thread coarsening of kernels that read and write own points alone
    (lower_fields, Form.LOWERED),  # tensors become scalars at flat offsets; borders become arithmetic
    (scaled_sums, Form.LOWERED),  # integers times fractions are summed up in integers where doubles are slow or missing
    (double_as_pairs, Form.LOWERED),  # pairs of floats compute doubles on devices without them
    (define_division, Form.LOWERED),  # integer division never traps
    (wrap_integers, Form.LOWERED),  # signed overflow wraps
    (hide_negations, Form.LOWERED),  # some compilers miscompile visible ones
    (hide_constant_nans, Form.LOWERED),  # the NVIDIA compiler takes them for equal numbers
    (half_as_float, Form.LOWERED),  # half computes in float and rounds
    (simplify, Form.LOWERED),
    (sure_conversions, Form.LOWERED),  # floats that ranges show to fit an integer are converted plainly
    (load_ahead, Form.LOWERED),  # iterations of an unrolled loop load first, so that loads overlap
    (vectorize, Form.LOWERED),  # lanes become vectors where the language has them
    (guard_domain, Form.LOWERED),  # threads are rounded up to whole groups; tail threads are predicated off
    (inline_once, Form.PRINTABLE),  # readable source
)


# reasons why schedules are dropped; empty where kept
_outside: BoundedCache[tuple[Kernel, Lowering], str] = BoundedCache(256)


@dataclass(frozen=True, slots=True)
class AfterPass:
    """The kernel after a pass."""

    name: str
    form: Form
    kernel: Kernel

    @property
    def title(self) -> str:
        return f"--- after {self.name} ({self.form.value})"

    def text(self) -> str:
        return f"{self.title}\n{show(self.kernel)}"


def lowering() -> Lowering:
    """The key of cached lowerings, besides the kernel and the target: the passes, the methods and the settings."""
    return PIPELINE, schedules.METHODS, config.generating


def pass_by_pass(kernel: Kernel, target: Target) -> Iterator[AfterPass]:
    """Run the pipeline. The kernel is verified before the first and after the last pass, or after each (`Config.verify`)."""
    how = lowering()
    first = _before_schedule(kernel, target, how)
    yield from first
    yield from _inside(first[-1].kernel, how)[0]


def unscheduled(kernel: Kernel, target: Target) -> Kernel:
    """The kernel as a schedule is chosen for it."""
    return _before_schedule(kernel, target, lowering())[-1].kernel


def unguarded(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with its schedule, before tail threads are predicated off: the form that predictions count."""
    how = lowering()
    ready = _before_schedule(kernel, target, how)[-1].kernel
    return _until_guards(ready, how)[-1].kernel


def not_inside(kernel: Kernel, target: Target) -> str:
    """Return the reason why the schedule of a kernel is dropped, as the end of a sentence; empty where it is kept, or none."""
    how = lowering()
    ready = _before_schedule(kernel, target, how)[-1].kernel
    if schedules.choice(ready) is None:
        return ""
    return _outside.find((ready, how), lambda: _inside(ready, how)[1])


def _inside(ready: Kernel, how: Lowering) -> tuple[tuple[AfterPass, ...], str]:
    """The kernels after the schedule and later passes; and the reason if it is dropped, as accesses are not proved to be inside."""
    rest = _from(schedule)
    plain = replace(ready, pin=Pin(schedules.PLAIN))
    has_schedule = schedules.choice(ready) is not None
    reason = _outside.get((ready, how)) if has_schedule else ""
    if reason:
        return tuple(_run(rest, plain)), reason
    first = _until_guards(ready, how)
    after = (*first, *_run(_from(guard_domain), first[-1].kernel if first else ready))
    if reason is not None:
        return after, reason
    missing, why = _unproved(after), ""
    if missing:
        parts = [tuple(_run(rest, part)) for part in stages(plain)]  # as one kernel many stages are huge
        users = {
            (each.does, each.memory.hint) for part in parts for each in _unproved(part)
        }  # of the user's body itself
        why = next((str(each) for each in missing if (each.does, each.memory.hint) not in users), "")
        if why:
            after = parts[0] if len(parts) == 1 else tuple(_run(rest, plain))
    _outside[ready, how] = why
    return after, why


def _unproved(kernels: tuple[AfterPass, ...]) -> list[Unproved]:
    """The accesses of a scheduled kernel that are not proved to be inside, in its last form without vectors."""
    return next((unproved(after.kernel) for after in kernels if after.name == load_ahead.__name__), [])


def _from(step: Pass) -> Steps:
    """The pipeline from a pass on; empty without this pass."""
    steps = [each for each, _ in PIPELINE]
    return PIPELINE[steps.index(step) :] if step in steps else ()


@lru_cache(maxsize=16)  # a kernel whose time is predicted is compiled soon, unless its plan is rejected
def _until_guards(ready: Kernel, how: Lowering) -> tuple[AfterPass, ...]:
    return tuple(_run(takewhile(lambda each: each[0] is not guard_domain, _from(schedule)), ready))


@lru_cache(maxsize=64)  # a kernel that is planned is lowered soon
def _before_schedule(kernel: Kernel, target: Target, how: Lowering) -> tuple[AfterPass, ...]:
    first = takewhile(lambda each: each[0] is not schedule, how[0])
    return tuple(_run(first, replace(kernel, target=target)))


def _run(steps: Iterable[tuple[Pass, Form]], kernel: Kernel) -> Iterator[AfterPass]:
    verified = None
    for step, form in steps:
        kernel = step(kernel)
        is_checked = config.verify or config.debug or (step, form) in (PIPELINE[0], PIPELINE[-1])
        # most passes leave most kernels as they are
        if is_checked and verified != (verified := verifiable(kernel, form)):
            verify(kernel, form, step.__name__)
        yield AfterPass(step.__name__, form, kernel)


def lower(kernel: Kernel, target: Target) -> Kernel:
    """The kernel after all passes."""
    for after in pass_by_pass(kernel, target):
        config.trace(5, after.text)
        kernel = after.kernel
    return kernel
