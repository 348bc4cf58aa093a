"""Fixtures of all tests: a compile cache of the session's own, and a `device` to run on."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple
from unittest import mock
from zlib import crc32

import numpy as np
import pytest

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the session's
    os.environ["GPUOP_CACHE"] = tempfile.mkdtemp(prefix="gpuop-tests-")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # each process that a test starts would compile all of gpuop
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(os.environ["GPUOP_CACHE"], "bytecode")
elif sys.pycache_prefix == os.path.join(os.environ["GPUOP_CACHE"], "bytecode"):
    sys.pycache_prefix, sys.dont_write_bytecode = (
        None,
        True,
    )  # a worker reads what is installed, as the first process does
os.environ["GPUOP_VERIFY"] = "1"  # what every pass leaves, here and in processes that tests start
os.environ.setdefault(
    "GPUOP_SPECIALIZE", "1"
)  # what a call compiles does not depend on the calls before; test_sizes.py has tiers

import gpuop as gp
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.passes.pipeline import lower
from gpuop.runtime import devices
from gpuop.runtime.cuda import nvrtc
from gpuop.runtime.opencl import device as opencl_device
from gpuop.runtime.profile import device_facts
from gpuop.runtime.reference.device import Reference
from gpuop.runtime.reference.gpu_threads import run_as_gpu
from tests import nightly, rotation
from tests.as_gpus import AS_A_GPU, as_a_gpu, used
from tests.runtime.cuda_on_host.compiled import COMPILER
from tests.runtime.cuda_on_host.host_device import ON_HOST

RANDOM: list[Any] = []  # modules of tests that have a `rng`
FRESH = np.random.default_rng(17).bit_generator.state
BUILD_LOG = 0x1183  # CL_PROGRAM_BUILD_LOG
LOWERED, GPU, VECTORIZED = "lowered", "sm_90", "vectorized"
# These tests are of what lies above the drivers: a case runs on one form a day, on most days the best driver or the interpreter.
# What kernels and plans they count is that of these; other forms take them at night.
ABOVE = (
    *(f"tests.{room}." for room in ("dsl", "engine", "fusion", "gradients", "lib", "ops", "scaleout", "transforms")),
    "tests.passes.test_joined_loops",
)
PLANS = (*ABOVE, "tests.errors.")
# In these files drivers count all the same.
DRIVERS_COUNT = {
    "tests.fusion.test_in_place",
    *(
        f"tests.engine.test_{name}"
        for name in ("counted_calls", "iterate", "pipeline_memory", "pipeline_views", "state")
    ),
}
PLANNED = (*ABOVE, "tests.conformance.", "tests.fuzz.")  # what is planned, on each target
CHEAP = ("tests.errors.", "tests.golden.test_golden", "tests.ir.")  # whose cases all run each day
FORMS = 1  # cases of a test that the best driver and other forms take on a day: at least a fourteenth
FEW = rotation.FORTNIGHT // 2  # cases of a test that the best driver and other forms take on alternating days
CASES = 2  # of a test of passes, fusion or text without devices, by day: at least a fourteenth; of other tests one
# Tests that take seconds, as those of other processes: half of them run each day, the others on the next.
SLOW = (
    *(f"tests/base/test_{name}.py" for name in ("damaged_files", "environment", "other_systems")),
    *(f"tests/runtime/test_{name}.py" for name in ("cache", "kept", "kept_open")),
    "tests/dsl/test_typing.py",
    "tests/engine/test_sizes.py::test_processes",
    *(
        f"tests/engine/test_numbers_of_extents.py::test_{name}"
        for name in ("labels_are_those_of_scipy", "devices_in_turns")
    ),
    "tests/examples/test_learned.py::test_deconvolution",
)
COMPILER_ROOMS = (
    "tests.codegen.",
    "tests.fusion.",
    "tests.ir.",
    "tests.passes.",
    "tests.runtime.test_checked",
    "tests.conformance.",
)


gc.set_threshold(10_000)  # what tests make lives a while, and is collected between files
MANY = 5  # collections of the second generation, of 100,000 new objects each
collections = [-1 - MANY]  # of the second generation at the last freeze

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
        messages = [line for line in log.splitlines() if "warning:" in line and not any(own in line for own in USERS)]
        assert not messages, f"{log}\n{built.source}"
        return built

    nvrtc._result, opencl_device.built = checked, strict


warnings_are_errors()
# A CPU that plans as a GPU takes three seconds for copies of 256 MB, which each process measures that explains a graph.
for measured in device_facts.COPIED, device_facts.COMPUTED:
    measured["gpu"] = measured["cpu"]  # type: ignore[index]


class Lowered(Reference):
    """Interprets what the passes make of a kernel: the form that is printed for devices."""

    name = LOWERED
    lowered = True
    whole = True  # so that states change in place here too

    def compile(self, kernel: Kernel) -> Kernel:
        return super().compile(kernel) if self.checked else lower(kernel, self.target)  # what is checked is recorded


class Widened(Lowered):
    """Threads that handle several points each, however small the grid; tests give its target the rest that GPUs have."""

    target = replace(Reference.target, architecture=90, widening="unrolled", least_threads=1)

    def run(self, kernel: Kernel, fields: dict[FieldParam, Any]) -> None:
        run_as_gpu(self.name, kernel, fields)


class Vectorized(Lowered):
    """The form of CPU kernels, whose lanes are vectors."""

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
    rotation.configure()


def pytest_report_header() -> list[str]:
    forms = "all" if nightly.is_nightly() else f"those of the day (GPUOP_TEST_DAY={os.environ[rotation.DAY]})"
    return [f"cases and forms of devices: {forms}", f"random programs: --seed {nightly.first_seed()}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let random programs compare, and leave half of the slow tests to the next day."""
    if not is_all(config):
        items[:] = [i for i in items if not i.nodeid.startswith(SLOW) or rotation.is_day_of(i.nodeid)]
    for item in items:
        if item.nodeid.startswith(("tests/fuzz/", "tests/differential/", "tests/ir/test_integer_rules")):
            item.add_marker(pytest.mark.filterwarnings("ignore::gpuop.base.errors.KernelWarning"))


