"""Kernels: thread grid, fields, and body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpuop.base.errors import Loc
from gpuop.ir.layout import Layout, own
from gpuop.ir.nodes import AXES, GRID_AXES, Block, Declare, Effect, FieldParam, Index
from gpuop.ir.schedule_override import Pin
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import Extent, numbers
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import Shape
from gpuop.ir.visit import effects, fields_read

MOST_THREADS = 2**20  # threads of a group, on any device
PRECISIONS = ("exact", "contract", "fast")  # strictest first
EXACT = PRECISIONS[0]
Names = tuple[str, ...]  # of the extents of a grid; "" for one that is a number
OPEN_GROUPS = ((1, 1, 1), (1, 1, 256), (1, 4, 64), (1, 4, 64))  # of grids of 0 to 3 axes whose extents are arguments


@dataclass(frozen=True, slots=True)
class Output:
    """A written field and what it holds where nothing was written; `fill` None: everything is written.

    Attributes:
        over: the input that it may share memory with: a thread reads there only what it writes, before it does.
        complete: whether threads are to write all of it, though it starts from `fill`: nobody has said what else it holds.
        sparse: whether places that no thread writes are read by nobody.
        begins: the input whose values it holds when the threads begin, which read and write it anywhere.
    """

    param: FieldParam
    fill: float | None = None
    over: FieldParam | None = None
    complete: bool = False
    sparse: bool = False
    begins: FieldParam | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Launchable(ABC):
    """What a plan launches: a kernel, or what stands in the place of one and has no body to fuse.

    Its kinds are `Kernel`, `HostFunction`, `DeviceFunction`, `Iteration` of `fusion/iteration.py`, and `Prebuilt` of
    `runtime/execute.py`.

    Attributes:
        apart: why it is fused with nothing; empty for a kernel.
        where: of a Python function, on what it works; empty for others.
    """

    apart: ClassVar[str] = ""
    where: ClassVar[str] = ""
    name: str
    inputs: tuple[FieldParam, ...]
    outputs: tuple[Output, ...]
    loc: Loc | None = field(default=None, kw_only=True)

    @property
    def written(self) -> tuple[FieldParam, ...]:
        return tuple(output.param for output in self.outputs)

    @property
    def grid(self) -> Domain:
        """The points that it is about: those of its first output, where it has no threads of its own."""
        return Domain(self.outputs[0].param.type.field_shape)

    @property
    def has_dynamic(self) -> bool:
        """Whether no text is to know the extents of one of its inputs."""
        return False

    @property
    @abstractmethod
    def acts(self) -> bool:
        """Whether running it does more than writing its outputs, so that it matters how often it runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel(Launchable):
    """A body that every thread of the domain runs.

    Attributes:
        group: (layers × elements, rows, columns) of its work-groups, where it can tell them apart; they may be target
            expressions until the target is known.
        whole: whether the threads run too that rounding up to whole groups adds: the surplus. What they read of their own
            point is the nearest one's, and what they write there is dropped.
        target: what it is being lowered for.
        layouts: of the fields whose memory is not gpuop's own.
        points: the grid that it was recorded for, where threads handle several points of it.
        packed: whether its points are words of four columns of the user's, which are bytes.
        intermediates: fields of its own, on its grid: threads write them at their own points, and read what others wrote. Who
            computes them where, and where they lie, is for a schedule to say; `stages.py` takes the kernel apart at them.
        resident: how many of its work-groups a GPU's multiprocessor is to hold at least, where that is known to pay: code that
            few threads run gets no more registers than that leaves.
        pin: the schedule that a user chose.
        precision: how exactly its operators were recorded, of several the least so. It is a label: what it allowed has been
            done to the body, operation by operation, before anything was fused.
        remark: why it computes what it does in this way, for people.
        dynamic: fields of which no text is to know the extents of their grids (`extents.py`).
        named: those extents by name, of the threads' grid (None) and of each field, where it is lowered without knowing them:
            what it has as numbers then stands for any others.
        large: whether such a kernel is for outputs that CPUs write past their caches.
        per_thread: the points of it that a thread has along each axis, where extents are arguments and `points` are not None.
        looked: where Python has asked for extents while it was recorded, which may be constants of it then.
        called: of one of the library's operators, the user's line for which it was recorded, which its statements have; other
            calls use it again.
    """

    domain: Domain
    body: Block
    group: tuple[Extent, ...] | None = None
    target: Target | None = None
    layouts: tuple[tuple[FieldParam, Layout], ...] = ()
    points: Shape | None = None
    packed: bool = False
    whole: bool = False
    intermediates: tuple[FieldParam, ...] = ()
    resident: int = 0
    pin: Pin | None = None
    precision: str = EXACT
    remark: str = ""
    dynamic: frozenset[FieldParam] = frozenset()
    named: tuple[tuple[FieldParam | None, Names], ...] = ()
    large: bool = False
    per_thread: Shape | None = None
    looked: Loc | None = None
    called: Loc | None = None

    def layout(self, param: FieldParam) -> Layout:
        return dict(self.layouts).get(param) or own(param.type)

    def aligned(self, count: int) -> bool:
        """Whether one access takes so many columns of any array of users', as it does of rows of gpuop's own that are so long."""
        return all(layout.aligned(count) for _, layout in self.layouts)

    @property
    def work_group(self) -> Shape:
        """The work-groups that it runs in; the target must be known."""
        if self.group is not None:
            return Shape(numbers(self.group))
        return Shape(*OPEN_GROUPS[len(self.domain.shape)]) if self.named else self.domain.group

    def is_open(self, axis: str) -> bool:
        """Whether its extent along an axis is an argument."""
        names = dict(self.named).get(None, ())
        return any(name for each, name in zip(self.domain.axes, names, strict=False) if each == axis)

    @property
    def launched(self) -> Domain:
        """The threads that run: the domain's, and the surplus of whole groups. The target must be known."""
        if not self.whole:
            return self.domain
        axes, sizes = GRID_AXES[3 - len(self.domain.shape) :], self.work_group
        shape = (-(-self.domain.extent(axis) // sizes[AXES.index(axis)]) * sizes[AXES.index(axis)] for axis in axes)
        return Domain(Shape(*shape), self.domain.elements)

    def shared(self, space: str) -> tuple[Declare, ...]:
        """The declarations of memory that is not a thread's own: "local" or "constant"."""
        return tuple(stmt for stmt in self.body if isinstance(stmt, Declare) and stmt.array.space == space)

    def bounds(self, index: Index) -> tuple[int, int]:
        """The least and the greatest value of a thread constant."""
        extent = self.domain.extent(index.axis)
        if self.per_thread is not None and self.is_open(index.axis):
            extent += 1  # whether or not threads divide it, the last one may have fewer points than others
        size = (self.group or self.domain.group)[AXES.index(index.axis)] if index.axis != "element" else 1
        if not isinstance(size, int):  # any size: a group has a thread at least
            low = 1 if index.kind in ("local_size", "group_count") else index.offset
            most = {"global": extent - 1, "group": extent - 1, "group_count": extent}.get(index.kind, MOST_THREADS)
            return low, index.offset + most + (MOST_THREADS if self.whole and index.kind == "global" else 0)
        if self.whole and index.kind == "global":
            extent = -(-extent // size) * size
        high = {"global": extent - 1, "local": size - 1, "group": -(-extent // size) - 1}.get(index.kind)
        if high is not None:
            return index.offset, high + index.offset
        count = {"global_size": extent, "local_size": size, "group_count": -(-extent // size)}[index.kind]
        return 1 if self.is_open(index.axis) and index.kind != "local_size" else count, count

    @property
    def grid(self) -> Domain:
        return self.domain

    @property
    def has_dynamic(self) -> bool:
        return bool(self.dynamic)

    @property
    def shared_memory(self) -> set[FieldParam]:
        """The inputs and outputs that may have the same memory."""
        return {p for output in self.outputs if output.over is not None for p in (output.param, output.over)}

    @property
    def replaced(self) -> dict[FieldParam, FieldParam]:
        """Outputs that may be given the memory of the inputs that they begin as, as threads read nothing else of these."""
        begun = [output.begins for output in self.outputs]
        read = fields_read(self.body)
        return {
            output.param: output.begins
            for output in self.outputs
            if output.begins is not None and output.begins not in read and begun.count(output.begins) == 1
        }

    @property
    def acts(self) -> bool:
        return bool(effects(self.body) & Effect.EVERY_RUN)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HostFunction(Launchable):
    """A Python function: `run` makes arrays of the outputs from arrays of the inputs."""

    apart: ClassVar[str] = "runs on the host"
    where: ClassVar[str] = "on the host"
    run: Callable[[Sequence[Any]], Sequence[Any]]

    @property
    def acts(self) -> bool:
        return True  # for all that is known


@dataclass(frozen=True, slots=True)
class LibraryCost:
    """What a library has to do: operations on floats in all, and how often it reads and writes its arrays."""

    operations: float
    passes: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeviceFunction(Launchable):
    """A Python function that has a library compute on the device: `run` takes the device's arrays of the inputs and the outputs.

    Attributes:
        pure: whether it does nothing but fill its outputs, the same for equal inputs.
        cost: None where it is not known.
    """

    apart: ClassVar[str] = "is a library's work on the device"
    where: ClassVar[str] = "on the device's arrays"
    run: Callable[[Sequence[Any], Sequence[Any]], None]
    pure: bool = False
    cost: LibraryCost | None = None

    @property
    def acts(self) -> bool:
        return not self.pure
