"""What all tests share: a compile cache of the session's own, and a `device` to run on."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

import numpy as np
import pytest

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the session's
    os.environ["GPUOP_CACHE"] = tempfile.mkdtemp(prefix="gpuop-tests-")

import gpuop as gp
from gpuop.ir.kernel import Kernel
from gpuop.passes import lower
from gpuop.runtime import devices
from gpuop.runtime.reference import Reference

LOWERED = "lowered"
# What these test lies above the drivers, of which the best is enough; their kernels are of kinds that others test.
ONE_DRIVER = {
    f"tests.graphs.test_{name}" for name in ("algebra", "fusion", "host_operators", "reductions", "sensors", "slicing")
}


class Lowered(Reference):
    """Interprets what the passes make of a kernel: the form that is printed for devices."""

    name = LOWERED
    lowered = True

    def compile(self, kernel: Kernel) -> Kernel:
        return lower(kernel)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of generated text")


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["GPUOP_CACHE"], ignore_errors=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        found = [d.name for d in gp.devices()]
        if metafunc.module.__name__ in ONE_DRIVER:
            found = list(dict.fromkeys([found[0], "reference"]))
        metafunc.parametrize("device", [LOWERED, *reversed(found)], indirect=True)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Random data do not depend on the tests that ran before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tests.") and hasattr(module, "rng"):
            module.rng = np.random.default_rng(17)


@pytest.fixture
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the device in use: the reference on recorded and on lowered kernels, and every OpenCL device that works."""
    name: str = request.param
    if name == LOWERED:
        monkeypatch.setitem(devices._open, "reference", Lowered())
    with gp.use_device("reference" if name == LOWERED else name):
        yield name
