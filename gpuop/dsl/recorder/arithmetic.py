"""Python operators of kernel values and fields: each calls `_operate` with the name of the NumPy function."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Arithmetic(Generic[T]):
    """Operators by `_operate`: `a + b` is `a._operate("add", a, b)`, also if only b is of this class."""

    __slots__ = ()

    def _operate(self, name: str, *operands: Any) -> T:
        raise NotImplementedError

    __hash__ = object.__hash__

    # fmt: off
    def __add__(self, other: Any) -> T: return self._operate("add", self, other)
    def __radd__(self, other: Any) -> T: return self._operate("add", other, self)
    def __sub__(self, other: Any) -> T: return self._operate("subtract", self, other)
    def __rsub__(self, other: Any) -> T: return self._operate("subtract", other, self)
    def __mul__(self, other: Any) -> T: return self._operate("multiply", self, other)
    def __rmul__(self, other: Any) -> T: return self._operate("multiply", other, self)
    def __truediv__(self, other: Any) -> T: return self._operate("divide", self, other)
    def __rtruediv__(self, other: Any) -> T: return self._operate("divide", other, self)
    def __floordiv__(self, other: Any) -> T: return self._operate("floor_divide", self, other)
    def __rfloordiv__(self, other: Any) -> T: return self._operate("floor_divide", other, self)
    def __mod__(self, other: Any) -> T: return self._operate("remainder", self, other)
    def __rmod__(self, other: Any) -> T: return self._operate("remainder", other, self)
    def __pow__(self, other: Any) -> T: return self._operate("power", self, other)
    def __rpow__(self, other: Any) -> T: return self._operate("power", other, self)
    def __and__(self, other: Any) -> T: return self._operate("bitwise_and", self, other)
    def __rand__(self, other: Any) -> T: return self._operate("bitwise_and", other, self)
    def __or__(self, other: Any) -> T: return self._operate("bitwise_or", self, other)
    def __ror__(self, other: Any) -> T: return self._operate("bitwise_or", other, self)
    def __xor__(self, other: Any) -> T: return self._operate("bitwise_xor", self, other)
    def __rxor__(self, other: Any) -> T: return self._operate("bitwise_xor", other, self)
    def __lshift__(self, other: Any) -> T: return self._operate("left_shift", self, other)
    def __rlshift__(self, other: Any) -> T: return self._operate("left_shift", other, self)
    def __rshift__(self, other: Any) -> T: return self._operate("right_shift", self, other)
    def __rrshift__(self, other: Any) -> T: return self._operate("right_shift", other, self)
    def __lt__(self, other: Any) -> T: return self._operate("less", self, other)
    def __le__(self, other: Any) -> T: return self._operate("less_equal", self, other)
    def __gt__(self, other: Any) -> T: return self._operate("greater", self, other)
    def __ge__(self, other: Any) -> T: return self._operate("greater_equal", self, other)
    def __eq__(self, other: Any) -> T: return self._operate("equal", self, other)  # type: ignore[override]
    def __ne__(self, other: Any) -> T: return self._operate("not_equal", self, other)  # type: ignore[override]
    def __neg__(self) -> T: return self._operate("negative", self)
    def __abs__(self) -> T: return self._operate("absolute", self)
    def __invert__(self) -> T: return self._operate("invert", self)
    # fmt: on
