"""The vocabulary of kernel bodies: `from gpuop.dsl import *`. Every name has a leading underscore."""

from __future__ import annotations

from typing import Any

from gpuop.dsl import access, blocks, declare, functions, later, loops, threads
from gpuop.errors import MissingError

_NAMES: dict[str, Any] = {
    **access.OUTPUTS,
    **{
        name: getattr(access, name)
        for name in ("_readTensor", "_readTensorElement", "_writeTensor", "_writeTensorElement")
    },
    **{name: getattr(blocks, name) for name in ("_if", "_elseif", "_else")},
    **{name: getattr(loops, name) for name in ("_for", "_while", "_forEachTensorElement", "_break", "_continue")},
    **{
        name: getattr(declare, name)
        for name in (
            "_var",
            "_tensorVar",
            "_tensorArray",
            "_tensorElementVar",
            "_tensorElementArray",
            "_vector",
            "_convert",
        )
    },
    **{name: getattr(functions, name) for name in ("_and", "_or", "_not", "_where", "_select")},
    **declare.generated(),
    **functions.generated(),
    **threads.generated(),
    **later.generated(),
}
globals().update(_NAMES)
__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise MissingError(f"gpuop.dsl has no {name}")
