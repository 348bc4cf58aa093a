"""Settings from the environment, read once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


def _cache() -> Path:
    given = os.environ.get("GPUOP_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(given) if given else Path(base) / "gpuop"


@dataclass
class Config:
    """The settings.

    Attributes:
        device: GPUOP_DEVICE, the default device.
        debug: GPUOP_DEBUG: 1 launches, 2 fusion, 3 recorded IR, 4 source, 5 IR after each pass.
        dump: GPUOP_DUMP, a folder that generated source is written to.
        cache: GPUOP_CACHE, the folder of compiled kernels.
    """

    device: str = os.environ.get("GPUOP_DEVICE", "")
    debug: int = int(os.environ.get("GPUOP_DEBUG", "0") or 0)
    dump: str = os.environ.get("GPUOP_DUMP", "")
    cache: Path = field(default_factory=_cache)

    def trace(self, level: int, text: Callable[[], str]) -> None:
        """Write to stderr what GPUOP_DEBUG asks for; the text is made only then."""
        if self.debug >= level:
            sys.stderr.write(f"{text()}\n")


config = Config()
