"""What a stream has done, in a file beside its result: a line for each chunk, written behind it."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any

import numpy as np

from gpuop.errors import SemanticError
from gpuop.pipelines.window_parts import WindowPart
from gpuop.streaming.stores import in_zarr
from gpuop.streaming.stream_identity import differences
from gpuop.windows.footprint import Place

ENDING = ".gpuop-stream"
Key = tuple[int, Place]  # a stage and a chunk


def locked(path: str) -> IO[bytes]:
    """A file that one stream has at a time.

    Raises:
        SemanticError: another one has it.
        OSError: there is no such folder.
    """
    if in_zarr(folder := os.path.dirname(path)):
        os.makedirs(folder, exist_ok=True)  # of a zarr whose first array is to be made
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    while True:
        file = open(path, "ab+", buffering=0)  # noqa: SIM115 - closed by who asked for it
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise SemanticError(f"another process streams to this file: it has {path}") from None
        if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return file
        file.close()  # who had it was done meanwhile, and removed it


class Journal:
    """The lines of a file that one process writes.

    Args:
        paths: of a file beside each result, which no other stream has meanwhile: the first one has the lines. Without any
            nothing is kept.
        told: what tells this stream from others, as text.
        resume: go on where a file of the same stream ends.

    Attributes:
        done: chunks that were written, with what they gave of a stage, or a checksum for each result.
        noted: whether there are such.

    Raises:
        SemanticError: the file is of another stream, or another process writes to a result.
    """

    def __init__(self, paths: Sequence[str], told: Mapping[str, str], resume: bool) -> None:
        self.files, self.done, self.noted = list[IO[bytes]](), dict[Key, Any](), False
        try:
            for path in paths:
                self.files.append(locked(path))
            if paths:
                self._begin(self.files[0], told, resume)
        except BaseException:
            self._let_go([file for file in self.files if not os.fstat(file.fileno()).st_size])
            raise

    def _begin(self, file: IO[bytes], told: Mapping[str, str], resume: bool) -> None:
        file.seek(0)
        first, *lines = file.read().split(b"\n")
        if resume and lines:
            _check(file.name, first, told)
            self.noted = len(lines) > 1
            for line in lines[:-1]:  # behind the last newline is what was not written whole
                stage, place, facts = json.loads(line)
                self.done[stage, tuple(place)] = facts
            file.truncate(file.seek(0, os.SEEK_END) - len(lines[-1]))
        else:
            file.truncate(0)
            file.write(json.dumps(told).encode() + b"\n")

    @property
    def resumed(self) -> bool:
        """Whether something was done before."""
        return bool(self.done)

    def note(self, stage: int, place: Place, facts: Iterable[Any]) -> None:
        """A chunk is done: one write, which is whole or not at all."""
        if self.files:
            self.noted = True
            self.files[0].write(json.dumps([stage, place, list(facts)]).encode() + b"\n")

    def note_parts(self, stage: int, place: Place, parts: Sequence[WindowPart]) -> None:
        """A chunk of a stage is done, and these are what it gave."""
        self.note(stage, place, map(_plain, parts))

    def parts(self, stage: int, place: Place, like: Sequence[WindowPart]) -> tuple[WindowPart, ...]:
        """What a chunk gave of a stage."""
        return tuple(
            replace(part, pieces=_pieces(plain)) for part, plain in zip(like, self.done[stage, place], strict=True)
        )

    def close(self, finished: bool) -> None:
        """Let go of the files; the first one is needed only if something is done, and not all."""
        self._let_go(self.files[1:] if self.noted and not finished else self.files)

    def _let_go(self, unneeded: Sequence[IO[bytes]]) -> None:
        for file in unneeded:
            os.unlink(file.name)
        for file in self.files:
            file.close()


def _check(path: str, first: bytes, told: Mapping[str, str]) -> None:
    """That a file, which begins so, is of the same stream."""
    try:
        others = differences(json.loads(first), told)
    except ValueError:
        others = "what it begins with"
    if others:
        raise SemanticError(
            f"{path} is of another stream, as these differ: {others}; leave out `resume=` to begin anew"
        )


def _plain(part: WindowPart) -> list[Any]:
    return [[region, [_text(array) for array in piece]] for region, piece in part.pieces.items()]


def _text(array: Any) -> list[Any]:
    array = np.asarray(array)
    return [array.dtype.str, array.shape, base64.b64encode(array.tobytes()).decode()]


def _pieces(plain: Any) -> dict[Any, Any]:
    return {
        tuple(map(tuple, region)): tuple(
            np.frombuffer(base64.b64decode(text), np.dtype(dtype)).reshape(shape) for dtype, shape, text in piece
        )
        for region, piece in plain
    }
