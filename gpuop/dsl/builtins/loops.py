"""Loops: `with _for(n) as i:`, `_while`, `_forEachTensorElement`, `_break` and `_continue`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, here
from gpuop.dsl.builtins.indices import _ravel
from gpuop.dsl.builtins.shared_memory import MANY_WEIGHTS, _constantArray, constants_of
from gpuop.dsl.recorder.assignment_targets import assigned, assigned_name
from gpuop.dsl.recorder.control_flow import BlockContext, condition
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.frames import inside
from gpuop.dsl.recorder.recorder import caller, current
from gpuop.dsl.recorder.target_facts import TargetExpression, extent
from gpuop.dsl.recorder.value import NUMBERS, Operand, Value, apply, integer
from gpuop.dsl.recorder.variable import Variable
from gpuop.ir.build import constant
from gpuop.ir.nodes import Assign, Block, Break, Const, Continue, Expr, For, If, Let, Ref, Stmt, Var, While
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.types import BOOL, INT, SMALL_TENSOR, Shape, ShapeLike, Type, is_integer
from gpuop.ir.visit import Copier, changes, leaving, map_blocks


def _several(bound: Any) -> bool:
    """True if there is an extent, or a bound, for each of several dimensions."""
    return isinstance(bound, (tuple, list)) or (isinstance(bound, np.ndarray) and bound.ndim > 0)


LOOPS = ("_for", "_window", "_while")
COUNT = "count in a variable, as in `n = _var(0)` before it and `n += 1` inside"


class _while(BlockContext):
    """`with _while(c):` or `_while(lambda: c)`; the condition is computed anew before every iteration."""

    def __init__(self, c: Operand) -> None:
        recorder = current("`_while`")
        if callable(c) and not isinstance(c, Value):
            first = len(recorder.scope.statements)
            c = c()
            self.cond = condition(c, "_while")
            self.head = recorder.take_since(first, lambda mark: True)
        else:
            self.cond = condition(c, "_while")
            self.head = recorder.take_since(0, inside(caller(), "_while"))
        if isinstance(c, NUMBERS) and not c:
            raise SemanticError(f"this `_while` never runs: its condition is {c!r} in Python; {COUNT}")
        computed = (
            any(getattr(stmt, "var", None) is self.cond.var for stmt, _ in self.head)
            if isinstance(self.cond, Ref)
            else True
        )
        if isinstance(self.cond, Ref) and not computed and not self.cond.var.mutable:
            raise SemanticError(
                "the condition was computed before the loop and never changes; write the expression inside the `_while(…)` itself"
            )
        super().__init__("_while")

    def opens(self) -> None:
        self.recorder.put(self.head)
        self.split = len(self.recorder.scope.statements)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._check_ends(tuple(self.recorder.scope.statements))
        super().__exit__(kind, error, trace)

    def _check_ends(self, turn: Block) -> None:
        """Refuse a loop that nothing ends once it runs."""
        cond = self.cond.value if isinstance(self.cond, Const) else None
        if cond == 0 or changes(self.cond, turn) or any(isinstance(stmt, Break) for stmt in leaving(turn)):
            return
        why = (
            "nothing in the block changes what its condition depends on"
            if cond is None
            else "its condition is True in Python"
        )
        raise SemanticError(f"this `_while` never ends once it runs: {why}; {COUNT}, or leave by `_break()`", self.loc)

    def closes(self, body: list[Stmt]) -> None:
        self.recorder.emit(While(tuple(body[: self.split]), self.cond, tuple(body[self.split :]), self.loc))


def _bound(value: Operand) -> Expr:
    """A bound of `_for` as it is at entry, whatever the loop assigns to the variable behind it."""
    if isinstance(value, TargetExpression):
        return TargetConst(extent(value, "a bound of `_for`"), Type(INT))
    expr = integer(value, "a bound of `_for`")
    if isinstance(expr, Ref) and expr.var.mutable:
        return current().declare(replace(expr.var, mutable=False), expr)
    return expr


def _unroll_factor(unroll: Any) -> int:
    """Unroll factor: number of iterations that become one; 0: all."""
    if isinstance(unroll, (bool, np.bool_)):
        return 0 if unroll else 1
    if not is_integer(unroll) or unroll < 1:
        raise SemanticError(
            f"`unroll=` is True, False, or the number of iterations that become one, 1 or more, not {unroll!r}"
        )
    return int(unroll)


def _axes(*args: Any) -> list[tuple[Any, ...]]:
    """The bounds and the step along each dimension: a tuple has one for each, any other value holds for all."""
    counts = {len(each) for each in args if _several(each)}
    if len(counts) > 1:
        raise SemanticError(f"`_for` along several dimensions takes tuples of one length, not of {sorted(counts)}")
    count = counts.pop()
    return list(zip(*(each if _several(each) else (each,) * count for each in args), strict=True))


class _for(BlockContext):
    """`with _for(stop) as i:`, `with _for(start, stop, step=1, unroll=1) as i:`; tuples count along several dimensions, the last
    one fastest: `with _for((rows, columns)) as (r, c):`; bounds bind at entry, i is read-only; a target may decide `unroll=`.

    Args:
        unroll: True, or a factor, which a target may decide; a hint, or the loop's full expansion where its bounds are constants.
            Along several dimensions a factor is the last one's.
    """

    word, lanes = "_for", False

    def __init__(self, *bounds: Operand, step: Operand = 1, unroll: Any = 1) -> None:
        if not 1 <= len(bounds) <= 3:
            raise SemanticError("`_for` takes (stop), (start, stop) or (start, stop, step)")
        start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else step
        self.several = any(_several(each) for each in (start, stop, step))
        axes = _axes(start, stop, step) if self.several else [(start, stop, step)]
        self.counted = len(axes)
        self.axes = [tuple(map(_bound, axis)) for axis in axes or [(0, 1, 1)]]  # one iteration along no dimension
        if any(isinstance(by, Const) and by.value == 0 for _, _, by in self.axes):
            raise SemanticError("a `_for` with step 0 never ends")
        if isinstance(unroll, TargetExpression):
            self.unroll = extent(unroll, "`unroll=`", int, bool)
        else:
            self.unroll = _unroll_factor(unroll)
        super().__init__(self.word)

    def opens(self) -> Any:
        names = self._names()
        self.vars = [Var(name or "ijklmn"[k % 6], Type(INT)) for k, name in enumerate(names)]
        for var in self.vars:
            self.recorder.scope_of[var] = self.recorder.scope
        counters = tuple(Variable(Ref(var)) for var in self.vars)
        return counters[: self.counted] if self.several else counters[0]

    def _names(self) -> Sequence[str]:
        """User names of the counters."""
        assert self.frame is not None
        if not self.recorder.naming:
            return ("",) * len(self.axes)
        if not self.several:
            return (assigned_name(self.frame),)
        names = assigned(self.frame.f_code, self.frame.f_lasti) or ()
        return names if len(names) == len(self.axes) > 1 else ("",) * len(self.axes)

    def closes(self, body: list[Stmt]) -> None:
        block, left = tuple(body), Var("left", Type(BOOL), mutable=True)
        leaves = len(self.axes) > 1 and any(isinstance(stmt, Break) for stmt in leaving(block))
        if leaves:
            self.recorder.emit(Let(left, constant(False, BOOL), self.loc))
            block = _marking(block, left)
        unroll = self.unroll
        for var, (start, stop, step) in reversed(list(zip(self.vars, self.axes, strict=True))):
            loop = For(var, start, stop, step, block, unroll, self.loc, self.lanes)
            block = (loop, If(Ref(left), (Break(self.loc),), (), self.loc)) if leaves else (loop,)
            unroll = 0 if self.unroll == 0 else 1
        for stmt in block[:1] if leaves else block:
            self.recorder.emit(stmt)


class side_by_side(_for):
    """Loop of the library whose iterations, in any order, may be lanes of CPU vectors (`passes/loop_vectorization.py`).

    Its block has names, loops and elements of the thread's own arrays that the counter is the last place of.
    """

    lanes = True


def _marking(block: Block, left: Var) -> Block:
    """An iteration that records where it leaves the loop, for the loops around it."""
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Break):
            out.append(Assign(left, constant(True, BOOL), stmt.loc))
        inner = isinstance(stmt, (For, While))
        out.append(stmt if inner else map_blocks(stmt, lambda inside: _marking(inside, left)))
    return tuple(out)


def _elements(shape: Any) -> int:
    """Number of elements of a tensor of this shape."""
    if isinstance(shape, FieldLike):
        return shape.type.planes
    if isinstance(shape, Value):
        raise SemanticError("`_forEachTensorElement` takes a tensor's shape, as `f.tensor_shape`; count with `_for`")
    count = Shape(shape).points
    if not INT.holds(count):
        raise SemanticError(f"a tensor of {count} elements is more than int counts")
    return count


class _forEachTensorElement(BlockContext):
    """`with _forEachTensorElement(shape):` records its block for every element of a tensor; `_tensorElement` counts them.

    Of a field, as in `_forEachTensorElement(f)`, these are all that kernels count, so both parts of complex numbers.
    """

    def __init__(self, shape: ShapeLike | FieldLike) -> None:
        self.count = _elements(shape)
        super().__init__("_forEachTensorElement")

    def opens(self) -> None:
        self.var = Var("tensorElement", Type(INT))
        self.recorder.scope_of[self.var] = self.recorder.scope
        self.recorder.elements.append((Ref(self.var), self.count))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.recorder.elements.pop()
        super().__exit__(kind, error, trace)

    def closes(self, body: list[Stmt]) -> None:
        if self.count <= SMALL_TENSOR:
            for element in range(self.count):
                for stmt in Copier(tuple(body), {self.var: constant(element, INT)}).copy():
                    self.recorder.emit(stmt)
            return
        zero, one = constant(0, INT), constant(1, INT)
        loop = For(self.var, zero, constant(self.count, INT), one, tuple(body), 1, self.loc)
        self.recorder.element_loop = loop
        self.recorder.emit(loop)


def _leave(name: str, stmt: Break | Continue) -> None:
    recorder = current(f"`{name}`")
    kinds = [scope.kind for scope in recorder.scopes if scope.kind in (*LOOPS, "_forEachTensorElement")]
    if not kinds:
        raise SemanticError(f"`{name}()` stands outside a loop")
    if kinds[-1] == "_forEachTensorElement":
        raise SemanticError(
            f"`{name}()` cannot leave `_forEachTensorElement`: its elements are handled independently; use `_if`"
        )
    recorder.emit(stmt)
    recorder.scope.left = name


def _break() -> None:
    """Leave the innermost loop."""
    _leave("_break", Break(here()))


def _continue() -> None:
    """Start the next iteration of the innermost loop."""
    _leave("_continue", Continue(here()))


def _return() -> None:
    """End this thread's work, under a condition or in a loop; the other threads go on.

    An output that it has not written needs a `default=`. Barriers and collective operations may follow where all threads of a
    work-group return, or none.
    """
    recorder = current("`_return`")
    if any(scope.kind == "_forEachTensorElement" for scope in recorder.scopes):
        raise SemanticError(
            "`_return()` cannot leave `_forEachTensorElement`: its elements are handled independently; use `_if`"
        )
    if recorder.returned is None:
        recorder.returned = Var("returned", Type(BOOL), mutable=True)
    recorder.emit(Assign(recorder.returned, constant(True, BOOL), here()))
    if any(scope.kind in LOOPS for scope in recorder.scopes):
        recorder.emit(Break(here()))
    recorder.scope.left = "_return"


# --- loops over an array of weights around each point -----------------------------------------------------------------


MOST_WRITTEN_OUT = 256  # most numbers of a window whose loop is unrolled
MOST_DIMENSIONS = 3  # limit of a table


class _window(_for):
    """`with _window(weights) as (offset, weight):` records its block for every element of a constant array, as `_for` does.

    `offset` is how far the element lies from the thread's own point, as `_readTensor(f, offset=offset)` takes it, and `weight` its
    number. Up to 256 elements are written out, with their numbers in the text; of more there is a table in constant memory.

    Args:
        weights: a NumPy array of any dimensions, or nested lists, known in Python: an argument of the operator, say.
        centre: the place in the array that lies at the thread's own point, by default n // 2 along each dimension.
        unroll: as of `_for`, if it is to be otherwise.
    """

    word = "_window"

    def __init__(self, weights: Any, *, centre: Any = None, unroll: Any = None) -> None:
        if isinstance(weights, FieldLike):
            raise SemanticError(
                "`_window` takes numbers that are known in Python, not a Field; loop over one by `with _for(w.field_shape) as "
                f"place:`, and read `_readTensor(w, *place)`{MANY_WEIGHTS}"
            )
        numbers = constants_of(weights)
        self.shape = numbers.shape
        self.centre = _centre(self.shape, centre)
        self.table = _constantArray(numbers if numbers.ndim <= MOST_DIMENSIONS else numbers.ravel())
        super().__init__(self.shape, unroll=numbers.size <= MOST_WRITTEN_OUT if unroll is None else unroll)

    def opens(self) -> tuple[tuple[Value, ...], Value]:
        place = super().opens()
        index = place if len(place) <= MOST_DIMENSIONS else _ravel(place, self.shape)
        offset = tuple(apply("sub", at, middle) for at, middle in zip(place, self.centre, strict=True))
        return offset, self.table[index]

    def _names(self) -> Sequence[str]:
        return ("",) * len(self.axes)


def _centre(shape: tuple[int, ...], arg: Any) -> tuple[int, ...]:
    if arg is None:
        return tuple(n // 2 for n in shape)
    centre = tuple(arg) if isinstance(arg, (tuple, list, np.ndarray)) else (arg,)
    if len(centre) != len(shape) or not all(is_integer(n) for n in centre):
        raise SemanticError(f"`centre=` is an integer for each of {len(shape)} dimensions, not {arg!r}")
    return tuple(int(n) for n in centre)
