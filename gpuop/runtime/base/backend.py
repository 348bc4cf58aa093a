"""What a device must offer, and nothing more; everything above it is written against this."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import CALL
from gpuop.codegen.c.dialect import Source
from gpuop.fusion.kernel_limits import LEAST
from gpuop.ir.kernel import MOST_THREADS, Kernel
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.runtime.base.host_arrays import array_of
from gpuop.runtime.base.host_copies import HostCopies

Array = NDArray[Any]
NO_ARRAYS = (
    "{} has no arrays for a DeviceOperator, as CUDA's devices and CPUs have; a gp.HostOperator takes values to the host"
)
Buffer = Any  # a device's own handle of memory
NO_BUNDLES = "{} interprets what was recorded, which is not in a bundle; use a device of OpenCL or CUDA"
Argument = Any  # a Buffer, or the tuple of scalars of a by-value parameter
Memory = tuple[FieldType, Buffer]
Part = Callable[[], Any]
Queue = TypeVar("Queue", bound="Backend")
Method = TypeVar("Method", bound=Callable[..., Any])


def as_device_errors(method: Method) -> Method:
    """A backend's method that raises the driver's errors as DeviceErrors."""

    @wraps(method)
    def guarded(self: Backend, *args: Any, **options: Any) -> Any:
        try:
            return method(self, *args, **options)
        except self.refusals as refusal:
            raise self.refused(refusal) from None

    return cast(Method, guarded)


def indivisible(part: Part) -> bool:
    """Whether a part is one call of a C function: a signal's handler runs between bytecodes, so it raises before or after it."""
    return not isinstance(part.func if isinstance(part, partial) else part, (FunctionType, MethodType))


def keeping(owner: Any, part: partial[Any]) -> partial[Any]:
    """A part, by which what it needs lives."""
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


