"""What all tests share: a compile cache of the session's own, and a `device` to run on."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np
import pytest

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the session's
    os.environ["GPUOP_CACHE"] = tempfile.mkdtemp(prefix="gpuop-tests-")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # each process that a test starts would compile all of gpuop
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(os.environ["GPUOP_CACHE"], "bytecode")
os.environ["GPUOP_VERIFY"] = "1"  # what every pass leaves, here and in processes that tests start

import gpuop as gp
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.passes import lower
from gpuop.runtime import devices
from gpuop.runtime.cuda import nvrtc
from gpuop.runtime.opencl import opencl_device
from gpuop.runtime.reference.gpu_threads import run_as_gpu
from gpuop.runtime.reference.reference_device import Reference
from tests import nightly
from tests.as_gpus import AS_A_GPU, as_a_gpu, used
from tests.cuda_on_host.compiled import COMPILER
from tests.cuda_on_host.host_device import ON_HOST

RANDOM: list[Any] = []  # modules of tests that have a `rng`
FRESH = np.random.default_rng(17).bit_generator.state
BUILD_LOG = 0x1183  # CL_PROGRAM_BUILD_LOG
LOWERED, GPU, VECTORIZED = "lowered", "sm_90", "vectorized"
# What most tests of graphs test lies above the drivers, of which the best is enough; in these files drivers count.
DRIVERS_COUNT = {
    f"tests.graphs.test_{name}" for name in ("in_place", "iterate", "pipeline_memory", "pipeline_views", "state")
}
# made of what is the same everywhere, and long to compile
ONE_DRIVER = {
    f"tests.conformance.test_{name}"
    for name in ("complex", "limits", "orders", "outputs", "sample", "several", "switch", "windows")
}
MANY_CASES = 3  # of one test, which differ little
PLANNED = tuple(
    f"tests.{name}." for name in ("conformance", "fuzz", "graphs", "library")
)  # what is planned, on each target
AS_GPUS = 12  # cases by turns, of which a driver that plans as for a GPU takes one or two


gc.set_threshold(10_000)  # what tests make lives a while, and is collected before each file

# What the user's program is about: hints that are not followed, and conditions that it makes constant.
USERS = ("loop not unrolled", "with constant operand")


def warnings_are_errors() -> None:
    """Compilers may not warn of any text that a test has them compile."""
    result, build = nvrtc._result, opencl_device.built

    def checked(library, program, what):
        log = result(library, program, "ProgramLog").decode()
        assert what == "ProgramLog" or "warning #" not in log, log
        return result(library, program, what)

    def strict(device, program, options):
        built = build(device, program, [option for option in options if option != "-w"])
        log = built.get_build_info(device, BUILD_LOG)
        told = [line for line in log.splitlines() if "warning:" in line and not any(own in line for own in USERS)]
        assert not told, f"{log}\n{built.source}"
        return built

    nvrtc._result, opencl_device.built = checked, strict


warnings_are_errors()


class Lowered(Reference):
    """Interprets what the passes make of a kernel: the form that is printed for devices."""

    name = LOWERED
    lowered = True
    whole = True  # so that states change in place here too

    def compile(self, kernel: Kernel) -> Kernel:
        return lower(kernel, self.target)


class Widened(Lowered):
    """Threads that handle several points each, however small the grid; tests give its target the rest that GPUs have."""

    target = replace(Reference.target, architecture=90, widening="unrolled", least_threads=1)

    def run(self, kernel: Kernel, fields: dict[FieldParam, Any]) -> None:
        run_as_gpu(self.name, kernel, fields)


class Vectorized(Lowered):
    """As a CPU's kernels, whose lanes are vectors."""

    target = replace(Reference.target, widening="vector", simd_width=4, least_threads=1)


INTERPRETERS: dict[str, Any] = {LOWERED: Lowered, GPU: partial(as_a_gpu, "reference:sm_90"), VECTORIZED: Vectorized}


def is_driver(device: str) -> bool:
    return device not in ("reference", *INTERPRETERS)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of generated text")
    parser.addoption("--all", action="store_true", help="every form and device of every case, as the nightly runs")
    parser.addoption("--seed", help="where the seeds of random programs begin: a number, or `fresh`, which draws one")


