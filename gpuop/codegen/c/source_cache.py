"""JSON form of sources, so that other processes need not generate them again."""

from __future__ import annotations

from typing import Any

from gpuop.base.cache.disk_memo import DiskMemo
from gpuop.base.errors import Loc
from gpuop.codegen.c.dialect import Source
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import FieldType


def _written(source: Source) -> list[Any]:
    users = list(dict.fromkeys(loc.file for loc in source.lines.values()))
    return [
        source.entry,
        source.text,
        source.threads,
        source.group,
        [(p.hint, p.type.field_shape, p.type.tensor_shape, p.type.dtype, p.by_value) for p in source.arguments],
        source.inputs,
        list(source.fills.items()),
        users,
        [(n, users.index(loc.file), loc.line) for n, loc in source.lines.items()],
        sorted(source.needs),
        source.shared,
    ]


def _read(facts: list[Any]) -> Source:
    entry, text, threads, group, arguments, inputs, fills, users, lines, needs, shared = facts
    return Source(
        entry,
        text,
        tuple(threads),
        tuple(group),
        tuple(FieldParam(hint, FieldType(*kind), by_value) for hint, *kind, by_value in arguments),
        inputs,
        dict(fills),
        {n: Loc(users[file], line) for n, file, line in lines},
        frozenset(needs),
        tuple(shared),
    )


SOURCES = DiskMemo("source", _written, _read)
