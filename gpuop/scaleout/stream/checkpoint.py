"""The checkpoint of a stream, in a file beside its result: a line for each chunk, written after it, and for an image's values."""

from __future__ import annotations

import base64
import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO, Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.system import lock, remove_open
from gpuop.engine.jit.window_stages import WindowPart
from gpuop.fusion.windows.footprint import Place
from gpuop.runtime.base.backend import Array
from gpuop.scaleout.stream.identity import differences
from gpuop.scaleout.stream.stores import HDF5, IN_ZARR, file_of, in_file

ENDING = ".gpuop-stream"
Key = tuple[int, Place]  # a stage and a chunk


def beside(out: Any) -> list[str]:
    """Return the checkpoint files of a result in a file: the first one has the lines.

    They lie beside the file, or the zarr, of the result; an HDF5 file has one for each array, and one that locks the
    file for a single writing stream.
    """
    file = file_of(out)
    if file is None:
        return []
    path = os.path.realpath(file)
    if match := IN_ZARR.fullmatch(path):
        return [_beside(match[1], match[2])]
    _, name, kind = in_file(out) if isinstance(out, (str, os.PathLike)) else ("", "", "")
    return [_beside(path, name or "data"), _beside(path)] if kind in HDF5 else [_beside(path)]


def _beside(path: str, name: str | None = None) -> str:
    return path + (":" + name.replace("/", ":") if name else "") + ENDING


def locked(path: str) -> IO[bytes]:
    """Open a file that one stream locks at a time.

    Raises:
        SemanticError: another stream has it, or it is a link, which may lead anywhere.
        OSError: there is no such folder.
    """
    if not os.path.isdir(folder := os.path.dirname(path)):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    while True:
        file = _opened(path)
        try:
            lock(file)
        except BlockingIOError:
            file.close()
            raise SemanticError(f"another process streams to this file: it has {path}") from None
        except OSError:  # no locks on this system
            return file
        if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return file
        file.close()  # its owner finished meanwhile, and removed it


def _opened(path: str) -> IO[bytes]:
    """Open a file for appending; whoever may write to the folder could have put a link in its place."""

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)

    try:
        return open(path, "ab+", buffering=0, opener=opener)
    except OSError:
        if os.path.islink(path):
            raise SemanticError(
                f"{path} is a link, but the checkpoint of a stream is a file: remove the link"
            ) from None
        raise


class Checkpoint:
    """The lines of a file that one process writes.

    Args:
        paths: a file beside each result, locked by this stream: the first one has the lines. Without paths nothing is
            written.
        identity: the identity of the stream, as text.
        resume: keep the lines for later streams, and continue after those of an earlier one with the same identity,
        if all results exist.

    Attributes:
        done: written chunks, with their parts for a stage or a checksum for each result; images, with their values.
        noted: whether there are any.

    Raises:
        SemanticError: the file is of another stream, or another process writes to a result.
    """

    def __init__(self, paths: Sequence[str], identity: Mapping[str, str], resume: bool, there: bool) -> None:
        self.files, self.done, self.noted, self.stays = list[IO[bytes]](), dict[Key, Any](), False, resume
        try:
            for path in paths:
                self.files.append(locked(path))
            if paths:
                self._begin(self.files[0], identity, resume and there)
        except BaseException:
            self._let_go([file for file in self.files if not os.fstat(file.fileno()).st_size])
            raise

    def _begin(self, file: IO[bytes], identity: Mapping[str, str], resume: bool) -> None:
        file.seek(0)
        first, *lines = file.read().split(b"\n")
        if resume and lines:
            _check(file.name, first, identity)
            self.noted = len(lines) > 1
            for line in lines[:-1]:  # after the last newline: an incomplete line
                with suppress(ValueError, TypeError, RecursionError):  # a damaged line: its chunk is computed again
                    stage, place, facts = json.loads(line)
                    self.done[stage, tuple(place)] = facts
            file.truncate(file.seek(0, os.SEEK_END) - len(lines[-1]))
        else:
            file.truncate(0)
            file.write(json.dumps(identity).encode() + b"\n")

    @property
    def resumed(self) -> bool:
        """Return whether an earlier stream has written lines."""
        return bool(self.done)

    def note(self, stage: int, place: Place, facts: Iterable[Any]) -> None:
        """Note a finished chunk, in one write, which is whole or not at all."""
        if self.files:
            self.noted = True
            self.files[0].write(json.dumps([stage, place, list(facts)]).encode() + b"\n")

    def note_parts(self, stage: int, place: Place, parts: Sequence[WindowPart]) -> None:
        """Note the parts of a stage from a chunk."""
        plain = ([[region, [*map(as_text, piece)]] for region, piece in part.pieces.items()] for part in parts)
        self.note(stage, place, plain)

    def parts(self, stage: int, place: Place, like: Sequence[WindowPart]) -> tuple[WindowPart, ...]:
        """Return the parts of a stage from a chunk."""
        return tuple(
            replace(part, pieces=_pieces(plain)) for part, plain in zip(like, self.done[stage, place], strict=True)
        )

    def values(self, stage: int) -> Iterator[tuple[Place, list[Array]]]:
        """Give the images with values, and these."""
        return ((image, [*map(_array, texts)]) for (of, image), texts in self.done.items() if of == stage)

    def close(self, finished: bool) -> None:
        """Close the files; the first one stays if it is needed: the stream is unfinished, or `resume` keeps it."""
        self._let_go(self.files[1:] if self.noted and (self.stays or not finished) else self.files)

    def _let_go(self, unneeded: Sequence[IO[bytes]]) -> None:
        for file in unneeded:
            remove_open(file)
        for file in self.files:
            file.close()


def _check(path: str, first: bytes, identity: Mapping[str, str]) -> None:
    """Check that a file with this beginning is of the same stream."""
    try:
        others = differences(json.loads(first), identity)
    except (ValueError, TypeError, AttributeError, RecursionError):
        others = "what it begins with"
    if others:
        raise SemanticError(
            f"{path} is of another stream, as these differ: {others}; delete the result, or this file, and `resume=True` begins "
            "anew"
        )


def as_text(array: Any) -> list[Any]:
    """Return an array as JSON."""
    array = np.asarray(array)
    return [array.dtype.str, array.shape, base64.b64encode(array.tobytes()).decode()]


def _array(text: Any) -> Array:
    dtype, shape, values = text
    return np.frombuffer(base64.b64decode(values), np.dtype(dtype)).reshape(shape)


def _pieces(plain: Any) -> dict[Any, Any]:
    return {tuple(map(tuple, region)): tuple(map(_array, piece)) for region, piece in plain}
