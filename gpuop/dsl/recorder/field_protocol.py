"""What Fields are known by where they are recorded: the file of Fields is above."""

from __future__ import annotations

from gpuop.ir.types import FieldType
from gpuop.ir.values import Node


class FieldLike:
    """What the recorder needs of a field, and knows fields by."""

    __slots__ = ()
    node: Node

    @property
    def type(self) -> FieldType:
        """Grid, tensor and dtype."""
        return self.node.type
