"""scipy.ndimage's watersheds: each point gets the marker that it is reached from over the least steps of values.

Paths cost their greatest step, and grow in the order of costs, from queues of points of equal cost (A. Falcão, J. Stolfi,
R. Lotufo, The image foresting transform, IEEE TPAMI 26 (1), 2004). Which of markers that reach a point at the same cost it gets
follows from the order in the queues, so one thread does it all, in SciPy's order: one of a CPU.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.arrays import Array as Numbers
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.alternatives import either
from gpuop.dsl.operators.host import HostOperator
from gpuop.dsl.operators.operator import library_call
from gpuop.errors import ArgumentError, UnsupportedError
from gpuop.ir.types import FieldType
from gpuop.ndimage.filter_arguments import DTypeOfArray, frozen
from gpuop.ndimage.labels import structure_of
from gpuop.ndimage.measured import as_array, is_lazy, measured, shape_of, wanted_dtype
from gpuop.ops.algebra import astype, copied
from gpuop.ops.layouts import ravel, reshape

NONE = -1  # the point before the first one of a queue, and behind the last one


def watershed_ift(input: Any, markers: Any, structure: Any = None, output: Any = None) -> Any:
    """scipy.ndimage.watershed_ift: the points that each marker reaches first, over the least steps between neighbours.

    One thread does it, as each step depends on those before it: of GPUs SciPy does, on the host, where it is installed.

    Args:
        input: a Field of scalars, or an array, of uint8 or uint16.
        markers: integers of the same shape, 0 where no marker is; those below 0 come after the others.
        structure: truth values, 3 along each axis: which neighbours are connected; by default those along the axes. As in SciPy the
            ends of rows are neighbours of those of the next ones, as they are in memory.
        output: a dtype, by default that of the markers; or an array of the input's library that the result goes into.

    Returns:
        A lazy Field; of an array, an array of the same library.

    Raises:
        ArgumentError: a wrong structure, markers of another shape or dtype; a ValueError and a RuntimeError.
        UnsupportedError: another dtype; a TypeError.
    """
    input, markers = as_array(input), as_array(markers)
    lazy, shape = is_lazy(input, markers), shape_of(input)
    dtype = wanted_dtype("watershed_ift", output, shape, lazy)
    if dtype is not None and np.dtype(dtype).kind != "i":
        raise ArgumentError(f"output should be of integer type, not {dtype}")
    if shape_of(markers) != shape:
        raise ArgumentError(f"input and markers must have equal shape, not {shape} and {shape_of(markers)}")
    made = measured(_flooded, input, markers, frozen(structure), None if dtype is None else str(dtype))
    if isinstance(dtype, DTypeOfArray):
        output[...] = made
        return output
    return np.asarray(made) if isinstance(made, np.generic) else made


def _flooded(input: Field, markers: Field, structure: Any, dtype: str | None) -> Field:
    if input.dtype not in ("uint8", "uint16") or input.tensor_shape:
        raise UnsupportedError(f"only 8 and 16 unsigned inputs are supported, not {input.type}")
    if markers.type.element.kind != "i" or markers.tensor_shape:
        raise ArgumentError(f"marker should be of integer type, with a sign, not {markers.type}")
    held, shape = structure_of("watershed_ift", input, structure), tuple(input.field_shape)
    if not shape or not input.field_shape.points:
        return astype(markers, dtype or markers.dtype)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    steps = [sum(int(i - 1) * stride for i, stride in zip(at, strides, strict=True)) for at in np.argwhere(held)]
    made = _queued(ravel(input), ravel(markers), [step for step in steps if step])
    made = copied(reshape(made, shape))
    if importlib.util.find_spec("scipy") is not None:
        made = either(_far_from_host(), copied(_on_host(input, markers, held)), made)
    return astype(made, dtype or markers.dtype)


def _far_from_host() -> Any:
    """Whether one thread of the target is much slower than one of the host."""
    return (k._target.device == "gpu") & (k._target.backend != "reference")


def _on_host(input: Field, markers: Field, held: Numbers) -> Field:
    """The labels of points, by SciPy."""
    return HostOperator(_by_scipy(held.shape, held.tobytes()), input, markers, outputs=markers.type)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _by_scipy(shape: tuple[int, ...], held: bytes) -> Callable[[Numbers, Numbers], Any]:
    """SciPy's function with a structure; the same one for equal ones, so that plans are found again."""
    structure = np.frombuffer(held, bool).reshape(shape)

    def watershed_ift(values: Numbers, markers: Numbers) -> Any:
        return importlib.import_module("scipy.ndimage").watershed_ift(values, markers, structure)

    return watershed_ift


