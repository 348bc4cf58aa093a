"""`gpuop devices`: the devices, and those that were skipped, with reasons."""

from __future__ import annotations

from collections.abc import Iterator

from gpuop.base.config import config
from gpuop.fusion.report.workload import NEIGHBOUR, OPERATION, VECTOR
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.devices import examined, open_device
from gpuop.runtime.opencl import icd
from gpuop.runtime.profile.device_facts import disturbed, facts_of

FUNCTIONS = ("add", "div", "sqrt", "exp", "log", "pow", "sin")  # functions that `gpuop devices --measure` times


def list_devices(measure: bool = False) -> None:
    """Print the devices, and those that were skipped, with reasons; GPUOP_DEVICE, or else the first that works, is the default.

    Args:
        measure: measure and print their speed, which predictions use.
    """
    devices = examined()
    working = [device for device in devices if device.problem is None]
    choice = [device for device in working if config.device in (device.name, *device.aliases)]
    default = (choice if config.device else working)[:1]
    for device in devices:
        print(
            f"{'*' if device in default else ' '} {' = '.join((device.name, *device.aliases)):28} {device.description}"
        )
        if device.problem is not None:
            print(f"    skipped: {device.problem}")
        elif measure:
            print(*(f"    {line}" for line in _measured(open_device(device.name))), sep="\n")
    if config.device and not choice:
        print(f"GPUOP_DEVICE={config.device} names none of the devices that work")
    drivers = icd.find()
    if drivers:
        print("OpenCL drivers:")
    for driver in drivers:
        error = icd.load_error(driver)
        print(f"  {driver.library} ({driver.origin})" + (f"\n    cannot be loaded: {error}" if error else ""))


def _measured(backend: Backend) -> Iterator[str]:
    """Measure the speed of a device; yield lines."""
    facts = facts_of(backend, anew=True)
    if facts is None:
        yield "nothing is predicted of it"
        return
    copies = (
        f"{nbytes / seconds / 1e9:.3g} GB/s in copies of {nbytes / 2**20:.3g} MiB" for nbytes, seconds in facts.copies
    )
    yield f"{', '.join(copies)}; a launch takes {1e6 * facts.launch:.3g} µs"
    one = facts.seconds(OPERATION)
    near = facts.seconds(NEIGHBOUR) / one
    yield f"{1e-9 / one:.3g} billion operations on float32 a second; reading a neighbour takes as long as {near:.3g} of them"
    if backend.target.device == "cpu":
        yield f"{1e-9 / facts.seconds(VECTOR):.3g} billion in vectors"
    for dtype in ("float32", "float64"):
        calls = (f"{name} {facts.seconds(f'{name} {dtype}') / one:.3g}" for name in FUNCTIONS)
        yield f"of {dtype}: {', '.join(calls)}"
    if disturbed(backend):
        yield "other programs disturbed this: it is measured again when it is next needed"
