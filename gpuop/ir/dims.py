"""Named dimensions: arguments of operators, axes of a field, and sizes without memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from types import EllipsisType
from typing import Any

from gpuop.base.errors import MissingError, SemanticError, described
from gpuop.base.records import dataclass

Extent = int | EllipsisType | None
Named = tuple[str, int | None]  # a dimension: its name, "" if it has none, and its extent, None for any


def names_of(arg: Any, what: str = "names of dimensions") -> tuple[str, ...]:
    """The names in "img:chan:y:x"; `_` stands for a dimension without a name, which is "" here.

    Raises:
        SemanticError: the text is malformed, or has a name twice.
    """
    if not isinstance(arg, str):
        raise SemanticError(f'{what} are text, as "img:chan:y:x", not {described(arg)}')
    names = tuple("" if name == "_" else name for name in arg.split(":")) if arg else ()
    for name in names:
        if name and (not name.isidentifier() or name.startswith("_") or name in RESERVED):
            raise SemanticError(
                f"{name!r} is not a name of a dimension: names are Python identifiers, without a leading underscore, and not "
                f"{', '.join(RESERVED)}"
            )
        if name and names.count(name) > 1:
            raise SemanticError(f"the dimension {name!r} is named twice in {arg!r}")
    return names


def spelled(names: Sequence[str]) -> str:
    """Names as users write them."""
    return ":".join(name or "_" for name in names)


def folded(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """The extents, folded to at most `most`: the first ones are multiplied."""
    over = len(shape) - most
    return (math.prod(shape[: over + 1]), *shape[over + 1 :]) if over > 0 else tuple(shape)


@dataclass(frozen=True, init=False, repr=False)
class Dims:
    """Named dimensions, each of a known extent or of any: `gp.Dims("img:chan:y:x")`, `gp.Dims("y:x", x=640)`, `gp.Dims(y=4, x=4)`.

    They declare the arguments (`inputs=`) and results (`outputs=`) of an operator, name the axes of a field, and are arguments
    of operators by themselves, as strides and kernels' sizes are: dimensions without memory. `Dims("y:x")(rgb=3)` has a
    tensor of 3 elements at each point of a grid. `dims.y` is an extent, `dims["x:y"]` are some of the dimensions in another order.

    Args:
        names: of the grid's dimensions, slowest first, with colons between; `_` is one without a name.
        extents: how long the dimensions of these names are, or `...` for any; without `names` they are all there are, in order.

    Raises:
        SemanticError: names that are none or occur twice, or extents that are no integers of 0 or more.
    """

    grid: tuple[Named, ...]
    tensor: tuple[Named, ...]

    def __init__(self, names: str = "", /, **extents: Extent) -> None:
        listed = names_of(names or ":".join(extents))
        unknown = [name for name in extents if name not in listed]
        if unknown:
            raise SemanticError(f"there is no dimension {unknown[0]!r} in {names!r} to give an extent to")
        object.__setattr__(self, "grid", tuple((name, _extent(extents.get(name, ...), name)) for name in listed))
        object.__setattr__(self, "tensor", ())

    @staticmethod
    def of(grid: Sequence[Named], tensor: Sequence[Named] = ()) -> Dims:
        """Dims of dimensions that are valid already."""
        dims = object.__new__(Dims)
        object.__setattr__(dims, "grid", tuple(grid))
        object.__setattr__(dims, "tensor", tuple(tensor))
        return dims

    def __call__(self, **tensor: Extent) -> Dims:
        """The same grid with a tensor at each point.

        Args:
            tensor: its dimensions by name, in order: integers, or `...` for any.

        Returns:
            Dims.

        Raises:
            SemanticError: as of `Dims`.
        """
        names_of(":".join([*(name for name, _ in self.grid if name), *tensor]))
        return Dims.of(self.grid, tuple((name, _extent(n, name)) for name, n in tensor.items()))

    # --- facts --------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Named]:
        return iter((*self.grid, *self.tensor))

    def __len__(self) -> int:
        return len(self.grid) + len(self.tensor)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, the grid's first; "" of dimensions that have none."""
        return tuple(name for name, _ in self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, the grid's first; SemanticError where one is not known."""
        return tuple(self._known(name, n) for name, n in self)

    @property
    def points(self) -> int:
        """The product of the extents; SemanticError where one is not known."""
        return math.prod(self.shape)

    def stride(self, name: str) -> int:
        """Number of array elements between neighbours along a dimension.

        Args:
            name: of the dimension.

        Returns:
            The product of the extents after it.

        Raises:
            SemanticError: there is no such dimension, or an extent after it is not known.
        """
        return math.prod(self._known(each, n) for each, n in list(self)[self.number(name) + 1 :])

    def __getattr__(self, name: str) -> int:
        if name.startswith("_"):  # names that Python looks up in any object
            raise AttributeError(name)
        try:
            return self._known(name, list(self)[self.number(name)][1])
        except SemanticError as wrong:  # `hasattr` asks for an AttributeError
            raise MissingError(wrong.message, wrong.loc) from None

    def __getitem__(self, names: str) -> Dims:
        """Some of the dimensions, in the order of the names: `work["tile:blk"]`."""
        extents = list(self)
        return Dims.of([extents[self.number(name)] for name in names_of(names)])

    def number(self, name: str) -> int:
        """The number of the axis with a name."""
        if not name or name not in self.names:
            raise SemanticError(f"there is no dimension {name!r} in {self}")
        return self.names.index(name)

    def _known(self, name: str, extent: int | None) -> int:
        if extent is None:
            raise SemanticError(f"the extent of {name!r} is not known in {self}: it is any")
        return extent

    # --- others ---------------------------------------------------------------------------------------------------

    def replace(self, **changes: str | Extent) -> Dims:
        """The dimensions with other names or extents.

        Args:
            changes: by name, another name, or an extent: an integer, or `...` for any.

        Returns:
            Dims.

        Raises:
            SemanticError: there is no such dimension, or as of `Dims`.
        """
        for name in changes:
            self.number(name)

        def changed(each: Named) -> Named:
            change = changes.get(each[0], each[1]) if each[0] else each[1]
            return (change, each[1]) if isinstance(change, str) else (each[0], _extent(change, each[0]))

        result = Dims.of(tuple(map(changed, self.grid)), tuple(map(changed, self.tensor)))
        names_of(spelled(result.names))
        return result

    def takes(self, other: Dims) -> bool:
        """Return whether dimensions match: as many, with equal names and extents. One without a name matches any."""
        return all(
            len(mine) == len(theirs) and all(_fitting(mine, theirs))
            for mine, theirs in ((self.grid, other.grid), (self.tensor, other.tensor))
        )

    def naming(self, like: Dims) -> Dims:
        """The same extents; dimensions without a name have that of another's."""
        return Dims.of(*(_named(*pair) for pair in ((self.grid, like.grid), (self.tensor, like.tensor))))

    def __str__(self) -> str:
        parts = [":".join(map(_shown, part)) for part in (self.grid, self.tensor)]
        return parts[0] + (f"[{parts[1]}]" if self.tensor else "") or "no dimensions"

    def __repr__(self) -> str:
        return f"<Dims {self}>"


def _fitting(mine: Sequence[Named], theirs: Sequence[Named]) -> Iterator[bool]:
    for (name, extent), (other, n) in zip(mine, theirs, strict=True):
        yield (name == other or not (name and other)) and (extent is None or extent == n)


def _named(mine: Sequence[Named], like: Sequence[Named]) -> tuple[Named, ...]:
    return tuple(
        (name or other[0], n) for (name, n), other in zip_longest(mine, like[: len(mine)], fillvalue=("", None))
    )


def _shown(each: Named) -> str:
    name, extent = each
    return (name or "_") + ("" if extent is None else f"={extent}")


def _extent(arg: Any, name: str) -> int | None:
    if arg is ... or arg is None:
        return None
    try:
        extent = operator.index(arg)
    except TypeError:
        raise SemanticError(f"the extent of {name!r} is an integer, or `...` for any, not {described(arg)}") from None
    if extent < 0:
        raise SemanticError(f"the extent of {name!r} is 0 or more, not {extent}")
    return extent


RESERVED = tuple(name for name in (*vars(Dims), "grid", "tensor") if not name.startswith("_"))
