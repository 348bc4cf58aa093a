"""What GPUOP_DEBUG and GPUOP_DUMP show of the runtime."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuop.codegen.dialect import Source
from gpuop.config import config


def note_source(source: Source, suffix: str) -> None:
    """Print generated text (level 4), and keep it in the dump folder."""
    if config.debug >= 4:
        print(source.text, file=sys.stderr)
    if config.dump:
        Path(config.dump).mkdir(parents=True, exist_ok=True)
        (Path(config.dump) / f"{source.entry}.{suffix}").write_text(source.text)


def note_launch(source: Source) -> None:
    """Print a launch (level 1)."""
    if config.debug >= 1:
        print(f"gpuop: launch {source.entry} threads {source.threads} group {source.group}", file=sys.stderr)
