"""Settings from the environment, read once."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


def _cache() -> Path:
    given = os.environ.get("GPUOP_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(given) if given else Path(base) / "gpuop"


def _debug() -> int:
    given = os.environ.get("GPUOP_DEBUG") or "0"
    if not given.isdecimal():
        warnings.warn(f"GPUOP_DEBUG={given!r} is not a number from 0 to 5, and is ignored", stacklevel=2)
        return 0
    return int(given)


def _schedule() -> str:
    given = os.environ.get("GPUOP_SCHEDULE") or "auto"
    if given not in ("auto", "plain"):
        warnings.warn(f'GPUOP_SCHEDULE={given!r} is neither "auto" nor "plain", and is ignored', stacklevel=2)
        return "auto"
    return given


def _widen() -> bool:
    given = os.environ.get("GPUOP_WIDEN") or "1"
    if given not in ("0", "1"):
        warnings.warn(f"GPUOP_WIDEN={given!r} is neither 0 nor 1, and is ignored", stacklevel=2)
    return given != "0"


@dataclass
class Config:
    """The settings.

    Attributes:
        device: GPUOP_DEVICE, the default device.
        debug: GPUOP_DEBUG: 1 launches, 2 fusion, 3 recorded IR, 4 source, 5 IR after each pass.
        dump: GPUOP_DUMP, a folder that generated source is written to.
        cache: GPUOP_CACHE, the folder of compiled kernels.
        widen: GPUOP_WIDEN; 0: a thread handles one point, always.
        schedule: GPUOP_SCHEDULE, "auto" or "plain": each value is computed by the thread of its point, in a kernel without stages.
        verify: GPUOP_VERIFY; 1, or GPUOP_DEBUG: what each pass leaves is verified, not only what the first and the last one do.
    """

    device: str = os.environ.get("GPUOP_DEVICE", "")
    debug: int = field(default_factory=_debug)
    dump: str = os.environ.get("GPUOP_DUMP", "")
    cache: Path = field(default_factory=_cache)
    widen: bool = field(default_factory=_widen)
    schedule: str = field(default_factory=_schedule)
    verify: bool = os.environ.get("GPUOP_VERIFY") == "1"

    @property
    def generating(self) -> tuple[object, ...]:
        """The settings that generated text depends on, and what is verified on the way to it."""
        return self.schedule, self.widen, self.verify, self.debug

    def trace(self, level: int, text: Callable[[], str]) -> None:
        """Write to stderr what GPUOP_DEBUG asks for; the text is made only then."""
        if self.debug >= level:
            sys.stderr.write(f"{text()}\n")


config = Config()
