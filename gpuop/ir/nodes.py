"""The intermediate representation: symbols, expressions, statements, kernels. All frozen; symbols compare by identity.

Three forms, checked by `verify`:
  RECORDED   what the recorder emits and fusion splices: tensors, points, borders; operands are atoms
  LOWERED    scalars only, memory at flat offsets (`Load`, `Store`); operands are atoms
  PRINTABLE  as LOWERED, but operands nest, each nested value being used once
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as facts
from typing import TypeAlias

from gpuop.errors import Loc
from gpuop.ir.types import INT, FieldType, Shape, Type

AXES = ("layer", "row", "column", "element")  # of the thread grid; `element` walks a big tensor


# --- symbols ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A named value; a mutable one is a variable of the user's."""

    hint: str
    type: Type
    mutable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FieldParam:
    """A field that the kernel reads or writes. `by_value` inputs are scalar arguments, not buffers."""

    hint: str
    type: FieldType
    by_value: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Memory of a thread; its elements have `type`, its dimensions are constants."""

    hint: str
    type: Type
    shape: tuple[int, ...]


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

    kind: "global" | "local" | "group" position, "global_size" | "local_size" extent.
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

    border: "clamp" | "zero" | "fill" | "wrap" | "reflect" | "symmetric" | "unchecked"; `fill` is the value outside.
    """

    field: FieldParam
    type: Type
    point: tuple[Expr, ...] | None = None
    element: Expr | None = None
    border: str = "clamp"
    fill: Const | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """An element of an array, or (LOWERED) of a field at a flat offset."""

    memory: Array | FieldParam
    index: tuple[Expr, ...]
    type: Type


Expr: TypeAlias = Const | Ref | Index | Stride | Argument | Apply | Cast | Bits | Lane | Pack | Read | Load
ATOMS = (Const, Ref, Index, Stride, Argument)


# --- statements -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let:
    var: Var
    value: Expr
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    var: Var
    value: Expr
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Declare:
    """An array comes into being here, zeroed."""

    array: Array
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Write:
    field: FieldParam
    value: Expr
    point: tuple[Expr, ...] | None = None
    element: Expr | None = None
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    memory: Array | FieldParam
    index: tuple[Expr, ...]
    value: Expr
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    cond: Expr
    then: Block
    orelse: Block = ()
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """`for (var = start; var < stop; var += step)`, or `>` when step is negative; bounds are bound at entry."""

    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: Block
    unroll: int = 1
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """`head` computes `cond` anew before every turn."""

    head: Block
    cond: Expr
    body: Block
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Break:
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Continue:
    loc: Loc | None = facts(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Comment:
    """Names the user's operator that the statements below it come from."""

    text: str
    loc: Loc | None = facts(default=None, compare=False)


Stmt: TypeAlias = Let | Assign | Declare | Write | Store | If | For | While | Break | Continue | Comment
Block: TypeAlias = tuple[Stmt, ...]


# --- kernels ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Domain:
    """The thread grid: a grid of points, and an axis of tensor elements where a thread handles only one of them."""

    shape: Shape
    elements: int = 1

    @property
    def threads(self) -> int:
        return self.shape.points * self.elements

    def extent(self, axis: str) -> int:
        """Threads along an axis; 1 where the grid has no such axis."""
        if axis == "element":
            return self.elements
        missing = 3 - len(self.shape)
        position = AXES.index(axis)
        return self.shape[position - missing] if position >= missing else 1

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the grid's axes, slowest first."""
        return AXES[3 - len(self.shape) : 3]

    def __str__(self) -> str:
        grid = "×".join(map(str, self.shape)) or "0D"
        return grid + (f" × {self.elements} elements" if self.elements > 1 else "")


@dataclass(frozen=True, slots=True)
class Output:
    """A written field and what it holds where nothing was written; `fill` None: everything is written."""

    param: FieldParam
    fill: float | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    inputs: tuple[FieldParam, ...]
    outputs: tuple[Output, ...]
    domain: Domain
    body: Block
    group: Shape | None = None
    loc: Loc | None = None

    @property
    def written(self) -> tuple[FieldParam, ...]:
        return tuple(output.param for output in self.outputs)