class Case(NamedTuple):
    """A test with parameters, which may run.

    Attributes:
        id: of the test, as pytest prints it.
        device: the name of the device that it is given, if it is.
    """

    id: str
    device: str | None

    @property
    def name(self) -> str:
        """A test and its parameters, without the device."""
        test, _, parameters = self.id.partition("[")
        return f"{test}[{f'-{parameters[:-1]}-'.replace(f'-{self.device}-', '-', 1)}]"


def chosen(metafunc: pytest.Metafunc, cases: list[Case]) -> set[Case]:
    """The cases of a test that run today; the others run on other days and at night."""
    module, daily = metafunc.module.__name__, metafunc.definition.get_closest_marker("daily") is not None
    forms = [*dict.fromkeys(case.device for case in cases if case.device)]
    if gp.devices()[0].name not in forms:
        every = daily or module.startswith(CHEAP)
        alone = metafunc.definition.get_closest_marker("in_turn") or not module.startswith(COMPILER_ROOMS)
        ids = rotation.share((case.id for case in cases), len(cases) if every else 1 if alone else CASES)
        return {case for case in cases if case.id in ids}
    by_form = {(case.name, case.device): case for case in cases}
    names, most = {case.name for case in cases}, len(cases) if daily else FORMS
    best, week = week_of(module, forms)
    on_best, others = turns_of(metafunc.definition.nodeid, names, best, week, most)
    values = {(name, best) for name in on_best}
    for name in others:
        form = rotation.form_of(name, week)
        plans = module.startswith(PLANS) and form.endswith(AS_A_GPU)
        values.add((name, form if not plans or is_for_gpus(by_form[name, form].id, form) else gp.devices()[0].name))
    return {case for key, case in by_form.items() if key in values}


