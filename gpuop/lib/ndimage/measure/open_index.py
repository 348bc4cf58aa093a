"""Label index whose numbers are an argument: measurements with other labels, and with more, run the same kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.engine.interop import numpy_dtype
from gpuop.lib.ndimage.measure.label_groups import NOWHERE, LabelIndex
from gpuop.ops.elementwise.algebra import astype
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.sort.search import count_passing


@dataclass(frozen=True)
class OpenIndex:
    """A `LabelIndex` whose numbers are data.

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

        def group(at: Place, read: Reading) -> Any:
            own = k._convert(read.at(labels, at), "int64")
            if self.whole:
                inside = (own >= k._readTensor(numbers, 0)) & (own <= k._readTensor(numbers, 1))
                return k._where(inside, last - k._convert_int(k._readTensor(numbers, 1) - own), NOWHERE)
            place = count_passing(last, lambda n: k._readTensor(numbers, n + 1) <= own)
            return k._where(k._readTensor(numbers, place) == own, place, NOWHERE)

        return gathered("group", labels.type.replace(dtype="int32"), [labels, numbers], group, (self.whole, self.room))

    def cut(self, made: Field) -> Field:
        """Return results of all groups unchanged: `rows_of` selects the index's."""
        return made


def opened(index: LabelIndex, labels: Any) -> tuple[OpenIndex, np.ndarray[Any, Any]] | None:
    """Return the open index and its numbers; None unless labels and index are NumPy integers that int64 holds."""
    values = index.values
    if type(labels) is not np.ndarray or values is None or not values or np.dtype(index.dtype).kind != "i":
        return None
    if numpy_dtype(labels).kind not in "iu" or numpy_dtype(labels) == np.uint64:
        return None
    single = index.shape is None
    numbers = [values[0], values[-1]] if index.whole else [values[0]] * (index.room - len(values)) + values
    return OpenIndex(index.room, single, index.whole, None), np.array(numbers, np.int64)


def rows_of(made: Any, index: LabelIndex) -> Any:
    """Select the index's results from the NumPy results of all groups."""
    if index.shape is None:
        return made
    places = np.array(index.places, np.int64) + (index.room - index.count)
    return made[places].reshape(*index.shape, *made.shape[1:])