def _queued(values: Field, markers: Field, steps: Sequence[int]) -> Field:
    """The labels of points, of which those so many steps away are neighbours."""
    count = values.field_shape[0]
    room = 2 + np.iinfo(str(values.dtype)).max
    points, queues = (FieldType(n, (), "int32") for n in (count, room))
    types = markers.type, points, points, points, queues, queues, points.replace(dtype="bool")
    top = astype(values, "int32").max()

    def body() -> None:
        k._globalThreads(1)
        _Flood(values, markers, k._readTensor(top, border="unchecked")).run(steps)

    return library_call("watershed_ift", types, [values, markers, top], body, tuple(steps), whole=True)[0]


class _Flood:
    """The queues of points, one for each cost, and what is known of each point, in the outputs of the kernel.

    Attributes:
        top: the greatest cost; that of points that nothing has reached is one more.
    """

    def __init__(self, values: Field, markers: Field, top: Any) -> None:
        self.values, self.markers, self.top = values, markers, k._var(top)
        self.count = values.field_shape[0]
        self.labels, self.costs, self.behind, self.before = k._out0, k._out1, k._out2, k._out3
        self.first, self.last, self.done = k._out4, k._out5, k._out6

    def run(self, steps: Sequence[int]) -> None:
        table = k._constantArray(np.array(steps or [0], np.int32))
        with k._for(self.top + 2) as cost:
            k._writeTensor(self.first, NONE, cost)
            k._writeTensor(self.last, NONE, cost)
        with k._for(self.count) as point:
            self._begin(point)
        with k._for(self.top + 1) as cost, k._while(lambda: _at(self.first, cost) >= 0):
            point = k._var(_at(self.first, cost))
            self._take(point, cost)
            with k._for(len(steps)) as n:
                beside = point + table[n]
                with k._if((beside >= 0) & (beside < self.count)):
                    self._reach(point, beside)

    def _begin(self, point: Any) -> None:
        """Queue a marker: those above 0 come first."""
        label = k._readTensor(self.markers, point, border="unchecked")
        k._writeTensor(self.labels, label, point)
        k._writeTensor(self.costs, k._where(label != 0, 0, self.top + 1), point)
        k._writeTensor(self.done, False, point)
        k._writeTensor(self.behind, NONE, point)
        k._writeTensor(self.before, NONE, point)
        with k._if(label != 0):
            self._put(point, k._convert_int(0), label > 0)

    def _take(self, point: Any, cost: Any) -> None:
        """Take the first point of a queue away."""
        following = k._var(_at(self.behind, point))
        k._writeTensor(self.first, following, cost)
        with k._if(following >= 0):
            k._writeTensor(self.before, NONE, following)
        k._writeTensor(self.before, NONE, point)
        k._writeTensor(self.behind, NONE, point)
        k._writeTensor(self.done, True, point)

    def _reach(self, point: Any, beside: Any) -> None:
        """Give a neighbour the point's label, where it costs less than what it has."""
        own, there = (k._convert_int(k._readTensor(self.values, p, border="unchecked")) for p in (point, beside))
        cost = k._max(_at(self.costs, point), k._max(own - there, there - own))
        was = k._var(_at(self.costs, beside))
        with k._if(k._not(_at(self.done, beside)) & (cost < was)):
            label = k._var(_at(self.labels, point))
            k._writeTensor(self.costs, cost, beside)
            k._writeTensor(self.labels, label, beside)
            self._leave(beside, was)
            self._put(beside, cost, label >= 0)

    def _leave(self, point: Any, cost: Any) -> None:
        """Take a point out of its queue; one that is alone in it stays there too, as it does in SciPy's."""
        before, behind = k._var(_at(self.before, point)), k._var(_at(self.behind, point))
        with k._if((before >= 0) | (behind >= 0)):
            with k._if(_at(self.first, cost) == point):
                k._writeTensor(self.first, behind, cost)
            with k._if(_at(self.last, cost) == point):
                k._writeTensor(self.last, before, cost)
            with k._if(before >= 0):
                k._writeTensor(self.behind, behind, before)
            with k._if(behind >= 0):
                k._writeTensor(self.before, before, behind)

    def _put(self, point: Any, cost: Any, in_front: Any) -> None:
        """Put a point in front of a queue, or at its end."""
        with k._if(in_front):
            self._link(point, cost, self.first, self.behind, self.before, self.last)
        with k._else():
            self._link(point, cost, self.last, self.before, self.behind, self.first)

    def _link(self, point: Any, cost: Any, end: Any, inward: Any, outward: Any, other_end: Any) -> None:
        was = k._var(_at(end, cost))
        k._writeTensor(inward, was, point)
        k._writeTensor(outward, NONE, point)
        with k._if(was >= 0):
            k._writeTensor(outward, point, was)
        k._writeTensor(end, point, cost)
        with k._if(_at(other_end, cost) < 0):
            k._writeTensor(other_end, point, cost)


def _at(output: Any, place: Any) -> Any:
    return k._readTensor(output, place, border="unchecked")
