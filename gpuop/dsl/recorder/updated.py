"""Fields that an operator reads and writes: a variable of the thread's, which begins as what its own point holds.

In the end it is written to an output. So an operator that updates a field gives another one, as all do; whether that has the
memory of the first is for plans to decide.
"""

from __future__ import annotations

from gpuop.dsl.recorder.field_like import FieldLike
from gpuop.dsl.recorder.outputs import OutputSlot
from gpuop.dsl.recorder.record import Recorder
from gpuop.dsl.recorder.storage import fetch, stored
from gpuop.errors import Loc, SemanticError, here
from gpuop.ir.nodes import Assign, Block, Const, Expr, Index, Let, Read, Ref, Var, Write
from gpuop.ir.types import SMALL_TENSOR, Type

ELEMENT = Index("global", "element")


class UpdatedField:
    """A field that is updated, and the output that holds it in the end.

    Attributes:
        name: of the argument.
        given: the field that the operator is called with.
        written: where the body writes it first.
    """

    def __init__(self, recorder: Recorder, name: str, given: FieldLike, slot: OutputSlot) -> None:
        self.recorder, self.name, self.given, self.slot = recorder, name, given, slot
        self.type = given.type
        self.written: Loc | None = None
        self._var: Var | None = None

    @property
    def var(self) -> Var:
        """What a thread has of it: its point, or an element of that where it has only one."""
        if self._var is None:
            lanes = 1 if self.recorder.tensor else self.type.planes
            if lanes > SMALL_TENSOR or (self.recorder.tensor and self.recorder.tensor.points != self.type.planes):
                raise SemanticError(
                    f"`{self.name}` has big tensors ({self.type.planes} elements), which a thread updates one element of: "
                    f"write `_globalThreads({self.name}, {self.name}.tensor_shape)`"
                )
            self._var = Var(self.name, Type(self.type.storage, lanes), mutable=True)
            self.recorder.scope_of[self._var] = self.recorder.scopes[0]
        return self._var

    def read(self, element: Expr | None) -> Expr:
        """What it holds now, or an element of that."""
        build = self.recorder.build
        value = build.copy(Ref(self.var))
        return fetch(build, self.type, value if element is None else build.lane(value, self._lane(element)))

    def write(self, value: Expr, element: Expr | None) -> None:
        build, lanes = self.recorder.build, 1 if element is not None else self.var.type.lanes
        new = stored(build, self.type, value, lanes)
        if element is not None and self.var.type.lanes > 1:
            parts = build.lanes(Ref(self.var))
            parts[self._lane(element)] = new
            new = build.pack(parts)
        self.written = self.written or here()
        self.recorder.emit(Assign(self.var, new, here()))

    def _lane(self, element: Expr) -> int:
        if element == ELEMENT and self.recorder.tensor:
            return 0
        if isinstance(element, Const) and not self.recorder.tensor:
            return int(element.value)
        raise SemanticError(
            f"of `{self.name}`, which is updated, a thread has elements of known numbers, or its own (`_tensorElement`)"
        )

    # --- the body ---------------------------------------------------------------------------------------------------

    @property
    def element(self) -> Expr | None:
        return ELEMENT if self.recorder.tensor else None

    def begins(self) -> Block:
        """What stands before the body."""
        if self.written is None:
            raise SemanticError(
                f"operator `{self.recorder.name}` never writes `{self.name}`, which `inout=` names; add "
                f"`_writeTensor({self.name}, …)`, or leave it out",
                self.recorder.loc,
            )
        point = self.recorder.own_point() if self.recorder.surplus and self.type.field_shape else None
        param = self.recorder.param(self.given)
        return (Let(self.var, Read(param, self.var.type, point, self.element, "clamp")),)

    def ends(self) -> Block:
        """What stands behind it."""
        return (Write(self.slot.param, Ref(self.var), None, self.element, self.written),)
