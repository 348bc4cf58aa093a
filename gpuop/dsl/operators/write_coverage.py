"""Write coverage: outputs that the threads of a kernel write completely, which need no fill.

A write is understood if its coordinates are sums of thread position, group position, position in the group and loop counters, each
times a constant, and the conditions around it fix others of these. It covers the grid if the ranges do and, on every axis, each
combination has a thread. Grid-stride loops cover the range that they run over. Coordinates with quotients and remainders of
positions are in the second part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from gpuop.ir import nodes as ir
from gpuop.ir.analysis.affine import Affine, affine, number, position
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Apply, Cast, Expr, Index, Ref, Var
from gpuop.ir.types import INT
from gpuop.ir.visit import expressions, loop_values, walk
from gpuop.passes.simplify import simplify

Key = tuple[str, str] | ir.Var  # (kind, axis) of a thread position, or a counter


def writes_all(kernel: Kernel, field: ir.FieldParam) -> bool:
    """Return whether every element of every point of an output is certain to be written."""
    if not kernel.domain.threads or any(
        isinstance(s, ir.Atomic) and s.op != "read" and s.memory is field for s in walk(kernel.body)
    ):
        return False
    if any(not isinstance(n, int) for n in kernel.group or ()):  # extents that depend on the target
        return False
    return _covers(kernel, field) or (_divides(kernel) and _covers(_plain(kernel, field), field))


def _covers(kernel: Kernel, field: ir.FieldParam) -> bool:
    coverage = _Coverage(kernel, field)
    coverage.block(kernel.body, {})
    return len(coverage.elements) == field.type.planes


def _divides(kernel: Kernel) -> bool:
    return any(isinstance(e, ir.Apply) and e.op == "div" and e.type.integer for e in expressions(kernel.body))


def _plain(kernel: Kernel, field: ir.FieldParam) -> Kernel:
    """Kernel without operations that value ranges show to be redundant, such as the part of `//` for negative numbers."""
    return simplify(replace(kernel, outputs=(Output(field),)))


class _Coverage:
    """Walker over a body.

    Attributes:
        counters: values of each loop counter; those of all threads of an axis together if it is `shared` among them.
        elements: tensor elements written at every point.
    """

    def __init__(self, kernel: Kernel, field: ir.FieldParam) -> None:
        self.kernel, self.field = kernel, field
        self.definitions: dict[ir.Var, ir.Expr] = {}
        self.counters: dict[ir.Var, range] = {}
        self.shared: dict[ir.Var, tuple[str, str]] = {}
        self.elements: frozenset[int] = frozenset()

    def block(self, block: ir.Block, fixed: dict[Key, int]) -> None:
        """Collect the certain writes of a block; a statement of any other kind counts as writing nothing."""
        for stmt in block:
            match stmt:
                case ir.Let(var=var, value=value) if not var.mutable:
                    self.definitions[var] = value
                case ir.Write(field=field) if field is self.field:
                    self._write(stmt, fixed)
                case ir.If(cond=cond, then=then):
                    more = self._equalities(cond)
                    if more is not None and _agree(fixed, more):
                        self.block(then, fixed | more)
                case ir.For(var=var, body=body):
                    values = loop_values(stmt) or self._strided(stmt)
                    if values and not any(isinstance(s, (ir.Break, ir.Continue)) for s in walk(body)):
                        self.counters[var] = values
                        self.block(body, fixed)

    def _strided(self, loop: ir.For) -> range | None:
        """Range of a grid-stride loop, whose threads start at their positions and step by their number."""
        stop, step = self._place(loop.stop), self._place(loop.step)
        match loop.start:
            case ir.Index(kind="global" | "local" as kind, axis=axis, offset=0) if (
                stop is not None and step is not None
            ):
                if not stop.varies and not step.varies and step.number == len(self._values((kind, axis))):
                    self.shared[loop.var] = kind, axis
                    return range(stop.number)
        return None

    def _write(self, write: ir.Write, fixed: dict[Key, int]) -> None:
        shape, planes = self.field.type.field_shape, self.field.type.planes
        point = write.point
        if point is None:
            point = tuple(ir.Index("global", axis) for axis in self.kernel.domain.axes) if shape else ()
        if len(point) != len(shape):
            return
        targets: list[tuple[ir.Expr, int]] = list(zip(point, shape, strict=True))
        done = frozenset(range(planes))
        if isinstance(write.element, ir.Const):
            done = frozenset({int(write.element.value)})
        elif write.element is not None:
            targets.append((write.element, planes))
        places = [self._place(expr) for expr, _ in targets]
        parts = [key for place in places if place is not None for key in place.parts]
        keys = [*parts, *(self.shared[key] for key in parts if key in self.shared)]
        independent = len(set(keys)) == len(keys) and not set(keys) & set(fixed)
        reached = all(
            place is not None and self._spans(place, n) for place, (_, n) in zip(places, targets, strict=True)
        )
        if independent and reached and all(self._together(axis, keys, fixed) for axis in ir.AXES):
            self.elements |= done
        elif not fixed and self.kernel.domain.elements == 1 and len(targets) == len(shape):
            self.elements |= done if reaches_all(self.kernel, self.definitions, point, shape) else frozenset()

    # --- coordinates ------------------------------------------------------------------------------------------------

    def _place(self, expr: ir.Expr) -> Affine | None:
        """Coordinate as a sum of keys and a number; None if it is not understood."""
        return affine(expr, self._leaf)

    def _leaf(self, expr: ir.Expr) -> Affine | None:
        match expr:
            case ir.Index(kind="global" | "group" | "local" as kind, axis=axis, offset=offset):
                return position((kind, axis), offset)
            case ir.Index():
                return number(self.kernel.bounds(expr)[0] + expr.offset)
            case ir.Ref(var=var) if var in self.counters:
                values = self.counters[var]
                return Affine({var: values.step}, values.start, values.start)
            case ir.Ref(var=var) if var in self.definitions:
                return self._place(self.definitions[var])
        return None

    def _equalities(self, cond: ir.Expr) -> dict[Key, int] | None:
        """Positions fixed by a condition, if it has no other terms."""
        match cond:
            case ir.Ref(var=var) if var in self.definitions:
                return self._equalities(self.definitions[var])
            case ir.Apply(op="and", args=(left, right)):
                first, second = self._equalities(left), self._equalities(right)
                if first is not None and second is not None and _agree(first, second):
                    return first | second
            case ir.Apply(op="eq", args=(left, right)):
                place = affine(ir.Apply("sub", (left, right), left.type), self._leaf)
                if place is not None and len(place.parts) == 1:
                    ((key, times),) = place.parts.items()
                    return {key: -place.number * times} if isinstance(key, tuple) and abs(times) == 1 else None
        return None

    # --- threads ----------------------------------------------------------------------------------------------------

    def _spans(self, place: Affine, extent: int) -> bool:
        """True if the values of a coordinate reach from the first point of an axis to its last, without gaps."""
        low, reached = place.number, 1
        for key, times in sorted(place.parts.items(), key=lambda part: abs(part[1])):
            width = abs(times) * (len(self._values(key)) - 1)
            if abs(times) > reached:
                return False
            low, reached = low - (width if times < 0 else 0), reached + width
        return low <= 0 and extent <= low + reached

    def _values(self, key: Key) -> range:
        """Range of a key, from 0 on."""
        if isinstance(key, ir.Var):
            return range(len(self.counters[key]))
        kind, axis = key
        threads, size = self._axis(axis)
        return range({"global": threads, "group": -(-threads // size), "local": size}[kind])

    def _axis(self, axis: str) -> tuple[int, int]:
        """Threads that run along an axis, and those of a group."""
        size = self.kernel.work_group[ir.AXES.index(axis)] if axis != "element" else 1
        return self.kernel.launched.extent(axis), size

    def _together(self, axis: str, keys: Sequence[Key], fixed: dict[Key, int]) -> bool:
        """True if a thread exists for every combination of the free keys of an axis, with others fixed."""
        threads, size = self._axis(axis)
        free = {key[0] for key in keys if isinstance(key, tuple) and key[1] == axis}
        pinned = {key[0]: at for key, at in fixed.items() if isinstance(key, tuple) and key[1] == axis}
        if free == {"global"} or "global" in pinned:
            return len(free) + len(pinned) == 1 and 0 <= pinned.get("global", 0) < threads
        groups = (
            range(-(-threads // size)) if "group" in free else range(pinned.get("group", 0), pinned.get("group", 0) + 1)
        )
        own = range(size) if "local" in free else range(pinned.get("local", 0), pinned.get("local", 0) + 1)
        inside = groups[0] >= 0 and own[0] >= 0 and own[-1] < size
        return "global" not in free and inside and groups[-1] * size + own[-1] < threads


def _agree(first: dict[Key, int], second: dict[Key, int]) -> bool:
    return all(first.get(key, at) == at for key, at in second.items())


# --- quotients and remainders of the linear thread index, as re-blockings compute them --------------------------------
# A coordinate is a sum of digits of the index, each times a constant. It takes each value once if the constants are the place
# values of a mixed-radix number with digits of the same ranges, and the digits are independent.


class Digit(NamedTuple):
    """`index / step % radix`, of the linear index of a thread."""

    step: int
    radix: int


def most(place: Affine) -> int:
    """The greatest value of a sum of digits."""
    digits: Mapping[Digit, int] = place.parts
    return place.number + sum(times * (digit.radix - 1) for digit, times in digits.items())


def reaches_all(kernel: Kernel, values: Mapping[Var, Expr], point: Sequence[Expr], grid: Sequence[int]) -> bool:
    """Return whether the positions of all threads are all points of a grid.

    Args:
        values: the values of immutable variables.
        point: the position of each thread.
    """
    reader, whole = _Reader(kernel, values), number(0)
    for expr, extent in zip(point, grid, strict=True):
        place = reader.read(expr)
        if place is None or most(place) >= extent:
            return False
        moved = _merged(whole.times(extent))
        total = None if moved is None else moved.combined("add", place)
        merged = None if total is None else _merged(total)
        if merged is None:
            return False
        whole = merged
    independent = all(b.step % (a.step * a.radix) == 0 for a, b in pairwise(sorted(whole.parts)))
    return independent and _counts(whole, math.prod(grid))


def _counts(place: Affine, points: int) -> bool:
    """True if the sums of digits are all numbers below this one."""
    reached = 1
    for times, radix in sorted((times, digit.radix) for digit, times in place.parts.items()):
        if times != reached:
            return False
        reached *= radix
    return reached == points


class _Reader:
    def __init__(self, kernel: Kernel, values: Mapping[Var, Expr]) -> None:
        self.kernel, self.definitions = kernel, values

    def read(self, expr: Expr) -> Affine | None:
        """Number as digits, each times a positive factor, plus a number that is not negative; None if it has another form."""
        return affine(expr, self._leaf, _merged, ("add", "mul"))

    def _leaf(self, expr: Expr) -> Affine | None:
        match expr:
            case Index(kind="global", axis=axis, offset=offset) if axis != "element" and offset >= 0:
                axes = self.kernel.domain.axes
                step = math.prod(self.kernel.domain.extent(a) for a in axes[axes.index(axis) + 1 :])
                return position(Digit(step, self.kernel.domain.extent(axis)), offset)
            case Index():
                low, high = self.kernel.bounds(expr)
                return number(low) if low == high else None
            case Ref(var=var) if var in self.definitions:
                return self.read(self.definitions[var])
            case Cast(arg=arg, type=type_) if type_.kind == arg.type.kind == "i" and type_.dtype.bits >= INT.bits:
                return self.read(arg)
            case Apply(op="div" | "mod" as op, args=(x, y)) if expr.type.lanes == 1:
                left, right = self.read(x), self.read(y)
                return None if left is None or right is None or right.varies else _part(op, left, right.number)
        return None


def _part(op: str, x: Affine, n: int) -> Affine | None:
    """Quotient by a number, or remainder, if each digit goes into one of them, or splits between the two."""
    if n < 1:
        return None
    high, low = dict[Digit, int](), dict[Digit, int]()
    for digit, times in x.parts.items():
        lower = n // times if n % times == 0 else 0  # number of its values below n
        if times % n == 0:
            high[digit] = times // n
        elif lower and digit.radix % lower == 0:
            low[Digit(digit.step, lower)] = times
            high[Digit(digit.step * lower, digit.radix // lower)] = 1
        else:
            low[digit] = times
    rest = _merged(Affine(low, x.low, x.high))
    if rest is None or most(rest) >= n:
        return None
    return rest if op == "mod" else Affine(high, 0, 0)


def _merged(place: Affine) -> Affine | None:
    """Digits with neighbours merged; None if an int may not hold the sum, or a term is negative."""
    done: dict[Digit, int] = {}
    last: Digit | None = None
    for digit in sorted(place.parts):
        times = place.parts[digit]
        if digit.radix == 1:
            continue
        if last is not None and digit.step == last.step * last.radix and times == done[last] * last.radix:
            times = done.pop(last)
            digit = Digit(last.step, last.radix * digit.radix)
        done[digit], last = times, digit
    result = Affine(done, place.low, place.high)
    return result if result.number >= 0 and most(result) <= 2**31 - 1 else None
