"""Random programs compute what NumPy, Python's integers and mpmath compute. `python -m tests.differential` runs many more."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.fusion.schedule_choice import scheduled
from gpuop.ir.kernel import Kernel
from gpuop.passes.schedules import methods as schedules
from gpuop.runtime import devices
from gpuop.runtime.reference.device import Reference
from tests import rotation
from tests.as_gpus import AS_A_GPU
from tests.conftest import Vectorized, Widened
from tests.fuzz.windowed import WindowedProgram
from tests.nightly import left_to_nightly, seeds
from tests.runtime.cuda_on_host.compiled import COMPILER
from tests.runtime.cuda_on_host.host_device import ON_HOST

from .failed_seeds import FAILED
from .kinds import KINDS, program
from .program import failure, script
from .schedules import PINS, Pinned
from .windows import in_windows, refusals

DEVICES = [d.name for d in gp.devices()]
AS_GPUS = [f"{name}{AS_A_GPU}" for name in DEVICES if name.startswith("opencl")] + [ON_HOST] * (COMPILER is not None)
SEEDS = {"reference": 6, DEVICES[0]: 2}  # compiling takes longer than interpreting
FEWEST = 1
EVERY_THIRD = 3  # of the kinds
MOST_SEEDS = 100
PLANTED = ("% of fields truncates", "a state is read late")


@pytest.mark.parametrize("on", [*DEVICES, *AS_GPUS])
@pytest.mark.parametrize("kind", KINDS)
def test_programs(kind: str, on: str) -> None:
    if on in AS_GPUS and [*KINDS].index(kind) % EVERY_THIRD != AS_GPUS.index(on) % EVERY_THIRD:
        left_to_nightly("what compiles for GPUs gets different kinds")
    for seed in seeds(1000 * [*DEVICES, *AS_GPUS].index(on), SEEDS.get(on, FEWEST)):
        agrees(kind, seed, on)


def agrees(kind: str, seed: int, on: str) -> None:
    recording = program(kind, seed)
    result = failure(recording, on)
    assert result is None, script(recording, on, result)


@pytest.mark.parametrize(("on", "kind", "seed"), FAILED)
def test_seeds_that_have_failed(on: str, kind: str, seed: int) -> None:
    """Each on the device that it failed on."""
    if not on.startswith("reference") and on.removesuffix(AS_A_GPU) not in DEVICES:
        pytest.skip(f"{on} is not here")
    agrees(kind, seed, on)


@pytest.mark.skipif(DEVICES[0] == "reference", reason="drivers run kernels of GPUs")
@pytest.mark.parametrize("kind", ["schedules", "filters"])
def test_schedules_of_gpus(kind: str) -> None:
    """On whatever device there is."""
    on = f"{DEVICES[0]} as a gpu"
    for seed in seeds(3000, 6):
        agrees(kind, seed, on)


@pytest.mark.parametrize("kind", KINDS)
def test_on_interpreted_gpus(kind: str) -> None:
    """With the schedules of GPUs however small the grid, and each access to memory checked."""
    many = 4 if kind in ("schedules", "filters") else 1
    for seed in seeds(5000, many):
        agrees(kind, seed, "reference:sm_90 as a gpu")
    for seed in seeds(6000, many):
        agrees(kind, seed, "reference:gpu as a gpu")


def test_every_schedule_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of such programs suit each method that is pinned, of CPUs or of GPUs; and each of its parameters is known."""
    parameters = {method.name: {*method.parameters} for method in schedules.METHODS}
    assert {name: {*value} for name, value in PINS.items()} == {schedules.PLAIN: set(), **parameters}
    left = {*parameters}

    class Choosing(Reference):
        """Runs nothing; looks at how kernels would be run."""

        def compile(self, kernel: Kernel) -> Kernel:
            chosen = scheduled(kernel, self.target)
            if chosen is not None and kernel.pin is not None and chosen[0].name == kernel.pin.method:
                assert {*chosen[1]} <= parameters[chosen[0].name]
                left.discard(chosen[0].name)
            return kernel

        def launch(self, *parts: object) -> None: ...

    forms = [Choosing(), Choosing()]
    for form, target in zip(forms, (Vectorized.target, Widened.target), strict=True):
        form.target = replace(target, device="gpu" if target is Widened.target else "cpu")
        form.limits = replace(form.limits, target=form.target)
    for seed, form in itertools.product(range(MOST_SEEDS), forms):
        recording = program("schedules", seed)
        monkeypatch.setitem(devices._open, "reference", form)
        if any(isinstance(step, Pinned) and step.method in left for step in recording.steps):
            recording.got("reference")
        if not left:
            return
    raise AssertionError(f"no kernel suits {left}")


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_found(mistake: str) -> None:
    """In a process of its own; `python -m tests.differential.plants` plants them all."""
    if mistake not in rotation.share(PLANTED, 1):
        left_to_nightly("the other mistake has its day")
    done = subprocess.run(
        [sys.executable, "-m", "tests.differential.plants", mistake], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_seed_is_a_program() -> None:
    for kind in KINDS:
        assert program(kind, 3).text() == program(kind, 3).text() != program(kind, 4).text()


@pytest.mark.parametrize("kind", KINDS)
def test_programs_compare_something(kind: str) -> None:
    values = [value for seed in range(8) for value in program(kind, seed).expected()]
    assert len(values) > 12
    assert sum(value.array.size for value in values) > 120
    assert len({value.dtype for value in values}) > 3
    assert sum(len(np.unique(value.array)) > 1 for value in values) > len(values) / 4


def test_programs_in_windows_are_equal_refused_or_found(monkeypatch: pytest.MonkeyPatch) -> None:
    equal, refused = in_windows(500, "reference"), in_windows(516, "reference")
    assert equal["checks"] > 1 and equal.keys() == {"checks"}
    assert refused["checks"] == 0 and refused.keys() == {"checks", "refused"}
    assert refusals([equal, refused, refused])[0].startswith("     2 refused: operator `step` ")
    monkeypatch.setattr(WindowedProgram, "in_windows", lambda value, *_: -value.pipeline(value.array, value.weights))
    result = in_windows(500, "reference")
    assert result["what"] == "values" and "points differ from the whole" in result["script"]
    compile(result["script"], "script", "exec")
