"""Output of GPUOP_DEBUG and GPUOP_DUMP, and messages of the runtime on stderr."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from gpuop.base.config import config
from gpuop.codegen.c.dialect import Source


def note_source(source: Source, suffix: str) -> None:
    """Print generated text (level 4), and keep it in the dump folder, named with its digest: kernels of one name may differ."""
    config.trace(4, lambda: source.text)
    if config.dump:
        folder, digest = Path(config.dump), hashlib.sha256(source.text.encode()).hexdigest()[:8]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{source.entry}-{digest}.{suffix}").write_text(source.text, encoding="utf-8")
        except OSError as failed:
            warnings.warn(f"GPUOP_DUMP: {failed}; nothing more is dumped", stacklevel=2)
            config.dump = ""


def note_launch(kernel: str, threads: object) -> None:
    """Print a launch (level 1)."""
    config.trace(1, lambda: f"gpuop: launch {kernel}, threads {threads}")


def note_compiling(device: str, what: str, seconds: float, before: Sequence[str]) -> None:
    """Print that a compilation takes long; the device still compiles the kernels `before` as well."""
    behind = f" (it still compiles {', '.join(f'`{name}`' for name in before)} as well)" if before else ""
    sys.stderr.write(f"gpuop: {device} has been {what} for {seconds:g} s{behind}; Ctrl-C stops waiting\n")
