"""Outputs and arrays as operands: they are no numbers, so arithmetic on them raises an error with the remedy."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from gpuop.base.errors import SemanticError, described, writes_kernels


class NoNumber:
    """Base class of objects without arithmetic as a whole.

    Attributes:
        advice: the replacement in a kernel.
        assigned: the way to set its values.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy scalars leave arithmetic to the methods below
    advice: ClassVar[str]
    assigned: ClassVar[str]

    @property
    def _shown(self) -> str:
        return described(self)

    def _refused(self, *_: object) -> Any:
        raise SemanticError(f"{self._shown} cannot stand in a kernel; {self.advice}")

    def __eq__(self, other: object) -> Any:
        """Only a line that writes kernels means the values; what holds or finds objects means the object."""
        if isinstance(other, NoNumber) or not writes_kernels(sys._getframe(1)):
            return self is other
        return self._refused()

    __hash__ = object.__hash__

    def __imatmul__(self, other: object) -> Any:  # type: ignore[misc]  # it is no product
        raise SemanticError(f"`@=` assigns to variables, which {self._shown} is not; {self.assigned}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = _refused
    __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __abs__ = __invert__ = _refused
