"""Copies of parts of states: consecutive bytes on the host, a buffer for each part on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array, Backend, Buffer


def fetch_parts(queue: Backend, kinds: Sequence[FieldType], buffers: Sequence[Buffer], out: Array) -> None:
    """Enqueue copies to the host; they are complete when a mark that is recorded after them is reached."""
    for (kind, planes), buffer in zip(_planes(kinds, out), buffers, strict=True):
        if queue.only_enqueues:
            queue.fetch(kind, buffer, planes)
        else:
            planes[...] = queue.download(kind, buffer)


def bring_parts(queue: Backend, kinds: Sequence[FieldType], buffers: Sequence[Buffer], taken: Array) -> None:
    """Enqueue copies from the host, whose memory must not change before a mark that is recorded after them is reached."""
    for (kind, planes), buffer in zip(_planes(kinds, taken), buffers, strict=True):
        queue.bring(kind, buffer, planes)


def _planes(kinds: Sequence[FieldType], memory: Array) -> Iterator[tuple[FieldType, Array]]:
    at = 0
    for kind in kinds:
        planes = memory[at : at + kind.nbytes].view(kind.storage.numpy)
        yield kind, planes.reshape(kind.planes, kind.field_shape.points)
        at += kind.nbytes
