"""Conversions of a Field: to a Python number, another dtype, the parts of complex numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from gpuop.base.errors import SemanticError, UnsupportedError
from gpuop.dsl.fields import services
from gpuop.dsl.fields.from_arrays import Array
from gpuop.dsl.recorder.assignment_targets import is_chained
from gpuop.ir.types import FieldType

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class Conversions:
    """Conversions to Python numbers evaluate, and take 0D scalars only; the others give fields."""

    __slots__ = ()

    @property
    def type(self) -> FieldType:
        raise NotImplementedError

    def numpy(self) -> Array:
        raise NotImplementedError

    # --- Python numbers -------------------------------------------------------------------------------------------

    def _scalar(self, what: str) -> Any:
        if self.type.array_shape.points != 1 or self.type.field_shape:
            instead = (
                "`&` and `|` join comparisons, `np.where` chooses" if what == "the truth value" else "use `.numpy()`"
            )
            raise SemanticError(f"{what} of a {self.type} Field is ambiguous: only 0D scalars convert; {instead}")
        return self.numpy().reshape(())[()]

    def __bool__(self) -> bool:
        if self.type.array_shape.points != 1 and is_chained(sys._getframe(1)):
            raise SemanticError(
                f"a chained comparison such as `a < f < b` is an `and` of Python's, which asks a {self.type} Field for one truth "
                "value; write `(a < f) & (f < b)`"
            )
        return bool(self._scalar("the truth value"))

    def __index__(self) -> NoReturn:
        raise UnsupportedError(
            "a Field is no Python integer: its value is not known before it runs; `int(f)` evaluates a 0D one"
        )

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __format__(self, spec: str) -> str:
        """The number of a 0D scalar, as in `f"{field.sum():.3f}"`; without a format as `repr`."""
        return format(self._scalar(f"the format {spec!r}").item(), spec) if spec else repr(self)

    def __round__(self, digits: Any = None) -> NoReturn:
        raise UnsupportedError("Python's `round` does not take Fields; `np.round(f, decimals)` rounds them")

    def __len__(self) -> int:
        raise UnsupportedError(
            "a Field has no len(); its grid is in `.field_shape`, its tensor in `.tensor_shape`, both in `.shape`"
        )

    # --- fields -----------------------------------------------------------------------------------------------------

    def astype(self, dtype: Any, *, copy: bool = True) -> Field:
        """A field of another dtype, converted as kernels write: integers truncate and saturate, bool is `!= 0`.

        Args:
            dtype: a NumPy dtype or its name, or "unorm8".
            copy: as of NumPy arrays; fields do not change, so it makes no difference.

        Returns:
            A Field of the same shapes.

        Raises:
            SemanticError: a dtype that fields cannot have, or a real one of complex numbers.
        """
        return services.algebra["astype"](self, dtype)

    @property
    def real(self) -> Field:
        """The real parts, float32 of complex64."""
        return services.algebra["real"](self)

    @property
    def imag(self) -> Field:
        """The imaginary parts, which are 0 of real numbers."""
        return services.algebra["imag"](self)

    def conj(self) -> Field:
        """The complex conjugates; real numbers as they are.

        Returns:
            A Field of the same type.
        """
        return services.algebra["conjugate"](self)

    conjugate = conj
