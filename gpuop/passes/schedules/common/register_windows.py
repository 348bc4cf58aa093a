"""Windows: how far around its own points a thread reads, of inputs and of what earlier stages of its kernel computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuop.base.lru import BoundedCache
from gpuop.ir.analysis.stages import stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Const, Expr, FieldParam, Index, Read
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import elements, is_own, is_plain

Span = tuple[int, int]  # the least and the greatest
LONG = 32  # points along an axis from which on it does not matter how many they are
MIRRORED = ("reflect", "symmetric")


@dataclass(frozen=True)
class View:
    """An element of a field's tensor, seen through a border, on the line of columns that is `across` away along the other axes;
    0 along the axis that a thread walks. Stages have views of their own of intermediates: `reader` is the stage, 0 of inputs.
    What is `shared` threads beside it load or compute.
    """

    field: FieldParam
    element: Expr
    border: str
    fill: Const | None
    across: tuple[int, ...]
    reader: int = 0
    shared: bool = False


@dataclass(frozen=True)
class Window:
    """How far a view reaches: along the axis that a thread walks, and along columns, of which 0 is one."""

    rows: Span
    columns: Span

    def joined(self, other: Window) -> Window:
        return Window(_joined(self.rows, other.rows), _joined(self.columns, other.columns))

    @property
    def height(self) -> int:
        return self.rows[1] - self.rows[0] + 1

    @property
    def halo(self) -> int:
        return self.columns[1] - self.columns[0]


OWN = Window((0, 0), (0, 0))


class Windows:
    """What the stages of a kernel read of fields on its grid, by threads that walk along an axis.

    Columns of the outputs may be up to `slack` before a thread's own ones, and those that it has of inputs up to `shift`.

    A stage that makes intermediates computes them for rows ahead of the outputs' and for columns beyond the thread's own: all
    that later stages read of them.

    Attributes:
        found: the window of each view, relative to the row of the outputs.
        reach: the same of intermediates, relative to the row of the stage that reads; what mirrors need is part of it.
        stages: kernels; the last one writes the outputs.
        ahead, beyond: by stage, the rows between it and the outputs, and the columns before and behind the thread's own.
        early: by stage, how many rows before a thread's first one it begins.
        exchanged: whether threads beside one another, on a grid of three axes, compute intermediates for each other, and not
            each its halo, and load inputs' columns for each other.
        before: how many rows before its first one a thread begins to have what it needs of others.
    """

    def __init__(self, kernel: Kernel, axis: str, slack: int = 0, shift: int = 0, exchanged: bool = False) -> None:
        self.axes, self.axis, self.stages = kernel.domain.axes, axis, stages(kernel)
        self.found: dict[View, Window] = {}
        self.reach: dict[View, Window] = {}
        last = len(self.stages) - 1
        self.ahead, self.beyond, self.early = [0] * (last + 1), [(0, 0)] * (last + 1), [0] * (last + 1)
        self.beyond[last] = (-slack, 0)
        self.inner = set(kernel.intermediates)
        self.exchanged = exchanged
        for number in range(last, -1, -1):
            if number < last:
                self._place_stage(number)
            self._note_reads(number)
        for view, window in self.inputs().items():
            rows = window.rows[0], window.rows[1] + self.exchanged  # groups wait at barriers, not for what is loaded
            self.found[view] = Window(rows, (window.columns[0], window.columns[1] + shift))
        self.before = max(self.early)
        for view in self.shared_inputs():
            (first, last), own = self.found[view].rows, self.own(view)
            self.found[own] = self.found[own].joined(Window((last, last + 1), (0, 0)))
            self.before = max(self.before, max(self.early) + last + 1 - first)

    def views(self, number: int) -> list[View]:
        """The views of what a stage makes."""
        made = {output.param for output in self.stages[number].outputs}
        return [view for view in self.reach if view.field in made]

    def inputs(self) -> dict[View, Window]:
        return {view: window for view, window in self.found.items() if view not in self.reach and not view.shared}

    def shared_inputs(self) -> list[View]:
        return [view for view in self.found if view.shared and view not in self.reach]

    def own(self, view: View) -> View:
        """What the thread has itself of a shared view."""
        return replace(view, across=(0,) * len(view.across), shared=False)

    def view(self, number: int, read: Read, element: Expr) -> tuple[View, int, int]:
        """The view that a stage's read is part of, and how many rows and columns away."""
        away = dict(zip(self.axes, _distance(read, self.axes), strict=True))
        row, column, across = (
            away[self.axis],
            away["column"],
            tuple(0 if a == self.axis else away[a] for a in self.axes[:-1]),
        )
        border = "clamp" if read.border == "unchecked" else read.border  # what is read before it is known to be wanted
        reader = number if read.field in self.inner else 0
        shared = self.exchanged and (bool(column) or (read.field in self.inner and any(across)))
        shared = shared and (read.field in self.inner or not any(across))
        view = View(read.field, element, border, read.fill, across, reader, shared)
        if any(away.values()):
            return view, row, column
        own = replace(view, border="clamp", fill=None)  # never outside, so any border is right
        same = (v for v in self.found if replace(v, border="clamp", fill=None) == own)
        return next(same, own), 0, 0

    @property
    def beside(self) -> tuple[Span, Span]:
        """How far shared views reach beside the thread: along the axis that it does not walk, and along columns."""
        rows, columns, more = (0, 0), (0, 0), (0, 0)
        for view, window in self.found.items():
            if view.shared:
                found = _with_own(Window((sum(view.across),) * 2, window.columns), view.border in MIRRORED)
                if view in self.reach:
                    rows, columns = _joined(rows, found.rows), _joined(columns, found.columns)
                else:
                    more = _joined(more, found.columns)
        return rows, (columns[0] + more[0], columns[1] + more[1])

    def _note_reads(self, number: int) -> None:
        (low, high), ahead = self.beyond[number], self.ahead[number]
        reads = sorted(
            around(self.stages[number]), key=lambda read: not any(_distance(read, self.axes))
        )  # own points last
        for read in reads:
            for element in elements(read.field, read.element):
                view, row, column = self.view(number, read, element)
                window = Window((row, row), (min(column, 0), max(column, 0)))
                if read.field in self.inner:
                    window = _with_own(window, view.border in MIRRORED)
                    self.reach[view] = self.reach.get(view, window).joined(window)
                    window = self.reach[view]
                (first, last), (left, right) = window.rows, window.columns
                if view.shared:
                    if read.field in self.inner:
                        self.reach.setdefault(self.own(view), Window(window.rows, (0, 0)))
                    self.found.setdefault(self.own(view), Window((first + ahead, last + ahead), (0, 0)))
                moved = Window((first + ahead, last + ahead), (left + low, right + high))
                self.found[view] = self.found.get(view, moved).joined(moved)

    def _place_stage(self, number: int) -> None:
        """What a stage makes is wanted at the union of its views."""
        views = self.views(number)
        ahead = max(self.found[view].rows[1] for view in views)
        lows, highs = zip(*(self.found[view].columns for view in views if not view.shared), strict=True)
        self.ahead[number], self.beyond[number] = ahead, (min(lows), max(highs))
        for view in views:
            rows = self.found[view].rows[0], ahead
            self.early[number] = max(self.early[number], self.early[view.reader] + ahead - rows[0])
            if not view.shared:
                self.found[view] = Window(rows, self.beyond[number])


