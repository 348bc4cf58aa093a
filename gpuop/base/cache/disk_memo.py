"""Memo on disk: results that every process would compute again, keyed by their inputs and by the code that computes them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache as once
from glob import glob
from typing import Any, Generic, TypeVar

import numpy as np

from gpuop.base.cache import blob_store
from gpuop.base.config import IMPORTED
from gpuop.base.errors import PACKAGE

V = TypeVar("V")
MAKERS = ("base", "ir", "fusion", "passes", "codegen")  # folders of gpuop that all that is kept is made by
SETTLED = 2.0  # seconds that a file must be older than gpuop's import: clocks of files are coarse, and importing takes a while


@dataclass(frozen=True)
class KeptOnDisk(Generic[V]):
    """Values of one kind.

    An entry says which files have made it, and stands for no others, as those of a checkout change: these write theirs over it.

    Attributes:
        kind: a name.
        written, read: a value as JSON has it, and back.
    """

    kind: str
    written: Callable[[V], Any]
    read: Callable[[Any], V]

    def find(self, of: Sequence[str], make: Callable[[], V]) -> V:
        """What was made of these, by `make` where nobody has."""
        maker = makers()
        if maker is None:
            return make()
        name, head = blob_store.key(self.kind, *of), f"{maker}\n".encode()
        found = blob_store.load(name)
        if found is not None and found.startswith(head):
            return self.read(json.loads(found[len(head) :]))
        made = make()
        blob_store.store(name, head + json.dumps(self.written(made)).encode())
        return made


@once
def makers() -> str | None:
    """A digest of the files that make what is kept; None where they are not there, or may not be those that were imported."""
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
    """A file as it was when it was imported; None where that is not known."""
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            return file.read() if max(status.st_mtime, status.st_ctime) < IMPORTED - SETTLED else None
    except OSError:
        return None
