"""Format of bundles: a zip file of plans for several targets, independent of the recorded function.

`bundle.json` has arguments, results, the types of values, and for each target its launches in order, those of iterations
within. The other members are the texts, the CUDA binaries (for each architecture a cubin, and PTX for later ones), and the
constants; kernels are numbered in order. Nothing is compressed. `reading.py` reads it. Numbers that depend on sizes, which are
known at each call, are objects (`dynamic_sizes.py`); `range` is the range of these sizes.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.cache.atomic_files import Path, replacing
from gpuop.base.errors import CompileError, SemanticError
from gpuop.base.records import dataclass
from gpuop.codegen.c.dialect import Source
from gpuop.codegen.generate import generate, generate_open
from gpuop.engine.bundles.dynamic_sizes import Sizes, at, ends, open_number, ranges
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.plan import Plan, plan, plan_for
from gpuop.fusion.program import Program
from gpuop.ir.dims import spelled
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.passes.dynamic_extents import Opened
from gpuop.runtime.base.backend import Array
from gpuop.runtime.base.interruptible import call_interruptibly
from gpuop.runtime.cuda.nvrtc import compile_cuda
from gpuop.runtime.tuning.chooser import limits_for

FORMAT = "gpuop bundle"
VERSION = 5
HEAD = "bundle.json"


@dataclass(frozen=True)
class Interface:
    """The arguments and results of a bundle. Values are numbers.

    Attributes:
        arguments: names, values (-1: nothing depends on it) and types, in order.
        constants: values that are fixed in the bundle; `scalars` are those that are passed by value.
        results: the types of the results.
        several: True if the results are a tuple.
        sizes: the stand-ins of open extents.
    """

    name: str
    arguments: tuple[tuple[str, int, FieldType], ...]
    constants: Mapping[int, Array]
    scalars: frozenset[int]
    results: tuple[FieldType, ...]
    several: bool
    sizes: Sizes = ()


Recorded = tuple[Interface, Program]


def write(
    path: Path, recorded: Recorded, targets: Sequence[Target], again: Callable[[Sizes], Recorded] | None = None
) -> list[int]:
    """Plan and compile a program for targets, and write the bundle; an existing file is replaced atomically.

    Args:
        again: records the program for other sizes than its stand-ins.

    Returns:
        The least and the greatest size.

    Raises:
        SemanticError: part of the program runs on the host, or a kernel is compiled for each size that is open.
        CompileError, DeviceError: the CUDA compiler refuses a kernel, or does not know an architecture.
    """
    import zipfile

    head, packings = _described(recorded, targets, recorded[0].sizes)
    head["range"] = [0, 0] if again is None else _range(head, packings, recorded[0].constants, again)
    members = {f"constants/{v}.npy": _npy(array) for v, array in recorded[0].constants.items()}
    for packing in packings:
        packing.store(members)
    head["digest"] = digest(head, members)
    members[HEAD] = json.dumps(head, indent=1).encode()
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name in sorted(members):  # no date: equal bundles are equal files
            archive.writestr(zipfile.ZipInfo(name), members[name], zipfile.ZIP_STORED)
    least_and_most: list[int] = head["range"]
    return least_and_most


def _described(recorded: Recorded, targets: Sequence[Target], sizes: Sizes) -> tuple[dict[str, Any], list[Packing]]:
    interface, program = recorded
    packings = [Packing(target, sizes, bool(interface.sizes)) for target in targets]
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": interface.name,
        "sizes": interface.sizes,
        "arguments": [[name, v, _seen(kind, sizes)] for name, v, kind in interface.arguments],
        "results": [_seen(kind, sizes) for kind in interface.results],
        "constants": [[v, described(program.types[v]), v in interface.scalars] for v in sorted(interface.constants)],
        "several": interface.several,
        "targets": {str(packing.target): packing.program(program) for packing in packings},
    }
    return head, packings


def _range(
    head: Mapping[str, Any],
    packings: Sequence[Packing],
    constants: Mapping[int, Array],
    again: Callable[[Sizes], Recorded],
) -> list[int]:
    """The widest range of sizes for which the bundle is the same as for the stand-ins."""
    extents = {n for packing in packings for n in packing.extents}
    reason = SemanticError(f"the kernels of `{head['name']}` have no extents in common; make a bundle for each size")
    for k, (least, most) in enumerate(ranges(each for packing in packings for each in packing.ranges)):
        samples = ends(least, most, len(head["sizes"]), extents)
        try:
            for sizes in samples:
                _compare(head, packings, constants, again(sizes), sizes)
        except SemanticError as wrong:
            reason = reason if k else wrong
        else:
            return [max(samples[0]), min(samples[1])]
    raise reason


def _compare(
    head: Mapping[str, Any],
    packings: Sequence[Packing],
    constants: Mapping[int, Array],
    recorded: Recorded,
    sizes: Sizes,
) -> None:
    """Raise SemanticError if the bundle for other sizes differs from that for the stand-ins."""
    other, others = _described(recorded, [packing.target for packing in packings], ())
    for one, two in zip(packings, others, strict=True):
        for (kernel, source, _), (_, text, _) in zip(one.kernels, two.kernels, strict=False):
            if source.text != text.text:
                raise SemanticError(_per_size(f"`{kernel.name}` has another text", sizes), kernel.loc)
    arrays = recorded[0].constants
    if constants.keys() != arrays.keys() or not all(np.array_equal(constants[v], arrays[v]) for v in arrays):
        raise SemanticError(_per_size(f"`{head['name']}` has other constants", sizes))
    if json.dumps(at(head, sizes)) != json.dumps({**other, "sizes": head["sizes"]}):
        raise SemanticError(_per_size(f"`{head['name']}` has other kernels, or results of other extents,", sizes))


def _per_size(what: str, sizes: Sizes) -> str:
    values = " and ".join(map(str, sizes))
    return (
        f"{what} where open extents are {values}: Python code computes with an extent, or the plan is another one for so few "
        "or so many points; write the extents, and make a bundle for each size"
    )


def digest(head: Mapping[str, Any], members: Mapping[str, bytes]) -> str:
    """A checksum of a head and its members. Anyone can compute it: it detects damage, not manipulation."""
    text = json.dumps({name: head[name] for name in head if name != "digest"}, sort_keys=True)
    whole = hashlib.sha256(text.encode())
    for name in sorted(members):
        whole.update(f"\n{name} {len(members[name])}\n".encode())
        whole.update(members[name])
    return whole.hexdigest()


def _seen(kind: FieldType, sizes: Sizes) -> list[Any]:
    """The description of a type as users see it, with the names of its dimensions."""
    return [*described(kind, sizes), spelled(kind.names)]


def _npy(array: Array) -> bytes:
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    return data.getvalue()


def last_line(facts: Mapping[str, Any]) -> str:
    """The launch of a kernel as the last line of its text, so that text and launch are checked against each other."""
    return f"// {json.dumps(facts, sort_keys=True)}\n"


def folder(target: Target) -> str:
    """The folder of a target's kernels in the archive."""
    return str(target).replace(":", "_")


