"""Outputs `_out0` … `_out9`, and the record of each in a recorder."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.dsl.recorder.fill_values import Fill
from gpuop.dsl.recorder.no_number import NoNumber
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import FieldType


@dataclass(frozen=True, eq=False)
class OutputRef(NoNumber):
    """`_out0` … `_out9`: the outputs of the operator being recorded."""

    index: int
    advice: ClassVar[str] = "keep what you wrote in a variable, or read it by `_readTensor`"
    assigned: ClassVar[str] = "write it, as in `_writeTensor(_out0, v)`"

    def __repr__(self) -> str:
        return f"_out{self.index}"

    @property
    def _shown(self) -> str:
        return repr(self)

    def __setitem__(self, place: Any, value: Any) -> NoReturn:
        raise SemanticError(
            f"an output is not an array: write `_writeTensor({self}, v, _row, _column)`, or `_writeTensor({self}, v)` at the "
            "thread's own point"
        )

    def __getitem__(self, place: Any) -> NoReturn:
        raise SemanticError(
            f"{self} is not an array: keep what you wrote in a variable, or read it by `_readTensor({self}, _row, _column)`"
        )


@dataclass
class OutputSlot:
    """An output being recorded.

    Attributes:
        declared: False if its type is only the default.
        kind: the public type, with names and all dimensions.
        updates: name of the argument that an operator updates through it; empty for other outputs.
        initial: the input with its initial values, if threads read and write it in memory.
        unordered: as of `Output`.
    """

    param: FieldParam
    declared: bool
    kind: FieldType
    default: Fill | None = None
    updates: str = ""
    initial: FieldParam | None = None
    unordered: bool = False

    @property
    def shown(self) -> str:
        """Name in messages."""
        return f"`{self.updates}`" if self.updates else f"_{self.param.hint}"
