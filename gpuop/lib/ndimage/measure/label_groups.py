"""Groups of points that are measured together: those of the same label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import astype, where
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.layouts import broadcast_to, ravel, reshape
from gpuop.ops.layout.reorder import take
from gpuop.ops.reduce.bins import Bins
from gpuop.ops.sort.keys import key_of, unsigned, value_of
from gpuop.ops.sort.search import count_passing

NOWHERE = -1  # group of points that are not measured
LEAST_GROUPS = 16


@dataclass(frozen=True)
class LabelIndex:
    """`index=` as a constant: None, a number, or numbers of some shape.

    Attributes:
        dtype, numbers: the numbers as row-major bytes, which are compared and hashed faster than a tuple.
        shape: shape of the numbers; None for one number, or none.
    """

    dtype: str = "int64"
    numbers: bytes = b""
    shape: tuple[int, ...] | None = None

    @cached_property
    def _unique(self) -> tuple[list[Any], list[int]]:
        values, places = np.unique(np.frombuffer(self.numbers, self.dtype), return_inverse=True)
        return values.tolist(), places.tolist()

    @property
    def values(self) -> list[Any] | None:
        """The unique numbers, in ascending order."""
        return None if self.shape is None and not self.numbers else self._unique[0]

    @property
    def places(self) -> list[int]:
        """Position of each number among the values."""
        return self._unique[1]

    @property
    def count(self) -> int:
        return len(self.values or (0,))

    @property
    def room(self) -> int:
        """Number of groups that kernels are compiled for."""
        return 1 if self.shape is None else room_of(self.count)

    @property
    def whole(self) -> bool:
        """Whether the values are consecutive integers."""
        values = self.values or [0.0]
        return isinstance(values[0], int) and values[-1] - values[0] == len(values) - 1

    def mask(self, labels: Field) -> Field:
        """Return the points that are measured, if the index is one number or none."""
        return labels > 0 if self.values is None else labels == self.values[0]

    def place_of(self, labels: Field) -> Field:
        """Return the number of each point's group: int32, or NOWHERE."""
        return _place_of(labels, self)

    def cut(self, made: Field) -> Field:
        """Select the index's results from those of all groups."""
        places, behind = self.places, made.type.array_shape[1:]
        whole = places == list(range(len(places)))
        made = made[: len(places)] if whole else take(made, np.array(places, np.int64), 0)
        return reshape(made, (*(self.shape or ()), *behind))


class GroupIndex(Protocol):
    """Interface of an index of groups."""

    @property
    def shape(self) -> tuple[int, ...] | None: ...

    @property
    def room(self) -> int: ...

    @property
    def count(self) -> int: ...

    def mask(self, labels: Field) -> Field: ...

    def place_of(self, labels: Field) -> Field: ...

    def cut(self, made: Field) -> Field: ...


def room_of(count: int) -> int:
    """Return a capacity for `count` groups, equal for similar counts, so that kernels are compiled once."""
    return max(1 << (count - 1).bit_length(), LEAST_GROUPS)


def index_of(index: Any) -> LabelIndex:
    """Return `index=` as a constant.

    Raises:
        UnsupportedError: it is a Field, or it has no numbers; a TypeError.
    """
    if isinstance(index, (Field, Placeholder)):
        known = "take it from around the pipeline, or as an argument that is a tuple"
        raise UnsupportedError(
            "`index=` is numbers that are known when it is called, as tuples and NumPy's arrays are, and this is computed later: "
            f"of a Field outside of pipelines give `f.numpy()`; in a pipeline {known}"
        )
    if index is None:
        return LabelIndex()
    numbers = np.asarray(index.tolist() if hasattr(index, "tolist") else index)
    if numbers.dtype.kind not in "biuf":
        raise UnsupportedError(f"`index=` is a number or an array of numbers, not {index!r}")
    numbers = numbers.astype(np.int64) if numbers.dtype.kind == "b" else numbers
    return LabelIndex(numbers.dtype.str, numbers.tobytes(), numbers.shape or None)


class LabelGroups:
    """Values of a field, and the group of each point.

    Args:
        values: the field that is measured.
        labels: labels on the same grid, or one that broadcasts with it; None if all points are one group.
        index: labels that have a group.

    Attributes:
        single: whether there is one group, so that results are numbers.
    """

    def __init__(self, values: Field, labels: Field | None, index: GroupIndex) -> None:
        if values.tensor_shape:
            raise UnsupportedError("measurements are of scalars: take an element of the tensors, as in `f[..., 0]`")
        self.index, self.single = index, labels is None or index.shape is None
        self.count = 1 if self.single else index.room
        self.labels = labels
        self.values = values
        if labels is not None:
            self.values, self.labels = _broadcast(values, labels)
        self.shape = tuple(self.values.field_shape)

    @property
    def mask(self) -> Field | None:
        """Points of the single group; None for all points."""
        if self.labels is None:
            return None
        return self.index.mask(self.labels)

    @property
    def places(self) -> Field:
        """The number of each point's group: int32, or NOWHERE."""
        if self.labels is None:
            return filled(self.values.type.replace(dtype="int32"), 0)
        return self.index.place_of(self.labels)

    @property
    def bins(self) -> Bins:
        return Bins(self.count, "own")

    def chosen(self, made: Field, missing: Any = 0, present: Field | None = None) -> Field:
        """Select the index's results from those of all groups; absent labels get `missing`."""
        if present is not None:
            made = where(present, made, missing)
        if self.single:
            return made[0]
        return self.index.cut(made)