class Backend(HostCopies):
    """A queue of a device, which runs in order. Buffers hold fields as planes: one contiguous grid for each tensor element.

    Attributes:
        main: the device's first queue; all of a device have the same memory and programs.
        queue_name: "" of the main one.
        queues: the others, by name and priority.
        alone: a mark behind all that was enqueued while there were no others.
        max_work_group_size: threads of a work-group, at most.
        compute_units: what runs work-groups side by side.
        model: the device's name, whatever its driver.
        checked: whether kernels are checked while they run.
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
    identity = ""  # device, driver, compiler and options: together they determine the binary of a text
    max_work_group_size = MOST_THREADS
    compute_units = 1
    total_memory = 0  # bytes of the device's memory; 0 where it works in the host's alone
    limits = LEAST  # what a kernel that is planned for it may use
    refusals: tuple[type[Exception], ...] = ()  # the driver's own exceptions
    interprets = False  # whether no driver runs kernels, so that nothing is known of how long they take
    only_enqueues: bool = True  # a launch that raises has written nothing, so it may update a state in place

    def __new__(cls: type[Queue], *_: Any, **__: Any) -> Queue:
        self = super().__new__(cls)
        self.main, self.queues = self, {}
        return self

    @abstractmethod
    def empty(self, kind: FieldType) -> Buffer:
        """Memory for a field; contents undefined. DeviceError when there is none."""

    @abstractmethod
    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        """A buffer with these planes, which may change afterwards."""

    @abstractmethod
    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        """Copy a buffer on the device, in order with launches."""

    @abstractmethod
    def compile(self, kernel: Kernel) -> Any:
        """Something that `bind` takes. CompileError with numbered source; DeviceError for types it lacks."""

    def check(self, kernel: Kernel) -> None:
        """DeviceError for a kernel that asks for more than the device has, as far as that is known without compiling it."""
        return

    def compile_all(self, kernels: Sequence[Kernel]) -> list[Any]:
        """What `compile` gives for each kernel of a plan."""
        return [self.compile(kernel) for kernel in kernels]

    def load(self, source: Source, binary: bytes | None) -> Any:
        """Something that `bind` takes, of generated text, or of a binary (a cubin, PTX) where the bundle has one.

        Raises:
            DeviceError: the device runs no such code, or lacks a type.
        """
        raise DeviceError(NO_BUNDLES.format(self.name))

    @abstractmethod
    def bind(self, program: Any, arguments: Sequence[Argument]) -> Launch:
        """A launch with these arguments."""

    def once(self, program: Any, arguments: Sequence[Argument]) -> None:
        """Launch a single time: these arguments are not changed or launched again, so nothing is kept for that."""
        self.launch(self.bind(program, arguments).parts)

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything enqueued."""

    def trim(self) -> None:
        """Wait for everything enqueued, and give back memory that is kept for fields to come."""
        self.synchronize()

    def wrap(self, array: Array) -> Buffer | None:
        """The memory from an array's first element to its last as a buffer, where the device works in the host's; else None.

        No stride may be negative. The array must live, and stay as it is, until `settle`: nothing else keeps it.
        """
        return None

    def settle(self, buffers: Iterable[Buffer]) -> None:
        """Wait for all launches, and until what they wrote to wrapped buffers is in the arrays that these wrap."""
        self.synchronize()

    # --- time -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def record(self) -> Any:
        """A mark in the queue: it is reached when what was enqueued before is done."""

    @abstractmethod
    def reached(self, mark: Any) -> bool:
        """Whether what was enqueued before a mark is done, or has failed."""

    @abstractmethod
    def wait(self, mark: Any) -> None:
        """Wait on the host until a mark is reached; DeviceError where what was enqueued failed."""

    @abstractmethod
    def between(self, first: Any, last: Any) -> float:
        """Seconds from one mark to another one by the device's clock; both are reached."""

    def span(self, ran: Sequence[Any], since: Any) -> tuple[float, float]:
        """When a launch began, in seconds since a mark, and how long it took, of what its parts returned; it is done."""
        raise AssertionError(f"{self.name} does not only enqueue")

    def label(self, name: str) -> Part:
        """Show a name in the vendor's tools for what the host does from now on, until the call of what is returned."""
        return bool

    @abstractmethod
    def follow(self, mark: Any) -> None:
        """What is enqueued from now on waits, on the device, for a mark of another queue."""

    @abstractmethod
    def another(self, priority: str) -> Backend:
        """Another queue of the device, of a priority ("high", "normal", "low") where the driver has such."""

    def take(self, buffer: Buffer, owner: Backend, mark: Any) -> Buffer:
        """A buffer of another queue's for what is enqueued here, which waits for its values.

        Args:
            mark: behind what computes them; None: whatever that queue has now.
        """
        if owner is not self:
            self.follow(owner.record() if mark is None else mark)
        return buffer

    # --- memory of others -----------------------------------------------------------------------------------------

    def borrow(self, array: Any) -> Any:
        """The memory of another library's array, as a buffer whose `.array` says how it lies; launches wait for its values.

        Raises:
            DeviceError: this device cannot use it.
        """
        raise DeviceError(
            f"{self.name} cannot use the memory of this array, which is on another device: choose that device with "
            "`gp.use_device`, or pass a NumPy array"
        )

    def lend(self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Any:
        """What other libraries take a buffer from, strides in elements; DeviceError where they have no use for it."""
        raise DeviceError(f"other libraries do not know the memory of {self.name}")

    def arrays(self, inputs: Sequence[Memory], outputs: Sequence[Memory]) -> AbstractContextManager[list[Any]]:
        """Fields, none of them complex, as arrays of a library that computes on the device, in its order, inside a `with`."""
        raise DeviceError(NO_ARRAYS.format(self.name))

    def measuring(self) -> Backend:
        """The same queue, where `seconds` knows how long a launch took, if the device can say so."""
        return self

    def sequence(self, launches: Sequence[Launch]) -> list[Part]:
        """The parts of launches in order, to run again and again; one for as many launches as the device takes at once."""
        return [part for launch in launches for part in launch.parts]

    def launch(self, parts: Iterable[Part], ran: list[Any] | None = None) -> None:
        """Run parts of launches in order.

        Args:
            ran: gains what each part returns, in the same step as its call: no handler of a signal runs between the two.

        Raises:
            DeviceError: the driver refuses a launch, as when memory is exhausted only now.
        """
        try:
            (deque(maxlen=0) if ran is None else ran).extend(map(CALL, parts))
        except self.refusals as refused:
            raise self.refused(refused) from None

    def refused(self, refusal: Exception) -> DeviceError:
        """What is raised for a driver's error."""
        return DeviceError(f"{self.name}: {refusal}")

    def seconds(self, ran: Sequence[Any]) -> float | None:
        """What the device took for a launch that is done, of what its parts returned; None where it does not say."""
        return None


def download(kind: FieldType, value: Argument, backend: Backend) -> Array:
    """The array of a value, which is a buffer or a parameter's scalars; waits."""
    if isinstance(value, tuple):
        return array_of(kind, np.array(value, kind.storage.numpy))
    return array_of(kind, backend.download(kind, value))