def pytest_configure(config: pytest.Config) -> None:
    nightly.configure(config)


def pytest_report_header() -> str:
    return f"random programs: --seed {nightly.first_seed()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with many cases, devices that others stand for take every other one. Random programs compare as they like."""
    for item in items:
        if item.nodeid.startswith(("tests/fuzz/", "tests/differential/", "tests/ir/test_integer_rules")):
            item.add_marker(pytest.mark.filterwarnings("ignore::gpuop.errors.KernelWarning"))
    if nightly.is_nightly():
        return
    cases: dict[Any, list[pytest.Item]] = {}
    for item in items:
        name = getattr(item, "callspec", None) and item.callspec.params.get("device")  # type: ignore[attr-defined]
        if name:
            cases.setdefault((item.function, name), []).append(item)  # type: ignore[attr-defined]
    left: set[pytest.Item] = set()
    for (function, name), several in cases.items():
        if name.endswith(AS_A_GPU) or name == ON_HOST:
            left.update(item for item in several if not is_in_turn(item, name))
            continue
        first = left_out_from(function.__module__, name)
        if first is not None and len(several) >= MANY_CASES:
            left.update(several[first::2])
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def is_in_turn(item: pytest.Item, name: str) -> bool:
    """Whether a form that compiles a GPU's plans takes a case: each takes some of nearly every file, and no two the same."""
    turn = crc32(item.nodeid.replace(name, "").encode()) % AS_GPUS
    if name == ON_HOST:
        return turn == AS_GPUS - 2
    return turn < 2 if name == f"{gp.devices()[0].name}{AS_A_GPU}" else turn == AS_GPUS - 1


def left_out_from(module: str, name: str) -> int | None:
    """The first of every two cases that a device leaves to others; None where it takes all.

    What lies above drivers runs on the reference too; a kernel's vectors are interpreted for one case, and PoCL's for the other.
    """
    if module.startswith("tests.graphs.") and module not in DRIVERS_COUNT:
        return 1 if is_driver(name) else None
    if is_driver(name) and name != gp.devices()[0].name:
        return 0
    return 1 if name == VECTORIZED else None


def pytest_collection_finish() -> None:
    RANDOM[:] = [module for name, module in sys.modules.items() if name.startswith("tests.") and hasattr(module, "rng")]


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["GPUOP_CACHE"], ignore_errors=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        found = [d.name for d in gp.devices()]
        above = metafunc.module.__name__.startswith("tests.graphs.")  # what happens to a kernel is tested elsewhere
        few = (above and metafunc.module.__name__ not in DRIVERS_COUNT) or metafunc.module.__name__ in ONE_DRIVER
        if few and not nightly.is_nightly():
            found = list(dict.fromkeys([found[0], "reference"]))
        library = metafunc.module.__name__.startswith("tests.library.")
        forms = [LOWERED] if (above or library) and not nightly.is_nightly() else [*INTERPRETERS]
        if found[0] != "reference" and LOWERED in forms and not nightly.is_nightly():  # which a driver runs
            forms.remove(LOWERED)
        drivers = [name for name in found if name.startswith("opencl")]
        on_host = COMPILER and (nightly.is_nightly() or metafunc.module.__name__.startswith("tests.conformance."))
        as_gpus = [*(f"{name}{AS_A_GPU}" for name in drivers), *[ON_HOST] * bool(on_host)]
        as_gpus = as_gpus if metafunc.module.__name__.startswith(PLANNED) else []
        metafunc.parametrize("device", [*forms, *as_gpus, *reversed(found)], indirect=True)


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    """Garbage is looked for in what a file's tests make: what is there before, caches above all, is half a second's worth."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Random data do not depend on the tests that ran before."""
    for module in RANDOM:
        if module.rng.bit_generator.state != FRESH:
            module.rng = np.random.default_rng(17)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the device in use: the reference on kernels and on what is made of them, and every OpenCL device."""
    name: str = request.param
    form = {"reference": INTERPRETERS[name]()} if name in INTERPRETERS else {}
    with mock.patch.dict(devices._open, form), used("reference" if form else name):
        yield name
