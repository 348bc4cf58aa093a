"""A list of files as one array; one file is open at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.fusion.windows.buffer_pool import reused
from gpuop.fusion.windows.gather import together
from gpuop.runtime.base.backend import Array
from gpuop.scaleout.stream.stores import mapping, opened


class StackedFiles:
    """The stacked arrays of files (`np.stack`): the first axis is the list's. A file is opened for each read.

    Args:
        paths: at least one, of arrays of one shape and dtype; each is opened once to check that.

    Attributes:
        paths: absolute, as the working directory may change.
        shape, dtype, chunks: as for arrays in files.

    Raises:
        SemanticError: no paths, something else than a path, arrays that differ, and as for `opened`.
        OSError: a file cannot be opened.
    """

    def __init__(self, paths: Sequence[Any]) -> None:
        if not paths:
            raise SemanticError("`source=` is an empty list; give the path of a file for each image")
        for path in paths:
            if not isinstance(path, (str, os.PathLike)):
                raise SemanticError(
                    f"a list as a source has paths of files, not {described(path)}; arrays, one for each argument, are a tuple"
                )
        self.paths = [os.path.abspath(path) for path in paths]
        first, *rest = map(_facts, self.paths)
        for path, facts in zip(self.paths[1:], rest, strict=True):
            _check_alike(path, facts, first)
        self.shape, self.dtype, chunks = (len(paths), *first[0]), first[1], first[2]
        self.chunks = chunks and (1, *chunks)

    def __getitem__(self, place: Any) -> Array:
        first, *rest = place if isinstance(place, tuple) else (place,)
        inner = tuple(rest) or ...
        if first is not Ellipsis and not isinstance(first, slice):
            points = opened(self.paths[first])[inner]
            return together(np.asarray(points), mapping(points) is not None)
        paths = self.paths if first is Ellipsis else self.paths[first]
        points = opened(paths[0])[inner]
        result = reused((len(paths), *points.shape), self.dtype)
        result[0] = points
        for number, path in enumerate(paths[1:], 1):
            result[number] = opened(path)[inner]
        return result


def source_of(source: Any) -> Any:
    """Return an array to read, as for `opened`, or the array of a list of files."""
    return StackedFiles(source) if isinstance(source, list) else opened(source)


def arrays_of(source: Any) -> Iterator[Any]:
    """Give the arrays of a source: itself, or those of a list of files, one open at a time."""
    return map(opened, source.paths) if isinstance(source, StackedFiles) else iter([source])


def _facts(path: str) -> tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...] | None]:
    """Return the shape, dtype and chunks of an array in a file."""
    array = opened(path)
    return tuple(array.shape), np.dtype(array.dtype), getattr(array, "chunks", None)


def _check_alike(path: str, facts: Sequence[Any], first: Sequence[Any]) -> None:
    """Check that an array of a list of files has the shape and dtype of the first one."""
    one, other = (f"{'×'.join(map(str, shape))} {dtype}" for shape, dtype, _ in (facts, first))
    if one != other:
        raise SemanticError(
            f"{path} has {one}, and the first file of the list {other}: they are stacked, so give files of one shape and dtype"
        )
