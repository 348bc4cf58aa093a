"""Dtypes, data type functions and namespace inspection of the array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import FIELD_DTYPES, DTypeName, dtype_name
from gpuop.ops.elementwise import algebra
from gpuop.ops.layout import shape_functions

VERSIONS = ("2022.12", "2023.12", "2024.12")
KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]
DTYPES = {name: FIELD_DTYPES[name] for kind in ("bool", "numeric") for name in KINDS[kind]}
DEFAULTS = {"b": DTYPES["bool"], "i": DTYPES["int64"], "f": DTYPES["float32"], "c": DTYPES["complex64"]}


def default_of(value: Any) -> DTypeName:
    """The dtype of Python numbers: int64, float32, complex64, bool."""
    return DEFAULTS[np.asarray(value).dtype.kind.replace("u", "i")]


def check_device(device: Any) -> None:
    """Refuse all devices but the one in use."""
    if device is not None and device != services.above.device_in_use():
        raise ArgumentError(f"fields are evaluated on the device in use, not on {device!r}: `gp.use_device` chooses it")


@dataclass(frozen=True)
class FloatingInfo:
    """The result of `finfo`, in Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DTypeName


@dataclass(frozen=True)
class IntegerInfo:
    """The result of `iinfo`, in Python numbers."""

    bits: int
    max: int
    min: int
    dtype: DTypeName


def _dtype(arg: Any) -> DTypeName:
    return arg.dtype if isinstance(arg, Field) else dtype_name(arg)


def finfo(type: Any, /) -> FloatingInfo:
    """`finfo` of the array API standard; for complex dtypes that of their parts."""
    name = _dtype(type)
    if np.dtype(name).kind not in "fc":
        raise ArgumentError(f"finfo: {name} is not a floating-point dtype")
    info = np.finfo(name)
    eps, most, least, smallest = (float(n) for n in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatingInfo(info.bits, eps, most, least, smallest, dtype_name(info.dtype))


def iinfo(type: Any, /) -> IntegerInfo:
    """`iinfo` of the array API standard."""
    name = _dtype(type)
    if np.dtype(name).kind not in "iu":
        raise ArgumentError(f"iinfo: {name} is not an integer dtype")
    info = np.iinfo(name)
    return IntegerInfo(info.bits, int(info.max), int(info.min), name)


def isdtype(dtype: Any, kind: Any) -> bool:
    """`isdtype` of the array API standard."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and not isinstance(kind, DTypeName):
        if kind not in KINDS:
            raise ArgumentError(f"isdtype: there is no kind {kind!r}; one of {', '.join(KINDS)}")
        return dtype_name(dtype) in KINDS[kind]
    return dtype_name(dtype) == dtype_name(kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """`can_cast` of the array API standard."""
    return bool(np.can_cast(np.dtype(_dtype(from_)), np.dtype(dtype_name(to))))


def result_type(*arrays_and_dtypes: Any) -> DTypeName:
    """`result_type` of the array API standard."""
    return shape_functions.result_type(*arrays_and_dtypes)


def astype(x: Field, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Field:
    """`astype` of the array API standard."""
    check_device(device)
    return algebra.astype(x, dtype)


FUNCTIONS = {f.__name__: f for f in (finfo, iinfo, isdtype, can_cast, result_type, astype)}


class NamespaceInfo:
    """The inspection API of the standard, the result of `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """The capabilities: no boolean indices; data-dependent shapes, by evaluation; as many axes as host arrays."""
        return {"boolean indexing": False, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device in use."""
        return services.above.device_in_use()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DTypeName]:
        """The default dtypes of Python numbers and of indices."""
        return {
            "real floating": DEFAULTS["f"],
            "complex floating": DEFAULTS["c"],
            "integral": DEFAULTS["i"],
            "indexing": DEFAULTS["i"],
        }

    def devices(self) -> list[str]:
        """The device in use: `gp.use_device` chooses another, `gp.devices` lists them."""
        return [self.default_device()]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DTypeName]:
        """The dtypes of the standard; a device may lack float64, and complex128 with it."""
        if kind is None:
            return dict(DTYPES)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if unknown := [k for k in kinds if k not in KINDS]:
            raise ArgumentError(f"dtypes: there is no kind {unknown[0]!r}; one of {', '.join(KINDS)}")
        return {name: DTYPES[name] for k in kinds for name in KINDS[k]}
