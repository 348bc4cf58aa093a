"""The trace of a pipeline with the calls that were prepared for it, which is what the cache of calls has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from gpuop.base.errors import GpuopError
from gpuop.base.records import dataclass
from gpuop.base.trace import HostSpan, observers
from gpuop.dsl.guards.guard import Snapshot
from gpuop.engine.jit.array_calls import DeviceCall, HostCall
from gpuop.engine.jit.call import PipelineCall, PreparedCall, Trace, check_out
from gpuop.engine.jit.sizes import called, fits
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.devices import current
from gpuop.runtime.tuning.chooser import choice_settings

MOST_READY = 4  # devices and queues that calls of one kind are prepared for


@dataclass(frozen=True, slots=True, eq=False)
class TracedCall:
    """The trace of calls with arrays of some types, and with some constants.

    Attributes:
        name: name of the pipeline.
        device: True if the arrays are on a device.
        captured: values that the function and its constants capture; or the reason for a trace at each call.
        ready: prepared calls, the last ones of some devices.
    """

    name: str
    trace: Trace
    device: bool
    captured: Snapshot | str
    ready: list[PreparedCall] = field(default_factory=list)

    def holds(self) -> bool:
        """Return whether all captured values are as they were, and no trace for this size has taken the place of this one."""
        tier = self.trace.tier
        if self.trace.target is not None and not self.trace.suits(current().target):
            return False
        if tier is not None and tier.own is not None and tier.own is not self.trace:
            return False
        return type(self.captured) is Snapshot and self.captured.watch.holds()

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """Run a call with these arrays."""
        if self.trace.tier is not None:
            called(self.trace)
        if self.ready and not observers:
            backend, pin, settings = current(), pinned(), choice_settings()
            for each in self.ready:
                if each.backend is backend and each.pin == pin and each.settings == settings:
                    result = each.result(inputs, out)
                    if result is not NotImplemented:
                        return result
        with HostSpan("prepare"):
            call = self.call(inputs, out)
        result = call.returned()
        prepared = call.prepared()
        if prepared is not None:
            self.ready[:] = [prepared, *(each for each in self.ready if each.backend is not prepared.backend)][
                :MOST_READY
            ]
        return result

    def call(self, arrays: Sequence[Any], out: Any) -> PipelineCall:
        """A call with these arrays, in the order of the parameters; results go to new arrays or to `out`."""
        outs = None if out is None else check_out(self.name, out, self.trace.kinds)
        return (DeviceCall if self.device else HostCall)(self.trace, arrays, current(), outs)


def open_call(traced: TracedCall, arrays: Sequence[Any], out: Any) -> PipelineCall | None:
    """The first call of a trace with open extents; None if its size has to have kernels of its own, and its tier the reason."""
    tier, target = traced.trace.tier, current().target
    assert tier is not None
    try:
        call = traced.call(arrays, out)
        return call if target.backend == "reference" or fits(tier, call.plan, target) else None
    except GpuopError as failed:  # a trace of this size raises it too, unless it is of open extents
        tier.reason = f"compiling for all sizes failed: {failed}"
    except Exception as failed:  # noqa: BLE001 - likewise; such kernels are not tried again
        tier.family.reason = tier.reason = f"compiling for all sizes failed: {failed}"
    return None
