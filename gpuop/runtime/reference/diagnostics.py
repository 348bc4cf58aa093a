"""The messages of checked execution: the user's line, the threads, and the remedy."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.records import dataclass
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Apply, Array, FieldParam, Stmt
from gpuop.passes.assertions import thread_of
from gpuop.runtime.reference.races import Race
from gpuop.runtime.reference.wraparound import may_wrap, wraparound_message

DOES = {"reads": "reads {}", "writes": "writes {}", "updates": "changes {} atomically"}
SKIP = "or leave such threads out with `_if`"
SYNC = "`_syncThreadsLocal()`"


@dataclass(frozen=True, slots=True)
class Fault:
    """An operation whose result may not be used in some threads.

    Attributes:
        line: the number of its line.
        name: the operator that has the operation.
        args: one lane of its operands, in all threads that run together.
    """

    line: int
    name: str
    operation: Apply
    args: tuple[NDArray[Any], ...]


class Diagnostics:
    """The diagnostics of a launch. Every method but `runs`, `thread`, `code` and `wrapped` raises a SemanticError.

    Attributes:
        operator: the line with the call of the current operator.
        line: the number in `lines` of the current line.
        in_users_line: whether the current statement is the user's, and neither in a library operator nor in a
            step of a library function.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.operator, self.name = kernel.loc, kernel.name  # for statements that have no line
        self.lines: list[Loc | None] = []
        self.numbers: dict[Loc | None, int] = {}
        self.line = 0
        self.in_users_line = False
        self.codes: dict[tuple[int, int], int] = {}
        self.faults: dict[int, Fault] = {}  # by code

    def runs(self, stmt: Stmt) -> None:
        """Note the statement that runs next."""
        loc = stmt.loc or self.operator
        if loc not in self.numbers:
            self.numbers[loc] = len(self.lines)
            self.lines.append(loc)
        self.line = self.numbers[loc]
        self.in_users_line = stmt.loc is not None and not stmt.loc.through

    def thread(self, number: int) -> str:
        """Return the name of a thread, from its number in the grid."""
        where = thread_of(self.kernel, number + 1)
        return f"thread ({', '.join(f'{axis} {at}' for axis, at in where.items())})" if where else "the thread"

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        raise SemanticError(message, self.lines[self.line if line is None else line])

    # --- places -------------------------------------------------------------------------------------------------

    def outside_field(self, thread: int, field: FieldParam, axis: str, value: int, n: int) -> NoReturn:
        self.fail(
            f'{self.thread(thread)} reads `{field.hint}` outside, under border="unchecked": {axis} {value} of {n}; '
            f'give a border rule, such as border="clamp", {SKIP}'
        )

    def outside_tensor(self, thread: int, field: FieldParam, value: int) -> NoReturn:
        count = field.type.planes
        self.fail(
            f"{self.thread(thread)} reads element {value} of `{field.hint}`, whose tensors have {count}; keep it inside, for "
            f"borders do not apply to elements, {SKIP}"
        )

    def outside_array(self, thread: int, does: str, array: Array, index: list[int], axis: int) -> NoReturn:
        done = DOES[does].format(f"`{array.hint}[{', '.join(map(str, index))}]`")
        which = f"index {axis}" if len(index) > 1 else "the index"
        self.fail(
            f"{self.thread(thread)} {done}, outside the array: {which} is {index[axis]}, and the extent {array.shape[axis]}; "
            f"keep it inside, {SKIP}"
        )

    def unwritten(self, thread: int, does: str, array: Array, element: int) -> NoReturn:
        done = DOES[does].format(_element(array, element))
        self.fail(
            f"{self.thread(thread)} {done}, which no thread of its work-group has written, and local memory is not "
            f"initialised; write it before, and wait with {SYNC}"
        )

    def incomplete(self, field: FieldParam, cell: int) -> NoReturn:
        self.fail(
            f"no thread writes {_output(field, cell)}, which has no `default=` to hold there; write all of it, by more threads "
            "or by loops, or give the output a `default=`"
        )

    # --- order --------------------------------------------------------------------------------------------------

    def torn(self, fence: str, here: int, missing: int) -> NoReturn:
        name = "_syncThreadsLocal" if fence == "local" else "_syncThreadsGlobal"
        self.fail(
            f"`{name}()` is reached by {self.thread(here)} and not by {self.thread(missing)} of its work-group; "
            "put the barrier outside, and what depends on the thread inside"
        )

    def race(self, race: Race, memory: Array | FieldParam, element: int) -> NoReturn:
        """Raise for two threads that access an element without order."""
        local = isinstance(memory, Array)
        what = _element(memory, element) if isinstance(memory, Array) else _output(memory, element)
        other = self.thread(race.other) + (" of its work-group" if local else "")
        done, before = DOES[race.does].format(what), DOES[race.did].format("it")
        value = " with another value" if race.does == race.did == "writes" else ""
        self.fail(
            f"{self.thread(race.thread)} {done}, and {other} {before}{value} {self.where(race.line)}, in no certain order; "
            f"{_advice(race, local, race.line == self.line)}"
        )

    def where(self, line: int) -> str:
        """Return the place of the other thread, relative to the current line."""
        loc, here = self.lines[line], self.lines[self.line]
        if loc is None or here is None or loc == here:
            return "in the same line"
        return f"in `{loc.text}` ({f'line {loc.line}' if here.file == loc.file else loc})"

    # --- values -------------------------------------------------------------------------------------------------

    def code(self, expr: Apply, lane: int, args: tuple[NDArray[Any], ...]) -> int:
        """Return a code for a fault of one lane of an operation: a number from 1. Earlier codes of that lane are invalid."""
        code = self.codes.setdefault((id(expr), lane), len(self.codes) + 1)
        self.faults[code] = Fault(self.line, self.name, expr, args)
        return code

    def wrapped(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which codes stand for integers that wrap around."""
        return np.isin(codes, [code for code, fault in self.faults.items() if may_wrap(fault.operation)])

    def fault(self, thread: int, code: int, at: int) -> NoReturn:
        """Raise for a fault whose value is used, for one of the threads that run together."""
        fault = self.faults[code]
        if may_wrap(fault.operation):
            values = [int(each if each.ndim == 0 else each[at]) for each in fault.args]
            self.fail(
                f"{self.thread(thread)} of `{fault.name}`: {wraparound_message(fault.operation, values)}", fault.line
            )
        self.fail(
            f"an integer is divided by 0 in {self.thread(thread)}, and the result, 0, is used; "
            "leave such threads out with `_if`, or choose another value with `_where`",
            fault.line,
        )


def _advice(race: Race, local: bool, updates: bool) -> str:
    if {race.does, race.did} == {"writes", "updates"} and not local:
        return "use atomics in both places, or two outputs"
    if not local or race.does == race.did:
        apart = " (no barrier orders different work-groups)" if not race.one_group else ""
        return f"let one thread write it, or use atomics{apart}"
    return f"put {SYNC} between the two{', or use atomics' * updates}"  # a statement that reads and writes is an update


def _element(array: Array, element: int) -> str:
    index = np.unravel_index(element, array.extents) if array.shape else ()
    return f"`{array.hint}[{', '.join(map(str, index))}]`" if array.shape else f"`{array.hint}`"


def _output(field: FieldParam, cell: int) -> str:
    """Return an element of an output; the output is named by its line, because fusion renames outputs."""
    grid = field.type.field_shape
    element, point = divmod(cell, grid.points)
    where = dict(zip(GRID_AXES[3 - len(grid) :], map(int, np.unravel_index(point, grid) if grid else ()), strict=True))
    if field.type.planes > 1:
        where["element"] = element
    return f"the output at ({', '.join(f'{axis} {at}' for axis, at in where.items())})" if where else "the output"
