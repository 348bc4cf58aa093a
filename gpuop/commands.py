"""What the command line does: lists devices, prints text and IR, runs examples, writes bundles."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuop.bundles.architectures import holes
from gpuop.bundles.bundle import save_bundle, save_open_bundle
from gpuop.codegen.generate import target_named
from gpuop.config import config
from gpuop.errors import SemanticError
from gpuop.fusion.report.workload import NEIGHBOUR, OPERATION
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.ir.text import show
from gpuop.named_functions import applied, recorded
from gpuop.passes import PIPELINE, pass_by_pass
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.device_facts import disturbed, facts_of
from gpuop.runtime.devices import current, examined, open_device, use_device
from gpuop.runtime.opencl import icd
from gpuop.texts import kernels_for, plan_for_text, source

FUNCTIONS = ("add", "div", "sqrt", "exp", "log", "pow", "sin")  # whose times `gpuop devices --measure` prints


def list_devices(measure: bool = False) -> None:
    """Print what was found, what was skipped and why; the default is what GPUOP_DEVICE names, or the first that works.

    Args:
        measure: measure how fast they are, which predictions are made by, and print that too.
    """
    found = examined()
    working = [device for device in found if device.problem is None]
    wanted = [device for device in working if config.device in (device.name, *device.aliases)]
    default = (wanted if config.device else working)[:1]
    for device in found:
        print(
            f"{'*' if device in default else ' '} {' = '.join((device.name, *device.aliases)):28} {device.description}"
        )
        if device.problem is not None:
            print(f"    skipped: {device.problem}")
        elif measure:
            print(*(f"    {line}" for line in _measured(open_device(device.name))), sep="\n")
    if config.device and not wanted:
        print(f"GPUOP_DEVICE={config.device} names none of the devices that work")
    drivers = icd.find()
    if drivers:
        print("OpenCL drivers:")
    for driver in drivers:
        error = icd.load_error(driver)
        print(f"  {driver.library} ({driver.origin})" + (f"\n    cannot be loaded: {error}" if error else ""))


def _measured(backend: Backend) -> Iterator[str]:
    """What a device does in a second, measured now."""
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
    yield f"{1e-9 / one:.3g} billion operations on float32 in a second; to read a neighbour takes {near:.3g} of them"
    for dtype in ("float32", "float64"):
        calls = (f"{name} {facts.seconds(f'{name} {dtype}') / one:.3g}" for name in FUNCTIONS)
        yield f"of {dtype}: {', '.join(calls)}"
    if disturbed(backend):
        yield "other programs disturbed this: it is measured again when it is next needed"


def print_source(where: str, types: Sequence[str], target: str | None, form: str) -> None:
    """Print the generated text of what a function gives, or what compilers make of it."""
    _, _, results = applied(where, types)
    print(source(results if isinstance(results, tuple) else (results,), target, form), end="")


def print_passes(where: str, types: Sequence[str], target: str | None, after: str | None) -> None:
    """Print the IR of a function's kernels after each pass, or after those of one name."""
    names = dict.fromkeys(step.__name__ for step, _ in PIPELINE)
    if after is not None and after not in names:
        raise SemanticError(f"there is no pass {after!r}; one of {', '.join(names)}")
    _, _, results = applied(where, types)
    fields = results if isinstance(results, tuple) else (results,)
    chosen, kernels = kernels_for(plan_for_text(fields, target), target, current())
    for n, kernel in enumerate(kernels):
        print("\n" * (n > 0) + "\n".join(_passes(kernel, chosen, after)))


def _passes(kernel: Kernel, target: Target, after: str | None) -> Iterator[str]:
    before = show(kernel)
    if after is None:
        yield f"--- recorded\n{before}"
    for left in pass_by_pass(kernel, target):
        if after is None:
            text = show(left.kernel)
            yield f"{left.title}: nothing changed" if text == before else left.text()
            before = text
        elif left.name == after:
            yield left.text()


def compile_bundle(where: str, types: Sequence[str], targets: str, output: str) -> None:
    """Write a bundle of what a function gives, for several targets."""
    named = [target_named(t.strip()) for t in targets.split(",")]
    name, count, record = recorded(where, types)
    sizes = ""
    if count:
        least, most = save_open_bundle(output, name, count, record, named)
        sizes = f" for extents from {least} to {most}"
    else:
        save_bundle(output, name, *record(()), named)
    cubins = {target.architecture for target in named if target.architecture}
    cuda = f" (CUDA from sm_{min(cubins)} on)" if cubins else ""
    print(f"{output}: {name}{sizes} for {', '.join(map(str, named))}{cuda}, {Path(output).stat().st_size} bytes")
    for hole in holes(cubins):
        print(f"gpuop: warning: {hole}", file=sys.stderr)


def run_example(example: str, arguments: Sequence[str], device: str | None) -> None:
    """Run a file, or a module, as Python does, on a device."""
    path = Path(example)
    if not path.exists() and (path.suffix == ".py" or importlib.util.find_spec(example) is None):
        raise SemanticError(f"there is no file or module {example}; give a path, as `gpuop run examples/unsharp.py`")
    sys.argv = [example, *arguments]
    if path.exists():
        sys.path.insert(0, str(path.parent.resolve()))

    def run() -> None:
        if path.exists():
            runpy.run_path(example, run_name="__main__")
        else:
            runpy.run_module(example, run_name="__main__", alter_sys=True)

    if device is None:
        run()
        return
    with use_device(device):
        run()
