"""Fields that an operator reads and writes, which are outputs.

Where threads touch only their own points, a field is a variable of the thread's, which begins as what its point holds and is
written in the end. Else its memory is the output's, which begins as the field, and threads read and write there what they like.
In both cases an operator that updates a field gives another one, as all do; whether that has the memory of the first is for plans
to decide.
"""

from __future__ import annotations

import weakref

from gpuop.base.errors import Loc, SemanticError, here
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.outputs import OutputSlot
from gpuop.dsl.recorder.recorder import Recorder
from gpuop.dsl.recorder.storage import fetch, stored
from gpuop.ir.nodes import Assign, Atomic, Block, Const, Expr, Index, Let, Read, Ref, Var, Write
from gpuop.ir.types import SMALL_TENSOR, Type
from gpuop.ir.visit import walk, written_by

ELEMENT = Index("global", "element")


class UpdatedField:
    """A field that is updated, and the output that holds it in the end.

    Args:
        in_memory: whether threads touch other points than their own.

    Attributes:
        name: of the argument.
        given: the field that the operator is called with.
        elsewhere: whether the body has touched other points, or elements that are not known.
        written: where the body writes it first, as a variable.
    """

    def __init__(self, recorder: Recorder, name: str, given: FieldLike, slot: OutputSlot, in_memory: bool) -> None:
        self._recorder, self.name, self.given, self.slot = weakref.ref(recorder), name, given, slot
        self.type, self.in_memory, self.elsewhere = given.type, in_memory, in_memory
        self.written: Loc | None = None
        self._var: Var | None = None

    @property
    def recorder(self) -> Recorder:
        """What records the body, which has this and lives longer: a cycle would hold the fields of a call."""
        recorder = self._recorder()
        assert recorder is not None
        return recorder

    @property
    def is_small(self) -> bool:
        """Whether it can be a variable."""
        tensor = self.recorder.tensor
        return tensor.points == self.type.planes if tensor else self.type.planes <= SMALL_TENSOR

    @property
    def var(self) -> Var:
        """What a thread has of it: its point, or an element of that where it has only one."""
        if self._var is None:
            lanes = 1 if self.recorder.tensor else self.type.planes
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
        self.elsewhere = True
        return 0

    # --- the body ---------------------------------------------------------------------------------------------------

    @property
    def element(self) -> Expr | None:
        return ELEMENT if self.recorder.tensor else None

    def begins(self) -> Block:
        """What stands before the body."""
        if self.written is None and not self._changes():
            raise SemanticError(
                f"operator `{self.recorder.name}` never writes `{self.name}`, which `inout=` names; add "
                f"`_writeTensor({self.name}, …)`, or leave it out",
                self.recorder.loc,
            )
        if self.in_memory:
            self.slot.begins = self.recorder.param(self.given)
            return ()
        point = self.recorder.own_point() if self.recorder.surplus and self.type.field_shape else None
        param = self.recorder.param(self.given)
        return (Let(self.var, Read(param, self.var.type, point, self.element, "clamp")),)

    def ends(self) -> Block:
        """What stands behind it."""
        return () if self.in_memory else (Write(self.slot.param, Ref(self.var), None, self.element, self.written),)

    def _changes(self) -> bool:
        """Whether the body writes its memory."""
        written = (
            stmt for stmt in walk(tuple(self.recorder.scopes[0].statements)) if written_by(stmt) is self.slot.param
        )
        return any(not isinstance(stmt, Atomic) or stmt.op != "read" for stmt in written)