def described(kind: FieldType, sizes: Sizes = ()) -> list[Any]:
    return [[open_number(n, sizes) for n in kind.field_shape], kind.tensor_shape, kind.dtype]


class Packing:
    """Describes plans for a target, by the stand-ins of sizes; `store` adds their kernels to the members of an archive.

    Attributes:
        kernels: kernels with their texts and descriptions.
        ranges: open numbers of kernels, each with its least and its greatest value.
        extents: extents of values.
    """

    def __init__(self, target: Target, sizes: Sizes, is_open: bool) -> None:
        self.target, self.sizes, self.is_open = target, sizes, is_open
        self.kernels: list[tuple[Kernel, Source, dict[str, Any]]] = []
        self.ranges: list[tuple[Any, int, int]] = []
        self.extents: set[int] = set()
        limits = limits_for(target)
        # tiles of GPUs are for large images alone, and a bundle has one plan for all sizes
        self.limits = replace(limits, target=None) if is_open and target.vector_length == 1 else limits
        self.binaries = ("cubin", "ptx") if target.backend == "cuda" else ()

    def program(self, program: Program) -> dict[str, Any]:
        return self.plan(plan(program, limits=self.limits))

    def plan(self, each: Plan) -> dict[str, Any]:
        each = plan_for(each, self.target)
        self.extents |= {n for kind in each.program.types.values() for n in kind.array_shape}
        values = {v for launch in each.launches for v in (*launch.inputs, *launch.outputs)} | set(each.program.results)
        return {
            "wanted": each.program.results,
            "types": {
                str(v): described(each.program.types[v], self.sizes) for v in sorted(values | set(each.program.leaves))
            },
            "steps": [
                {"inputs": launch.inputs, "outputs": launch.outputs, **self.kernel(launch.kernel)}
                for launch in each.launches
            ],
        }

    def kernel(self, kernel: Launchable) -> dict[str, Any]:
        if isinstance(kernel, Iteration):
            return {"name": kernel.name, "repeat": self.iteration(kernel)}
        if not isinstance(kernel, Kernel):
            raise SemanticError(f"a bundle holds kernels, and `{kernel.name}` {kernel.unfusible}", kernel.loc)
        if kernel.dynamic and self.is_open:
            source, sized = generate_open(kernel, self.target)
        else:
            source, sized = generate(replace(kernel, dynamic=frozenset()), self.target), None
        facts = {
            "name": kernel.name,
            "entry": source.entry,
            "threads": source.threads if sized is None else self.threads(source, sized),
            "group": source.group,
            "extents": [open_number(n, self.sizes) for n in source.extents],
            "arguments": self.parameters(
                (*kernel.inputs, *kernel.written)
            ),  # their own types: the text may count their points otherwise
            "fills": {str(k): fill for k, fill in source.fills.items()},
            "begins": {str(k): kernel.inputs.index(o.initial) for k, o in enumerate(kernel.outputs) if o.initial},
            "needs": sorted(source.needs),
        }
        if sized is not None:
            ranges = zip(facts["extents"], sized.least, sized.most, strict=True)
            self.ranges += [each for each in ranges if isinstance(each[0], dict)]
        self.kernels.append((kernel, source, facts))
        return facts

    def threads(self, source: Source, sized: Opened) -> list[Any]:
        """The threads along columns, rows, and layers × elements, as of `thread_counts`."""
        shape = sized.grid.shape
        ones = (1,) * (3 - len(shape))
        per_thread = (*ones, *(sized.per_thread or (1,) * len(shape)))
        together = (*ones, *(sized.together or (1,) * len(shape)))
        times = (sized.grid.elements * together[0], *together[1:])
        counts = zip((*ones, *shape), per_thread, times, source.group[::-1], strict=True)
        return [open_number(n, self.sizes, each, times, multiple) for n, each, times, multiple in counts][::-1]

    def parameters(self, params: Sequence[FieldParam]) -> list[Any]:
        return [[p.hint, described(p.type, self.sizes), p.by_value] for p in params]

    def store(self, members: dict[str, bytes]) -> None:
        for count, (_, source, facts) in enumerate(self.kernels):
            place = f"{folder(self.target)}/{count}"
            for kind in self.binaries:
                members[f"{place}.{kind}"] = _binary(source, f"sm_{self.target.architecture}", kind)
            members[f"{place}.text"] = f"{source.text}{last_line(facts)}".encode()

    def iteration(self, kernel: Iteration) -> dict[str, Any]:
        return {
            "times": kernel.times,
            "every": kernel.every,
            "inputs": self.parameters(kernel.inputs),
            "outputs": self.parameters(kernel.written),
            "turn": self.part(kernel.turn),
            "until": None if kernel.until is None else self.part(kernel.until),
        }

    def part(self, part: Part) -> dict[str, Any]:
        return {
            "given": {str(v): position for v, position in part.positions.items()},
            "plan": self.plan(part.plan(self.limits)),
        }


def _binary(source: Source, architecture: str, kind: str) -> bytes:
    try:
        arguments = source.text, architecture, kind
        return call_interruptibly(arguments, partial(compile_cuda, *arguments), architecture, source.name)
    except RuntimeError as refused:
        raise CompileError(f"NVRTC refused the kernel {source.entry}:\n{refused}", source.numbered()) from None
