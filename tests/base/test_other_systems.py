"""Other systems: without the modules and functions that only POSIX or Linux has, gpuop imports, records, evaluates and caches.

A process of its own refuses them, so that this runs on Linux: it shows that gpuop needs none, not that the systems run it.
"""

from __future__ import annotations

import pytest

from tests.process import python

MODULES = {
    "win32": ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "readline", "curses"),
    "darwin": (),
}
CALLS = {
    "win32": (
        "fork forkpty register_at_fork sched_getaffinity sched_setaffinity sched_yield getuid geteuid getgid getegid getgroups "
        "getpgid getpgrp setsid getsid sysconf confstr statvfs fstatvfs uname nice getloadavg killpg wait wait3 wait4 mkfifo "
        "mknod chown fchown lchown pread pwrite preadv pwritev posix_fallocate posix_fadvise memfd_create sendfile pipe2 "
        "O_CLOEXEC O_NOFOLLOW O_DIRECTORY O_NONBLOCK WNOHANG"
    ),
    "darwin": "sched_getaffinity sched_setaffinity posix_fallocate posix_fadvise memfd_create pipe2",
}
OTHER = r"""
import sys
system, modules, calls = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
import ctypes, ctypes.util, concurrent.futures, fcntl, json, mmap, os, signal, sqlite3, subprocess, tempfile, types, uuid, zipfile
import asyncio, http.server, logging, multiprocessing, socket, urllib.request  # the standard library of another system differs
import networkx, numpy as np, numpy.lib.format, numpy.testing, pytest
absent = set()
for name in ("dask.array", "distributed", "mpi4py"):
    try:
        __import__(name)
    except ImportError:
        absent.add(name.partition(".")[0])

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {*modules, "pyopencl", "pycuda"}:
            raise ModuleNotFoundError(f"there is no {name}")

if system == "win32":
    ms = sys.modules["msvcrt"] = types.ModuleType("msvcrt")
    ms.LK_NBLCK, flock, how = 2, fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB
    def locking(file, mode, nbytes):
        try:
            flock(file, how)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error
    ms.locking = locking

    def closed_only(call):
        def called(path, *more, **named):
            mine = (os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd"))
            if os.path.realpath(path) in mine:
                raise PermissionError(13, "the file is used by another process", path)
            return call(path, *more, **named)
        return called
    os.replace, os.rename, os.unlink, os.remove = map(closed_only, (os.replace, os.rename, os.unlink, os.remove))

    def no_libc(name, *more, library=ctypes.CDLL, **named):
        if name is None:
            raise TypeError("there is no library of the process")
        return library(name, *more, **named)
    ctypes.CDLL = no_libc

    def status_of_memory(status):
        status._obj[1] = 1 << 33
    ctypes.WinDLL = lambda name: types.SimpleNamespace(GlobalMemoryStatusEx=status_of_memory)
for name in modules:
    sys.modules.pop(name, None)
for name in calls:
    if hasattr(os, name):
        delattr(os, name)
for name in dir(mmap):
    if name.startswith("MADV_" if system == "win32" else "MADV_HUGE"):
        delattr(mmap, name)
for name in ("SIGALRM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGKILL", "setitimer", "pthread_kill") * (system == "win32"):
    delattr(signal, name)
sys.meta_path.insert(0, Refuse())
sys.platform = system
"""
USE = r"""
import gpuop as gp
from gpuop.base.config import config
from gpuop.base.cache import blob_store
from gpuop.dsl import *
from gpuop.codegen.generate import generate, target_named
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program

@gp.operator
def slope(image):
    return abs(_readTensor(image, _row, _column + 1) - _readTensor(image, _row, _column - 1))

image = np.arange(48, dtype="f").reshape(6, 8) ** 2
field = slope(gp.ScalarField(image))
padded = np.pad(image, ((0, 0), (1, 1)), "edge")
np.testing.assert_array_equal(field.numpy(), abs(padded[:, 2:] - padded[:, :-2]))
np.testing.assert_array_equal(gp.ndimage.minimum_filter(image, 3, mode="nearest")[2:, 2:][0, 0], image[1, 1])
assert "__kernel" in generate(plan(program([field.node])).launches[0].kernel, target_named("opencl")).text
blob_store.store("name", b"cached")
blob_store.store("name", b"again")
assert blob_store.load("name") == b"again"
assert [p.name for p in (config.cache / "na").iterdir()] == ["name"]

ran = gp.stream(gp.pipeline(lambda x: gp.ScalarField(x) + 1), image, out="out.npy")
np.testing.assert_array_equal(np.load("out.npy"), image + 1)
print(*os.listdir())
"""
ALL = r"""
import pkgutil, importlib, gpuop
missing = set()
for module in pkgutil.walk_packages(gpuop.__path__, "gpuop."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in absent:
            missing.add(f"{module.name}: {error}")
print(sorted(missing))
"""


@pytest.mark.in_turn
@pytest.mark.parametrize("system", MODULES)
@pytest.mark.parametrize(("program", "shown"), [(USE, "cache out.npy\n"), (ALL, "[]\n")], ids=["use", "import"])
def test_without_posix(tmp_path, monkeypatch, system, program, shown):
    monkeypatch.chdir(tmp_path)
    environment = {"GPUOP_CACHE": str(tmp_path / "cache"), "GPUOP_DEVICE": "reference"}
    done = python("-c", OTHER + program, system, " ".join(MODULES[system]), CALLS[system], **environment)
    assert done.stdout == shown
