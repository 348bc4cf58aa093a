"""Compiled kernels on disk: keyed by text, device and options; safe under concurrent processes and truncated files."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from gpuop.base.cache.atomic_files import private_folder, replacing
from gpuop.base.config import config

MAGIC = b"gpuop-2\n"
DIGEST = 32


def key(*parts: str) -> str:
    """File name determined by the parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def load(name: str) -> bytes | None:
    """Stored bytes; None if there are none, the file is damaged, or it was stored under another name."""
    try:
        data = (config.cache / name[:2] / name).read_bytes()
    except OSError:
        return None
    head, digest, body = data[: len(MAGIC)], data[len(MAGIC) : len(MAGIC) + DIGEST], data[len(MAGIC) + DIGEST :]
    return body if head == MAGIC and digest == _digest(name, body) else None


def store(name: str, body: bytes) -> None:
    """Store bytes atomically: no reader sees a part of them."""
    file: Path = config.cache / name[:2] / name
    with suppress(OSError):  # a cache that cannot be written is no error
        private_folder(file.parent)
        with replacing(file, durable=False) as new:
            new.write(MAGIC + _digest(name, body) + body)


def _digest(name: str, body: bytes) -> bytes:
    """Digest of name and content: restored or copied files may have the wrong name."""
    return hashlib.sha256(name.encode() + b"\0" + body).digest()
