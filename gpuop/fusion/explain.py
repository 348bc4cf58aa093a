"""A plan as text for people: what was fused, what was left apart and why, and the bytes that move."""

from __future__ import annotations

from gpuop.fusion.graph import Op
from gpuop.fusion.plan import Plan, Step


def explain(plan: Plan) -> str:
    """Per kernel what was fused into it; per pair left apart, why."""
    lines = [f"{_count(len(plan.steps), 'kernel')} for {_count(len(plan.program.ops), 'operator')}"]
    for number, step in enumerate(plan.steps, 1):
        lines += _kernel(plan, number, step)
    if plan.apart:
        lines.append("left apart:")
        lines += [
            f"  {apart.producer.kernel.name} → {apart.consumer.kernel.name}: {apart.reason}" for apart in plan.apart
        ]
    return "\n".join(lines)


def _kernel(plan: Plan, number: int, step: Step) -> list[str]:
    read = sum(plan.program.types[v].nbytes for v in step.inputs)
    written = sum(plan.program.types[v].nbytes for v in step.outputs)
    head = f"kernel {number}: {step.kernel.name} on {step.kernel.domain} threads; reads {size(read)}, writes {size(written)}"
    how = "fused through registers" if len(step.ops) > 1 else "one operator"
    return [head, f"  {how}: " + ", ".join(map(_where, step.ops))]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _where(op: Op) -> str:
    return f"{op.kernel.name} ({op.loc})" if op.loc is not None else op.kernel.name


def size(nbytes: int) -> str:
    """A byte count for people."""
    amount = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} GiB"
