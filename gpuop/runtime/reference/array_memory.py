"""The memory of interpreted kernels, in NumPy: fields as planes, arrays of threads and work-groups, constant tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuop.ir.borders import BORDERS
from gpuop.ir.kernel import Kernel
from gpuop.ir.monoids import MONOIDS, joined_by
from gpuop.ir.nodes import Array, Atomic, FieldParam, Read, Wide
from gpuop.ir.ops import OPS
from gpuop.runtime.reference.positions import Positions

Values = NDArray[Any]
Lanes = list[Values]
Mask = NDArray[np.bool_]


def spread(value: Values, count: int) -> Values:
    """Return an array with a value for each thread; it may be the same array."""
    return value if value.shape == (count,) else np.broadcast_to(value, count)


def inside(at: Values, n: int) -> Values:
    """Clamp indices to 0 … n - 1. `np.clip` looks up the limits of types, which takes longer than the rest."""
    wide = at if at.dtype.itemsize > 2 else at.astype(np.int32)
    return np.asarray(np.minimum(np.maximum(wide, 0), n - 1))


class ArrayMemory:
    """The memory of some threads. Indices outside are read inside (as borders define), and not written.

    Coordinates and values are arrays over the threads, or one number where all agree. In a lowered kernel the index of an
    output's element is its offset.
    """

    def __init__(self, where: Positions, fields: dict[FieldParam, Values], kernel: Kernel, lowered: bool) -> None:
        self.lowered = lowered
        self.layout = kernel.layout
        self.where = where
        self.count = where.count
        self.fields = fields
        self.arrays: dict[Array, Lanes] = {}
        self.each = np.arange(self.count)
        self.one_owner = np.zeros(self.count, np.int64)

    # --- fields -------------------------------------------------------------------------------------------------

    def read(self, read: Read, point: Lanes | None, element: Values | None, fill: Any, active: Mask) -> Lanes:
        planes, grid = self.fields[read.field], read.field.type.field_shape
        where: Any = self.where.point if grid else 0
        outside: Any = np.zeros((), np.bool_)
        if point is not None:
            where = 0
            for at, n in zip((np.asarray(p, np.int64) for p in point), grid, strict=True):
                outside = outside | (at < 0) | (at >= n)
                where = where * n + BORDERS[read.border].numpy(at, n)
        numbers = range(len(planes)) if element is None else [inside(element, len(planes))]
        values = [planes[k, where] for k in numbers]
        if read.border != "fill" or point is None:
            return values
        return [np.where(outside, planes.dtype.type(fill), v) for v in values]

    def write(
        self, field: FieldParam, point: Lanes | None, element: Values | None, values: Lanes, active: Mask
    ) -> None:
        planes = self.fields[field]
        where, keep = self.target(field, point, active)
        if element is None:
            for plane, value in zip(planes, values, strict=True):
                plane[where[keep]] = self.all(value)[keep]
            return
        element = self.all(element)
        keep = keep & (element >= 0) & (element < len(planes))
        planes[element[keep], where[keep]] = self.all(values[0])[keep]

    def target(self, field: FieldParam, point: Lanes | None, active: Mask) -> tuple[Values, Mask]:
        """Return the position in a plane that each thread writes, and the threads that write inside."""
        if point is None:
            own = self.where.point if field.type.field_shape else np.zeros(self.count, np.int64)
            return own, active & self.where.inside
        where = np.zeros(self.count, np.int64)
        for at, n in zip(point, field.type.field_shape, strict=True):
            at = self.all(np.asarray(at, np.int64))
            active = active & (at >= 0) & (at < n)
            where = where * n + at
        return where, active

    def all(self, value: Values) -> Values:
        return spread(value, self.count)

    # --- arrays -------------------------------------------------------------------------------------------------

    def declare(self, array: Array) -> None:
        """Allocate a column for each owner: a thread, a work-group, or (for constants) all of them."""
        if array.space == "constant":
            self.arrays[array] = [np.array(array.values, array.type.dtype.numpy)[:, None]]
            return
        owners = self.count if array.space == "private" else self.where.groups
        self.arrays[array] = [
            np.zeros((array.elements, owners), array.type.dtype.numpy) for _ in range(array.type.lanes)
        ]

    def owner(self, array: Array) -> Values:
        return {"private": self.each, "local": self.where.member, "constant": self.one_owner}[array.space]

    def place(self, array: Array, index: Lanes) -> tuple[Values, Mask]:
        """Return the element that each thread addresses, clamped, and whether it was inside."""
        where, there = np.zeros(self.count, np.int64), np.ones(self.count, np.bool_)
        for i, n in zip(index, array.extents, strict=True):
            at = self.all(i)
            there &= (at >= 0) & (at < n)
            where = where * n + inside(at, n)
        return where, there

    def load(self, memory: Array | FieldParam, index: Lanes, active: Mask) -> Lanes:
        if isinstance(memory, FieldParam):
            return [self.loaded(memory, index[0], active)]
        where, _ = self.place(memory, index)
        return [lane[where, self.owner(memory)] for lane in self.arrays[memory]]

    def near(self, field: FieldParam, index: Lanes, ahead: Iterable[int], active: Mask) -> Lanes:
        """Return elements near a flat offset, limited to the least and the remaining elements if the index has such limits."""
        offset, *limits = index
        steps = (np.maximum(k, limits[1]) if len(limits) > 1 else k for k in ahead)
        left = (np.minimum(k, limits[0] - 1) if limits else k for k in steps)
        return [self.loaded(field, np.asarray(offset + k), active) for k in left]

    def loaded(self, field: FieldParam, place: Values, active: Mask) -> Values:
        """Return the elements at flat offsets, for active threads."""
        flat = self.fields[field].reshape(-1)
        return np.asarray(flat[inside(place, max(flat.size, 1))])

    def stored(self, field: FieldParam, place: Values, value: Values, active: Mask) -> None:
        """Write elements at flat offsets, for active threads."""
        self.fields[field].reshape(-1)[place[active]] = self.all(value)[active]

    def store(self, memory: Array | FieldParam, index: Lanes, values: Lanes, active: Mask) -> None:
        if isinstance(memory, FieldParam):
            for k, value in enumerate(values):
                keep = active & (k < index[1]) if len(index) > 1 else active  # lanes of a vector that are inside
                self.stored(memory, self.all(np.asarray(index[0] + k)), value, keep)
            return
        if len(values) > memory.type.lanes:  # the lanes of a vector
            for k, value in enumerate(values):
                self.store(memory, [*index[:-1], index[-1] + k], [value], active)
            return
        where, inside = self.place(memory, index)
        keep = active & inside
        for lane, value in zip(self.arrays[memory], values, strict=True):
            lane[where[keep], self.owner(memory)[keep]] = self.all(value)[keep]

    def wide(self, stmt: Wide, index: Lanes, element: Values | None, left: Values | None, active: Mask) -> None:
        """Copy elements of a field into those of an array, or back; no more than remain (`left`)."""
        field, array = stmt.field, stmt.array
        offset, active = self.flat(field, index, element, active)
        size, count = self.width(stmt)
        aligned = left is not None or not np.any(self.unaligned(field, offset, count) & active)
        assert aligned, "a wide access is not aligned"
        for k in range(array.elements):
            here, there = [np.asarray(k)], [offset + (size * k + n) for n in range(size)]
            inside = active if left is None else active & (k < left)
            if stmt.loads:
                parts = [self.loaded(field, place, inside) for place in there]
                self.store(array, here, [parts[0] if size == 1 else word(parts)], inside)
            else:
                (value,) = self.load(array, here, inside)
                for n, place in enumerate(there):
                    self.stored(field, place, value if size == 1 else (value >> 8 * n).astype(np.uint8), inside)

    def width(self, stmt: Wide) -> tuple[int, int]:
        """Return the number of field elements in an element of the array, and in an access."""
        size = stmt.array.type.dtype.bits // stmt.field.type.storage.bits
        return size, stmt.array.elements * size // stmt.parts

    def unaligned(self, field: FieldParam, offset: Values, count: int) -> Mask:
        """Return the threads whose access does not begin at a multiple of its width."""
        return np.asarray((offset + (self.layout(field).behind or 0)) % count != 0)

    def atomic(self, stmt: Atomic, index: Lanes, element: Values | None, args: Lanes, active: Mask) -> Values:
        """Update elements one thread after the other; return the values that each of them read, if there is a variable for it."""
        op, memory = stmt.op, stmt.memory
        if isinstance(memory, FieldParam):
            flat, (where, keep) = self.fields[memory].reshape(-1), self.flat(memory, index, element, active)
        else:
            (lane,) = self.arrays[memory]
            where, inside = self.place(memory, index)
            flat, where, keep = lane.reshape(-1), where * lane.shape[1] + self.owner(memory), active & inside
        old = np.zeros(self.count, flat.dtype)
        if op == "read":
            old[keep] = flat[where[keep]]
            return old
        if stmt.var is None and joined_by(op) and (flat.dtype.kind != "f" or op == "add"):
            cast(np.ufunc, OPS[op].numpy).at(flat, where[keep], args[0][keep])
            return old
        for thread in np.flatnonzero(keep):
            at, operands = where[thread], [a[thread] for a in args]
            old[thread] = flat[at]
            flat[at] = updated(op, old[thread], *operands)
        return old

    def flat(self, field: FieldParam, index: Lanes | None, element: Values | None, active: Mask) -> tuple[Values, Mask]:
        """Return the offset of an element of a field, and the threads that have one."""
        points, planes = field.type.field_shape.points, field.type.planes
        if self.lowered and index is not None:
            return self.all(index[0]), active
        where, keep = self.target(field, index, active)
        if element is not None:
            element = self.all(element)
            keep = keep & (element >= 0) & (element < planes)
            where = where + element.astype(np.int64) * points
        return where, keep


def word(parts: Lanes) -> Values:
    """Return four bytes as a word."""
    shifted = [part.astype(np.uint32) << 8 * n for n, part in enumerate(parts)]
    return shifted[0] | shifted[1] | shifted[2] | shifted[3]


def updated(op: str, old: Any, *args: Any) -> Any:
    if op == "xchg":
        return args[0]
    if op == "cmpxchg":
        return args[1] if np.asarray(old).tobytes() == np.asarray(args[0]).tobytes() else old
    return old - args[0] if op == "sub" else MONOIDS[op].joined(args[0], old)
