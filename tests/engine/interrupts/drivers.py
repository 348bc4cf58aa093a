"""Drivers whose n-th call fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import gpuop as gp
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.cuda import launch
from gpuop.runtime.devices import open_device

COPIES = ("to_device", "to_host", "on_device")
FILLS = ("cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuMemsetD2D32Async", "cuLaunchKernel")


class Calls:
    """Counts calls of a driver; the n-th one fails."""

    def __init__(self) -> None:
        self.count, self.fail_at = 0, -1
        self.error: Callable[[], BaseException] = RuntimeError

    def call(self) -> None:
        self.count += 1
        if self.count == self.fail_at:
            raise self.error()


class Function:
    """A driver's function, no function of Python's, as it is none."""

    def __init__(self, function: Any, calls: Calls) -> None:
        self.function, self.calls = function, calls

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls.call()
        return self.function(*[getattr(a, "real", a) if isinstance(a, Kernel) else a for a in args], **options)


class Kernel:
    """pyopencl's, whose `set_args` and `set_arg` count too."""

    def __init__(self, real: Any, calls: Calls) -> None:
        self.real = real
        self.set_args, self.set_arg = Function(real.set_args, calls), Function(real.set_arg, calls)


class Module:
    """A module some of whose functions are others."""

    def __init__(self, module: Any, **others: Any) -> None:
        self._module, self._others = module, others

    def __getattr__(self, name: str) -> Any:
        return self._others[name] if name in self._others else getattr(self._module, name)


@contextmanager
def failing(device: str) -> Iterator[tuple[Calls, list[Callable[[], BaseException]]]]:
    """Have a device's driver counted; with the errors that it knows."""
    backend, calls = open_device(device), Calls()
    if device.startswith("opencl"):
        with _opencl(backend, calls) as errors:
            yield calls, errors
    else:
        with _cuda(backend, calls) as errors:
            yield calls, errors


@contextmanager
def _opencl(backend: Any, calls: Calls) -> Iterator[list[Callable[[], BaseException]]]:
    cl = backend.cl
    names = ("enqueue_nd_range_kernel", "enqueue_copy", "enqueue_fill_buffer", "Buffer")
    others = {name: Function(getattr(cl, name), calls) for name in names}
    others["Kernel"] = lambda built, name: (calls.call(), Kernel(cl.Kernel(built, name), calls))[1]
    with patch.object(backend, "cl", Module(cl, **others)):
        yield [
            lambda: cl.MemoryError(cl._cl._ErrorRecord("", -4, "clSomething")),
            lambda: cl.RuntimeError(cl._cl._ErrorRecord("", -5, "clSomething")),
            lambda: cl.LogicError(cl._cl._ErrorRecord("", -38, "clSomething")),
        ]


@contextmanager
def _cuda(backend: Backend, calls: Calls) -> Iterator[list[Callable[[], BaseException]]]:
    memory = backend.memory  # type: ignore[attr-defined]
    cu, stream_calls, alone = memory.cu, memory.stream.calls, launch.alone

    def failed() -> BaseException:
        return gp.DeviceError("CUDA: out of memory")

    def counted(name: str, *kinds: Any) -> Any:
        return Function(alone(name, *kinds), calls)

    copies = {name: Function(getattr(stream_calls, name), calls) for name in COPIES}
    fills = {name: Function(getattr(cu, name), calls) for name in FILLS}
    with (
        patch.object(memory, "cu", Module(cu, **fills)),
        patch.multiple(stream_calls, **copies),
        patch.object(launch, "alone", counted),
    ):
        yield [failed]
