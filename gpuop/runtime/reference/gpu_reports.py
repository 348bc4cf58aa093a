"""The messages of interpreted GPU kernels: the kernel, the memory, the index, and the thread."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from gpuop.base.errors import DeviceError, Loc, located
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, FieldParam

Memory = Array | FieldParam


class GpuReports:
    """The messages of a launch. Every method but `numbered` raises a DeviceError at the user's line, if there is one.

    Attributes:
        loc: the line of the current statement.
    """

    def __init__(self, device: str, kernel: Kernel) -> None:
        self.device, self.kernel = device, kernel
        self.loc: Loc | None = None

    def fail(self, message: str) -> NoReturn:
        raise DeviceError(
            located(f"{self.device}: kernel `{self.kernel.name}`: {message}", self.loc or self.kernel.loc)
        )

    def numbered(self, number: int) -> str:
        """Return the name of a thread, from its number in the launch, which counts work-group after work-group."""
        size, elements = self.kernel.work_group, self.kernel.domain.elements
        columns, rows = (-(-self.kernel.domain.extent(axis) // size[n]) for n, axis in ((2, "column"), (1, "row")))
        group, own = divmod(number, size.points)
        deep, row, column = group // (rows * columns), group // columns % rows, group % columns
        layer, line, at = own // (size[1] * size[2]), own // size[2] % size[1], own % size[2]
        deep = deep // elements if elements > 1 else deep
        return (
            f"thread (layer {layer}, row {line}, column {at}) of work-group (layer {deep}, row {row}, column {column})"
        )

    def outside(self, does: str, memory: Memory, place: int, extent: int, thread: str) -> NoReturn:
        self.fail(
            f"{thread} {does} {element(memory, place)}, outside of {kind(memory)}, which has {extent} elements; "
            'an index is inside unless the program reads with border="unchecked"'
        )

    def outside_axis(self, does: str, array: Array, index: list[int], axis: int, thread: str) -> NoReturn:
        indices = "".join(f"[{n}]" for n in index)
        self.fail(
            f"{thread} {does} `{array.hint}{indices}`, outside of {kind(array)}: index {axis} is {index[axis]}, and the extent "
            f"{array.extents[axis]}"
        )

    def misaligned(self, does: str, field: FieldParam, place: int, count: int, thread: str) -> NoReturn:
        self.fail(
            f"{thread} {does} {count} elements from {element(field, place)} on in one access, which begins at no multiple of "
            f"{count}"
        )

    def unwritten(self, memory: Memory, place: int, thread: str) -> NoReturn:
        who = "no thread of its work-group" if isinstance(memory, Array) else "no thread"
        self.fail(
            f"{thread} reads {element(memory, place)}, which {who} has written: {kind(memory)} is not initialised"
        )

    def incomplete(self, field: FieldParam, place: int) -> NoReturn:
        self.fail(f"no thread writes {element(field, place)} of {field.type.nbytes} bytes, which nothing fills before")

    def race(self, does: str, did: str, memory: Memory, place: int, thread: str, other: str) -> NoReturn:
        value = " with another value" if does == did == "writes" else ""
        does, did = (word.replace("updates", "changes") for word in (does, did))
        self.fail(
            f"{thread} {does} {element(memory, place)}, which {other} {did}{value}, and no barrier stands between the two"
        )

    def torn(self, what: str, here: str, missing: str) -> NoReturn:
        self.fail(f"{here} reaches {what}, and {missing} does not")


def kind(memory: Memory) -> str:
    if isinstance(memory, FieldParam):
        return f"the field `{memory.hint}` ({memory.type})"
    return f"the {memory.space} array `{memory.hint}`"


def element(memory: Memory, place: int) -> str:
    """Return the name of an element, from its flat offset; by its indices if the array has axes."""
    if isinstance(memory, FieldParam) or not 0 <= place < memory.elements:
        return f"`{memory.hint}[{place}]`"
    return f"`{memory.hint}{''.join(f'[{n}]' for n in np.unravel_index(place, memory.extents))}`"
