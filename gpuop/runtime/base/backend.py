"""The interface of devices: rooms above this one use nothing else of a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import CALL
from gpuop.base.records import dataclass
from gpuop.codegen.c.dialect import Source
from gpuop.fusion.kernel_limits import LEAST
from gpuop.ir.kernel import MOST_THREADS, Kernel
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.runtime.base.host_arrays import array_of
from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch, OneByOne
from gpuop.runtime.base.stages import Stages
from gpuop.runtime.base.stream_arrays import StreamArrays

Array = NDArray[Any]
NO_ARRAYS = (
    "{} has no arrays for a DeviceOperator, as CUDA devices and CPUs have; a gp.HostOperator takes values to the host"
)
Buffer = Any  # a memory handle of the device
NO_BUNDLES = "{} interprets what was recorded, which is not in a bundle; use a device of OpenCL or CUDA"
Argument = Any  # a Buffer, or the tuple of scalars of a by-value parameter
Memory = tuple[FieldType, Buffer]
PAGE = 4096  # bytes
ALIGNED = 256  # bytes; the alignment that kernels assume of memory without a layout of its own
Part = Callable[[], Any]
Queue = TypeVar("Queue", bound="Backend")
Method = TypeVar("Method", bound=Callable[..., Any])


def aligned(nbytes: int) -> int:
    """Return a number of bytes, one at least, with those up to the next aligned address."""
    return -(-max(nbytes, 1) // ALIGNED) * ALIGNED


def as_device_errors(method: Method) -> Method:
    """Return a backend's method that raises the driver's errors as DeviceErrors."""

    @wraps(method)
    def guarded(self: Backend, *args: Any, **options: Any) -> Any:
        try:
            return method(self, *args, **options)
        except self.refusals as refusal:
            raise self.refused(refusal) from None

    return cast(Method, guarded)


def indivisible(part: Part) -> bool:
    """Return whether a part is one call of a C function: signal handlers run between bytecodes, so before or after it."""
    return not isinstance(part.func if isinstance(part, partial) else part, (FunctionType, MethodType))


def keeping(owner: Any, part: partial[Any]) -> partial[Any]:
    """Return the part with a reference to an object that must live as long."""
    vars(part)["owner"] = owner
    return part


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with its arguments set.

    Attributes:
        parts: called in order they enqueue the kernel; each returns at once, None or what `Backend.seconds` takes. A part
            that is not `indivisible` may run again after an exception.
        adjust: takes the position of a by-value argument and the scalars that later runs get for it.
    """

    parts: tuple[Part, ...]
    adjust: Callable[[int, Argument], None]

    def run(self) -> None:
        for part in self.parts:
            part()


