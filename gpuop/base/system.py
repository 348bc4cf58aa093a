"""Calls that some systems lack, each with its alternative; no other file imports a module of one system or calls its C library."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

WINDOWS = sys.platform == "win32"  # files that are open can be neither renamed nor removed there
LARGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)
LOWER = 5  # of 20 steps: a third of the share of others; much less is nothing on busy computers
BOOT, PROCESSES = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"

# --- locks of files -------------------------------------------------------------------------------------------------

if sys.platform == "win32":
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


def remove_open(file: IO[Any]) -> None:
    """Remove a file that is open here and perhaps locked, and close it where that must come first."""
    if WINDOWS:
        file.close()
    os.unlink(file.name)


# --- processes ------------------------------------------------------------------------------------------------------


def in_forked_child(action: Callable[[], Any]) -> None:
    """Call `action` in every process that is forked from this one; nothing where processes cannot be."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


def exit_before_libraries() -> None:
    """End the process, with Python's status, before the exit handlers of libraries; nothing without glibc's `on_exit`."""
    if sys.platform.startswith("linux") and hasattr(
        libc := ctypes.CDLL(None), "on_exit"
    ):  # the last one runs first, and gets the exit status
        libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)


def lower_priority() -> None:
    """Lower the priority of this thread, and of those that it starts; nothing where threads have none."""
    if sys.platform.startswith("linux"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWER)


# --- memory ---------------------------------------------------------------------------------------------------------


def ask_for_large_pages(address: int, nbytes: int) -> None:
    """Ask for large pages in host memory that was not accessed yet; a refusal changes nothing."""
    if LARGE_PAGES is not None:
        first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        size = ctypes.c_size_t(address + nbytes - first)
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), size, LARGE_PAGES)


def release_pages(mapped: Any) -> None:
    """Release the pages of an `mmap.mmap` from this process; the system still caches them."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def physical_memory() -> int:
    """Return the bytes of the memory of this computer."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX: its size and the load in one word, then the physical memory
    ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return status[1]


def shared_file(name: str, nbytes: int) -> int:
    """Return the descriptor of a file in memory that other processes of the host can map.

    Raises:
        OSError: the host has too little memory, or no such files.
    """
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOTSUP, "there are no files in memory")
    file = os.memfd_create(name)
    try:
        os.posix_fallocate(file, 0, nbytes)  # now, and not by a signal on a write
    except OSError:
        os.close(file)
        raise
    return file


def file_of_process(process: int, file: int, name: str) -> int:
    """Return a descriptor of the `shared_file` of this name that another process has open; OSError if it may not."""
    path = f"/proc/{process}/fd/{file}"
    if not os.readlink(path).startswith(f"/memfd:{name}"):
        raise OSError(f"{path} is not what was offered")
    return os.open(path, os.O_RDWR)


def host() -> str:
    """Return an id, equal for processes that can share files in memory; "" if the system has none."""
    try:
        os.close(shared_file("gpuop", 1))
        with open(BOOT, encoding="ascii") as boot:
            return f"{boot.read()} {os.readlink(PROCESSES)}"
    except OSError:
        return ""
