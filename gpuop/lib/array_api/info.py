"""Namespace inspection of the array API standard: devices, dtypes and capabilities."""

from __future__ import annotations

from typing import Any

from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields import services
from gpuop.ir.dtype_names import DTypeName
from gpuop.lib.array_api.dtypes import DEFAULTS, DTYPES, KINDS

VERSIONS = ("2022.12", "2023.12", "2024.12")


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
        """The dtypes of the standard except complex128; a device may lack float64."""
        if kind is None:
            return dict(DTYPES)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if unknown := [k for k in kinds if k not in KINDS]:
            raise ArgumentError(f"dtypes: {unknown[0]!r} is no kind; one of {', '.join(KINDS)}")
        return {name: DTYPES[name] for k in kinds for name in KINDS[k]}
