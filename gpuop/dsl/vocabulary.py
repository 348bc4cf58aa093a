"""Names of kernel bodies, which `from gpuop.dsl import *` brings. They begin with `_`, except those in `OF_THE_GUIDE`."""

from __future__ import annotations

import copyreg
import sys
from types import FunctionType
from typing import Any

from gpuop.dsl.builtins import (
    access,
    atomics,
    collectives,
    conditionals,
    debug,
    declarations,
    dimensions,
    functions,
    indices,
    interpolation,
    limits,
    loops,
    shared_memory,
    sorting_networks,
    switch,
    threads,
    tiles,
)
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.recorder import target_facts
from gpuop.dsl.recorder.value import Value
from gpuop.dsl.recorder.variable import ArrayVariable, Variable

_NAMES: dict[str, Any] = {
    **access.OUTPUTS,
    **{
        name: getattr(access, name)
        for name in ("_readTensor", "_readTensorElement", "_writeTensor", "_writeTensorElement")
    },
    "_sampleTensor": interpolation._sampleTensor,
    **{name: getattr(conditionals, name) for name in ("_if", "_elseif", "_else")},
    **{name: getattr(conditionals, name) for name in ("_codegenIf", "_codegenElseif", "_codegenElse")},
    "_target": target_facts._target,
    **{
        name: getattr(loops, name)
        for name in ("_for", "_while", "_forEachTensorElement", "_break", "_continue", "_return")
    },
    **{
        name: getattr(declarations, name)
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
    **{name: getattr(functions, name) for name in ("_and", "_or", "_not", "_where", "_sum")},
    **{name: getattr(limits, name) for name in ("_lowest", "_highest")},
    **{name: getattr(threads, name) for name in ("_localThreads", "_globalThreads")},
    **{name: getattr(indices, name) for name in ("_index", "_ravel", "_unravel")},
    "_dim": dimensions._dim,
    **{
        name: getattr(shared_memory, name)
        for name in ("_local", "_volatile", "_constantArray", "_syncThreadsLocal", "_syncThreadsGlobal")
    },
    "_tile": tiles._tile,
    "_window": loops._window,
    "_sort": sorting_networks._sort,
    "_switch": switch._switch,
    **{word.__name__: word for word in collectives.WORDS},
    "_pointerTo": atomics._pointerTo,
    "_print": debug._print,
    "_assert": debug._assert,
    **atomics.generated(),
    **declarations.generated(),
    **functions.generated(),
    **threads.generated(),
}
OF_THE_GUIDE: dict[str, Any] = {  # names as the guide spells them: types for annotations
    "GPUExpression": Value,
    "GPUVariable": Variable,
    "GPUArrayVariable": ArrayVariable,
    "isBigTensor": is_big_tensor,
}
NAMES = _NAMES | OF_THE_GUIDE
__all__ = sorted(NAMES)
for _name, _made in _NAMES.items():  # those that no statement defines are pickled by their names in the package
    if isinstance(_made, FunctionType) and not hasattr(sys.modules[_made.__module__], _name):
        _made.__module__ = str(__package__)


def _word(name: str) -> Any:
    return _NAMES[name]


def _sent(constant: threads.ThreadConstant) -> tuple[Any, ...]:
    return _word, (repr(constant),)


copyreg.pickle(threads.ThreadConstant, _sent)
