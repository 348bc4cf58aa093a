"""What tells a stream from others: only the same one may go on where it ended. All of it is text."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gpuop.errors import SemanticError
from gpuop.ir.values import Leaf
from gpuop.pipelines.parted import Parted
from gpuop.runtime.base.backend import Array
from gpuop.runtime.devices import current
from gpuop.streaming.chunking import Chunking
from gpuop.streaming.stacked_files import arrays_of
from gpuop.streaming.stores import mapping
from gpuop.streaming.whereabouts import Whereabouts

MOST = 1 << 28  # bytes of an array in memory that are compared
FEW = 16  # points along each axis, of arrays that are elsewhere
SHORT = 9  # numbers that are shown
DIGEST = "#"  # begins what no user would understand


def stream_identity(of: Parted, sources: Mapping[str, Any], chunking: Chunking, outs: Sequence[str]) -> dict[str, str]:
    """Each fact by what users call it."""
    told = {"the program": _digest([repr([traced.program.key for traced, _ in of.programs]).encode()])}
    told["the device"] = current().description
    for number, (name, value) in enumerate(_captured(of)):
        told[name if name not in told else f"{name} {number}"] = value
    for name, source in sources.items():
        told[f"`{name}`"] = f"{'×'.join(map(str, source.shape))} {np.dtype(source.dtype)}"
        told[f"the values of `{name}`"] = _digest(_values(each).encode() for each in arrays_of(source))
    told["`chunks=`"] = "×".join(map(str, chunking.chunk))
    told["`out=`"] = " ".join(outs)
    return told


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What differs, in words."""
    found = []
    for name in dict.fromkeys((*now, *then)):
        a, b = (str(told.get(name, "none")) for told in (then, now))
        if a != b:
            found.append(name if DIGEST in (a[:1], b[:1]) else f"{name} ({a} then, {b} now)")
    return ", ".join(found)


def _captured(of: Parted) -> Iterator[tuple[str, str]]:
    """The values that the program has of its own: of Parameters, and of arrays that it captures."""
    leaves = {
        leaf.number: leaf
        for traced, _ in of.programs
        for leaf in traced.program.leaves.values()
        if isinstance(leaf, Leaf)
    }
    for leaf in leaves.values():
        with suppress(SemanticError):  # an argument has none
            value, _ = leaf.source.read()
            kind = "Parameter" if leaf.source.role == "parameter" else "the captured array"
            text = str(value.tolist()) if value.size <= SHORT else _digest(_blocks(value))
            yield f"{kind} `{leaf.name}`" if leaf.name else kind, text


def _values(source: Any) -> str:
    """What is compared: of an array in memory all, unless it is large; of one in a file some, with its size and time."""
    if isinstance(source, np.ndarray) and mapping(source) is None:
        return _digest(_blocks(source[:: -(-source.nbytes // MOST)] if source.nbytes > MOST else source))
    middle = tuple(slice(max(n - FEW, 0) // 2, (max(n - FEW, 0)) // 2 + FEW) for n in source.shape)
    return _digest([_stamp(source).encode(), *_blocks(np.asarray(source[middle]))])


def _stamp(source: Any) -> str:
    """Of a file that nobody is known to write; of folders it says nothing."""
    path, mode = Whereabouts.of(source).path, getattr(getattr(source, "file", None), "mode", "r")
    if path is None or mode != "r" or not os.path.isfile(path):
        return ""
    found = os.stat(path)
    return f"{found.st_size} {found.st_mtime_ns}"


def _blocks(array: Array) -> Iterator[Any]:
    """An array's values, some at a time, so that none is copied as a whole."""
    flags = ["external_loop", "buffered", "zerosize_ok"]
    yield from np.nditer(array, flags, [["readonly", "contig"]], order="C", buffersize=1 << 16)  # type: ignore[call-overload]


def _digest(parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return DIGEST + digest.hexdigest()
