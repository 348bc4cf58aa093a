"""The recorder, the only mutable state of the front end: calls of a kernel body become statements."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import field, replace
from types import FrameType
from typing import Any, TypeVar

from gpuop.base.errors import Loc, SemanticError, here, kernel_frame
from gpuop.base.records import dataclass
from gpuop.dsl.recorder.assignment_targets import assigned_name
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.frames import Position, trail
from gpuop.dsl.recorder.kernel_warnings import Wrapping
from gpuop.dsl.recorder.outputs import OutputSlot
from gpuop.dsl.recorder.storage import fetch, stored
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.size import MOST_NESTED, MOST_STATEMENTS
from gpuop.ir.build import Builder, constant
from gpuop.ir.dims import folded
from gpuop.ir.target_expressions import Extent, numbers
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, MOST_GRID, SMALL_TENSOR, Shape, Type
from gpuop.ir.values import Leaf, Node
from gpuop.ir.visit import walk, written_by

Steps = TypeVar("Steps", bound=ir.Expr | tuple[ir.Expr, ...])


@dataclass(eq=False)
class Scope:
    """A block being recorded. `marks` runs parallel to `statements`: the positions of the user frames at each."""

    kind: str
    loc: Loc | None = None
    open: bool = True
    statements: list[ir.Stmt] = field(default_factory=list)
    marks: list[tuple[Position, ...]] = field(default_factory=list)
    left: str = ""  # `_break`, `_continue` or `_return`, if that is the last statement
    chain: ir.If | None = None  # the `_if` chain at the end of `statements` that `_elseif` and `_else` may extend


class OpenGrid(SemanticError):
    """The thread grid depends on the target: the body must be recorded for each possible grid."""

    extents: tuple[Extent, ...] = ()


class Recorder:
    """Records one kernel body. Use `with recorder:` around the body, then `finish`."""

    def __init__(
        self, name: str, grid: Shape | None, loc: Loc | None, outputs: list[OutputSlot], names: tuple[str, ...] = ()
    ) -> None:
        self.name, self.loc = name, loc
        self.grid, self.names = grid, names  # all dimensions of the grid; `domain` has the axes of the kernel
        # own positions along dimensions folded into one axis
        self.unfolded: tuple[Scope, tuple[ir.Expr, ...]] | None = None
        self.grid_of = ""  # origin of the grid, unless `_globalThreads` set it
        self.array = ""  # the argument that is an array, where there is no field
        self.tensor = Shape()  # tensor axis of the thread grid: one thread per element
        self.grid_chosen: tuple[int, ...] | None = None  # the grid of this recording, if targets decide on it
        self.threads_set = self.whole = False  # whole: the tail threads of the last groups run too
        self.group: tuple[tuple[Extent, ...], Loc | None] | None = None  # the work-group set by `_localThreads`
        self.resident = 0  # as of a kernel, of functions of the library
        self.uniform: list[tuple[ir.Expr, Loc | None]] = []  # values that must be uniform in a work-group
        self.shared: list[ir.Declare] = []  # local and constant memory
        self.volatile: set[ir.Var | ir.Array] = set()
        self.values: dict[ir.Var, ir.Expr] = {}  # the expression of each immutable name
        self.outputs = outputs
        self.inputs: dict[Node, ir.FieldParam] = {}
        self.updated: dict[Node, UpdatedField] = {}  # by the node that represents them in the body
        self.hints: dict[Node, str] = {}
        self.scopes: list[Scope] = [Scope("body", loc)]
        self.emitted = 0  # statements
        self.scope_of: dict[ir.Var | ir.Array, Scope] = {}
        self.elements: list[tuple[ir.Expr, int]] = []  # the open loops over tensor elements
        self.element_loop: ir.For | None = None
        self.pending: tuple[str, Loc | None] | None = None  # a block that still lacks its `with`
        self.constants: tuple[Any, ...] = ()  # arguments of the operator besides Fields
        self.called: Loc | None = None  # the line of the call
        self.quotients: set[ir.Var] = set()  # results of `/` of two integers that have not become floats yet
        self.wraps: dict[ir.Var, Wrapping] = {}  # results of the user's that may wrap around
        self.compared: set[frozenset[Any]] = set()  # pairs of values that the body compares or divides
        self.returned: ir.Var | None = None  # flag of threads that called `_return()`
        self.inside = ""  # name of the library function being recorded, whose integers wrap around on purpose
        self.idle, self.naming = False, True  # idle: an integer 0 made some values unused
        self.looked: Loc | None = None  # first line at which Python read the extents of a field
        self.root: FrameType | None = None  # outermost frame of the body

    # --- the stack of recorders ---------------------------------------------------------------------------------

    def __enter__(self) -> Recorder:
        _stack().append(self)
        self.root = self.root or sys._getframe(1)
        return self

    def __exit__(self, *exc: object) -> None:
        _stack().remove(self)
        for scope in self.scopes:
            scope.open = False
        self.root = None

    # --- statements ---------------------------------------------------------------------------------------------

    @property
    def build(self) -> Builder:
        """Builder of expressions here. Storing it would be a cycle that keeps the fields of a call alive."""
        return Builder(self.bind)

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def emit(self, stmt: ir.Stmt) -> None:
        """Append a statement to the open block."""
        self.check_pending()
        if self.scope.left:
            raise SemanticError(
                f"nothing that follows `{self.scope.left}()` in its block runs; put it before, or into an `_else` block"
            )
        self.scope.statements.append(stmt)
        self.scope.marks.append(trail(sys._getframe(1), self.root))
        self.emitted += 1
        if self.emitted > MOST_STATEMENTS:
            raise SemanticError(
                f"`{self.name}` has more than {MOST_STATEMENTS} statements, for which compilers take too long; write loops "
                "that run on the device (`_for`) instead of Python loops, or several operators"
            )

    def check_pending(self) -> None:
        if self.pending is not None:
            (name, loc), self.pending = self.pending, None
            raise SemanticError(f"`{name}(…)` stands without `with`; write `with {name}(…):`", loc)

    def bind(self, expr: ir.Expr) -> ir.Expr:
        """Name an expression where it is written."""
        hint = assigned_name(kernel_frame()) if self.naming else ""
        return self.declare(ir.Var(hint or "t", expr.type, temporary=not hint), expr)

    def steps(self, make: Callable[[], Steps], inside: str = "") -> Steps:
        """Record the steps of a function; the user names its result, not its steps.

        Args:
            inside: the name of the function, if its integers wrap around on purpose.
        """
        before, first = (self.naming, self.inside), len(self.scope.statements)
        self.naming, self.inside = False, inside or self.inside
        try:
            result = make()
        finally:
            self.naming, self.inside = before
        named = isinstance(result, ir.Ref) and result.var in self.values and len(self.scope.statements) > first
        if named and isinstance(result, ir.Ref) and self.retract(result.var):
            return self.bind(self.values[result.var])  # type: ignore[return-value]
        return result

    def declare(self, var: ir.Var, value: ir.Expr) -> ir.Ref:
        self.scope_of[var] = self.scope
        if not var.mutable:
            self.values[var] = value
        loc = here()
        self.emit(ir.Let(var, value, replace(loc, through=(self.inside,)) if loc and self.inside else loc))
        return ir.Ref(var)

    def retract(self, symbol: ir.Var | ir.Array) -> bool:
        """Remove the last statement if it defines this variable or array."""
        last = self.scope.statements[-1] if self.scope.statements else None
        symbol_of_last = last.var if isinstance(last, ir.Let) else last.array if isinstance(last, ir.Declare) else None
        if symbol_of_last is not symbol:
            return False
        del self.scope.statements[-1], self.scope.marks[-1]
        self.emitted -= 1
        return True

    def push(self, scope: Scope) -> None:
        if len(self.scopes) > MOST_NESTED:
            raise SemanticError(
                f"blocks are nested more than {MOST_NESTED} deep, which compilers do not take; join conditions with `&`, or "
                "write several operators",
                scope.loc,
            )
        self.scopes.append(scope)

    def pop(self) -> list[ir.Stmt]:
        scope = self.scopes.pop()
        scope.open = False
        return scope.statements

    def take_since(
        self, start: int, inside: Callable[[tuple[Position, ...]], bool]
    ) -> list[tuple[ir.Stmt, tuple[Position, ...]]]:
        """Remove and return the trailing statements of the open block that satisfy a test of their marks."""
        scope = self.scope
        first = len(scope.statements)
        while first > start and inside(scope.marks[first - 1]):
            first -= 1
        removed = list(zip(scope.statements[first:], scope.marks[first:], strict=True))
        del scope.statements[first:], scope.marks[first:]
        return removed

    def put(self, statements: list[tuple[ir.Stmt, tuple[Position, ...]]]) -> None:
        """Append statements removed elsewhere; their values now belong to the open block."""
        for stmt, mark in statements:
            self.scope.statements.append(stmt)
            self.scope.marks.append(mark)
            if isinstance(stmt, ir.Let):
                self.scope_of[stmt.var] = self.scope

    def usable(self, expr: ir.Expr) -> ir.Expr:
        """The expression, if its block is still open."""
        if isinstance(expr, ir.Ref):
            scope = self.scope_of.get(expr.var)
            name = "this value" if expr.var.temporary else f"`{expr.var.hint}`"
            if scope is None:
                raise SemanticError(f"{name} was made in another operator; pass it as a Field, or compute it here")
            if not scope.open:
                raise SemanticError(
                    f"{name} was made in a `{scope.kind}` block that has ended (line {scope.loc.line if scope.loc else '?'}); "
                    "declare a variable before the block, as in `v = _var(0.0)`, and assign it inside with `v @= …`"
                )
        return expr

    def alive(self, value: Any) -> bool:
        """Return whether the block of a value is still open."""
        expr = getattr(value, "_expr", None)
        scope = self.scope_of.get(expr.var) if isinstance(expr, ir.Ref) else self.scope
        return scope is not None and scope.open

    # --- the thread grid, inputs, outputs -----------------------------------------------------------------------

    @property
    def domain(self) -> Domain:
        if self.grid is None:
            outputs = "declare its outputs, as in `@gp.operator(outputs=gp.FieldType(…))`"
            if self.array:
                field = f"gp.ScalarField({self.array})"
                raise SemanticError(
                    f"operator `{self.name}` has no fields among its arguments: `{self.array}` is an array, which is a constant; "
                    f"pass `{field}`, or {outputs}",
                    self.called,
                )
            raise SemanticError(f"operator `{self.name}` has no fields among its arguments: {outputs}")
        return Domain(Shape(folded(self.grid, MOST_GRID)), self.tensor.points)

    @property
    def work_group(self) -> tuple[Extent, ...]:
        """(layers, rows, columns) of a work-group."""
        if self.group is None:
            return self.domain.group
        shape, loc = self.group
        axes = len(self.domain.shape)
        if len(shape) > axes:
            raise SemanticError(
                f"`_localThreads` has {len(shape)} extents, and the threads are {axes}D: {self.domain}", loc
            )
        group = (1,) * (3 - len(shape)) + shape
        if group[0] != 1 and self.domain.elements > 1:
            raise SemanticError(
                "threads of a tensor axis are in work-groups of one layer: give `_localThreads` rows and columns", loc
            )
        return Shape(numbers(group)) if all(isinstance(n, int) for n in group) else group

    @property
    def runs_tail_threads(self) -> bool:
        """True if threads outside the grid run; also if the target decides on that through its work-groups."""
        extents = zip(ir.AXES, self.work_group, strict=False)
        return self.whole and any(not isinstance(n, int) or self.domain.extent(axis) % n for axis, n in extents)

    def own_point(self) -> tuple[ir.Expr, ...]:
        return tuple(ir.Index("global", axis) for axis in self.domain.axes)

    def param(self, value: FieldLike) -> ir.FieldParam:
        """The parameter that stands for a field read in the body."""
        node = value.node
        if node not in self.inputs:
            hint = self.hints.get(node) or f"in{len(self.inputs)}"  # not its name: equal kernels have equal text
            self.inputs[node] = ir.FieldParam(hint, node.type, isinstance(node, Leaf) and node.by_value)
        return self.inputs[node]

    def output(self, index: int) -> OutputSlot:
        if index >= len(self.outputs):
            last = len(self.outputs) - 1
            have = f"its outputs are _out0 … _out{last}" if last > 0 else "its only output is _out0"
            raise SemanticError(f"operator `{self.name}` has no _out{index}: {have}; declare more output types")
        return self.outputs[index]

    def tensor_element(self) -> ir.Expr:
        if self.elements:
            return self.elements[-1][0]
        return ir.Index("global", "element") if self.tensor.points > 1 else constant(0, INT)


_local = threading.local()


def _stack() -> list[Recorder]:
    stack: list[Recorder] = vars(_local).setdefault("stack", [])
    return stack


def recording() -> Recorder | None:
    """The innermost recorder of this thread."""
    stack = _stack()
    return stack[-1] if stack else None


def current(what: Any = "this") -> Recorder:
    """The innermost recorder; an error without one."""
    recorder = recording()
    if recorder is None:
        raise SemanticError(
            f"{what} belongs in an operator's body: a function under `@gp.operator`, or a `with gp.GPUOperator(…)` block"
        )
    return recorder


def caller() -> FrameType:
    """The frame of the kernel body."""
    return kernel_frame() or sys._getframe(1)


ELEMENT = ir.Index("global", "element")


class UpdatedField:
    """A field that an operator updates, and the output with its final value.

    If threads access only their own points, it is a variable of the thread, loaded at the start and written at the end. Otherwise
    it lives in the memory of the output, which starts as a copy of the field. In both cases the operator returns a new field;
    plans decide whether that reuses the memory of the first.

    Args:
        in_memory: threads access other points than their own.

    Attributes:
        name: name of the argument.
        field: the argument.
        elsewhere: the body has accessed other points, or elements with unknown index.
        written: line of the first write, if it is a variable.
    """

    def __init__(self, recorder: Recorder, name: str, field: FieldLike, slot: OutputSlot, in_memory: bool) -> None:
        self._recorder, self.name, self.field, self.slot = weakref.ref(recorder), name, field, slot
        self.type, self.in_memory, self.elsewhere = field.type, in_memory, in_memory
        self.written: Loc | None = None
        self._var: ir.Var | None = None

    @property
    def recorder(self) -> Recorder:
        """Recorder of the body. It owns this object; a strong reference would be a cycle that keeps the fields of a call
        alive.
        """
        recorder = self._recorder()
        assert recorder is not None
        return recorder

    @property
    def is_small(self) -> bool:
        """True if a variable can hold its tensor."""
        tensor = self.recorder.tensor
        return tensor.points == self.type.planes if tensor else self.type.planes <= SMALL_TENSOR

    @property
    def var(self) -> ir.Var:
        """Variable of a thread: its point, or the only element that the thread has of it."""
        if self._var is None:
            lanes = 1 if self.recorder.tensor else self.type.planes
            self._var = ir.Var(self.name, Type(self.type.storage, lanes), mutable=True)
            self.recorder.scope_of[self._var] = self.recorder.scopes[0]
        return self._var

    def read(self, element: ir.Expr | None) -> ir.Expr:
        """Current value, or an element of it."""
        build = self.recorder.build
        value = build.copy(ir.Ref(self.var))
        return fetch(build, self.type, value if element is None else build.lane(value, self._lane(element)))

    def write(self, value: ir.Expr, element: ir.Expr | None) -> None:
        build, lanes = self.recorder.build, 1 if element is not None else self.var.type.lanes
        new = stored(build, self.type, value, lanes)
        if element is not None and self.var.type.lanes > 1:
            parts = build.lanes(ir.Ref(self.var))
            parts[self._lane(element)] = new
            new = build.pack(parts)
        self.written = self.written or here()
        self.recorder.emit(ir.Assign(self.var, new, here()))

    def _lane(self, element: ir.Expr) -> int:
        if element == ELEMENT and self.recorder.tensor:
            return 0
        if isinstance(element, ir.Const) and not self.recorder.tensor:
            return int(element.value)
        self.elsewhere = True
        return 0

    # --- the body ---------------------------------------------------------------------------------------------------

    @property
    def element(self) -> ir.Expr | None:
        return ELEMENT if self.recorder.tensor else None

    def prologue(self) -> ir.Block:
        """Statements before the body."""
        if self.written is None and not self._changes():
            raise SemanticError(
                f"operator `{self.recorder.name}` never writes `{self.name}`, which `inout=` names; add "
                f"`_writeTensor({self.name}, …)`, or leave it out",
                self.recorder.loc,
            )
        if self.in_memory:
            self.slot.initial = self.recorder.param(self.field)
            return ()
        point = self.recorder.own_point() if self.recorder.runs_tail_threads and self.type.field_shape else None
        param = self.recorder.param(self.field)
        return (ir.Let(self.var, ir.Read(param, self.var.type, point, self.element, "clamp")),)

    def epilogue(self) -> ir.Block:
        """Statements after the body."""
        return (
            () if self.in_memory else (ir.Write(self.slot.param, ir.Ref(self.var), None, self.element, self.written),)
        )

    def _changes(self) -> bool:
        """Return whether the body writes its memory."""
        written = (
            stmt for stmt in walk(tuple(self.recorder.scopes[0].statements)) if written_by(stmt) is self.slot.param
        )
        return any(not isinstance(stmt, ir.Atomic) or stmt.op != "read" for stmt in written)
