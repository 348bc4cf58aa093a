"""What a stream has done, in a file beside its result: a line for each chunk, written behind it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.errors import SemanticError
from gpuop.pipelines.window_parts import WindowPart
from gpuop.streaming.stream_identity import differences
from gpuop.windows.footprint import Place

ENDING = ".gpuop-stream"
Key = tuple[int, Place]  # a stage and a chunk


class Journal:
    """The lines of a file that one process writes.

    Args:
        path: of the file; None keeps nothing.
        told: what tells this stream from others, as text.
        resume: go on where a file of the same stream ends.

    Attributes:
        done: chunks that were written, with what they gave of a stage, or a checksum for each result.

    Raises:
        SemanticError: the file is of another stream, or another process writes it.
    """

    def __init__(self, path: str | None, told: Mapping[str, str], resume: bool) -> None:
        self.path, self.file, self.done, self.noted = path, None, dict[Key, Any](), False
        if path is None:
            return
        self.file = open(path, "ab+", buffering=0)  # noqa: SIM115 - closed by `close`
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise SemanticError(f"another process streams to this file: it has {path}") from None
        self._begin(told, resume)

    def _begin(self, told: Mapping[str, str], resume: bool) -> None:
        assert self.file is not None
        self.file.seek(0)
        first, *lines = self.file.read().split(b"\n")
        if resume and lines:
            self._check(first, told)
            self.noted = len(lines) > 1
            for line in lines[:-1]:  # behind the last newline is what was not written whole
                stage, place, facts = json.loads(line)
                self.done[stage, tuple(place)] = facts
            self.file.truncate(self.file.seek(0, os.SEEK_END) - len(lines[-1]))
        else:
            self.file.truncate(0)
            self.file.write(json.dumps(told).encode() + b"\n")

    def _check(self, first: bytes, told: Mapping[str, str]) -> None:
        """That the file is of the same stream."""
        assert self.file is not None
        try:
            others = differences(json.loads(first), told)
        except ValueError:
            others = "what it begins with"
        if others:
            self.file.close()
            raise SemanticError(
                f"{self.path} is of another stream, as these differ: {others}; leave out `resume=` to begin anew"
            )

    @property
    def resumed(self) -> bool:
        """Whether something was done before."""
        return bool(self.done)

    def note(self, stage: int, place: Place, facts: Iterable[Any]) -> None:
        """A chunk is done: one write, which is whole or not at all."""
        if self.file is not None:
            self.noted = True
            self.file.write(json.dumps([stage, place, list(facts)]).encode() + b"\n")

    def note_parts(self, stage: int, place: Place, parts: Sequence[WindowPart]) -> None:
        """A chunk of a stage is done, and these are what it gave."""
        self.note(stage, place, map(_plain, parts))

    def parts(self, stage: int, place: Place, like: Sequence[WindowPart]) -> tuple[WindowPart, ...]:
        """What a chunk gave of a stage."""
        return tuple(
            replace(part, pieces=_pieces(plain)) for part, plain in zip(like, self.done[stage, place], strict=True)
        )

    def close(self, finished: bool) -> None:
        """Let go of the file, which nobody needs any more if all is done, or nothing."""
        if self.file is not None:
            if (finished or not self.noted) and self.path is not None:
                os.unlink(self.path)
            self.file.close()


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
