"""Protocol of Fields as the recorder sees them; their file is in a higher folder."""

from __future__ import annotations

from gpuop.ir.types import FieldType
from gpuop.ir.values import Node


class FieldLike:
    """A field as the recorder sees it."""

    __slots__ = ()
    node: Node

    @property
    def type(self) -> FieldType:
        """Grid, tensor and dtype."""
        return self.node.type
