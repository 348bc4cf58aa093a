"""Atomic writes, and locks between processes: a file is complete or absent, and a lock ends with its process."""

from __future__ import annotations

import errno
import os
import pathlib
import re
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from gpuop.base.errors import SemanticError, described

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


LEFT = re.compile(r"\.[0-9a-f]{32}")  # suffix of the name of a file being written


if sys.platform == "win32":  # pragma: no cover - Windows has no `fcntl`
    import msvcrt

    BEYOND = 1 << 30  # a byte beyond the end of these files: locked bytes cannot be read by others

    def lock(file: IO[Any]) -> None:
        """Lock a file that nobody else has locked.

        Raises:
            BlockingIOError: it is locked.
            OSError: there are no locks here.
        """
        at = file.tell()
        file.seek(BEYOND)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as failed:
            raise BlockingIOError(errno.EAGAIN, failed.strerror) from None
        finally:
            file.seek(at)

else:
    try:
        import fcntl
    except ImportError:  # systems without it
        fcntl = None  # type: ignore[assignment]

    def lock(file: IO[Any]) -> None:
        """Lock a file that nobody else has locked.

        Raises:
            BlockingIOError: it is locked.
            OSError: there are no locks here.
        """
        if fcntl is None:
            raise OSError(errno.ENOTSUP, "there are no locks of files")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
                with suppress(OSError), open(os.path.join(folder, name), "rb") as left:
                    lock(left)  # fails while its writer lives
                    os.unlink(left.name)


def _sync_folder(folder: str) -> None:
    """Flush the new name to disk too, where folders can be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
