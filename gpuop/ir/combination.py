"""What collective operations make of two values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuop.ir.nodes import Block, Expr, Var


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
