"""Speeds of a device: measured once, stored on disk, measured again where the file is damaged or runs disagree."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import gpuop as gp
from gpuop.base.cache import atomic_files, blob_store
from gpuop.base.config import config
from gpuop.ir.device_model import DeviceFacts
from gpuop.ir.kernel import Kernel
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.profile import device_facts
from gpuop.runtime.profile.device_facts import disturbed, facts_of
from tests.process import ROOT

CARDS = [device.name for device in gp.devices() if device.name != "reference"]
SMALL = {"cpu": 1024, "gpu": 1024}
# Measures in a process of its own, and prints what was found and how many kernels were timed.
MEASURES = """
import sys, gpuop as gp
from gpuop.runtime.profile import device_facts as found
found.COPIED, found.COMPUTED, found.AGREEING = {d: (512, 1024) for d in ("cpu", "gpu")}, {"cpu": 1024, "gpu": 1024}, 1e9
timed, seconds = [], found._seconds
found._seconds = lambda backend, kernels: (timed.extend(kernels), seconds(backend, kernels))[1]
facts = found.facts_of(gp.device(sys.argv[1]))
print(facts.launch, facts.copies, len(timed))
"""


@pytest.fixture
def forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and small kernels to measure."""
    monkeypatch.setattr(config, "cache", tmp_path)
    monkeypatch.setattr(device_facts, "_facts", {})
    monkeypatch.setattr(device_facts, "COPIED", {"cpu": (512, 1024), "gpu": (512, 1024)})
    monkeypatch.setattr(device_facts, "COMPUTED", SMALL)
    return tmp_path


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The kernels that are timed; times are those of a device that takes 1, 2, 3 … seconds for them, undisturbed."""
    kernels: list[Kernel] = []

    def seconds(backend: Backend, programs: Sequence[Kernel]) -> tuple[list[float], bool]:
        kernels.extend(programs)
        return [float(n) for n in range(1, len(programs) + 1)], True

    monkeypatch.setattr(device_facts, "_seconds", seconds)
    return kernels


def test_the_reference_has_none() -> None:
    assert facts_of(gp.device("reference")) is None


@pytest.mark.parametrize("which", CARDS)
def test_a_device_is_measured(which: str, forgotten: Path) -> None:
    facts = facts_of(gp.device(which))
    assert facts is not None
    names = ["operation", "neighbour", "atomic", "exp float32", "pown float32", "atan2 float32"]
    assert all(0 < facts.seconds(name) < 1 for name in names)
    assert 0 < facts.launch < 1
    assert [size for size, _ in facts.copies] == [4096, 8192]


@pytest.mark.parametrize("which", CARDS)
def test_it_is_measured_once_and_kept(
    which: str, forgotten: Path, timed: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = gp.device(which)
    facts = facts_of(backend)
    assert facts is not None
    assert (facts.launch, facts.copies) == (1.0, ((4096, 1.0), (8192, 2.0)))
    assert len(timed) == 5
    facts.seconds("exp float32")
    assert len(timed) == 6
    for _ in range(2):
        again = facts_of(backend)
        assert again is not None
        assert (again.launch, again.copies) == (facts.launch, facts.copies)
        assert again.seconds("exp float32") == facts.seconds("exp float32")
        assert len(timed) == 6
        monkeypatch.setattr(device_facts, "_facts", {})  # as in another process
    anew = facts_of(backend, anew=True)
    assert anew is not None
    assert len(timed) == 11
    for _ in range(2):
        anew.seconds("exp float32")
        assert len(timed) == 12
    assert not disturbed(backend)


@pytest.mark.parametrize(
    "stored",
    [
        "", "{", "[]", "null", '{"seconds": 1.0}',
        '{"bandwidth": 1e9, "operations": 1e9, "single_operations": 1e9, "launch": 1e-6}',
        '{"launch": -1.0, "copies": [[8, 1.0]], "operation": 1.0, "neighbour": 1.0}',
        '{"launch": NaN, "copies": [[8, 1.0]], "operation": 1.0, "neighbour": 1.0}',
        '{"launch": 1.0, "copies": [[8]], "operation": 1.0, "neighbour": 1.0}',
        '{"launch": 1.0, "copies": [], "operation": 1.0, "neighbour": 1.0}',
        '{"launch": "1", "copies": [[8, 1.0]], "operation": 1.0, "neighbour": 1.0}',
        '{"launch": 1.0, "copies": 8, "operation": 1.0, "neighbour": 1.0}',
        '{"launch": 1' + "0" * 400 + ', "copies": [[8, 1.0]], "operation": 1.0, "neighbour": 1.0}',
        "[" * 100000, "\udcff",
    ],
)  # fmt: skip
def test_what_is_stored_otherwise_is_measured_again(
    stored: str, forgotten: Path, timed: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = gp.device(CARDS[0])
    facts_of(backend)
    (file,) = (path for path in forgotten.rglob("*") if path.is_file() and _holds_times(path))
    blob_store.store(file.name, f"{device_facts.VERSION}\n{stored}".encode(errors="surrogateescape"))
    monkeypatch.setattr(device_facts, "_facts", {})
    facts = facts_of(backend)
    assert facts is not None
    assert facts.launch == 1.0
    assert len(timed) == 10
    assert _holds_times(file)


def test_half_a_file_is_measured_again(forgotten: Path, timed: list[Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    backend = gp.device(CARDS[0])
    facts_of(backend)
    (file,) = (path for path in forgotten.rglob("*") if path.is_file() and _holds_times(path))
    file.write_bytes(file.read_bytes()[:-9])
    monkeypatch.setattr(device_facts, "_facts", {})
    facts_of(backend)
    assert len(timed) == 10


def test_half_of_what_one_function_takes_is_measured_again(
    forgotten: Path, timed: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = gp.device(CARDS[0])
    for damage in (0, 40, -3):
        facts = facts_of(backend)
        assert facts is not None
        seconds, count = facts.seconds("exp float32"), len(timed)
        (file,) = (path for path in forgotten.rglob("*") if path.is_file() and b'{"seconds"' in path.read_bytes())
        file.write_bytes(file.read_bytes()[:damage])
        monkeypatch.setattr(device_facts, "_facts", {})
        again = facts_of(backend)
        assert again is not None
        assert again.seconds("exp float32") == seconds
        assert len(timed) == count + 1


def test_a_folder_that_may_only_be_read(forgotten: Path, timed: list[Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of the folder are used; the others are measured, and known until the process ends."""

    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    backend = gp.device(CARDS[0])
    facts_of(backend)
    monkeypatch.setattr(atomic_files, "_created", refused)
    monkeypatch.setattr(device_facts, "_facts", {})
    for _ in range(2):
        facts = facts_of(backend)
        assert facts is not None
        facts.seconds("exp float32")
        assert len(timed) == 6
    monkeypatch.setattr(device_facts, "_facts", {})
    facts = facts_of(backend)
    assert facts is not None
    facts.seconds("exp float32")
    assert len(timed) == 7


