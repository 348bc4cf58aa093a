"""The intermediate representation: symbols, expressions, statements, kernels. All frozen; symbols compare by identity.

Three forms, checked by `verify`:
  RECORDED   what the recorder emits and fusion splices: tensors, points, borders; operands are atoms
  LOWERED    scalars only, memory at flat offsets (`Load`, `Store`); operands are atoms
  PRINTABLE  as LOWERED, but operands nest, each nested value being used once
"""

from __future__ import annotations

import math
from dataclasses import field as facts
from enum import Flag, auto
from typing import ClassVar, NoReturn, TypeAlias

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir.target_expressions import Extent, TargetConst, numbers
from gpuop.ir.types import HALF, INT, FieldType, Type

GRID_AXES = ("layer", "row", "column")
AXES = (*GRID_AXES, "element")  # axes of the grid of threads; `element` walks a big tensor


# --- symbols ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A named value; a mutable one is a variable of the user. The name of a temporary one is from gpuop, not from the user."""

    hint: str
    type: Type
    mutable: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FieldParam:
    """A field that the kernel reads or writes.

    by_value: the input is scalar arguments, not a buffer.
    table: the input is a few numbers that the host has, and devices may have them in constant memory.
    """

    hint: str
    type: FieldType
    by_value: bool = False
    table: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Memory with elements of `type`. The dimensions are constants (`extents` once the target is known); one value has none.

    space: "private" to a thread, zeroed where it is declared; "local", not initialised; "constant", `values` in row-major order.
    """

    hint: str
    type: Type
    shape: tuple[Extent, ...]
    space: str = "private"
    volatile: bool = False
    values: tuple[bool | int | float, ...] = ()

    @property
    def written(self) -> bool:
        return self.space != "constant"

    @property
    def extents(self) -> tuple[int, ...]:
        return numbers(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.extents)

    @property
    def nbytes(self) -> int:
        return self.elements * self.type.lanes * max(self.type.dtype.bits, 32 if self.type.dtype is HALF else 8) // 8


# --- expressions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """A scalar constant. Compared by its text, so that 0.0 and -0.0 differ and NaN equals itself."""

    value: bool | int | float = facts(compare=False)
    type: Type
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", repr(self.value))


@dataclass(frozen=True, slots=True)
class Ref:
    var: Var

    @property
    def type(self) -> Type:
        return self.var.type


@dataclass(frozen=True, slots=True)
class Index:
    """A thread identity constant. `_row + 1` is the atom Index("global", "row", 1), by which stencils are recognised.

    kind: "global" | "local" | "group" position, "global_size" | "local_size" | "group_count" extent.
    """

    kind: str
    axis: str
    offset: int = 0

    @property
    def type(self) -> Type:
        return Type(INT)


@dataclass(frozen=True, slots=True)
class Stride:
    """A constant of a field's memory layout, printed by its name: rows, columns, rowStride, tensorStride…"""

    field: FieldParam
    what: str
    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class Argument:
    """Component `plane` of a by-value parameter; RECORDED forms have it where a number was a constant (`kernel_numbers.py`).

    follows: if it is an extent of another field, or less, for all sizes: that extent, by how much, and the axis (`extents.py`).
    """

    field: FieldParam
    plane: int
    type: Type
    follows: tuple[int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """A row of the operator table applied to operands of the types that its rule requires."""

    op: str
    args: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion; a scalar spreads over the lanes. To integers, `saturate` clamps (NaN gives 0), else it wraps as C does.

    `fits`: a float is known to be among the integers of the type, truncated.
    """

    arg: Expr
    type: Type
    saturate: bool = True
    fits: bool = False


@dataclass(frozen=True, slots=True)
class Bits:
    """The same bits as another type of the same size."""

    arg: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Lane:
    arg: Expr
    lane: int
    type: Type


@dataclass(frozen=True, slots=True)
class Pack:
    args: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Read:
    """A stored value of a field. `point` None is the own point; `element` None is the whole (small) tensor.

    border: a rule of `borders.py: BORDERS` for the coordinates of `point`; `fill` is the value outside under "fill", a constant
    or an argument.
    """

    field: FieldParam
    type: Type
    point: tuple[Expr, ...] | None = None
    element: Expr | None = None
    border: str = "clamp"
    fill: Expr | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """An element of an array, or (LOWERED) of a field at a flat offset. A vector: neighbours, those `ahead`, or at offsets.

    `whole` neighbours from the index on are memory of the field, if not 0: points whose elements alternate, `ahead` those of one.
    """

    memory: Array | FieldParam
    index: tuple[Expr, ...]
    type: Type
    ahead: tuple[int, ...] = ()
    whole: int = 0


Expr: TypeAlias = (
    Const | TargetConst | Ref | Index | Stride | Argument | Apply | Cast | Bits | Lane | Pack | Read | Load
)
ATOMS = (Const, TargetConst, Ref, Index, Stride, Argument)


# --- statements -------------------------------------------------------------------------------------------------


class Effect(Flag):
    """Side effects of a statement besides assignments: passes that move, copy or drop statements respect them."""

    NONE = 0
    THREADS = auto()  # seen by other threads of the kernel: thread and time of execution matter
    HOST = auto()  # seen by the host: it must run in its own step
    EVERY_RUN = auto()  # seen by the host at each run: the number of executions matters


@dataclass(frozen=True, slots=True)
class Let:
    effect: ClassVar[Effect] = Effect.NONE
    var: Var
    value: Expr
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    effect: ClassVar[Effect] = Effect.NONE
    var: Var
    value: Expr
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Declare:
    """Declaration of an array."""

    effect: ClassVar[Effect] = Effect.NONE
    array: Array
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Write:
    effect: ClassVar[Effect] = Effect.NONE
    field: FieldParam
    value: Expr
    point: tuple[Expr, ...] | None = None
    element: Expr | None = None
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    """A vector goes to neighbours; or a Pack of vectors, of the elements of points in turn, to the places `ahead`."""

    effect: ClassVar[Effect] = Effect.NONE
    memory: Array | FieldParam
    index: tuple[Expr, ...]
    value: Expr
    loc: Loc | None = facts(default=None, compare=False)
    ahead: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Atomic:
    """Atomic read-modify-write of an element of memory; `var` is bound to the old value, None if unused.

    op: "add" | "sub" | "xchg" | "cmpxchg" | "min" | "max" | "and" | "or" | "xor" | "read", which changes nothing; `args` are its
    operands. In an output, `index` is a point, with `element` of its tensor, until LOWERED makes it a flat offset.
    """

    effect: ClassVar[Effect] = Effect.THREADS
    op: str
    memory: Array | FieldParam
    index: tuple[Expr, ...]
    args: tuple[Expr, ...]
    var: Var | None = None
    element: Expr | None = None
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Wide:
    """One access to neighbours in a field: as many as the array has elements (or bytes in its words), loaded into it or stored.

    `index` is the point of the first one, with `element` of its tensor, until LOWERED makes it a flat offset. `left` is the number
    of them inside the field, None if all are and the offset is a multiple of their number. It is `parts` accesses in a row.
    """

    effect: ClassVar[Effect] = Effect.NONE
    field: FieldParam
    array: Array
    loads: bool
    index: tuple[Expr, ...]
    element: Expr | None = None
    left: Expr | None = None
    loc: Loc | None = facts(default=None, compare=False)
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Barrier:
    """Barrier of a work-group; `fence` is the memory it orders, `word` the builtin behind it, if it is not a plain barrier."""

    effect: ClassVar[Effect] = Effect.THREADS
    fence: str  # "local" or "global"
    loc: Loc | None = facts(default=None, compare=False)
    word: str = facts(default="", compare=False)


SHUFFLES = ("warp shuffle", "warp up", "warp down", "warp ballot")  # exchanges of values within a warp


@dataclass(frozen=True, slots=True)
class Combination:
    """A function that combines two values, for collective operations; it uses only its operands.

    `name` is the public name of a gpuop operation, empty for a function of the user.
    """

    left: Var
    right: Var
    body: Block
    result: Expr
    name: str = ""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective operation on the values of all threads of a work-group, or of each part of it; all threads must reach it.

    Threads of a part are numbered in row-major order, without threads outside the grid. Once the target is known, all kinds are
    lowered to other statements; some of these are collective again: those of SHUFFLES, on `over` lanes of a warp.

    kind: "reduce" combines all values, for all threads or ("first") for the first one; "ballot" has a bit of each; "scan" combines
    the values up to the thread, "before" those before it; "select" gives the value with rank `at`; "broadcast" and "shuffle" give
    the value of thread number `at`, "up" and "down" of the thread `at` before or after, "xor" of the thread number xor `at`.
    over: the part: "" for the work-group, the name of an axis of threads, or a number of consecutive threads.
    outside: the value of "before" for the first thread.
    word: the builtin in the user's text.
    """

    effect: ClassVar[Effect] = Effect.THREADS
    kind: str
    var: Var
    value: Expr
    over: Extent | str = ""
    at: Expr | None = None
    outside: Expr | None = None
    combination: Combination | None = None
    word: str = ""
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Print:
    """A line printed by the device: a C format, and a scalar for each of its conversions."""

    effect: ClassVar[Effect] = Effect.HOST | Effect.EVERY_RUN
    format: str
    args: tuple[Expr, ...]
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assert:
    """A condition; checked execution reports the first thread that violates it."""

    effect: ClassVar[Effect] = Effect.HOST
    cond: Expr
    message: str
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    effect: ClassVar[Effect] = Effect.NONE
    cond: Expr
    then: Block
    orelse: Block = ()
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """`for (var = start; var < stop; var += step)`, `>` if step < 0; bounds bind at entry; `lanes`: iterations may run at
    once.
    """

    effect: ClassVar[Effect] = Effect.NONE
    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: Block
    unroll: Extent = 1
    loc: Loc | None = facts(default=None, compare=False)
    lanes: bool = False


@dataclass(frozen=True, slots=True)
class While:
    """A loop; `head` computes `cond` before every iteration."""

    effect: ClassVar[Effect] = Effect.NONE
    head: Block
    cond: Expr
    body: Block
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Break:
    effect: ClassVar[Effect] = Effect.NONE
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Continue:
    effect: ClassVar[Effect] = Effect.NONE
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Comment:
    """Name of the user operator from which the next statements come."""

    effect: ClassVar[Effect] = Effect.NONE
    text: str
    loc: Loc | None = facts(default=None, compare=False)


Action: TypeAlias = Declare | Write | Store | Atomic | Wide | Barrier | Collective | Print | Assert | Comment
Stmt: TypeAlias = Let | Assign | Action | If | For | While | Break | Continue
Block: TypeAlias = tuple[Stmt, ...]


def assert_never(node: NoReturn) -> NoReturn:
    """End of a `match` over all kinds of nodes: mypy rejects it if a kind is missing."""
    raise TypeError(f"a {type(node).__name__} is not expected here")
