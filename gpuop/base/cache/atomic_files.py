"""Atomic writes, and locks between processes: a file is complete or absent, and a lock ends with its process."""

from __future__ import annotations

import errno
import os
import pathlib
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from gpuop.base.errors import SemanticError, described
from gpuop.base.system import WINDOWS, lock

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


LEFT = re.compile(r"\.[0-9a-f]{32}")  # suffix of the name of a file being written


def named(path: object) -> str:
    """The text of a path.

    Raises:
        SemanticError: it is no path.
    """
    try:
        return os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise SemanticError(f"a file is named by its path, not by {described(path)}") from None


def private_folder(folder: pathlib.Path) -> None:
    """Make a folder and its parents, writable by nobody else whatever the umask is; OSError on failure."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[IO[bytes]]:
    """File that replaces another one when complete: readers, and users after a crash, see the old or the new one.

    Files left by killed writers of the same file are removed.

    Args:
        durable: flush to disk before returning.
    """
    target = os.path.realpath(named(path))
    folder, name = os.path.split(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    _clean(folder, f".{name}")
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}")
    try:
        with _created(temporary) as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if WINDOWS:  # another writer's `_clean` may come between, and is then an error of this one
                file.close()
            os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if durable:
        _sync_folder(folder)


def _created(path: str) -> IO[bytes]:
    """New file, locked while it is open as a sign that its writer lives."""
    while True:
        file = open(path, "xb")  # noqa: SIM115 - the caller closes it
        with suppress(OSError):  # there are file systems without locks
            lock(file)
        if os.path.exists(path):
            return file
        file.close()  # another writer found it before it was locked


def _clean(folder: str, start: str) -> None:
    """Remove files that nobody writes any more."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(start) and LEFT.fullmatch(name, len(start)):
                with suppress(OSError):  # both fail while its writer lives
                    _remove_unwritten(os.path.join(folder, name))


def _remove_unwritten(path: str) -> None:
    if not WINDOWS:
        with open(path, "rb") as left:
            lock(left)
            os.unlink(path)
    else:
        os.unlink(path)


def _sync_folder(folder: str) -> None:
    """Flush the new name to disk too, where folders can be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
