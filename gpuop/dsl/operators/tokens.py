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
# what a code does; its lines, file and own name decide nothing
CODE = ("co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_flags")


class Tokenized(FunctionWrapper):
    """What can say whether another one does the same."""

    def __dask_tokenize__(self) -> tuple[str, str]:
        captured = snapshot(self, large_arrays=True)
        if captured is None:  # it depends on what only pickling can take apart
            from dask.base import tokenize

            return type(self).__name__, tokenize(self.portable, self.settings(), self.receiver, self.first, self.preset)
        return type(self).__name__, _digest(captured.values)


def _digest(value: Any) -> str:
    whole = sha256()
    for part in _parts(value):
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """Bytes that tell a value of a snapshot from others, whatever process it is in."""
    match value:
        case Identity(object=held):
            yield from _parts_of_object(held)
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


def _parts_of_object(held: Any) -> Iterator[bytes]:
    """The same of an object that a snapshot knows by its identity: it has values, or a name."""
    match held:
        case Leaf() | Result():
            yield from values_of(Field.of(held))
        case np.ndarray():
            yield from _parts((held.shape, held.dtype.str, held.tobytes()))
        case CodeType():  # of a function that calls itself
            yield held.co_name.encode()
        case _ if hasattr(held, "__qualname__"):
            yield f"{held.__module__}.{held.__qualname__}".encode()
        case _:
            yield repr(held).encode()
