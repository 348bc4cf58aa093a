"""File locks between processes: the system releases them when a process ends, however it ends."""

from __future__ import annotations

import errno
import sys
from typing import IO, Any

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
