"""What GPUOP_DEBUG and GPUOP_DUMP show of the runtime."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gpuop.codegen.dialect import Source
from gpuop.config import config


def note_source(source: Source, suffix: str) -> None:
    """Print generated text (level 4), and keep it in the dump folder."""
    config.trace(4, lambda: source.text)
    if config.dump:
        Path(config.dump).mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(source.text.encode()).hexdigest()[:8]  # kernels of one name may differ
        (Path(config.dump) / f"{source.entry}-{digest}.{suffix}").write_text(source.text)


def note_launch(kernel: str, threads: object) -> None:
    """Print a launch (level 1)."""
    config.trace(1, lambda: f"gpuop: launch {kernel}, threads {threads}")
