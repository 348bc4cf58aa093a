"""The keywords `batch=` and `axes=` of streams, of Dask and of MPI."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpuop.base.errors import SemanticError
from gpuop.ir.types import is_integer


def leading_axes(batch: Any, most: int) -> int:
    """Return the number of leading axes that count images.

    Raises:
        SemanticError: it is not a number from 0 to `most`.
    """
    if not is_integer(batch) or not 0 <= batch <= most:
        raise SemanticError(
            f"`batch=` is how many leading axes count images, from 0 to {most}, not {batch!r}: the pipeline gets the others"
        )
    return int(batch)


def different_axes(axes: Any, count: int, owner: str, names: Sequence[Any] = (), least: int = 0) -> tuple[int, ...]:
    """Return the numbers of one axis or of several, in their order; negative ones count from the end.

    Args:
        owner: of the `count` axes, for the message.
        names: of the axes, if they have some.
        least: how many axes there must be.

    Raises:
        SemanticError: an axis that the owner does not have, an axis twice, or fewer than `least`.
    """
    listed = tuple(axes) if isinstance(axes, Iterable) and not isinstance(axes, str) else (axes,)
    numbers = [names.index(a) if a in names else int(a) if is_integer(a) else count for a in listed]
    valid = all(-count <= number < count for number in numbers)
    result = tuple(number % count for number in numbers) if valid else ()
    if not valid or len(result) < least or len(set(result)) < len(result):
        choice = f"{', '.join(map(repr, names))}, or " if names else ""
        raise SemanticError(f"`axes=` are different axes of {owner}: {choice}numbers below {count}; not {axes!r}")
    return result