def turns_of(
    function: str, names: set[str], best: str, week: list[list[str]], most: int = FORMS
) -> tuple[set[str], set[str]]:
    """The cases that the best driver takes today, and those that another form takes: of few cases, one or the other."""
    if best and week and most == FORMS and len(names) <= FEW:
        turn = rotation.share(names, most, ahead=-(rotation.day() // 2))  # the next case is two days later
        return (turn, set()) if rotation.is_turn(function, 2) else (set(), turn)
    return (
        rotation.share(names, most) if best else set(),
        rotation.share(names, most, ahead=1) if week else set(),
    )


def is_for_gpus(test: str, form: str) -> bool:
    """Return whether a case of graphs or the library is one of the quarter that drivers plan as for GPUs by day."""
    turn = crc32(test.replace(form, "").encode()) % 12
    return turn < 2 if form == f"{gp.devices()[0].name}{AS_A_GPU}" else turn == 11


def week_of(module: str, forms: list[str]) -> tuple[str, list[list[str]]]:
    """The form that takes cases each day, if any, and for each day of a week those of which one does."""
    best = gp.devices()[0].name
    others = sorted((form for form in forms if form != best), key=lambda form: form != "reference")
    if best != "reference" and module.startswith(PLANS) and "reference" in forms:
        second = [form for form in others if is_driver(form) and not form.endswith(AS_A_GPU) and form != ON_HOST]
        gpus = [form for form in others if form.endswith(AS_A_GPU)] or ["reference"]
        if module in DRIVERS_COUNT:
            return best, [["reference"], second or ["reference"], gpus]
        second = second if module.startswith(("tests.lib.", "tests.ops.")) else []
        return "", [[best], ["reference"], second or ["reference"], ["reference"], [best], ["reference"], gpus]
    alone = rotation.WEEK - 1
    return best, [[form] for form in others[:alone]] + [others[alone:]] * (len(others) > alone)


def pytest_collection_finish() -> None:
    RANDOM[:] = [module for name, module in sys.modules.items() if name.startswith("tests.") and hasattr(module, "rng")]


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["GPUOP_CACHE"], ignore_errors=True)


@cache
def all_forms() -> tuple[list[str], list[str]]:
    """The names of devices and interpreters, and of drivers that plan as for a GPU."""
    drivers = [d.name for d in gp.devices()]
    as_gpus = [f"{name}{AS_A_GPU}" for name in drivers if name.startswith("opencl")] + [ON_HOST] * bool(COMPILER)
    return [*reversed(drivers), *INTERPRETERS], as_gpus


def is_all(config: pytest.Config) -> bool:
    """Return whether all cases run: at night, and of tests that are asked for by name."""
    return nightly.is_nightly() or bool(config.option.keyword) or any("::" in name for name in config.args)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Give tests their devices, and leave cases to other days and to the night, unless tests are asked for by name."""
    if "device" in metafunc.fixturenames:
        names, as_gpus = all_forms()
        more = as_gpus if metafunc.module.__name__.startswith(PLANNED) else []
        metafunc.parametrize("device", [*names, *more], indirect=True)
    yield
    if is_all(metafunc.config):
        return
    calls = metafunc._calls  # before items are made of them: these would be six times as many
    test = metafunc.definition.nodeid
    cases = [Case(f"{test}[{call.id}]", call.params.get("device")) for call in calls]
    if cases:
        today = chosen(metafunc, cases)
        calls[:] = [call for call, case in zip(calls, cases, strict=True) if case in today]


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    """Garbage is looked for in what tests of some files make: what is there before, caches above all, is half a second's worth."""
    if gc.get_stats()[1]["collections"] - collections[0] > MANY:
        gc.collect()
        gc.freeze()
        collections[0] = gc.get_stats()[1]["collections"]


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Random data do not depend on the tests that ran before."""
    for module in RANDOM:
        if module.rng.bit_generator.state != FRESH:
            module.rng = np.random.default_rng(17)


@contextmanager
def in_use(name: str) -> Iterator[str]:
    """Use a device or a form of one, which other threads find by its name."""
    opener = INTERPRETERS.get(name)
    form = opener and opener()
    with mock.patch.dict(devices._open, {"reference": form, name: form} if form else {}), used(name, opener):
        yield name


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the device in use: the reference on kernels and on what is made of them, and every OpenCL device."""
    with in_use(request.param) as name:
        yield name
