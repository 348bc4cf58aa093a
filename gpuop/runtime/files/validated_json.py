"""JSON documents from untrusted sources: each value is read as its expected type, and an error names its place."""

from __future__ import annotations

import json
import math
from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.base.records import dataclass
from gpuop.ir.types import FieldType
from gpuop.runtime.files.archive import Damaged

LARGEST = 2**63 - 1
MOST_DIGITS = 20
MOST_SHOWN = 60
OPEN = ("factor", "open", "each", "times", "multiple")  # fields of a number that is a product of sizes


@dataclass(frozen=True, slots=True)
class Item:
    """A value, and its place in the document, such as `states[0][1]`; `sizes` are the values of its symbolic numbers."""

    value: Any
    place: str = ""
    sizes: tuple[int, ...] = ()

    def is_not(self, kind: str) -> Damaged:
        plain = isinstance(self.value, (int, float, str))
        text = repr(self.value)[:MOST_SHOWN] if plain else described(self.value)
        return Damaged(f"`{self.place or 'the document'}` is {text}, not {kind}")

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.is_not("a text")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.is_not("true or false")
        return self.value

    def whole(self, least: int = 0, most: int = LARGEST) -> int:
        """Return an integer from `least` to `most`."""
        value = self._of_sizes() if self.sizes and isinstance(self.value, dict) else self.value
        if type(value) is not int or not least <= value <= most:
            raise self.is_not(f"an integer from {least} to {most}")
        return value

    def _of_sizes(self) -> int:
        """Return a number that `open_number` of `engine/bundles/dynamic_sizes.py` has written, for these sizes."""
        factor, positions, each, times, multiple = Item(self.value, self.place).fields(*OPEN)
        sizes = (self.sizes[k] for k in positions.wholes(0, len(self.sizes) - 1))
        parts = -(-factor.whole(1) * math.prod(sizes) // each.whole(1)) * times.whole(1)
        return -(-parts // multiple.whole(1)) * multiple.whole(1)

    def number(self) -> int | float:
        if type(self.value) not in (int, float):
            raise self.is_not("a number")
        return self.value  # type: ignore[no-any-return]

    def members(self, count: int | None = None) -> list[Item]:
        """Return the items of an array of this length."""
        if not isinstance(self.value, list) or count not in (None, len(self.value)):
            raise self.is_not("an array" if count is None else f"an array of {count}")
        return [Item(value, f"{self.place}[{k}]", self.sizes) for k, value in enumerate(self.value)]

    def wholes(self, least: int = 0, most: int = LARGEST, count: int | None = None) -> tuple[int, ...]:
        return tuple(item.whole(least, most) for item in self.members(count))

    def entries(self) -> dict[str, Item]:
        """Return the items of an object."""
        if not isinstance(self.value, dict):
            raise self.is_not("an object")
        prefix = f"{self.place}." if self.place else ""
        return {name: Item(value, f"{prefix}{name}", self.sizes) for name, value in self.value.items()}

    def numbered(self) -> dict[int, Item]:
        """Return the items of an object whose names are numbers."""
        entries = self.entries()
        if not all(name.isascii() and name.isdecimal() and len(name) < MOST_DIGITS for name in entries):
            raise self.is_not("an object whose names are numbers")
        return {int(name): item for name, item in entries.items()}

    def fields(self, *names: str) -> list[Item]:
        """Return the items of an object that has exactly these names."""
        entries = self.entries()
        if set(entries) != set(names):
            raise self.is_not(f"an object of {', '.join(names)}")
        return [entries[name] for name in names]

    def entry(self, name: str) -> Item:
        """Return one item of an object."""
        entries = self.entries()
        if name not in entries:
            raise self.is_not(f"an object that has {name}")
        return entries[name]

    def kind(self) -> FieldType:
        """Return a field's type for kernels: its grid, its tensor and its dtype."""
        grid, tensor, dtype = self.members(3)
        kind = self._kind(grid, tensor, dtype)
        if kind.folded is not kind:
            raise self.is_not("the type of a kernel's field")
        return kind

    def seen_kind(self) -> FieldType:
        """Return a field's type for users, with the names of its dimensions."""
        grid, tensor, dtype, dims = self.members(4)
        return self._kind(grid, tensor, dtype, dims.text())

    def _kind(self, grid: Item, tensor: Item, dtype: Item, dims: str = "") -> FieldType:
        try:
            kind = FieldType(grid.wholes(), tensor.wholes(), dtype.text(), dims)
        except SemanticError as wrong:
            raise Damaged(f"`{self.place}`: {wrong.message}") from None
        if kind.dtype != dtype.value:
            raise dtype.is_not(repr(kind.dtype))
        return kind


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise Damaged(f"it has a number of {len(digits)} digits")
    return int(digits)


def document(text: str | bytes) -> Item:
    """Return the root of a JSON document."""
    try:
        return Item(json.loads(text, parse_int=_integer))
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except ValueError as wrong:
        raise Damaged(str(wrong)) from None
