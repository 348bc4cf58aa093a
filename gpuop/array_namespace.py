"""Names of the array API standard (2024.12) for fields: the result of `field.__array_namespace__()`."""

import math
import sys
from typing import Any

from gpuop.base.errors import ArgumentError, MissingError
from gpuop.lib.array_api import dtypes, functions
from gpuop.lib.array_api.dtypes import VERSIONS, NamespaceInfo

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
__array_api_version__ = VERSIONS[-1]
_NAMES: dict[str, Any] = {**dtypes.DTYPES, **dtypes.FUNCTIONS, **functions.FUNCTIONS}
globals().update(_NAMES)
__all__ = ["__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi", *_NAMES]


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """The standard's inspection API."""
    return NamespaceInfo()


def of_version(api_version: str | None) -> Any:
    """This module, which fields give for a version of the standard."""
    if api_version not in (None, *VERSIONS):
        raise ArgumentError(f"fields follow the array API standard of {', '.join(VERSIONS)}, not of {api_version!r}")
    return sys.modules[__name__]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingError(f"gpuop.array_namespace has no `{name}`: the standard has it not, or fields cannot have it")
