"""Asynchronous evaluation: `gp.submit`, `Field.fetch`, and page-locked memory for fast copies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError, SemanticError, described
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.engine.evaluate import Computation, copy_into
from gpuop.engine.interop import unfit
from gpuop.ir.layout import interleaved
from gpuop.ir.types import FieldType, Shape
from gpuop.runtime.base.backend import Array, Backend, Buffer, download
from gpuop.runtime.base.current_queue import queue_of
from gpuop.runtime.base.device_sources import Shared
from gpuop.runtime.base.host_arrays import array_of, stored
from gpuop.runtime.devices import current
from gpuop.runtime.queues import Event

READING = ("results", "high")  # the queue that reads results, concurrently with work that is enqueued after them


def submit(*fields: Field) -> Event:
    """Evaluate fields together without waiting, as `gp.evaluate` does; the values stay on the device, where the fields use them.

        done = gp.submit(edges, mask)
        ...
        edges_array, mask_array = done.result()      # or: await done

    Args:
        fields: one Field or several.

    Returns:
        An Event.

    Raises:
        SemanticError: no Field, or one without values: a sensor, a state, an argument of a pipeline.
        CompileError: the device's compiler refuses a kernel.
        DeviceError: no device works, its memory does not suffice, or it lacks a type that a kernel uses.
    """
    if not fields:
        raise SemanticError("submit wants at least one Field")
    for f in fields:
        if not isinstance(f, Field):
            raise SemanticError(f"submit wants Fields, not {described(f)}")
    queue = current()
    computation = Computation([f.node for f in fields], queue)
    began = queue.record()
    buffers = computation.run()
    kinds = [f.type for f in fields]
    return Event(queue, began, queue.record(), partial(_arrays, queue, kinds, buffers))


def _arrays(queue: Backend, kinds: Sequence[FieldType], buffers: Sequence[Buffer]) -> Any:
    """The arrays of buffers whose values are computed; a single array for a single buffer."""
    reading = queue_of(queue, READING)
    arrays = [array_of(kind, reading.download(kind, buffer)) for kind, buffer in zip(kinds, buffers, strict=True)]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def fetch(field: Field, out: Array | None) -> Event:
    """Evaluate a field and copy its values to the host, without waiting: `Field.fetch`."""
    queue, kind = current(), field.type
    if out is None:
        out = pinned(kind.array_shape, kind.array_dtype)
    wrong = _unfit(out, kind)
    if wrong:
        raise SemanticError(f"fetch: {wrong}")
    computation = Computation([field.node], queue)
    began = queue.record()
    (buffer,) = computation.run()
    _copy(queue, kind, buffer, out)
    return Event(queue, began, queue.record(), lambda: out)


def _copy(queue: Backend, kind: FieldType, buffer: Buffer, out: Array) -> None:
    """Copy planes to a host array, where the elements of a tensor are contiguous."""
    if not queue.only_enqueues:
        out[...] = download(kind, buffer, queue)
        return
    if kind.planes > 1:
        planes, buffer = buffer, queue.empty(kind)
        folded = kind.folded
        copy_into(Shared(queue, buffer, interleaved(folded)), Shared(queue, planes, None), folded)
    queue.fetch(kind, buffer, stored(kind, out))


def _unfit(out: Any, kind: FieldType) -> str:
    """The reason why values cannot be fetched into an array; empty if they can."""
    if not isinstance(out, np.ndarray):
        return f"`out=` takes a NumPy array, not {described(out)}"
    wrong = unfit(out, kind)
    return wrong or ("" if out.flags.c_contiguous else "`out=` takes a contiguous array, in C order")


@hinted
def pinned(shape: Any, dtype: Any = "float32") -> Array:
    """A host array for `fetch(out=…)`: in page-locked memory if the device in use is a CUDA device.

    Copies to page-locked memory overlap with work of the host and of other queues. It is slow to allocate and reduces the
    memory of all programs: allocate few arrays, and use them again. On other devices it is ordinary, page-aligned memory.

    Args:
        shape: an int or a tuple.
        dtype: a NumPy dtype or its name; "unorm8" is uint8.

    Returns:
        A NumPy array; its contents are undefined.

    Raises:
        SemanticError: a negative extent, or a dtype that fields cannot have.
        DeviceError: no device works, or the host has no such memory.
    """
    extents, element = Shape(shape), FieldType((), (), dtype).array_dtype
    nbytes, device = extents.points * element.itemsize, current()
    try:
        memory = device.host_memory(nbytes)
    except (MemoryError, OverflowError, ValueError):
        shown = f"{'×'.join(map(str, extents))} {element}".strip()
        raise DeviceError(f"the host has no memory for an array of {shown} ({nbytes} bytes)") from None
    return memory.view(element).reshape(extents)
