"""Alias checks: no result may overwrite an array that is still to be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from threading import Lock
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.scaleout.stream.stacked_files import arrays_of
from gpuop.scaleout.stream.stores import in_file, mapping

WORK = 1 << 12  # limit of the search for an address that two arrays share
_LOCK = Lock()


@dataclass(frozen=True)
class ArrayLocation:
    """The location of an array.

    Attributes:
        array: the array, or the path of its new file.
        path: the path of its file, or of its folder in a zarr; None if it has none.
        name: the name of an array in a file with several.
        anew: whether the file is created, whatever else is in it.
    """

    array: Any
    path: str | None
    name: str
    anew: bool

    @staticmethod
    def of(array: Any) -> ArrayLocation:
        if isinstance(array, (str, os.PathLike)):
            return ArrayLocation(array, os.path.realpath(in_file(array)[0]), "", True)
        mapped = mapping(array)
        if mapped is not None:
            return ArrayLocation(array, _real(mapped.filename), "", False)
        file = getattr(array, "file", None)
        if file is not None:  # HDF5
            return ArrayLocation(array, _real(getattr(file, "filename", None)), str(array.name), False)
        store = getattr(array, "store", None)
        root = getattr(store, "root", None) or getattr(store, "path", None)
        if root is not None:  # zarr
            return ArrayLocation(array, _real(os.path.join(root, array.path)), "", False)
        return ArrayLocation(array, _real(getattr(array, "path", None)), "", False)

    def meets(self, other: ArrayLocation) -> bool:
        """Return whether a write to one changes the other."""
        a, b = self.array, other.array
        if a is b:
            return True
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            both = mapping(a), mapping(b)
            if both[0] is None or both[1] is None or both[0]._mmap is both[1]._mmap:  # type: ignore[attr-defined]
                return _overlapping(a, b)
        if self.path is None or other.path is None or not _same(self.path, other.path):
            return False
        return self.anew or other.anew or self.name == other.name


_WRITTEN: list[ArrayLocation] = []  # of unfinished streams


def check_no_alias(sources: Mapping[str, Any], outs: Sequence[Any]) -> None:
    """Refuse results that would overwrite sources or one another.

    Args:
        sources: by argument name.
        outs: as the user passed them; None for those in new memory.
    """
    locations = [ArrayLocation.of(out) for out in outs if out is not None]
    for name, source in sources.items() if locations else ():
        for place in map(ArrayLocation.of, arrays_of(source)):
            out = next(filter(place.meets, locations), None)
            if out is not None:
                raise SemanticError(
                    f"`out=`{_text(out)} overlaps `{name}`, so later windows would read results in the place of values; "
                    "stream to another array or file, and copy or rename that"
                )
    for a, b in combinations(locations, 2):
        if a.meets(b):
            raise SemanticError(
                f"two results of `out=` lie in the same place{_text(a)}; give each an array or file of its own"
            )


@contextmanager
def exclusive_outputs(outs: Sequence[Any]) -> Iterator[None]:
    """Refuse results that an unfinished stream of this process writes: under any name, or in memory.

    Args:
        outs: as for `check_no_alias`.
    """
    locations = [ArrayLocation.of(out) for out in outs if out is not None]
    with _LOCK:
        for out in locations:
            if any(map(out.meets, _WRITTEN)):
                raise SemanticError(
                    f"another stream writes where `out=`{_text(out)} lies: wait until it is done, or give another array or file"
                )
        _WRITTEN.extend(locations)
    try:
        yield
    finally:
        with _LOCK:
            _WRITTEN[:] = [each for each in _WRITTEN if not any(each is own for own in locations)]


def _overlapping(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    try:
        return np.shares_memory(a, b, max_work=WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _real(path: Any) -> str | None:
    return None if path is None else os.path.realpath(path)


def _same(a: str, b: str) -> bool:
    """Return whether two paths are one file, or one is in the folder of the other."""
    if os.path.exists(a) and os.path.exists(b) and os.path.samefile(a, b):
        return True
    return os.path.commonpath([a, b]) in (a, b)


def _text(out: ArrayLocation) -> str:
    return "" if out.path is None else f" ({out.path}{out.name and ':' + out.name})"
