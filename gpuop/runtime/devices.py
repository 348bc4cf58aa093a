"""The choice of a device: discovery, opening, self-test, and the device in use."""

from __future__ import annotations

import copyreg
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from gpuop.base.config import config
from gpuop.base.errors import DeviceError, GpuopError
from gpuop.base.misspelt import hinted
from gpuop.base.records import dataclass
from gpuop.base.reentrant import Entered, context
from gpuop.base.system import in_forked_child
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.base.current_queue import Key, in_use, queue_of
from gpuop.runtime.base.current_queue import chosen as queue_chosen
from gpuop.runtime.base.interruptible import abandon
from gpuop.runtime.cuda import device as cuda_device
from gpuop.runtime.cuda.device import Cuda
from gpuop.runtime.opencl.device import OpenCL
from gpuop.runtime.opencl.discovery import GPU, device_list
from gpuop.runtime.reference.device import Reference
from gpuop.runtime.reference.gpu_device import TARGETS, ReferenceGPU, described
from gpuop.runtime.self_test import mistake

FORKED = (
    "a driver that was loaded before a process was forked does not work in it, and may wait for ever; start processes with "
    '`multiprocessing.get_context("spawn")`, or compute on the device `reference` there'
)
_open: dict[str, Backend] = {}  # by name; "reference checked" is the device that checks
_failed: dict[str, str] = {}  # reasons of failed devices
_opening = threading.RLock()
_discovered: list[tuple[Device, Any]] | None = None
# devices of `use_device`, and whether they are checked
_chosen: ContextVar[tuple[tuple[str | Device | Backend, bool], ...]] = ContextVar("devices of gpuop", default=())
_process_choice: list[str | Device | Backend] = []  # the choice of `set_device`: no device or one
_forked = False  # whether the process was forked after drivers were loaded


@dataclass(frozen=True)
class Device:
    """A device.

    Attributes:
        name: "opencl:0", "reference", …
        description: its model and driver, for people.
        problem: the reason why it cannot be used, or None.
        aliases: other names of it, such as "opencl:gpu".
    """

    name: str
    description: str
    problem: str | None = None
    aliases: tuple[str, ...] = ()


def cuda_devices() -> list[tuple[Device, Any]]:
    problem = cuda_device.missing()
    if problem is not None:
        return [(Device("cuda:0", "NVIDIA GPU through CUDA", problem), None)]
    names = [(f"cuda:{number}", model) for number, model in enumerate(cuda_device.device_list())]
    return [
        (Device(name, f"{model} (CUDA)"), partial(cuda_device.Cuda, name, n)) for n, (name, model) in enumerate(names)
    ]


def opencl_devices() -> list[tuple[Device, Any]]:
    try:
        listed = sorted(device_list(), key=_rank)
        problem = "pyopencl finds no driver; `pip install '.[cpu]'` in gpuop's checkout brings one for x86-64, or install PoCL"
    except ImportError as missing:
        listed, problem = [], f"{missing}; install it with `pip install '.[cpu]'` in gpuop's checkout"
    if not listed:
        return [(Device("opencl:0", "OpenCL", problem), None)]
    devices, kinds = [], set()
    for number, (platform, device) in enumerate(listed):
        kind, name = "gpu" if _is_gpu(device) else "cpu", f"opencl:{number}"
        alias = () if kind in kinds else (f"opencl:{kind}",)
        kinds.add(kind)
        description = f"{device.name.strip()} ({platform})"
        devices.append((Device(name, description, None, alias), partial(OpenCL, name, platform, device)))
    return devices


def reference_gpus() -> list[tuple[Device, Any]]:
    """Return the interpreters of GPU kernels."""
    return [(Device(name, described(name)), partial(ReferenceGPU, name)) for name in TARGETS]


def _is_gpu(device: Any) -> bool:
    return bool(device.type & GPU)


def _rank(entry: tuple[str, Any]) -> tuple[bool, bool, str]:
    """GPUs first; of CPU drivers Intel's, whose compiler vectorises."""
    platform, device = entry
    return not _is_gpu(device), "intel" not in platform.lower(), platform


def discover() -> list[tuple[Device, Any]]:
    """Return every device and its opener, best first; the reference is always the last."""
    global _discovered
    if _discovered is None:
        _discovered = [*cuda_devices(), *opencl_devices(), _reference()]
    return _discovered


def _reference() -> tuple[Device, Any]:
    return Device("reference", Reference.description), Reference


def devices() -> list[Device]:
    """Return the devices that pass a self-test, best first; `gpuop devices` also prints the others and why.

    Returns:
        A list of Devices; the reference is the last. Interpreters of GPU kernels are opened by name alone.
    """
    return [device for device in _examined(discover()) if device.problem is None]


def examined() -> list[Device]:
    """Return all devices, with their problems if any, and the interpreters of GPU kernels."""
    return _examined([*discover(), *reference_gpus()])