def _broadcast(values: Field, labels: Field) -> tuple[Field, Field]:
    """Return both on the grid that they broadcast to.

    Raises:
        ArgumentError: their shapes do not broadcast.
    """
    try:
        shape = np.broadcast_shapes(values.field_shape, labels.field_shape)
    except ValueError:
        raise ArgumentError(
            f"input and labels must have the same shape (excepting dimensions with width 1), not {tuple(values.field_shape)} and "
            f"{tuple(labels.field_shape)}"
        ) from None
    one, other = (f if tuple(f.field_shape) == shape else broadcast_to(f, shape) for f in (values, labels))
    return one, other


def _place_of(labels: Field, index: LabelIndex) -> Field:
    kind = np.dtype(labels.type.array_dtype)
    values = index.values
    plain = kind.kind in "iu" and index.whole

    def group(at: Place, read: Reading) -> Any:
        own = read.at(labels, at)
        if values is None:
            return k._where(own > 0, 0, NOWHERE)
        if plain:
            own = k._convert(own, "int64") if kind.itemsize > 2 else k._convert_int(own)
            inside = (own >= values[0]) & (own <= values[-1])
            return k._where(inside, k._convert_int(own - values[0]), NOWHERE)
        own = k._convert(own, str(among.dtype))
        place = count_passing(len(values) - 1, lambda n: k._readTensor(among, n + 1) <= own)
        return k._where(k._readTensor(among, place) == own, place, NOWHERE)

    known = np.array(values or (0,))
    among = Field(known.astype(np.result_type(known.dtype, kind if kind.kind == "f" else np.int64)))
    fields = [labels] if plain or values is None else [labels, among]
    key = (values[0], values[-1]) if plain and values else values is None
    # an index without numbers has one group too, but another body
    return gathered("group", labels.type.replace(dtype="int32"), fields, group, (key, len(values or ())))


def unravelled(numbers: Any, shape: Sequence[int]) -> list[Any]:
    """Return the coordinates of row-major indices, which are Fields or arrays of any library."""
    along: list[Any] = []
    for n in reversed(shape):
        along.insert(0, numbers % n)
        numbers = numbers // n
    return along


# --- extremes ---------------------------------------------------------------------------------------------------------


def extremes(groups: LabelGroups, which: str) -> tuple[Field, Field]:
    """Return each group's extreme as an order-preserving key ("minimum": inverted), and whether the group has points.

    Threads read an extreme before they update it, because most values do not change it.
    """
    values, places = ravel(groups.values), ravel(groups.places)
    outs = (FieldType(groups.count, (), unsigned(values.type)), FieldType(groups.count, (), "bool"))

    def body() -> None:
        k._globalThreads(values.field_shape)
        group = k._readTensor(places)
        with k._if(group >= 0):
            rank = _rank(k._readTensor(values), values.type, which)
            with k._if((rank > k._readTensor(k._out0, group, border="unchecked")) | (rank == 0)):
                k._atomic_max(k._pointerTo(k._out0, group), rank)
                k._writeTensor(k._out1, True, group)

    ranks, present = library_call(which, outs, [values, places], body, which)
    return ranks, present


def values_of(ranks: Field, kind: FieldType, which: str) -> Field:
    """Return the values of the keys of `extremes`."""

    def value(at: Place, read: Reading) -> Any:
        rank = read.at(ranks, at)
        return value_of(~rank if which == "minimum" else rank, kind)

    return gathered(which, kind.replace(field_shape=ranks.field_shape), [ranks], value, (kind.dtype, which))


def positions(groups: LabelGroups, ranks: Field, which: str) -> Field:
    """Return the row-major index of the first point of each group that has its extreme value: int64."""
    values, places = ravel(groups.values), ravel(groups.places)
    points = values.field_shape[0]
    out = FieldType(groups.count, (), "int32" if points < 2**31 else "int64")

    def body() -> None:
        k._globalThreads(values.field_shape)
        group = k._readTensor(places)
        with k._if(group >= 0):
            rank = _rank(k._readTensor(values), values.type, which)
            with k._if(rank == k._readTensor(ranks, group, border="unchecked")):
                behind = points - k._convert(k._column, str(out.dtype))
                with k._if(behind > k._readTensor(k._out0, group, border="unchecked")):
                    k._atomic_max(k._pointerTo(k._out0, group), behind)

    behind = library_call(f"{which}_position", (out,), [values, places, ranks], body, which)[0]
    return astype(points - behind, "int64")


def _rank(value: Any, kind: FieldType, which: str) -> Any:
    key = key_of(k._convert_float(value) if kind.dtype == "float16" else value, kind)
    return ~key if which == "minimum" else key
