"""Vocabulary of kernel bodies: `from gpuop.dsl import *`. It is in `gpuop/dsl/vocabulary.py`, which the first name loads.

A package imports none of its own modules: a thread that imports one of them holds its lock while it waits for that of the package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if not TYPE_CHECKING:  # a checker reads the stub

    def __getattr__(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        vocabulary = import_module("gpuop.dsl.vocabulary")
        globals().update(vocabulary.NAMES, __all__=vocabulary.__all__)
        if name not in globals():
            errors = import_module("gpuop.base.errors")
            raise errors.MissingError(f"gpuop.dsl has no `{name}`{errors.meant(name, vocabulary.__all__)}")
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("gpuop.dsl.vocabulary").__all__})
