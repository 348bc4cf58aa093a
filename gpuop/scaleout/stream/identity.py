"""The identity of a stream, as text: only a stream with the same one may continue an earlier one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from inspect import getclosurevars, unwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Array
from gpuop.runtime.devices import current
from gpuop.scaleout.stream.alias_check import ArrayLocation
from gpuop.scaleout.stream.stacked_files import arrays_of
from gpuop.scaleout.stream.stores import mapping

if TYPE_CHECKING:
    from gpuop.scaleout.stream.stream import StreamWork

PLAIN = (bool, int, float, complex, str, list, tuple, np.generic, type(None))  # constants that are shown as they are
MOST = 1 << 28  # bytes of an array in memory that are compared
FEW = 16  # compared points along each axis, for arrays elsewhere
SHORT = 9  # numbers in a message
DIGEST = "#"  # first character of digests, which messages leave out
LONGEST = 60  # characters of a constant in a message
DETAIL = ": "  # in names, after the fact that it explains: compared only if that differs, and shown instead


def stream_identity(plan: StreamWork, outs: Sequence[str]) -> dict[str, str]:
    """Return the facts of a stream, by their names for users."""
    program = "the program"
    facts = {program: _digest([repr([traced.program.key for traced, _ in plan.of.programs]).encode()])}
    for name, value in plan.constants.items():
        if isinstance(value, PLAIN):
            text = str(value) if isinstance(value, np.generic) else repr(value)
            facts[f"{program}{DETAIL}`{name}=`"] = text if len(text) <= LONGEST else _digest([text.encode()])
    facts["the device"] = current().description
    for number, (name, text, called) in enumerate(_captured(plan)):
        name = name if name not in facts else f"{name} {number}"
        facts[name] = text
        if called:
            facts[f"{name}{DETAIL}the captured array `{called}`"] = text
    for name, source in plan.named.items():
        facts[f"`{name}`"] = f"{'×'.join(map(str, source.shape))} {np.dtype(source.dtype)}"
        values = f"the values of `{name}`"
        facts[values] = _digest(_values(each).encode() for each in arrays_of(source))
        if written := max(filter(None, map(_written, arrays_of(source))), default=None):
            facts[f"{values}{DETAIL}a file of `{name}`"] = "{1}, written {0}".format(*written)
    facts["`chunks=`"] = "×".join(map(str, plan.chunking.chunk))
    facts["`out=`"] = " ".join(outs)
    return facts


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the differing facts, in words."""
    pairs = {name: (str(then.get(name, "none")), str(now.get(name, "none"))) for name in (*now, *then)}
    differ = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    texts = []
    for name, (a, b) in differ.items():
        fact, _, detail = name.partition(DETAIL)
        explained = not detail and any(other.startswith(fact + DETAIL) for other in differ)
        if fact in differ and not explained:
            label = detail or fact
            texts.append(label if DIGEST in (a[:1], b[:1]) else f"{label} ({a} then, {b} now)")
    return ", ".join(texts)


def _captured(plan: StreamWork) -> Iterator[tuple[str, str, str]]:
    """Return the values that the program captures, from Parameters and arrays, and the variables that have these."""
    leaves = {
        leaf.number: leaf
        for traced, _ in plan.of.programs
        for leaf in traced.program.leaves.values()
        if isinstance(leaf, Leaf)
    }
    for leaf in leaves.values():
        with suppress(SemanticError):  # an argument has none
            value, _ = leaf.source.read()
            kind = "Parameter" if leaf.source.role == "parameter" else "the captured array"
            text = str(value.tolist()) if value.size <= SHORT else _digest(_blocks(value))
            called = "" if leaf.name else _called(leaf, value, plan.pipeline.function)
            yield f"{kind} `{leaf.name}`" if leaf.name else kind, text, called


def _called(leaf: Leaf, value: Array, function: Any) -> str:
    """Return the variable of a function that has an array, or a Field of it; "" if unknown."""
    try:
        variables = getclosurevars(unwrap(function))
    except TypeError:  # a callable object
        return ""
    values = {**variables.globals, **variables.nonlocals}
    return next(
        (name for name, each in values.items() if getattr(each, "node", None) is leaf or _holds(each, value)), ""
    )


def _holds(field: Any, value: Array) -> bool:
    """Return whether a Field's values may be those of this array."""
    same = isinstance(field, np.ndarray) and field.shape == value.shape
    return same and np.array_equal(field.astype(value.dtype), value)


def _values(source: Any) -> str:
    """Return the compared values: of an array in memory all, unless it is large; in a file some, with its size and time."""
    if isinstance(source, np.ndarray) and mapping(source) is None:
        return _digest(_blocks(source[:: -(-source.nbytes // MOST)] if source.nbytes > MOST else source))
    middle = tuple(slice(max(n - FEW, 0) // 2, (max(n - FEW, 0)) // 2 + FEW) for n in source.shape)
    return _digest([_stamp(source).encode(), *_blocks(np.asarray(source[middle]))])


def _stamp(source: Any) -> str:
    """Return the size and time of a file that no stream writes; nothing for folders."""
    path, mode = ArrayLocation.of(source).path, getattr(getattr(source, "file", None), "mode", "r")
    if path is None or mode != "r" or not os.path.isfile(path):
        return ""
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}"


def _written(source: Any) -> tuple[str, str] | None:
    """Return the modification time of a file, and its path."""
    if not (stamp := _stamp(source)):
        return None
    return str(datetime.fromtimestamp(int(stamp.split()[1]) / 1e9)), str(ArrayLocation.of(source).path)


def _blocks(array: Array) -> Iterator[Any]:
    """Give an array's values in blocks, so that it is not copied as a whole."""
    flags = ["external_loop", "buffered", "zerosize_ok"]
    yield from np.nditer(array, flags, [["readonly", "contig"]], order="C", buffersize=1 << 16)  # type: ignore[call-overload]


def _digest(parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return DIGEST + digest.hexdigest()
