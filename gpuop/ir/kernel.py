"""Kernels: thread grid, fields, and body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir.layout import Layout, own
from gpuop.ir.nodes import AXES, GRID_AXES, Block, Declare, Effect, FieldParam, Index
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import Extent, numbers
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import Shape
from gpuop.ir.visit import effects, fields_read


@dataclass(frozen=True, slots=True)
class Pin:
    """A method of `passes/schedules/`, by name, and parameters that stand for its own best guess; "plain" is none of them."""

    method: str
    parameters: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return " ".join((self.method, *(f"{name}={value}" for name, value in self.parameters)))


MOST_THREADS = 2**20  # threads of a group, on any device
PRECISIONS = ("exact", "contract", "fast")  # strictest first
EXACT = PRECISIONS[0]
Names = tuple[str, ...]  # names of the extents of a grid; "" for a number
OPEN_GROUPS = (
    (1, 1, 1),
    (1, 1, 256),
    (1, 4, 64),
    (1, 4, 64),
)  # work-groups of grids of 0 to 3 axes whose extents are arguments


@dataclass(frozen=True, slots=True)
class Output:
    """A written field, and its value at unwritten points; `fill` None: every point is written.

    Attributes:
        over: the input whose memory it may share: a thread reads there only the points that it writes, and before it does.
        complete: threads must write all of it, though it starts as `fill`, because no other value was specified.
        sparse: nobody reads the points that no thread writes.
        initial: the input whose values it has at the start; threads read and write it anywhere.
        unordered: the result is the same in whatever order threads read and write one place, so checks report no race.
    """

    param: FieldParam
    fill: float | None = None
    over: FieldParam | None = None
    complete: bool = False
    sparse: bool = False
    initial: FieldParam | None = None
    unordered: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Launchable(ABC):
    """A launch of a plan: a kernel, or a substitute without a body to fuse.

    Its kinds are `Kernel`, `HostFunction`, `DeviceFunction`, `Iteration` and `Reversal` of `fusion/iteration.py`, and `Prebuilt`
    of `runtime/execute.py`.

    Attributes:
        unfusible: why it is fused with nothing; empty for a kernel.
        where: the objects that a Python function works on; empty for others.
    """

    unfusible: ClassVar[str] = ""
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
        """Points of its first output, unless it has a thread grid."""
        return Domain(self.outputs[0].param.type.field_shape)

    @property
    def has_dynamic(self) -> bool:
        """True if generated text must not contain the extents of one of its inputs."""
        return False

    @property
    @abstractmethod
    def acts(self) -> bool:
        """True if it has effects besides writing its outputs, so that the number of runs matters."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel(Launchable):
    """A body that every thread of the domain runs.

    Attributes:
        group: (layers × elements, rows, columns) of its work-groups, if the result may depend on them; target expressions until
            the target is known.
        whole: tail threads, which rounding up to whole groups adds, run too. They read the nearest point in the place of their
            own, and their writes to it are dropped.
        target: the target of lowering.
        layouts: layouts of the fields in foreign memory.
        points: the recorded grid, if threads handle several points of it (thread coarsening).
        packed: its points are words of four columns of bytes (SWAR).
        intermediates: fields of the kernel itself, on its grid: threads write them at their own points and read the writes of
            others. A schedule decides who computes them and where they lie; `stages.py` splits the kernel at them.
        resident: least number of its work-groups on a GPU multiprocessor, where that is known to pay; it bounds the registers
            of code that few threads run.
        pin: the schedule that a user chose.
        precision: precision mode of its operators, the loosest of several. It is a label: the mode has been applied to the body,
            operation by operation, before fusion.
        remark: reason for this way of computing, for people.
        dynamic: fields whose grid extents must not be in generated text (`extents.py`).
        extents: of dynamic fields and of its grid those extents, in order, if others do not change.
        named: names of those extents, of the thread grid (None) and of each field, if lowered without them: its numbers are
            then placeholders.
        most: the greatest values of those extents that the kernel is for, by name.
        large: such a kernel is for outputs that CPUs write past their caches.
        per_thread: points per thread along each axis, if extents are arguments and `points` is set.
        together: the threads along each axis that have these points together, which are whole work-groups; None for one each.
        looked: line at which Python read extents while recording; they may have become constants.
        called: for a library operator, the user line of the first recording, which its statements carry; later calls reuse it.
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
    extents: tuple[int, ...] = ()
    named: tuple[tuple[FieldParam | None, Names], ...] = ()
    most: tuple[tuple[str, int], ...] = ()
    large: bool = False
    per_thread: Shape | None = None
    together: Shape | None = None
    looked: Loc | None = None
    called: Loc | None = None

    @property
    def machine(self) -> Target:
        """The target, which must be known."""
        assert self.target is not None
        return self.target

    def layout(self, param: FieldParam) -> Layout:
        return dict(self.layouts).get(param) or own(param.type)

    @property
    def layouts_in_rows(self) -> bool:
        """True if neighbouring points of a row are neighbours in memory in every array of the user."""
        return all(layout.in_rows() for _, layout in self.layouts)

    def aligned(self, count: int) -> bool:
        """True if one access may take this many columns of every array of the user, as it may of aligned rows in gpuop memory."""
        written = {*self.written}
        return all(
            layout.aligned(count) and (layout.period == 1 or param not in written or layout.alternates(param.type))
            for param, layout in self.layouts
        )

    @property
    def work_group(self) -> Shape:
        """Its work-groups; the target must be known."""
        if self.group is not None:
            return Shape(numbers(self.group))
        return Shape(*OPEN_GROUPS[len(self.domain.shape)]) if self.named else self.domain.group

    def name_of(self, axis: str) -> str:
        """The name of its extent along an axis; empty if that is a number."""
        return dict(zip(self.domain.axes, dict(self.named).get(None, ()), strict=False)).get(axis, "")

    def is_open(self, axis: str) -> bool:
        """True if its extent along an axis is an argument."""
        return bool(self.name_of(axis))

    def _reach(self, axis: str, anywhere: bool) -> int:
        """The number of threads along an axis, at most; `anywhere`: of all extents that the kernel is for."""
        name, n = self.name_of(axis), self.domain.extent(axis)
        per_thread = 1 if self.per_thread is None else Domain(self.per_thread).extent(axis)
        if name and anywhere:
            n = max(n, -(-dict(self.most)[name] // per_thread))
        return n + (bool(name) and self.per_thread is not None)  # the last thread may have fewer points than others

    @property
    def launched(self) -> Domain:
        """The threads that run: those of the domain, and the tail threads of whole groups. The target must be known."""
        if not self.whole:
            return self.domain
        axes, sizes = GRID_AXES[3 - len(self.domain.shape) :], self.work_group
        shape = (-(-self.domain.extent(axis) // sizes[AXES.index(axis)]) * sizes[AXES.index(axis)] for axis in axes)
        return Domain(Shape(*shape), self.domain.elements)

    def shared(self, space: str) -> tuple[Declare, ...]:
        """The declarations of local ("local") or constant ("constant") memory."""
        return tuple(stmt for stmt in self.body if isinstance(stmt, Declare) and stmt.array.space == space)

    def bounds(self, index: Index, anywhere: bool = False) -> tuple[int, int]:
        """The least and the greatest value of a thread constant; `anywhere`: for all extents that the kernel is for."""
        extent = self._reach(index.axis, anywhere)
        size = (self.group or self.domain.group)[AXES.index(index.axis)] if index.axis != "element" else 1
        if not isinstance(size, int):  # unknown size, at least one thread
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
        """Inputs and outputs that may share memory."""
        return {p for output in self.outputs if output.over is not None for p in (output.param, output.over)}

    @property
    def replaced(self) -> dict[FieldParam, FieldParam]:
        """Outputs that may take the memory of their initial inputs, because threads read nothing else of these."""
        initial = [output.initial for output in self.outputs]
        read = fields_read(self.body)
        return {
            output.param: output.initial
            for output in self.outputs
            if output.initial is not None and output.initial not in read and initial.count(output.initial) == 1
        }

    @property
    def acts(self) -> bool:
        return bool(effects(self.body) & Effect.EVERY_RUN)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HostFunction(Launchable):
    """A Python function: `run` computes arrays of the outputs from arrays of the inputs."""

    unfusible: ClassVar[str] = "runs on the host"
    where: ClassVar[str] = "on the host"
    run: Callable[[Sequence[Any]], Sequence[Any]]

    @property
    def acts(self) -> bool:
        return True  # unknown, so assumed


@dataclass(frozen=True, slots=True)
class LibraryCost:
    """Work of a library call: the number of float operations, and of passes over its arrays."""

    operations: float
    passes: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeviceFunction(Launchable):
    """A Python function that calls a library on the device: `run` takes device arrays of the inputs and the outputs.

    Attributes:
        pure: it only fills its outputs, equally for equal inputs.
        cost: None if unknown.
    """

    unfusible: ClassVar[str] = "is a library's work on the device"
    where: ClassVar[str] = "on the device's arrays"
    run: Callable[[Sequence[Any], Sequence[Any]], None]
    pure: bool = False
    cost: LibraryCost | None = None

    @property
    def acts(self) -> bool:
        return not self.pure
