"""The plans that calls of pipelines run, also without `Prepared.run`."""

from __future__ import annotations

from gpuop.engine.jit.prepared_call import PreparedHostCall
from gpuop.runtime.execute import Prepared


def plans_that_run(monkeypatch) -> list[Prepared]:
    """A list that gains the plan of each call with arrays of the host."""
    ran, first, later = [], Prepared.run, PreparedHostCall.result

    def run(plan, *args):
        ran.append(plan)
        return first(plan, *args)

    def result(call, *args):
        ran.extend([call.plan()] * call.listed)
        return later(call, *args)

    monkeypatch.setattr(Prepared, "run", run)
    monkeypatch.setattr(PreparedHostCall, "result", result)
    return ran
