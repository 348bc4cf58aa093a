"""Plans as text: `explain`, and the source of their kernels for a device or a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuop.codegen.generate import generate, target_named
from gpuop.dsl.fields.field import Field
from gpuop.engine.evaluate import plan_ahead, plan_on
from gpuop.engine.show.html import SourceText
from gpuop.fusion.iteration import kernels
from gpuop.fusion.plan import Plan, plan_for
from gpuop.fusion.program import program
from gpuop.fusion.report.explain import Repacked, explain
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.devices import current
from gpuop.runtime.kernel_forms import kernel_form
from gpuop.runtime.profile.device_facts import facts_of


def explained(
    what: Plan,
    backend: Backend,
    format: str,
    labels: Mapping[int, str] | None = None,
    again: str = "",
    repacked: Repacked = ((), ()),
    tier: str = "",
) -> str:
    """The text of `explain` for a plan on a device; arguments as of `report.explain`."""
    target, device = backend.target, facts_of(backend)
    return explain(plan_for(what, target), format, labels, target, device, again, repacked, tier)


def kernels_for(what: Plan, target: str | None, backend: Backend) -> tuple[Target, list[Kernel]]:
    """A target by its name, or that of the device for None; and the kernels of a plan for it."""
    chosen = backend.target if target is None else target_named(target)
    if chosen.backend == "reference":
        chosen = target_named("opencl")
    return chosen, list(kernels(plan_for(what, chosen)))


def source_of(what: Plan, target: str | None, form: str, backend: Backend) -> str:
    """Every kernel of a plan, for a target or a device, in a form of FORMS."""
    chosen, each = kernels_for(what, target, backend)
    return SourceText(
        "\n".join(kernel_form(generate(kernel, chosen), form, chosen, None if target else backend) for kernel in each)
    )


def source(fields: Sequence[Field], target: str | None, form: str = "text") -> str:
    """The source of the kernels of fields, for a target, or the device in use for None."""
    return source_of(plan_for_text(fields, target), target, form, current())


def plan_for_text(fields: Sequence[Field], target: str | None) -> Plan:
    """The plan of fields for a target by its name, or the device in use for None."""
    what = program([f.node for f in fields])
    return plan_on(current(), what, pinned()) if target is None else plan_ahead(what, target, pinned())
