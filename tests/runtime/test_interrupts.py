"""Ctrl-C, or whatever a signal's handler raises, comes through while a driver compiles, and leaves everything usable."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.base.errors import CompileError
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.engine.bundles import writing
from gpuop.runtime import devices
from gpuop.runtime.base import interruptible
from gpuop.runtime.base.program_text import ProgramText
from gpuop.runtime.cuda import device as cuda_device
from gpuop.runtime.opencl import device as opencl_device
from tests.process import python

OPENCL = [d.name for d in gp.devices() if d.name.startswith("opencl")]
LONG = 20.0  # seconds that nothing here may take
SOON = 0.1  # seconds until the signal


class Stop(Exception):
    """The exception of a handler."""


@contextmanager
def interrupted() -> Iterator[None]:
    """A block that a signal's handler ends, at once."""

    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, SOON)
    try:
        with pytest.raises(Stop):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - began < LONG / 2


class Slow:
    """A function whose first call ends only when it is let go."""

    def __init__(self, function: Any) -> None:
        self.function, self.calls, self.gone = function, 0, threading.Event()

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            self.gone.wait(LONG)
        return self.function(*args)

    def let_go(self, later: float = 0.0) -> None:
        threading.Timer(later, self.gone.set).start()


@pytest.fixture
def slow(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "cache", tmp_path)
    monkeypatch.setattr(opencl_device, "built", Slow(opencl_device.built))
    yield opencl_device.built
    opencl_device.built.gone.set()


@gp.operator
def tripled(f):
    return _readTensor(f) * 3


def rare(number: float) -> gp.Field:
    """A kernel that no other test has compiled."""
    return tripled(gp.ScalarField(np.arange(97, dtype="f"))) + number


@pytest.mark.parametrize("name", OPENCL)
def test_a_compilation_is_interrupted_and_picked_up(name, slow, tmp_path):
    x = np.arange(97, dtype="f") * 3
    with gp.use_device(name):
        f = rare(0.123)
        for _ in range(2):
            with interrupted():
                f.numpy()
        np.testing.assert_array_equal(rare(0.456).numpy(), x + np.float32(0.456))  # meanwhile
        slow.let_go(SOON)
        np.testing.assert_array_equal(f.numpy(), x + np.float32(0.123))
        assert slow.calls == 2 and not interruptible._running
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 2


@pytest.mark.parametrize("name", OPENCL[:1])
def test_a_compilation_that_nobody_waited_for_is_kept(name, slow, tmp_path, monkeypatch):
    with gp.use_device(name):
        f = rare(0.789)
        with interrupted():
            f.numpy()
        slow.let_go()
        while interruptible._running:
            time.sleep(0.01)
        monkeypatch.setattr(opencl_device.blob_store, "store", None)  # nothing is built from source any more
        f.numpy()


@pytest.mark.parametrize("name", OPENCL)
def test_what_is_compiled_at_the_first_launch_is_interrupted(name, monkeypatch, capsys):
    """As PoCL does; what waits is a wait for the device."""
    monkeypatch.setattr(interruptible, "PATIENCE", SOON / 2)
    finish = Slow(opencl_device.finish)
    with gp.use_device(name):
        f = rare(0.987)
        rare(0.987).numpy()  # its compilation is another matter
        monkeypatch.setattr(opencl_device, "finish", finish)
        devices.current().fresh.append("tripled_add")
        for _ in range(2):
            with interrupted():
                f.numpy()
        finish.let_go(SOON)
        np.testing.assert_array_equal(f.numpy(), np.arange(97, dtype="f") * 3 + np.float32(0.987))
        message = "compiling or running for the first time the kernel `tripled_add`"
        assert (message in capsys.readouterr().err) == devices.current().late
        calls = finish.calls
        rare(0.987).numpy()
        assert finish.calls == calls  # only for what is new


def nvrtc(source: Any) -> bytes:
    device: Any = SimpleNamespace(name="cuda:0", architecture="sm_90", kind="cubin")
    device._cache_name = lambda text: cuda_device.Cuda._cache_name(device, text)
    return cuda_device.Cuda._binary(device, ProgramText.of(source))


def bundled(source: Any) -> bytes:
    return writing._binary(source, "sm_90", "cubin")


@pytest.mark.parametrize("compiled", [nvrtc, bundled])
def test_nvrtc_is_interrupted_and_its_errors_come_through(compiled, monkeypatch, tmp_path):
    monkeypatch.setattr(config, "cache", tmp_path)
    source = generate(rare(0.5).node.call.kernel, target_named("cuda"))
    slowly = Slow(lambda *args: b"binary")
    for module in (cuda_device, writing):
        monkeypatch.setattr(module, "compile_cuda", slowly)
    with interrupted():
        compiled(source)
    slowly.let_go(SOON)
    assert compiled(source) == b"binary" and slowly.calls == 1

    def refused(*_: Any) -> bytes:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(config, "cache", tmp_path / "another")
    slowly.function = refused
    with pytest.raises(CompileError, match="no such thing"):
        compiled(source)


@pytest.mark.parametrize("name", OPENCL[:1])
def test_a_line_says_what_takes_long(name, slow, monkeypatch, capsys):
    monkeypatch.setattr(interruptible, "PATIENCE", SOON / 2)
    with gp.use_device(name):
        for _ in range(2):
            with interrupted():
                rare(0.321).numpy()
    assert capsys.readouterr().err == (
        f"gpuop: {name} has been compiling the kernel `tripled_add` for 0.05 s; Ctrl-C stops waiting\n"
    )


def test_a_line_says_what_a_kernel_waits_behind(capsys, monkeypatch):
    """Drivers compile one kernel after the other."""
    monkeypatch.setattr(interruptible, "PATIENCE", SOON / 2)
    go = threading.Event()
    for number, name in enumerate(("slow", "next")):
        with interrupted():
            interruptible.call_interruptibly(number, go.wait, "opencl:7", name)
    go.set()
    assert capsys.readouterr().err == (
        "gpuop: opencl:7 has been compiling the kernel `slow` for 0.05 s; Ctrl-C stops waiting\n"
        "gpuop: opencl:7 has been compiling the kernel `next` for 0.05 s (it still compiles `slow` as well); Ctrl-C stops waiting\n"
    )


# A process whose compiler has not finished when it ends: what has been printed is there, and so is its exit status.
LEAVING = """
import atexit, ctypes, sys, time
import numpy as np
import gpuop as gp
from gpuop.runtime.opencl import device as opencl_device
libc = ctypes.CDLL(None)
def build(*given):
    libc.sleep(60)
class Held:
    def __del__(self):
        time.sleep(60)
held = Held()  # drivers wait for their compilers when their objects are released, and when libraries are taken down
libc.__cxa_atexit(ctypes.cast(libc.sleep, ctypes.c_void_p), 60, None)
f = gp.ScalarField(np.arange(5, dtype="f"))
print((f * 2).numpy().sum())
opencl_device.built = build
import signal
def stop(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.2)
began = time.perf_counter()
try:
    (f * 3).numpy()
except KeyboardInterrupt:
    print("stopped", end="")
atexit.register(lambda: print(", left", time.perf_counter() - began < 5, end=""))
"""


@pytest.mark.skipif(not OPENCL, reason="no OpenCL driver that works")
def test_a_process_ends_at_once(tmp_path):
    began = time.perf_counter()
    done = python("-c", LEAVING, GPUOP_DEVICE=OPENCL[0], GPUOP_CACHE=str(tmp_path))
    assert time.perf_counter() - began < 30
    assert done.stdout == "20.0\nstopped, left True"
