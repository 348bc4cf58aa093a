"""Names of the vocabulary that this version does not have: calling one says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from gpuop.errors import SemanticError

LATER = (
    "_local", "_volatile", "_pointerTo", "_syncThreadsLocal", "_syncThreadsGlobal", "_localThreads", "_globalThreads",
    "_sampleTensor", "_constantArray", "_print", "_assert", "_any", "_all", "_bitselect", "_abs", "_abs_diff", "_add_sat",
    "_sub_sat", "_hadd", "_rhadd", "_clz", "_mad_hi", "_mad_sat", "_mul_hi", "_rotate", "_mad24", "_mul24", "_isequal",
    "_isnotequal", "_isgreater", "_isgreaterequal", "_isless", "_islessequal", "_islessgreater", "_isfinite", "_isinf",
    "_isnan", "_isnormal", "_isordered", "_isunordered", "_signbit", "_atomic_add", "_atomic_sub", "_atomic_xchg",
    "_atomic_inc", "_atomic_dec", "_atomic_cmpxchg", "_atomic_compxchg", "_atomic_min", "_atomic_max", "_atomic_and",
    "_atomic_or", "_atomic_xor",
)  # fmt: skip


def _missing(name: str) -> Callable[..., NoReturn]:
    def later(*arguments: Any) -> NoReturn:
        raise SemanticError(f"`{name}` is not available in this version of gpuop")

    later.__name__ = later.__qualname__ = name
    later.__doc__ = "Not available in this version."
    return later


def generated() -> dict[str, Callable[..., NoReturn]]:
    return {name: _missing(name) for name in LATER}