def _examined(candidates: list[tuple[Device, Any]]) -> list[Device]:
    out = []
    for device, _ in candidates:
        if device.problem is None:
            try:
                opened = open_device(device.name)
                device = Device(device.name, opened.description, None, device.aliases)
            except GpuopError as failed:
                device = Device(device.name, device.description, str(failed), device.aliases)
        out.append(device)
    return out


def device_name(device: str | Device | Backend) -> str:
    """Return the name of a device: `name` itself, or that of a row of `devices()` or of an open device.

    Raises:
        DeviceError: it is none of these.
    """
    if isinstance(device, (Device, Backend)):
        return device.name
    if not isinstance(device, str):
        raise DeviceError(
            f'a device is a name, as in device="cpu", or one of gpuop.devices(), not {type(device).__name__}: {device!r:.60}'
        )
    return device


@hinted
def open_device(name: str | Device | None = None, checked: bool = False) -> Backend:
    """Return the device of a name, opened and tested once, as its current queue; without a name the device in use.

    A checked device is another one than the unchecked device of the same name.

    Args:
        name: "cuda:0", "opencl:1", "opencl:gpu", "gpu", "reference"…, or one of those that `devices` lists; or "reference:sm_90",
            "reference:sm_75" or "reference:gpu", which plan as for that GPU and interpret its kernels: slowly,
            but each access to memory is checked.
        checked: one that checks the execution of kernels, as in `use_device`.

    Returns:
        A Backend: `name`, `description`, `max_work_group_size` and `compute_units` are for users, the rest is gpuop's own.

    Raises:
        DeviceError: there is no such device, it fails the self-test, or it is not the name of one.
        GpuopError: a setting in the environment has none of its values.
    """
    if name is None:
        return current()
    config.check()
    device, opener = _listed(device_name(name))
    return _opened_once(device.name, opener, checked)


def _listed(name: str) -> tuple[Device, Any]:
    """Return the device of a name and its opener; DeviceError if there is none."""
    name = _specific(name)
    interpreters = [_reference(), *reference_gpus()]  # they need no driver, so none is loaded for them
    among = interpreters if name in [device.name for device, _ in interpreters] else discover()
    for device, opener in among:
        if name != device.name and name not in device.aliases:
            continue
        if device.problem is not None:
            raise DeviceError(f"{name}: {device.problem}")
        return device, opener
    all_devices = [device for device, _ in discover()]
    names = ", ".join(n for device in all_devices if device.problem is None for n in (device.name, *device.aliases))
    missing = "".join(f"; not {device.name}: {device.problem}" for device in all_devices if device.problem is not None)
    raise DeviceError(f"there is no device {name!r}; found: {names}{missing}")


def _opened_once(name: str, opener: Any, checked: bool) -> Backend:
    with _opening:
        if name in _failed:
            raise DeviceError(_failed[name])
        key = f"{name} checked" if checked else name
        if key not in _open:
            try:
                _open[key] = _tested(name, opener, checked)
            except DeviceError as failed:
                _failed[name] = str(failed)
                raise
        return in_use(_open[key])


def _specific(name: str) -> str:
    """Return the first device of a kind for "cpu" and "gpu", and other names unchanged."""
    choices = {"gpu": ("cuda:0", "opencl:gpu"), "cpu": ("opencl:cpu",)}.get(name)
    if choices is None:
        return name
    usable = {n for device, _ in discover() if device.problem is None for n in (device.name, *device.aliases)}
    return next((n for n in choices if n in usable), name)


def _tested(name: str, opener: Any, checked: bool) -> Backend:
    planning = threading.Thread(target=import_module, args=("networkx",), name="gpuop imports networkx", daemon=True)
    planning.start()  # drivers start and compile meanwhile, outside of Python
    try:
        backend: Backend = opener(checked=checked)
        wrong = mistake(backend)
    except Exception as failed:  # any failure of a driver skips the device
        raise DeviceError(f"{name} fails the self-test: {failed}") from failed
    finally:
        planning.join()
    if wrong:
        raise DeviceError(f"{name} fails the self-test: {wrong}")
    return backend


def _brief(failed: DeviceError) -> str:
    """Return the first line of an error for a warning: messages of compilers go on with the text of a kernel."""
    first, *more = str(failed).splitlines()
    return f"{first} (`gpuop devices` prints the rest)" if more else first


# --- choice -----------------------------------------------------------------------------------------------------------


def current() -> Backend:
    """Return the device in use: of `use_device`, else `set_device`, else GPUOP_DEVICE, else the first that works."""
    checked = config.debug > 0
    choices = _chosen.get()
    if choices:
        return opened(*choices[-1])
    if _process_choice:
        return opened(_process_choice[-1], checked)
    if config.device:
        try:
            return opened(config.device, checked)
        except DeviceError as failed:
            raise DeviceError(f"GPUOP_DEVICE={config.device}: {failed}") from None
    if _forked:
        raise DeviceError(f"no device was chosen, and {FORKED}")
    for device, _ in _discovered or discover():
        if device.problem is None:
            try:
                return opened(device.name, checked)
            except DeviceError as failed:
                warnings.warn(f"gpuop skips a device: {_brief(failed)}", stacklevel=2)
    raise DeviceError("no device works, not even the reference")


