"""Windows: the rows and columns around its own points that a thread reads of inputs and of intermediates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
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
    """An element of a field's tensor, read through a border.

    Attributes:
        across: the distance along the axes other than columns; 0 along the axis that a thread walks.
        reader: the number of the stage that reads an intermediate; 0 for inputs.
        shared: whether neighbouring threads load or compute it.
    """

    field: FieldParam
    element: Expr
    border: str
    fill: Expr | None
    across: tuple[int, ...]
    reader: int = 0
    shared: bool = False


@dataclass(frozen=True)
class Window:
    """The extent of a view along the axis that a thread walks, and along columns; the own column, 0, is included."""

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
    """The windows of the stages of a kernel, for threads that walk along an axis.

    Columns of outputs may begin up to `slack` before a thread's own ones, and columns of inputs up to `shift`. A stage computes
    its intermediates for the rows ahead of the outputs and for the columns beyond the thread's own that later stages read.

    Attributes:
        by_view: the window of each view, relative to the row of the outputs.
        reach: the windows of intermediates, relative to the row of the stage that reads; the needs of mirrors are included.
        stages: kernels; the last one writes the outputs.
        ahead, beyond: by stage, the rows between it and the outputs, and the columns before and behind the thread's own.
        early: by stage, the number of rows before a thread's first one at which it begins.
        exchanged: whether neighbouring threads, on a grid of three axes, load inputs and compute intermediates for each other,
            instead of recomputing halos.
        before: the number of rows before its first one at which a thread begins, so that its windows are complete there.
    """

    def __init__(self, kernel: Kernel, axis: str, slack: int = 0, shift: int = 0, exchanged: bool = False) -> None:
        self.axes, self.axis, self.stages = kernel.domain.axes, axis, stages(kernel)
        self.by_view: dict[View, Window] = {}
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
            (first, last), (left, right) = window.rows, window.columns
            last += self.exchanged  # loaded a row early: groups wait at barriers, not for loads
            self.by_view[view] = Window((first, last), (left, right + shift))
        self.before = max(self.early)
        for view in [view for view in self.by_view if view.shared and view not in self.reach]:
            (first, last), own = self.by_view[view].rows, self.own(view)
            self.by_view[own] = self.by_view[own].joined(Window((last, last + 1), (0, 0)))
            self.before = max(self.before, max(self.early) + last + 1 - first)

    def views(self, number: int) -> list[View]:
        """The views of the intermediates of a stage."""
        params = {output.param for output in self.stages[number].outputs}
        return [view for view in self.reach if view.field in params]

    def inputs(self) -> dict[View, Window]:
        return {view: window for view, window in self.by_view.items() if view not in self.reach and not view.shared}

    def own(self, view: View) -> View:
        """The view of the thread's own points that belongs to a shared view."""
        return replace(view, across=(0,) * len(view.across), shared=False)

    def view(self, number: int, read: Read, element: Expr) -> tuple[View, int, int]:
        """The view that a read of a stage belongs to, and the distances of the read in rows and columns."""
        away = dict(zip(self.axes, _distance(read, self.axes), strict=True))
        row, column = away[self.axis], away["column"]
        across = tuple(0 if axis == self.axis else away[axis] for axis in self.axes[:-1])
        # loaded before the condition of the read is known
        border = "clamp" if read.border == "unchecked" else read.border
        reader = number if read.field in self.inner else 0
        shared = self.exchanged and (bool(column) or (read.field in self.inner and any(across)))
        shared = shared and (read.field in self.inner or not any(across))
        view = View(read.field, element, border, read.fill, across, reader, shared)
        if any(away.values()):
            return view, row, column
        own = replace(view, border="clamp", fill=None)  # never outside, so any border is right
        same = (v for v in self.by_view if replace(v, border="clamp", fill=None) == own)
        return next(same, own), 0, 0

    @property
    def beside(self) -> tuple[Span, Span]:
        """The spans of shared views beside the thread: along the axis that it does not walk, and along columns."""
        rows, columns, more = (0, 0), (0, 0), (0, 0)
        for view, window in self.by_view.items():
            if view.shared:
                span = _with_own(Window((sum(view.across),) * 2, window.columns), view.border in MIRRORED)
                if view in self.reach:
                    rows, columns = _joined(rows, span.rows), _joined(columns, span.columns)
                else:
                    more = _joined(more, span.columns)
        return rows, (columns[0] + more[0], columns[1] + more[1])

    def _note_reads(self, number: int) -> None:
        (low, high), ahead = self.beyond[number], self.ahead[number]
        own_last = sorted(around(self.stages[number]), key=lambda read: not any(_distance(read, self.axes)))
        for read in own_last:
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
                    self.by_view.setdefault(self.own(view), Window((first + ahead, last + ahead), (0, 0)))
                moved = Window((first + ahead, last + ahead), (left + low, right + high))
                self.by_view[view] = self.by_view.get(view, moved).joined(moved)

    def _place_stage(self, number: int) -> None:
        """Place a stage ahead of its readers: it computes the union of the views of its intermediates."""
        views = self.views(number)
        ahead = max(self.by_view[view].rows[1] for view in views)
        lows, highs = zip(*(self.by_view[view].columns for view in views if not view.shared), strict=True)
        self.ahead[number], self.beyond[number] = ahead, (min(lows), max(highs))
        for view in views:
            rows = self.by_view[view].rows[0], ahead
            self.early[number] = max(self.early[number], self.early[view.reader] + ahead - rows[0])
            if not view.shared:
                self.by_view[view] = Window(rows, self.beyond[number])


# by the identity of kernels that it keeps alive
_cache: BoundedCache[tuple[int, int, int, bool], tuple[Kernel, Windows]] = BoundedCache(8)


def windows_of(kernel: Kernel, slack: int = 0, shift: int = 0, exchanged: bool = False) -> Windows:
    """The windows of threads that walk along the axis that suits the kernel."""
    key = slack, shift, exchanged
    return _cache.find((id(kernel), *key), lambda: (kernel, Windows(kernel, walked(kernel), *key)))[1]


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
    """Return the reason why reads form no windows; empty where they do."""
    elsewhere = {e.field for e in expressions(kernel.body) if isinstance(e, Read) and not is_placed(e)}
    if not elsewhere.isdisjoint(kernel.intermediates):
        return "it reads single points of its stages"
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
    """The reads whose coordinates depend on the thread."""
    return (e for e in expressions(kernel.body) if isinstance(e, Read) and is_placed(e))


def reads_beside(kernel: Kernel) -> bool:
    """Return whether stages read others both along layers and along rows."""
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
    """The window with the own point, and with the points that mirrors read instead of points outside."""
    spans = [_joined(span, (0, 0)) for span in (window.rows, window.columns)]
    if mirrored:
        spans = [_joined(span, (-span[1], -span[0])) for span in spans]
    return Window(*spans)


def _joined(a: Span, b: Span) -> Span:
    return min(a[0], b[0]), max(a[1], b[1])