_found: BoundedCache[tuple[int, int, int, bool], tuple[Kernel, Windows]] = BoundedCache(
    8
)  # by the identity of kernels that it keeps alive


def windows_of(kernel: Kernel, slack: int = 0, shift: int = 0, exchanged: bool = False) -> Windows:
    """The windows of threads that walk along the axis that suits the kernel."""
    how = slack, shift, exchanged
    return _found.find((id(kernel), *how), lambda: (kernel, Windows(kernel, walked(kernel), *how)))[1]


def walked(kernel: Kernel) -> str:
    """The axis along which a thread shares most of what it reads with its own next points."""
    axes = kernel.domain.axes
    spans = [(0, 0)] * len(axes)
    for read in around(kernel):
        spans = [_joined(span, (n, n)) for span, n in zip(spans, _distance(read, axes), strict=True)]
    reach = dict(zip(axes, (high - low for low, high in spans), strict=True))
    length = {axis: min(kernel.domain.extent(axis), LONG) for axis in axes}
    return max(axes[:-1], key=lambda axis: (reach[axis] * length[axis], length[axis]))


def refused_reads(kernel: Kernel) -> str:
    """Why its reads make no windows; empty where they do."""
    elsewhere = {e.field for e in expressions(kernel.body) if isinstance(e, Read) and not is_placed(e)}
    if not elsewhere.isdisjoint(kernel.intermediates):
        return "it reads one point of what its stages compute"
    for read in around(kernel):
        if read.field.type.field_shape != kernel.domain.shape:
            return "it reads fields of another grid"
        if _away(read, kernel.domain.axes) is None:
            return "it reads at computed coordinates"
        if not is_plain(read.field, read.element, kernel):
            return "it reads computed elements of tensors"
    if not any(any(_distance(read, kernel.domain.axes)) for read in around(kernel)):
        return "it reads no neighbours"
    return ""


def around(kernel: Kernel) -> Iterator[Read]:
    """The reads whose place depends on the thread."""
    return (e for e in expressions(kernel.body) if isinstance(e, Read) and is_placed(e))


def reads_beside(kernel: Kernel) -> bool:
    """Whether stages read others both along layers and along rows."""
    reads = (read for stage in stages(kernel)[1:] for read in around(stage) if read.field in kernel.intermediates)
    away = [_distance(read, kernel.domain.axes) for read in reads]
    return len(kernel.domain.axes) == 3 and any(each[0] for each in away) and any(each[1] for each in away)


def is_placed(read: Read) -> bool:
    return is_own(read.field) and (read.point is None or not all(isinstance(at, Const) for at in read.point))


def _away(read: Read, axes: tuple[str, ...]) -> tuple[int, ...] | None:
    """The distance from the own point along each axis; None where it is not constant."""
    if read.point is None:
        return (0,) * len(axes)
    pairs = zip(read.point, axes, strict=True)
    if not all(isinstance(at, Index) and (at.kind, at.axis) == ("global", axis) for at, axis in pairs):
        return None
    return tuple(at.offset for at in read.point if isinstance(at, Index))


def _distance(read: Read, axes: tuple[str, ...]) -> tuple[int, ...]:
    away = _away(read, axes)
    assert away is not None
    return away


def _with_own(window: Window, mirrored: bool) -> Window:
    """The window with the own point, and with what is read in the place of points outside."""
    spans = [_joined(span, (0, 0)) for span in (window.rows, window.columns)]
    if mirrored:
        spans = [_joined(span, (-span[1], -span[0])) for span in spans]
    return Window(*spans)


def _joined(a: Span, b: Span) -> Span:
    return min(a[0], b[0]), max(a[1], b[1])
