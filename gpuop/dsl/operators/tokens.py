"""Dask tokens of operators and pipelines: equal where the recording would be equal, in every process."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from types import CodeType
from typing import Any

import numpy as np

from gpuop.dsl.fields.copying import values_of
from gpuop.dsl.fields.field import Field
from gpuop.dsl.guards.function_wrapper import FunctionWrapper
from gpuop.dsl.guards.guard import Identity, snapshot
from gpuop.ir.values import Leaf, Result

UNORDERED = (set, frozenset)
# attributes that decide the behaviour of code; lines, file and name do not
CODE = ("co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_flags")


class Tokenized(FunctionWrapper):
    """A wrapper with a Dask token."""

    def __dask_tokenize__(self) -> tuple[str, str]:
        captured = snapshot(self, large_arrays=True)
        if captured is None:  # some capture can only be pickled
            from dask.base import tokenize

            return type(self).__name__, tokenize(self.portable, self.settings(), self.receiver, self.first, self.preset)
        return type(self).__name__, _digest(captured.values)


def _digest(value: Any) -> str:
    digest = sha256()
    for part in _parts(value):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """Bytes that identify a value of a snapshot in every process."""
    match value:
        case Identity(object=target):
            yield from _parts_of_object(target)
        case CodeType():
            yield from _parts(("code", *(getattr(value, name) for name in CODE)))
        case frozenset():
            yield from sorted(_digest(member).encode() for member in value)
        case tuple() if value and isinstance(value[0], type) and value[0] in UNORDERED:
            yield from sorted(_digest(member).encode() for member in value)
        case tuple():
            yield str(len(value)).encode()
            for member in value:
                yield from _parts(member)
        case bytes():
            yield value
        case type():
            yield f"{value.__module__}.{value.__qualname__}".encode()
        case _:
            yield f"{type(value).__name__} {value!r}".encode()


def _parts_of_object(target: Any) -> Iterator[bytes]:
    """Bytes of an object that a snapshot compares by identity: its values, or its name."""
    match target:
        case Leaf() | Result():
            yield from values_of(Field.of(target))
        case np.ndarray():
            yield from _parts((target.shape, target.dtype.str, target.tobytes()))
        case CodeType():  # the code of a recursive function
            yield target.co_name.encode()
        case _ if hasattr(target, "__qualname__"):
            yield f"{target.__module__}.{target.__qualname__}".encode()
        case _:
            yield repr(target).encode()
