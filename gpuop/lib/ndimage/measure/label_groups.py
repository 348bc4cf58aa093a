"""Groups of points that are measured together: those of the same label."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import astype, where
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.layouts import broadcast_to, reshape
from gpuop.ops.layout.reorder import take
from gpuop.ops.reduce.bins import Bins
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
        """Return whether the values are consecutive integers."""
        values = self.values or [0.0]
        return isinstance(values[0], int) and values[-1] - values[0] == len(values) - 1

    def mask(self, labels: Field) -> Field:
        """Return the points that are measured, if the index is one number or none."""
        return labels > 0 if self.values is None else labels == self.values[0]

    def place_of(self, labels: Field) -> Field:
        """Return the number of each point's group: int32, or NOWHERE."""
        kind, values = np.dtype(labels.type.array_dtype), self.values
        if values is None:
            return _groups(labels, lambda own: k._where(own > 0, 0, NOWHERE), [], (True, 1))
        if kind.kind in "iu" and self.whole:

            def between(own: Any) -> Any:
                own = k._convert(own, "int64") if kind.itemsize > 2 else k._convert_int(own)
                inside = (own >= values[0]) & (own <= values[-1])
                return k._where(inside, k._convert_int(own - values[0]), NOWHERE)

            return _groups(labels, between, [], (values[0], values[-1]))
        numbers = np.array(values or (0,))
        among = Field(numbers.astype(np.result_type(numbers.dtype, kind if kind.kind == "f" else np.int64)))
        return _groups(labels, lambda own: _place_among(among, self.count, own), [among], (False, self.count))

    def cut(self, result: Field) -> Field:
        """Select the index's results from those of all groups."""
        places, behind = self.places, result.type.array_shape[1:]
        whole = places == list(range(len(places)))
        result = result[: len(places)] if whole else take(result, np.array(places, np.int64), 0)
        return reshape(result, (*(self.shape or ()), *behind))


@dataclass(frozen=True)
class OpenIndex:
    """A `LabelIndex` whose numbers are data: measurements with other labels, and with more, run the same kernels.

    Attributes:
        room: number of groups; those of the labels come last.
        single: whether the index is one number.
        whole: whether the labels are consecutive.
        numbers: the labels in ascending order, padded in front by the first one; for consecutive labels the first and last.
    """

    room: int
    single: bool
    whole: bool
    numbers: Field | None = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """None for an index of one number."""
        return None if self.single else ()

    @property
    def count(self) -> int:
        return self.room

    def mask(self, labels: Field) -> Field:
        """Return the points that have the label of an index of one number."""
        assert self.numbers is not None
        return astype(labels, "int64") == self.numbers[0]

    def place_of(self, labels: Field) -> Field:
        """Return the number of each point's group: int32, or NOWHERE."""
        assert self.numbers is not None
        numbers, last = self.numbers, self.room - 1

        def between(own: Any) -> Any:
            own = k._convert(own, "int64")
            inside = (own >= k._readTensor(numbers, 0)) & (own <= k._readTensor(numbers, 1))
            return k._where(inside, last - k._convert_int(k._readTensor(numbers, 1) - own), NOWHERE)

        find = between if self.whole else lambda own: _place_among(numbers, self.room, own)
        return _groups(labels, find, [numbers], (self.whole, self.room))

    def cut(self, result: Field) -> Field:
        """Return results of all groups unchanged: `rows_of` selects the index's."""
        return result


def _groups(labels: Field, find: Callable[[Any], Any], among: list[Field], key: Any) -> Field:
    """Return the group of each point, which a function of the label computes."""

    def group(at: Place, read: Reading) -> Any:
        return find(read.at(labels, at))

    return gathered("group", labels.type.replace(dtype="int32"), [labels, *among], group, key)


def _place_among(numbers: Field, count: int, label: Any) -> Any:
    """Return the place of a recorded label among `count` ascending numbers, or NOWHERE."""
    label = k._convert(label, str(numbers.dtype))
    place = count_passing(count - 1, lambda n: k._readTensor(numbers, n + 1) <= label)
    return k._where(k._readTensor(numbers, place) == label, place, NOWHERE)


def room_of(count: int) -> int:
    """Return a capacity for `count` groups, equal for similar counts, so that kernels are compiled once."""
    return max(1 << (count - 1).bit_length(), LEAST_GROUPS)


def index_of(index: Any) -> LabelIndex:
    """Return `index=` as a constant.

    Raises:
        UnsupportedError: it is a Field, or it has no numbers; a TypeError.
    """
    if isinstance(index, (Field, Placeholder)):
        advice = "take it from outside of the pipeline, or as an argument that is a tuple"
        raise UnsupportedError(
            "`index=` takes numbers that the host knows, as a tuple or a NumPy array, and the values of this field are "
            f"computed later: outside of a pipeline give `f.numpy()`; in a pipeline {advice}"
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

    def __init__(self, values: Field, labels: Field | None, index: LabelIndex | OpenIndex) -> None:
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

    def chosen(self, result: Field, missing: Any = 0, present: Field | None = None) -> Field:
        """Select the index's results from those of all groups; absent labels get `missing`."""
        if present is not None:
            result = where(present, result, missing)
        if self.single:
            return result[0]
        return self.index.cut(result)


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
