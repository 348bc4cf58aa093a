"""Compiled kernels on disk: keyed by text, device and options; safe under concurrent processes and truncated files."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from gpuop.config import config
from gpuop.kept.files import replacing

MAGIC = b"gpuop-1\n"
DIGEST = 32


def key(*parts: str) -> str:
    """A file name for what the parts determine."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def load(name: str) -> bytes | None:
    """The stored bytes; None when there are none, or when the file is damaged."""
    try:
        data = (config.cache / name[:2] / name).read_bytes()
    except OSError:
        return None
    head, digest, body = data[: len(MAGIC)], data[len(MAGIC) : len(MAGIC) + DIGEST], data[len(MAGIC) + DIGEST :]
    return body if head == MAGIC and hashlib.sha256(body).digest() == digest else None


def store(name: str, body: bytes) -> None:
    """Store bytes: written beside the file and moved into place, so that no reader sees half of them."""
    file: Path = config.cache / name[:2] / name
    with suppress(OSError):  # a cache that cannot be written is no error
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file, durable=False) as new:
            new.write(MAGIC + hashlib.sha256(body).digest() + body)
