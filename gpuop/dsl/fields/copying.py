"""Copying and pickling: an immutable field is its own copy, and pickles as its values."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuop.dsl.fields.sources import HostArray
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node

Copied = TypeVar("Copied", bound="Copying")


class Copying:
    """Hooks of `copy` and `pickle`."""

    __slots__ = ()
    node: Node

    @property
    def type(self) -> FieldType:
        raise NotImplementedError

    def _stand_for(self, node: Node, kind: FieldType | None) -> None:
        raise NotImplementedError

    def __copy__(self: Copied) -> Copied:
        return self

    def __deepcopy__(self: Copied, memo: Any) -> Copied:
        return self

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Evaluates; equal for equal values of one type."""
        return type(self).__name__, sha256(b"".join(values_of(self))).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        """Evaluates. SemanticError where there are no values: a sensor, a state, an argument of a pipeline."""
        return _restored, (type(self), self.type, np.asarray(self), self.node.name)


class CopyingApart(Copying):
    """The same of a field that is made of a value and can be set: each copy for itself."""

    __slots__ = ()

    def __copy__(self: Copied) -> Copied:
        make, arguments = self.__reduce__()
        copy: Copied = make(*arguments)
        return copy

    def __deepcopy__(self: Copied, memo: Any) -> Copied:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (type(self), np.asarray(self), self.node.name)


def values_of(field: Any) -> Iterator[bytes]:
    """A field's type and values as bytes; evaluates."""
    yield f"{field.type} {field.type.names}".encode()
    yield np.asarray(field).tobytes()


def _copied(cls: Any, value: NDArray[Any], name: str) -> Any:
    field = cls(value)
    field.name = name
    return field


def _restored(cls: type[Copied], kind: FieldType, array: NDArray[Any], name: str) -> Copied:
    field = object.__new__(cls)
    field._stand_for(Leaf(kind.folded, HostArray(array.reshape(kind.folded.array_shape)), name=name), kind)
    return field
