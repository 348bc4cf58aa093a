"""Names of the dtypes of fields."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, meant


class DTypeName(str):
    """A dtype of fields: the string, such as "float32", that also equals the NumPy dtype and scalar type of that name.

    "unorm8" equals itself only, as NumPy has none such. Its hash is the string's: sets and keys of dicts are to be names.
    There is one object for each name (`dtype_name` gives it).
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or self == "unorm8":
            return str.__eq__(self, other)
        return isinstance(other, (type, np.dtype)) and bool(np.dtype(self) == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    @property
    def _numpy(self) -> np.dtype[Any]:
        """The dtype of the arrays of a field: bytes for unorm8."""
        return np.dtype("uint8" if str.__eq__(self, "unorm8") else str(self))

    @property
    def name(self) -> str:
        """As of NumPy dtypes, like the other three; `np.dtype(f.dtype)` has all of them."""
        return str(self)

    @property
    def kind(self) -> str:
        return self._numpy.kind

    @property
    def type(self) -> Any:
        return self._numpy.type

    @property
    def itemsize(self) -> int:
        return self._numpy.itemsize

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_name, (str(self),)


NAMES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "unorm8",
)  # fmt: skip
FIELD_DTYPES = {name: DTypeName(name) for name in NAMES}
PARTS = {"complex64": "float32", "complex128": "float64"}
COMPLEX_DTYPES = {
    FIELD_DTYPES[name]: FIELD_DTYPES[part] for name, part in PARTS.items()
}  # and the dtypes of their parts


def part_dtype(dtype: str) -> str:
    """The dtype of the parts of complex numbers, or of real numbers themselves."""
    return COMPLEX_DTYPES.get(dtype, dtype)  # type: ignore[call-overload, no-any-return]


def complex_dtype(dtype: str) -> str:
    """The dtype of complex numbers whose parts hold results of a dtype: complex64 unless those are of 64 bits."""
    return "complex128" if dtype in ("float64", "complex128") else "complex64"


def dtype_name(dtype: Any) -> DTypeName:
    """The canonical name of a dtype that fields can have."""
    if isinstance(dtype, str) and dtype in FIELD_DTYPES:
        return FIELD_DTYPES[dtype]
    name = str(dtype)
    if isinstance(dtype, (str, type, np.dtype)):  # for others NumPy takes `.dtype`, in some versions with a warning
        with suppress(TypeError, ValueError):
            name = str(np.dtype(dtype).newbyteorder("=").name)
    if isinstance(dtype, int):
        raise SemanticError(
            f"fields have no dtype '{dtype}'; extents stand in a tuple, as in `gp.zeros((rows, columns))`"
        )
    if name not in FIELD_DTYPES or name == "unorm8":
        raise SemanticError(
            f"fields have no dtype {name!r}; one of {', '.join(FIELD_DTYPES)}{meant(name, FIELD_DTYPES)}"
        )
    return FIELD_DTYPES[name]