@hinted
def use_device(name: str | Device | Backend, checked: bool = False) -> Entered[Backend]:
    """Use a device inside a `with`, in this thread, or this task of asyncio.

    Threads do not move one another's work: one that is started inside has the device that `set_device` chose, or the default.
    What a graph runs in threads of its own, and sources and sinks that it calls there, have the device of who made them.

    Args:
        name: as of `device`; or a Backend, as `device` gives it or of one's own, which is used as it is.
        checked: check the execution of kernels, as GPUOP_DEBUG does too: every device reports assertions that fail
            (`_assert`); the reference also reports accesses outside arrays, outside tensors and under border="unchecked",
            local memory that is read before it is written, data races, outputs without a `default=` that are written in part,
            divergent barriers, integer division by zero, and integers of 8 and 16 bits that wrap around in `+ - * << **` of
            one's own operators, where the result is used and no `& number` takes its low bits.

    Returns:
        A context manager, which gives the Backend, any number of times.

    Raises:
        DeviceError: there is no such device, at once; or, from the `with`, it fails the self-test.
    """
    if not isinstance(name, Backend):
        _listed(device_name(name))
    return _use_device(name, checked)


@context
def _use_device(name: str | Device | Backend, checked: bool) -> Iterator[Backend]:
    choice = (name, checked or config.debug > 0)
    backend = opened(*choice)
    _chosen.set((*_chosen.get(), choice))
    try:
        yield backend
    finally:
        left = list(_chosen.get())
        if choice in left:  # a generator may end in another context than it began in
            del left[len(left) - 1 - left[::-1].index(choice)]  # the last: an outer one may have chosen the same
            _chosen.set(tuple(left))


@hinted
def set_device(name: str | Device | Backend | None) -> None:
    """Choose the device of the process: of all threads, wherever no `use_device` stands around the work.

    It comes before GPUOP_DEVICE. Workers of a cluster that have a GPU each choose theirs so, once.

    Args:
        name: as of `use_device`; None leaves the choice to GPUOP_DEVICE again, or to gpuop.

    Raises:
        DeviceError: there is no such device, or it fails the self-test; then the choice is as it was.
    """
    choice = [] if name is None else [name]
    for each in choice:
        opened(each, config.debug > 0)
    _process_choice[:] = choice


def opened(name: str | Device | Backend, checked: bool) -> Backend:
    """Return an open device; a Backend is used as it is."""
    if type(name) is not str:
        if isinstance(name, Backend):
            return in_use(name)
        name = device_name(name)
    key = f"{name} checked" if checked else name
    if key in _open:
        device = _open[key]
        if device.name == name and type(device) is not _ForkedDevice:
            return device if queue_chosen.get() is None else in_use(device)
    return open_device(name, checked)


def usable() -> list[Backend]:
    """Return every queue of the open devices that work in this process."""
    opened = [device for device in _open.values() if not isinstance(device, _ForkedDevice)]
    return [queue for device in opened for queue in (device, *device.queues.values())]


def _sent(backend: Backend) -> tuple[Any, ...]:
    """Return the pickled form of an open device or queue: its name, to be opened in the other process."""
    main = backend.main
    queue = next((key for key, other in main.queues.items() if other is backend), None)
    return _received, (main.name, main.checked, queue)


def _received(name: str, checked: bool, queue: Key | None) -> Backend:
    device = open_device(name, checked).main
    return device if queue is None else queue_of(device, queue)


for _kind in (Cuda, OpenCL, Reference, ReferenceGPU):
    copyreg.pickle(_kind, _sent)


# --- processes that are forked ----------------------------------------------------------------------------------------


class _ForkedDevice(Backend):
    """An open device in a forked process, where it cannot be used."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("name", "main", "__class__"):
            return super().__getattribute__(name)
        raise DeviceError(f"{self.name}: {FORKED}")


def _in_child() -> None:
    global _discovered, _forked
    _opening._at_fork_reinit()  # type: ignore[attr-defined]
    if _discovered is None:
        return
    _forked = any(device.problem is None and device.name != "reference" for device, _ in _discovered)
    _discovered = [
        (device, opener)
        if device.name == "reference" or device.problem is not None
        else (replace(device, problem=FORKED), None)
        for device, opener in _discovered
    ]
    abandon()
    for device in _open.values():
        for backend in () if isinstance(device, Reference) else (*device.queues.values(), device):
            backend.__class__ = _ForkedDevice  # type: ignore[type-abstract]


in_forked_child(_in_child)