def test_runs_that_disagree_are_not_kept(forgotten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, agree = [100.0], [False]
    monkeypatch.setattr(device_facts, "monotonic", lambda: now[0])
    calls: list[int] = []

    def seconds(backend: Backend, programs: Sequence[Kernel]) -> tuple[list[float], bool]:
        calls.append(len(programs))
        return [1.0 + n for n in range(len(programs))], agree[0]

    monkeypatch.setattr(device_facts, "_seconds", seconds)
    backend = gp.device(CARDS[0])
    for later, count in ((0.0, 1), (device_facts.AGAIN / 2, 1), (device_facts.AGAIN, 2)):
        now[0] += later
        assert facts_of(backend) is not None
        assert len(calls) == count
        assert disturbed(backend)
        assert not any(path.is_file() for path in forgotten.rglob("*"))
    agree[0] = True
    now[0] += 2 * device_facts.AGAIN
    facts_of(backend)
    assert len(calls) == 3
    assert not disturbed(backend)
    assert any(path.is_file() for path in forgotten.rglob("*"))


def test_a_quarter_of_the_runs_must_be_about_as_short(forgotten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, kernels = gp.device(CARDS[0]), [device_facts.copied(16)]
    half = device_facts.ROUNDS // 2
    for times, expected in (
        ([0.5, *[1.0] * half, *[9.0] * half], ([1.0], True)),  # the first run compiles
        ([0.5, *[9.0] * half, 1.0, *[1.6] * half], ([1.0], False)),
    ):
        durations = iter(times)
        monkeypatch.setattr(device_facts, "run_once", lambda backend, launch: next(durations))  # noqa: B023 - used in this turn
        assert device_facts._seconds(backend, kernels) == expected


def test_processes_measure_at_once(tmp_path: Path) -> None:
    def started() -> subprocess.Popen[str]:
        environment = {"GPUOP_CACHE": str(tmp_path), "PYTHONPATH": ":".join([str(ROOT), *filter(None, sys.path)])}
        command = [sys.executable, "-c", MEASURES, CARDS[0]]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    printed = [each.communicate(timeout=100)[0] for each in [started(), started()]]
    assert all(text.split()[-1] == "5" for text in printed), "each has measured"
    last = started().communicate(timeout=100)[0]
    assert last.split()[-1] == "0"
    assert last.rsplit(" ", 1)[0] in [text.rsplit(" ", 1)[0] for text in printed], "one of them is what others find"


def test_seconds_of_moving_lie_between_those_of_copies() -> None:
    result = DeviceFacts(0.0, ((100, 1.0), (200, 4.0)), lambda kind: 0.0)
    assert result.moving(50) == pytest.approx(0.5)
    assert result.moving(100) == pytest.approx(1.0)
    assert result.moving(150) == pytest.approx(150 / 75), "between 100 and 50 bytes in a second"
    assert result.moving(200) == pytest.approx(4.0)
    assert result.moving(1000) == pytest.approx(20.0)
    assert math.isclose(result.moving(0), 0.0)


def _holds_times(path: Path) -> bool:
    try:
        _, _, text = path.read_bytes()[len(blob_store.MAGIC) + blob_store.DIGEST :].partition(b"\n")
        return "copies" in json.loads(text)
    except (ValueError, TypeError):
        return False
