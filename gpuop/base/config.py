"""Settings from the environment, read once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from gpuop.base.errors import GpuopError
from gpuop.base.records import dataclass

IMPORTED = time.time()  # seconds; gpuop files that are younger may differ from the imported ones


def _cache() -> Path:
    value = os.environ.get("GPUOP_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(value) if value else Path(base) / "gpuop"


_refused: list[str] = []  # faults of the settings


def _one_of(name: str, *values: str) -> str:
    """A setting that has one of these values; the first by default, and instead of others, which `check` refuses."""
    value = os.environ.get(name) or values[0]
    if value not in values:
        _refused.append(f"{name}={value} is none of its values; one of {', '.join(values)}")
        return values[0]
    return value


def _seconds(name: str, usual: float) -> float:
    value = os.environ.get(name)
    with suppress(ValueError):
        if value is None or 0 < float(value) < float("inf"):
            return usual if value is None else float(value)
    _refused.append(f"{name}={value} is no time in seconds above 0")
    return usual


def _store() -> Path:
    value = os.environ.get("GPUOP_TUNE_STORE")
    return Path(value) if value else _cache() / "tuned.sqlite"


@dataclass
class Config:
    """The settings.

    Attributes:
        device: GPUOP_DEVICE, the default device.
        debug: GPUOP_DEBUG: 1 launches, 2 fusion, 3 recorded IR, 4 source, 5 IR after each pass.
        dump: GPUOP_DUMP, a folder that generated source is written to.
        cache: GPUOP_CACHE, the folder of compiled kernels, and of the texts that they are made of.
        widen: GPUOP_WIDEN; 0: a thread handles one point, always.
        schedule: GPUOP_SCHEDULE, "auto" or "plain": each value is computed by the thread of its point, in a kernel without stages.
        tune: GPUOP_TUNE, as of `gp.tuning`: whether what was measured before is used, and what was not is measured.
        tune_store: GPUOP_TUNE_STORE, the file of what was measured; by default one beside compiled kernels.
        tune_seconds: GPUOP_TUNE_SECONDS, how long one operator, or one kernel, is measured at most.
        plan_for: GPUOP_PLAN_FOR, "device" or "gpu": OpenCL's CPUs are planned for as GPUs are, and run what is made for those.
        specialize: GPUOP_SPECIALIZE, the sizes that pipelines have kernels of their own for: "auto", the first one and those that
            repeat; "0", none; "1", all. Numbers are in the text of kernels with "1", else the first ones alone.
        hide: GPUOP_HIDE; "fp64": OpenCL devices compute as those without double do.
        verify: GPUOP_VERIFY; 1, or GPUOP_DEBUG: what each pass leaves is verified, not only what the first and the last one do.
    """

    device: str = os.environ.get("GPUOP_DEVICE", "")
    debug: int = int(_one_of("GPUOP_DEBUG", *"012345"))
    dump: str = os.environ.get("GPUOP_DUMP", "")
    cache: Path = field(default_factory=_cache)
    widen: bool = _one_of("GPUOP_WIDEN", "1", "0") != "0"
    schedule: str = _one_of("GPUOP_SCHEDULE", "auto", "plain")
    tune: str = _one_of("GPUOP_TUNE", "stored", "never", "auto", "force")
    tune_store: Path = field(default_factory=_store)
    tune_seconds: float = _seconds("GPUOP_TUNE_SECONDS", 10.0)
    plan_for: str = _one_of("GPUOP_PLAN_FOR", "device", "gpu")
    specialize: str = _one_of("GPUOP_SPECIALIZE", "auto", "0", "1")
    hide: str = _one_of("GPUOP_HIDE", "", "fp64")
    verify: bool = _one_of("GPUOP_VERIFY", "0", "1") == "1"

    @property
    def generating(self) -> tuple[object, ...]:
        """Settings that generated text and its verification depend on."""
        self.check()
        return self.schedule, self.widen, self.verify, self.debug

    def check(self) -> None:
        """Refuse invalid settings at the first use of gpuop; importing it never fails for them."""
        if _refused:
            raise GpuopError(_refused[0])

    def trace(self, level: int, text: Callable[[], str]) -> None:
        """Write to stderr at this level of GPUOP_DEBUG; the text is made only then."""
        if self.debug >= level:
            sys.stderr.write(f"{text()}\n")


config = Config()
