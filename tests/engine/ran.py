"""The plans that calls of pipelines run, also without `Prepared.run`."""

from __future__ import annotations

from gpuop.engine.jit.prepared_call import PreparedHostCall
from gpuop.engine.jit.prepared_staged_call import PreparedStagedCall
from gpuop.runtime.execute import Prepared


def plans_that_run(monkeypatch) -> list[Prepared]:
    """A list that gains the plan of each call with arrays of the host."""
    ran, first = [], Prepared.run

    def run(plan, *args):
        ran.append(plan)
        return first(plan, *args)

    def noting(later, is_listed):
        def result(call, *args):
            ran.extend([call.plan()] * is_listed(call))
            return later(call, *args)

        return result

    monkeypatch.setattr(Prepared, "run", run)
    monkeypatch.setattr(PreparedHostCall, "result", noting(PreparedHostCall.result, lambda call: call.listed))
    monkeypatch.setattr(PreparedStagedCall, "result", noting(PreparedStagedCall.result, lambda call: True))
    return ran
