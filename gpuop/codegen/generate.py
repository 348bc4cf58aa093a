"""Targets by name, and generated text for them: the entry point of this folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from gpuop.base.cache.disk_memo import DiskMemo
from gpuop.base.config import config
from gpuop.base.errors import Loc, SemanticError
from gpuop.base.lru import BoundedCache
from gpuop.codegen.c.dialect import Dialect, Source
from gpuop.codegen.c.expressions import Expressions
from gpuop.codegen.c.printer import Printer, thread_counts
from gpuop.codegen.cuda.dialect import CUDA
from gpuop.codegen.opencl.dialect import CPU, OPENCL
from gpuop.codegen.opencl.vectors import VectorExpressions
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.text import content
from gpuop.ir.types import FieldType, Shape
from gpuop.passes.dynamic_extents import Opened, opened
from gpuop.passes.lowering_cache import cached_on_disk
from gpuop.passes.pipeline import lower, lowering


def _opencl(target: Target) -> Dialect:
    return CPU if target.device == "cpu" else OPENCL


EXPRESSIONS: dict[str, Callable[[Target], Expressions]] = {
    "opencl": lambda t: VectorExpressions(_opencl(t), t.vector_length if t.widening == "functions" else 1),
    "cuda": lambda t: Expressions(CUDA),
}
NEWEST = 90  # the architecture that "cuda" means where no device is asked
WARP = 32
SOURCES_KEPT = 256
SHARED = 49152  # bytes of local memory that every CUDA device gives a block
FLOATS = 8  # in a register of nearly any CPU

_sources: BoundedCache[Any, Source] = BoundedCache(SOURCES_KEPT)


def target_named(name: str) -> Target:
    """Target by name: "opencl", "opencl:cpu", "cuda", or an architecture such as "cuda:sm_75" or "sm_75".

    "opencl:cpu" uses vectors where they are correct and fast on PoCL: there they are so on other drivers too.

    Raises:
        SemanticError: there is no such target.
    """
    if name == "opencl":
        return Target("opencl")
    if name == "opencl:cpu":
        return Target("opencl", device="cpu", simd_width=FLOATS, widening="functions", has_arrays=True)
    match = re.fullmatch(r"cuda|(?:cuda:)?sm_(\d{2,3})", str(name))
    if match is None:
        raise SemanticError(
            f"there is no target {name!r}; one of opencl, opencl:cpu, cuda, or an architecture as in cuda:sm_90"
        )
    return Target("cuda", int(match[1] or NEWEST), "gpu", WARP, SHARED, has_fp16=True, widening="unrolled")


def generate(kernel: Kernel, target: Target) -> Source:
    """Lower a recorded kernel and print it, unless that was done with an equal one, and nobody wants to see the passes."""
    general = opened(kernel, target) if kernel.dynamic else None
    if general is not None and general.kernel is not None:
        return _of_size(kernel, target, general, general.kernel)
    if config.debug:
        return _generated(kernel, target)
    key = content(kernel), target, lowering()
    return _sources.find(key, lambda: cached_on_disk(SOURCES, kernel, target, partial(_generated, kernel, target)))


def generate_open(kernel: Kernel, target: Target) -> tuple[Source, Opened]:
    """The text of a kernel of dynamic fields that is for all sizes of a range, and the range.

    Raises:
        SemanticError: it is compiled for each size.
    """
    general = opened(kernel, target, streamed=False)
    if general.kernel is None:
        raise SemanticError(
            f"`{kernel.name}` is compiled for each size on {target}: {general.reason}; write the extents that are open, and make "
            "a bundle for each size",
            kernel.loc,
        )
    return _of_size(kernel, target, general, general.kernel), general


def _of_size(kernel: Kernel, target: Target, general: Opened, greatest: Kernel) -> Source:
    """The text of a kernel that gets its extents, to be launched on these."""

    def printed() -> Source:
        return _printed(general.lowered or lower(greatest, target), target)

    source = _sources.find(
        (general.key, target, lowering()), lambda: cached_on_disk(SOURCES, greatest, target, printed)
    )
    threads = thread_counts(general.threads, Shape(reversed(source.group)))
    fields = (*kernel.inputs, *kernel.written)
    return replace(source, threads=threads, arguments=fields, extents=general.values)


def _generated(kernel: Kernel, target: Target) -> Source:
    return _printed(lower(kernel, target), target)


def _printed(lowered: Kernel, target: Target) -> Source:
    return Printer(lowered, EXPRESSIONS[target.backend](target)).source()


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
        source.tables,
        sorted(source.structures),
    ]


def _read(facts: list[Any]) -> Source:
    entry, text, threads, group, arguments, inputs, fills, users, lines, needs, shared, tables, structures = facts
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
        tables,
        structures=frozenset(structures),
    )


SOURCES = DiskMemo("source", _written, _read)
