"""Memo on disk: results that every process would compute again, keyed by their inputs and by the code that computes them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache as once
from glob import glob
from typing import Any, Generic, TypeVar

import numpy as np

from gpuop.base.cache import blob_store
from gpuop.base.config import IMPORTED
from gpuop.base.errors import PACKAGE
from gpuop.base.records import dataclass

V = TypeVar("V")
MAKERS = ("base", "ir", "fusion", "passes", "codegen")  # folders of gpuop whose code computes the cached values
SETTLED = (
    2.0  # seconds by which a file must predate the import of gpuop: file clocks are coarse, and importing takes a while
)


@once
def makers() -> str | None:
    """Digest of the source files whose code computes the values; None if they are missing, or may differ from the imported
    ones.
    """
    digest = hashlib.sha256(f"{sys.version}\0{np.__version__}".encode())
    for folder in MAKERS:
        names = glob("**/*.py" if folder else "*.py", root_dir=os.path.join(PACKAGE, folder), recursive=True)
        texts = {name: _settled(os.path.join(PACKAGE, folder, name)) for name in sorted(names)}
        for name, text in texts.items():
            if text is None:
                return None
            digest.update(f"\0{folder}/{name}\0{len(text)}\0".encode() + text)
        if not texts:
            return None
    return digest.hexdigest()


def _settled(path: str) -> bytes | None:
    """Contents of a file as it was at import; None if unknown."""
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            return file.read() if max(status.st_mtime, status.st_ctime) < IMPORTED - SETTLED else None
    except OSError:
        return None


@dataclass(frozen=True)
class DiskMemo(Generic[V]):
    """Cached values of one kind.

    An entry names the code that computed it and is valid for that code only; other code overwrites it.

    Attributes:
        kind: a name.
        written, read: conversions of a value to JSON and back; `read` raises for JSON that is none.
        maker: names the code; None: nothing is stored.
    """

    kind: str
    written: Callable[[V], Any]
    read: Callable[[Any], V]
    maker: Callable[[], str | None] = makers

    def load(self, inputs: Sequence[str]) -> V | None:
        """Stored value for these inputs; None if there is none, or the file is not as `store` writes it."""
        maker = self.maker()
        blob = None if maker is None else blob_store.load(blob_store.key(self.kind, *inputs))
        head, _, text = (blob or b"").partition(b"\n")
        if maker is None or head != maker.encode():
            return None
        try:
            return self.read(json.loads(text))
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            return None

    def store(self, inputs: Sequence[str], value: V) -> None:
        maker = self.maker()
        if maker is not None:
            text = f"{maker}\n{json.dumps(self.written(value))}"
            blob_store.store(blob_store.key(self.kind, *inputs), text.encode())

    def find(self, inputs: Sequence[str], make: Callable[[], V]) -> V:
        """Value for these inputs, computed by `make` on a miss."""
        value = self.load(inputs)
        if value is None:
            value = make()
            self.store(inputs, value)
        return value
