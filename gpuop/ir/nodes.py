"""The intermediate representation: symbols, expressions, statements, kernels. All frozen; symbols compare by identity.

Three forms, checked by `verify`:
  RECORDED   what the recorder emits and fusion splices: tensors, points, borders; operands are atoms
  LOWERED    scalars only, memory at flat offsets (`Load`, `Store`); operands are atoms
  PRINTABLE  as LOWERED, but operands nest, each nested value being used once
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import field as facts
from enum import Flag, auto
from typing import ClassVar, NoReturn, TypeAlias

from gpuop.base.errors import Loc
from gpuop.ir.target_expressions import Extent, TargetConst, numbers
from gpuop.ir.types import HALF, INT, FieldType, Type

GRID_AXES = ("layer", "row", "column")
AXES = (*GRID_AXES, "element")  # axes of the grid of threads; `element` walks a big tensor


# --- symbols ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A named value; a mutable one is a variable of the user's. A temporary one has its name from gpuop, not from the user."""

    hint: str
    type: Type
    mutable: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FieldParam:
    """A field that the kernel reads or writes. `by_value` inputs are scalar arguments, not buffers."""

    hint: str
    type: FieldType
    by_value: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Memory whose elements have `type`; its dimensions are constants (`extents` once the target is known), none for one value.

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
    """A thread identity constant. `_row + 1` is the atom Index("global", "row", 1): that is how stencils are seen.

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
    """Component `plane` of a by-value parameter (LOWERED)."""

    field: FieldParam
    plane: int
    type: Type


@dataclass(frozen=True, slots=True)
class Apply:
    """A row of the operator table applied to operands of the types that its rule wants."""

    op: str
    args: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion; a scalar spreads over the lanes. To integers, `saturate` clamps (NaN gives 0), else it wraps as C does."""

    arg: Expr
    type: Type
    saturate: bool = True


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
    """A field's stored value. `point` None is the thread's own; `element` None is the whole (small) tensor.

    border: a name of `borders.py: BORDERS`, of coordinates of `point`; `fill` is the value outside under "fill".
    """

    field: FieldParam
    type: Type
    point: tuple[Expr, ...] | None = None
    element: Expr | None = None
    border: str = "clamp"
    fill: Const | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """An element of an array, or (LOWERED) of a field at a flat offset; a vector: neighbours, those `ahead`, or at offsets."""

    memory: Array | FieldParam
    index: tuple[Expr, ...]
    type: Type
    ahead: tuple[int, ...] = ()


Expr: TypeAlias = (
    Const | TargetConst | Ref | Index | Stride | Argument | Apply | Cast | Bits | Lane | Pack | Read | Load
)
ATOMS = (Const, TargetConst, Ref, Index, Stride, Argument)


# --- statements -------------------------------------------------------------------------------------------------


class Effect(Flag):
    """What a statement does besides giving values to variables and to memory: whoever moves, copies or drops it must know."""

    NONE = 0
    THREADS = auto()  # other threads of the kernel notice it, so it matters which thread runs it, and when
    HOST = auto()  # the host notices it, so it runs in the step that it belongs to
    EVERY_RUN = auto()  # the host notices each run, so it matters how often it runs


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
    """An array comes into being here."""

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
    effect: ClassVar[Effect] = Effect.NONE
    memory: Array | FieldParam
    index: tuple[Expr, ...]
    value: Expr
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Atomic:
    """Read, compute and write an element of memory as one step; `var` is bound to what was read, None where unused.

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
    """Neighbours in a field, in one access: as many as the array has, of bytes as its words hold, into it (`loads`) or from it.

    `index` is the point of the first one, with `element` of its tensor, until LOWERED makes it a flat offset. `left` is how
    many are inside the field, None where all are and the offset is a multiple of their number.
    """

    effect: ClassVar[Effect] = Effect.NONE
    field: FieldParam
    array: Array
    loads: bool
    index: tuple[Expr, ...]
    element: Expr | None = None
    left: Expr | None = None
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of a work-group wait for one another; `fence` is the memory they share then, `word` what waits besides."""

    effect: ClassVar[Effect] = Effect.THREADS
    fence: str  # "local" or "global"
    loc: Loc | None = facts(default=None, compare=False)
    word: str = facts(default="", compare=False)


SHUFFLES = ("warp shuffle", "warp up", "warp down", "warp ballot")  # what warps that exchange values have words for


@dataclass(frozen=True, slots=True)
class Combination:
    """A function of two values that makes one of them, for collective operations; it uses nothing but its operands.

    `name` is that of a function of gpuop's, as users know it, empty for one of theirs.
    """

    left: Var
    right: Var
    body: Block
    result: Expr
    name: str = ""


@dataclass(frozen=True, slots=True)
class Collective:
    """The threads of a work-group, or those of each part of it, make something of one another's values: all come here together.

    Threads of a part are numbered in row-major order; those that the grid has not are none. For a known target all are made of
    other statements, of which some are collective again: those of SHUFFLES, by `over` lanes of a warp.

    kind: "reduce" combines all values, for all threads or ("first") for the first one; "ballot" has a bit of each; "scan"
    combines those up to a thread's own, "before" those before it; "select" gives the one that is `at` in their order; "broadcast",
    "shuffle" the value of the thread whose number is `at`, "up", "down", "xor" of one so far before or after, or that differs so.
    over: what a part is: "" the work-group, the name of an axis along which the threads are, or how many threads in a row.
    outside: what the first thread gets of "before".
    word: what the user has written.
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
    """Write a line from the device: C's format, a scalar for each of its conversions."""

    effect: ClassVar[Effect] = Effect.HOST | Effect.EVERY_RUN
    format: str
    args: tuple[Expr, ...]
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assert:
    """Checked execution reports the first thread where the condition does not hold."""

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
    """`for (var = start; var < stop; var += step)`, `>` when step is negative; bounds bind at entry; `lanes` may run at once."""

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
    """`head` computes `cond` anew before every turn."""

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
    """Names the user's operator that the statements below it come from."""

    effect: ClassVar[Effect] = Effect.NONE
    text: str
    loc: Loc | None = facts(default=None, compare=False)


Action: TypeAlias = Declare | Write | Store | Atomic | Wide | Barrier | Collective | Print | Assert | Comment
Stmt: TypeAlias = Let | Assign | Action | If | For | While | Break | Continue
Block: TypeAlias = tuple[Stmt, ...]


def assert_never(node: NoReturn) -> NoReturn:
    """The end of a `match` over all kinds of nodes: mypy refuses it where a kind is left out."""
    raise TypeError(f"a {type(node).__name__} is not expected here")