class Backend(ABC):
    """One in-order queue of a device. Buffers hold fields as planes: one contiguous grid for each tensor element.

    Attributes:
        main: the device's first queue; the queues of a device share its memory and programs.
        queue_name: "" for the main queue.
        queues: the other queues, by name and priority.
        alone: a mark after the work that was enqueued while the main queue was the only one.
        max_work_group_size: threads of a work-group, at most.
        compute_units: units that run work-groups in parallel.
        model: the device's name, whatever its driver.
        checked: whether the execution of kernels is checked.
    """

    name: str
    queue_name = ""
    main: Backend
    queues: dict[tuple[str, str], Backend]
    alone: Any = None
    description: str
    model = ""
    checked = False
    target: Target  # the target that code is generated for
    identity = ""  # device, driver, compiler and options, which determine the binary of a text
    max_work_group_size = MOST_THREADS
    compute_units = 1
    total_memory = 0  # bytes of the device's memory; 0 if it uses host memory only
    limits = LEAST  # resources that a kernel planned for the device may use
    stages: Stages | None = None  # of the queue, if the device has memory of its own
    refusals: tuple[type[Exception], ...] = ()  # the driver's exceptions
    interprets = False  # whether an interpreter runs the kernels, so that their times mean nothing
    only_enqueues: bool = True  # a failed launch has written nothing, so a launch may update a state in place

    def __new__(cls: type[Queue], *_: Any, **__: Any) -> Queue:
        self = super().__new__(cls)
        self.main, self.queues = self, {}
        return self

    @abstractmethod
    def empty(self, kind: FieldType) -> Buffer:
        """Allocate memory for a field, with undefined contents; DeviceError if there is not enough."""

    @abstractmethod
    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        """Return a buffer with a copy of these planes."""

    @abstractmethod
    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        """Copy a buffer on the device, in order with launches."""

    @abstractmethod
    def write(self, buffer: Any, planes: Array) -> None:
        """Overwrite a buffer."""

    @abstractmethod
    def download(self, kind: FieldType, buffer: Any) -> Array:
        """Return the planes of a field in new memory; waits."""

    def fetch(self, kind: FieldType, buffer: Any, array: Array) -> None:
        """Enqueue a copy to a contiguous host array with the layout of the buffer; both are referred to until it is done."""
        raise AssertionError(f"{self.name} does not only enqueue")

    def bring(self, kind: FieldType, buffer: Any, array: Array) -> None:
        """Enqueue a copy from the host, or write at once: the array may not change until that is done."""
        self.write(buffer, array)

    @abstractmethod
    def keep(self, owner: Any) -> None:
        """Keep a reference to host memory until the work enqueued so far is done."""

    def host_memory(self, nbytes: int) -> Array:
        """Allocate host memory with the fastest copies to and from the device; by default page-aligned."""
        whole = np.empty(nbytes + PAGE, np.uint8)
        start = -whole.ctypes.data % PAGE
        return whole[start : start + nbytes]

    def locked(self, memory: Array) -> Array:
        """Page-lock whole pages of host memory for fast copies, if the driver can do that."""
        return memory

    @abstractmethod
    def compile(self, kernel: Kernel) -> Any:
        """Return a program for `bind`. CompileError with numbered source; DeviceError for unsupported types."""

    def check(self, kernel: Kernel) -> None:
        """Raise a DeviceError if the kernel exceeds the device's limits, as far as that shows before compilation."""
        return

    def compile_all(self, kernels: Sequence[Kernel]) -> list[Any]:
        """Compile each kernel of a plan."""
        return [self.compile(kernel) for kernel in kernels]

    def load(self, source: Source, binary: bytes | None) -> Any:
        """Return a program for `bind`, from generated text or from the bundle's binary (a cubin, PTX).

        Raises:
            DeviceError: the device cannot run such code, or lacks a type.
        """
        raise DeviceError(NO_BUNDLES.format(self.name))

    @abstractmethod
    def bind(self, program: Any, arguments: Sequence[Argument]) -> Launch:
        """Return a launch of a program with these arguments."""

    def once(self, program: Any, arguments: Sequence[Argument]) -> None:
        """Launch a program once, with arguments that are not used again."""
        self.launch(self.bind(program, arguments).parts)

    def launch_list(self, launches: Sequence[ListedLaunch]) -> LaunchList:
        """Return launches that often run with other memory."""
        return OneByOne(launches, self.once)

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for all enqueued work."""

    def trim(self) -> None:
        """Wait for all enqueued work, and release the memory pool."""
        self.synchronize()

    def wrap(self, array: Array) -> Buffer | None:
        """Return the memory of a host array, first to last element, as a buffer; None if the device has memory of its own.

        No stride may be negative. The caller keeps the array alive and unchanged until `settle`.
        """
        return None

    def settle(self, buffers: Iterable[Buffer]) -> None:
        """Wait for all launches, and write the contents of wrapped buffers back to their arrays."""
        self.synchronize()

    # --- time -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def record(self) -> Any:
        """Return a mark, which is reached when all work enqueued before it is done."""

    @abstractmethod
    def reached(self, mark: Any) -> bool:
        """Return whether the work before a mark is done or has failed."""

    @abstractmethod
    def wait(self, mark: Any) -> None:
        """Wait on the host until a mark is reached; DeviceError if the work before it failed."""

    @abstractmethod
    def between(self, first: Any, last: Any) -> float:
        """Return the seconds between two reached marks, by the device's clock."""

    def span(self, ran: Sequence[Any], since: Any) -> tuple[float, float]:
        """Return the start of a finished launch, in seconds since a mark, and its duration, from its parts' results."""
        raise AssertionError(f"{self.name} does not only enqueue")

    def label(self, name: str) -> Part:
        """Begin a range with this name in the vendor's tools; the function that is returned ends it."""
        return bool

    @abstractmethod
    def follow(self, mark: Any) -> None:
        """Make later work wait, on the device, for a mark of another queue."""

    @abstractmethod
    def another(self, priority: str) -> Backend:
        """Return a new queue of the device, with a priority ("high", "normal", "low") if the driver has priorities."""

    def take(self, buffer: Buffer, owner: Backend, mark: Any) -> Buffer:
        """Return a buffer of another queue for later work in this one, which waits for its values.

        Args:
            mark: a mark after the work that computes them; None: all work of that queue so far.
        """
        if owner is not self:
            self.follow(owner.record() if mark is None else mark)
        return buffer

    # --- memory of others -----------------------------------------------------------------------------------------

    def borrow(self, array: Any) -> Any:
        """Return another library's array as a buffer whose `.array` has its layout; launches wait for its values.

        Raises:
            DeviceError: this device cannot use the memory.
        """
        raise DeviceError(
            f"{self.name} cannot use the memory of this array, which is on another device: choose that device with "
            "`gp.use_device`, or pass a NumPy array"
        )

    def lend(self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Any:
        """Return an object from which other libraries import a buffer, strides in elements; DeviceError if there is none."""
        raise DeviceError(f"other libraries do not know the memory of {self.name}")

    def arrays_of(self, library: str) -> StreamArrays | None:
        """Return the access to arrays of a library on this device whose functions run in streams; None if there is none."""
        return None

    def arrays(self, inputs: Sequence[Memory], outputs: Sequence[Memory]) -> AbstractContextManager[list[Any]]:
        """Give fields, none of them complex, as arrays of a library that computes in this queue, inside a `with`."""
        raise DeviceError(NO_ARRAYS.format(self.name))

    def measuring(self) -> Backend:
        """Return this queue with launches that `seconds` can time, if the device has a clock."""
        return self

    def sequence(self, launches: Sequence[Launch]) -> list[Part]:
        """Return the parts of launches in order, for repeated use; one part for as many launches as the device takes at once."""
        return [part for launch in launches for part in launch.parts]

    def launch(self, parts: Iterable[Part], ran: list[Any] | None = None) -> None:
        """Run parts of launches in order.

        Args:
            ran: gains the result of each part in the same step as its call: no signal handler runs between the two.

        Raises:
            DeviceError: the driver refuses a launch, for example when memory is exhausted only now.
        """
        try:
            (deque(maxlen=0) if ran is None else ran).extend(map(CALL, parts))
        except self.refusals as refused:
            raise self.refused(refused) from None

    def refused(self, refusal: Exception) -> DeviceError:
        """Return the DeviceError for a driver's error."""
        return DeviceError(f"{self.name}: {refusal}")

    def seconds(self, ran: Sequence[Any]) -> float | None:
        """Return the device's seconds for a finished launch, from its parts' results; None if it has no clock."""
        return None


def download(kind: FieldType, value: Argument, backend: Backend) -> Array:
    """Return the array of a value (a buffer, or the scalars of a parameter); waits."""
    if isinstance(value, tuple):
        return array_of(kind, np.array(value, kind.memory_dtype))
    return array_of(kind, backend.download(kind, value))
