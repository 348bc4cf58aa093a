"""Names of the dtypes of fields."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, meant
from gpuop.ir.bfloat16 import BFLOAT16, is_bfloat16

ARRAYS = {"unorm8": "uint8", BFLOAT16: "float32"}  # dtypes that NumPy has not, and those of their arrays


def values_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of arrays with the values of a dtype of fields."""
    return np.dtype(ARRAYS.get(dtype, str(dtype)))


class DTypeName(str):
    """A dtype of fields: the string, such as "float32", that also equals the NumPy dtype and scalar type of that name.

    "unorm8" equals itself only, as NumPy has none such; "bfloat16" also the dtype of ml_dtypes. Its hash is the string's: sets and
    keys of dicts are to be names.
    There is one object for each name (`dtype_name` gives it).
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or self == "unorm8":
            return str.__eq__(self, other)
        if self == BFLOAT16:
            return is_bfloat16(other)
        return isinstance(other, (type, np.dtype)) and bool(np.dtype(self) == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    @property
    def _numpy(self) -> np.dtype[Any]:
        """The dtype of the arrays of a field: bytes for unorm8, float32 for bfloat16."""
        return values_dtype(str(self))

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
        """The bytes of a value."""
        return 2 if str.__eq__(self, BFLOAT16) else self._numpy.itemsize

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_name, (str(self),)


NAMES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "unorm8", BFLOAT16,
)  # fmt: skip
FIELD_DTYPES = {name: DTypeName(name) for name in NAMES}
HALVES = (FIELD_DTYPES["float16"], FIELD_DTYPES[BFLOAT16])  # functions compute them in float32, and round once
REALS = (*HALVES, FIELD_DTYPES["float32"], FIELD_DTYPES["float64"])
PARTS = {"complex64": "float32", "complex128": "float64"}
COMPLEX_DTYPES = {
    FIELD_DTYPES[name]: FIELD_DTYPES[part] for name, part in PARTS.items()
}  # and the dtypes of their parts


FLOATS = (*COMPLEX_DTYPES, *REALS)


def wide_float(dtype: str) -> str:
    """The dtype that a function computes values of a dtype in: float32 of halves, and else the same."""
    return "float32" if dtype in HALVES else dtype


def part_dtype(dtype: str) -> str:
    """The dtype of the parts of complex numbers, or of real numbers themselves."""
    return COMPLEX_DTYPES.get(dtype, dtype)  # type: ignore[call-overload, no-any-return]


def joined_dtype(*dtypes: str) -> str:
    """The common dtype of several, as of NumPy; bfloat16 stands above integers, and beside float16 both are float32."""
    others = [str(dtype) for dtype in dtypes if dtype != BFLOAT16]
    common = np.result_type(*others).name if others else BFLOAT16
    if len(others) == len(dtypes):
        return common
    return BFLOAT16 if values_dtype(common).kind in "biu" else "float32" if common == "float16" else common


def complex_dtype(dtype: str) -> str:
    """The dtype of complex numbers whose parts hold results of a dtype: complex64 unless those are of 64 bits."""
    return "complex128" if dtype in ("float64", "complex128") else "complex64"


def dtype_name(dtype: Any) -> DTypeName:
    """The canonical name of a dtype that fields can have."""
    if isinstance(dtype, str) and dtype in FIELD_DTYPES:
        return FIELD_DTYPES[dtype]
    if is_bfloat16(dtype):
        return FIELD_DTYPES[BFLOAT16]
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
