"""Dialects: a language as data (keywords, type names, positions, calls that differ), and the `Source` that a backend
launches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from gpuop.base.errors import CompileError, Loc
from gpuop.base.records import dataclass
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import HALF, FieldType


@dataclass(frozen=True)
class Dialect:
    """The differences of a language from C.

    Attributes:
        kernel: the qualifiers of an entry point, with `{threads}` of a work-group, and behind a comma `Kernel.resident`; and with
            `{group}`, which is `fixed_group` where a kernel knows its work-groups.
        pointer: a buffer argument, with `{const}`, `{type}`, `{restrict}` and `{name}`.
        constant_pointer: that of a table in constant memory of a GPU; "" where there is no such argument.
        structure: a table that is passed by value, with `{type}`, `{n}` and `{name}`, whose member `at` is loaded from.
        argument_bytes: most bytes of the arguments of a kernel with structures; 0 where none are passed.
        restrict: the qualifier of pointers to memory that no other argument points to.
        types: C names of scalar types that are spelled differently.
        position: the text of a thread constant, by kind and dimension (0 columns, 1 rows, 2 layers × elements).
        suffix: the suffix of integer literals, by OpenCL type name.
        special: infinity and NaN of float and double.
        calls: operators ("nan"), or those of a type ("nan ushort"), that are spelled differently, with `{0}` for operands, or
            `{ints[0]}`.
        crowded, forked: replacements of these calls in kernels with many integer extremes, and with large trees of them.
        conversions: those between two types ("float uint") that are spelled differently, with `{x}`; and the bits of half.
        saturate: a saturating conversion, with `{type} {x} {low} {high}`.
        clips: those between two types of integers ("int uchar") that are spelled differently, with `{x}`.
        load_half, store_half, round_half, bits: the forms of half access and of reinterpretation.
        helpers: functions that are printed before the kernel when their name occurs in it.
        head: the first lines of every source.
        unroll: the pragma before a loop.
        rolled: the pragma before a loop that must not be unrolled; "" if compilers leave such loops alone.
        local, constant: the qualifiers of local and of constant memory.
        barrier: a barrier, by the memory that it orders.
        atomics: an atomic operation ("add"), or that of a type ("add float") or a type and memory ("add float local"), with
            `{p}` for the pointer and `{0}` for operands.
        most_groups: limit of groups along rows and along layers, None without one; beyond it all are numbered along columns.
        shuffles: those of `SHUFFLES`, with `{0}` for the value, `{1}` for the lane or the distance and `{n}` for the lanes.
        wide: the accesses "load", "store", "load half" and "store half" of `{n}` neighbouring elements at `{pointer}`, into or
            from the private array `{lanes}`; and "stream", a store past the caches, of large outputs, where there is such.
        wide_kernel: the qualifiers of an entry point whose threads must not be vectorized; "" for the usual ones.
        int_position: a statement that a position, `{place}`, is an int, for compilers that gain by it or compute wrongly
            without it (`printer.py`); "" for others.
        fixed_group: the qualifier of fixed work-group extents, along (columns, rows, layers × elements).
        volatile: the pointer to volatile memory, with `{p}` and `{type}`.
        long: the size of 64-bit integers in printf conversions.
    """

    name: str
    kernel: str
    pointer: str
    restrict: str
    types: Mapping[str, str]
    position: Mapping[str, tuple[str, str, str]]
    suffix: Mapping[str, str]
    special: Mapping[str, str]
    calls: Mapping[str, str]
    crowded: Mapping[str, str]
    forked: Mapping[str, str]
    conversions: Mapping[str, str]
    saturate: str
    load_half: str
    store_half: str
    bits: str
    helpers: Mapping[str, str | Callable[[], str]]
    head: str
    unroll: str
    local: str
    constant: str
    barrier: Mapping[str, str]
    atomics: Mapping[str, str]
    wide: Mapping[str, str]
    volatile: str
    long: str
    clips: Mapping[str, str] = field(default_factory=dict)
    shuffles: Mapping[str, str] = field(default_factory=dict)
    most_groups: int | None = None
    wide_kernel: str = ""
    int_position: str = ""
    fixed_group: str = ""
    rolled: str = ""
    constant_pointer: str = ""
    structure: str = ""
    argument_bytes: int = 0

    def type(self, c: str) -> str:
        return self.types.get(c, c)

    @cached_property
    def words(self) -> frozenset[str]:
        """The identifiers that its forms use."""
        forms = (
            self.position,
            self.calls,
            self.crowded,
            self.forked,
            self.conversions,
            self.clips,
            self.barrier,
            self.atomics,
            self.wide,
        )
        text = " ".join(
            map(str, (*(v for form in forms for v in form.values()), self.saturate, self.bits, self.load_half))
        )
        return frozenset(re.findall(r"(?<![.:\w])[A-Za-z_]\w*", re.sub(r"{\w*}", " ", text)))


ATOMICS_OF_64_BITS = "atomic operations of 64 bits"


@dataclass(frozen=True)
class Source:
    """Generated text with everything that a backend needs to launch it.

    Attributes:
        entry: the name of the kernel function.
        threads, group: along (columns, rows, layers × elements); threads are rounded up to whole groups.
        arguments: the parameters in order, the first `inputs` of them read; a by-value field is as many scalars as it has planes.
        fills: the initial values of outputs, by position among the arguments.
        lines: the user line of a line of the text (counted from 1).
        needs: features of a device: "double", and ATOMICS_OF_64_BITS.
        shared: text before the kernel that other kernels may share.
        tables: whether it has tables of this kernel, whose names others may have.
        extents: extents that the text does not contain, passed after the arguments.
        structures: the positions of tables among the arguments that are passed by value.
    """

    entry: str
    text: str
    threads: tuple[int, int, int]
    group: tuple[int, int, int]
    arguments: tuple[FieldParam, ...]
    inputs: int
    fills: Mapping[int, float] = field(default_factory=dict)
    lines: Mapping[int, Loc] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    shared: tuple[str, ...] = ()
    tables: bool = False
    extents: tuple[int, ...] = ()
    structures: frozenset[int] = frozenset()

    @cached_property
    def direct(self) -> bool:
        """True if it is passed buffers alone, one for each argument."""
        return not (self.extents or self.structures or any(param.by_value for param in self.arguments))

    @property
    def own(self) -> str:
        """The kernel and its tables, without what is shared."""
        return self.text[self.text.index(self.shared[-1]) + len(self.shared[-1]) :]

    @property
    def name(self) -> str:
        """The kernel's, as users know it."""
        return self.entry.removeprefix("gpuop_")

    @property
    def identity(self) -> str:
        """Equal for what is compiled and launched alike: the text does not tell what is filled, nor always the group."""
        arguments = [(str(p.type), p.by_value) for p in self.arguments]
        launched = f"{self.threads} {self.group} {sorted(self.fills.items())!r} {self.extents}"
        return f"{self.text}\n{self.entry} {arguments} {self.inputs} {launched}"

    def numbered(self) -> str:
        """The text with line numbers."""
        return "\n".join(f"{n:4d}  {line}" for n, line in enumerate(self.text.splitlines(), 1))

    def flattened(
        self,
        arguments: Sequence[Any],
        buffer: Callable[[Any], Any],
        structure: Callable[[Any], Any] = attrgetter("table"),
    ) -> tuple[list[Any], list[int]]:
        """Passed numbers, one by one, and the position of each argument.

        Args:
            buffer, structure: convert a buffer that is passed by its address, and one that is passed by value.
        """
        if self.direct:
            return list(map(buffer, arguments)), list(range(len(arguments)))
        flat: list[Any] = []
        starts = []
        for n, (param, argument) in enumerate(zip(self.arguments, arguments, strict=True)):
            starts.append(len(flat))
            if n in self.structures:
                flat.append(structure(argument))
            else:
                flat += scalars_of(param, argument) if param.by_value else [buffer(argument)]
        return [*flat, *self._passed_extents], starts

    @cached_property
    def _passed_extents(self) -> tuple[Any, ...]:
        return tuple(map(np.int32, self.extents))

    def filled(self, arguments: Sequence[Any]) -> list[tuple[Any, FieldType, float]]:
        """The buffers that hold something before the launch, with their types and what that is."""
        if not self.fills:
            return []
        fills = [(arguments[i], self.arguments[i].type, value) for i, value in self.fills.items()]
        return [(buffer, kind, value) for buffer, kind, value in fills if kind.nbytes]

    def refused(self, device: str, log: str) -> CompileError:
        """Error for a text that the device compiler rejects."""
        numbers = {int(n) for n in re.findall(r"[:(](\d+)[:)]", log)}  # of lines
        locs = {self.lines[n]: None for n in sorted(numbers) if n in self.lines}
        users = [f"{loc}\n      {loc.text}" for loc in locs]
        behind = "\n  your lines behind it:\n    " + "\n    ".join(users) if users else ""
        return CompileError(
            f"{device} refused the kernel {self.entry}:\n{log}{behind}\n{self.numbered()}", self.numbered()
        )


def scalars_of(param: FieldParam, values: Sequence[Any]) -> list[Any]:
    """Scalars that a by-value argument is passed as."""
    kind = np.float32 if param.type.storage is HALF else param.type.memory_dtype.type
    return list(np.array(values, kind))
