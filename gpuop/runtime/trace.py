"""What GPUOP_DEBUG and GPUOP_DUMP show of the runtime."""

from __future__ import annotations

from pathlib import Path

from gpuop.codegen.dialect import Source
from gpuop.config import config


def note_source(source: Source, suffix: str) -> None:
    """Print generated text (level 4), and keep it in the dump folder."""
    config.trace(4, lambda: source.text)
    if config.dump:
        Path(config.dump).mkdir(parents=True, exist_ok=True)
        (Path(config.dump) / f"{source.entry}.{suffix}").write_text(source.text)


def note_launch(source: Source) -> None:
    """Print a launch (level 1)."""
    config.trace(1, lambda: f"gpuop: launch {source.entry} threads {source.threads} group {source.group}")
