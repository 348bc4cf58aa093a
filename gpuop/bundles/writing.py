"""Compiled plans in files: a zip of plans for several targets, which runs without what it was recorded from.

`bundle.json` has arguments, results, the types of values, and for each target its launches in order, those of iterations
within. Beside it lie the texts, CUDA's binaries (of each architecture a cubin, and PTX for later ones), and the constants;
kernels are numbered as they come. Everything is stored as it is. `unpack` reads it.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpuop.codegen.c.dialect import Source
from gpuop.codegen.generate import generate
from gpuop.errors import CompileError, SemanticError
from gpuop.fusion.for_target import plan_for
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import Program
from gpuop.ir.dims import spelled
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array
from gpuop.runtime.base.patience import patiently
from gpuop.runtime.cuda.nvrtc import compile_cuda
from gpuop.runtime.disk.files import Path, replacing
from gpuop.runtime.tuning.chooser import limits_for

FORMAT = "gpuop bundle"
VERSION = 4
HEAD = "bundle.json"


@dataclass(frozen=True)
class Interface:
    """What a bundle takes and gives. Values are numbers.

    Attributes:
        arguments: names, values (-1: nothing depends on it) and types, in order.
        constants: the values that were known when it was made; `scalars` are those that are passed by value.
        results: the types of what it gives.
        several: whether the results, which are what its plan wants, are a tuple.
    """

    name: str
    arguments: tuple[tuple[str, int, FieldType], ...]
    constants: Mapping[int, Array]
    scalars: frozenset[int]
    results: tuple[FieldType, ...]
    several: bool


def write(path: Path, interface: Interface, program: Program, targets: Sequence[Target]) -> None:
    """Plan and compile a program for targets, and write the bundle, replacing the file at once.

    Raises:
        SemanticError: part of the program runs on the host.
        CompileError, DeviceError: CUDA's compiler refuses a kernel, or knows no such architecture.
    """
    members = {f"constants/{v}.npy": _npy(array) for v, array in interface.constants.items()}
    kinds = program.types
    code = {str(t): _Packing(t, members).program(program) for t in targets}
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": interface.name,
        "arguments": [[name, v, _seen(kind)] for name, v, kind in interface.arguments],
        "results": [_seen(kind) for kind in interface.results],
        "constants": [[v, described(kinds[v]), v in interface.scalars] for v in sorted(interface.constants)],
        "several": interface.several,
        "targets": code,
    }
    head["digest"] = digest(head, members)
    members[HEAD] = json.dumps(head, indent=1).encode()
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name in sorted(members):  # no date: equal bundles are equal files
            archive.writestr(zipfile.ZipInfo(name), members[name], zipfile.ZIP_STORED)


def digest(head: Mapping[str, Any], members: Mapping[str, bytes]) -> str:
    """What says that a head and the members beside it belong together. Anyone can compute it: it finds damage, not intent."""
    told = json.dumps({name: head[name] for name in head if name != "digest"}, sort_keys=True)
    whole = hashlib.sha256(told.encode())
    for name in sorted(members):
        whole.update(f"\n{name} {len(members[name])}\n".encode())
        whole.update(members[name])
    return whole.hexdigest()


def last_line(facts: Mapping[str, Any]) -> str:
    """How a kernel is launched, as the end of its text: what is launched otherwise would not be what was written."""
    return f"// {json.dumps(facts, sort_keys=True)}\n"


def folder(target: Target) -> str:
    """Where the kernels of a target lie."""
    return str(target).replace(":", "_")


def described(kind: FieldType) -> list[Any]:
    return [kind.field_shape, kind.tensor_shape, kind.dtype]


def _seen(kind: FieldType) -> list[Any]:
    """A type as users see it, with the names of its dimensions."""
    return [*described(kind), spelled(kind.names)]


def _npy(array: Array) -> bytes:
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    return data.getvalue()


class _Packing:
    """Describes plans for a target; what they are made of goes to the members of the archive."""

    def __init__(self, target: Target, members: dict[str, bytes]) -> None:
        self.target, self.members, self.count = target, members, 0
        self.limits = limits_for(target)
        self.binaries = ("cubin", "ptx") if target.backend == "cuda" else ()

    def program(self, program: Program) -> dict[str, Any]:
        return self.plan(plan(program, limits=self.limits))

    def plan(self, made: Plan) -> dict[str, Any]:
        made = plan_for(made, self.target)
        values = {v for launch in made.launches for v in (*launch.inputs, *launch.outputs)} | set(made.program.wanted)
        return {
            "wanted": made.program.wanted,
            "types": {str(v): described(made.program.types[v]) for v in sorted(values | set(made.program.leaves))},
            "steps": [
                {"inputs": launch.inputs, "outputs": launch.outputs, **self.kernel(launch.kernel)}
                for launch in made.launches
            ],
        }

    def kernel(self, kernel: Launchable) -> dict[str, Any]:
        if isinstance(kernel, Iteration):
            return {"name": kernel.name, "repeat": self.iteration(kernel)}
        if not isinstance(kernel, Kernel):
            raise SemanticError(f"a bundle holds kernels, and `{kernel.name}` {kernel.apart}", kernel.loc)
        source, place = (
            generate(replace(kernel, dynamic=frozenset()), self.target),
            f"{folder(self.target)}/{self.count}",
        )
        self.count += 1
        for kind in self.binaries:
            self.members[f"{place}.{kind}"] = _binary(source, f"sm_{self.target.architecture}", kind)
        facts = {
            "name": kernel.name,
            "entry": source.entry,
            "threads": source.threads,
            "group": source.group,
            "arguments": _parameters((*kernel.inputs, *kernel.written)),  # not as the text may count their points
            "fills": {str(k): fill for k, fill in source.fills.items()},
            "begins": {str(k): kernel.inputs.index(o.begins) for k, o in enumerate(kernel.outputs) if o.begins},
            "needs": sorted(source.needs),
        }
        self.members[f"{place}.text"] = f"{source.text}{last_line(facts)}".encode()
        return facts

    def iteration(self, kernel: Iteration) -> dict[str, Any]:
        return {
            "times": kernel.times,
            "every": kernel.every,
            "inputs": _parameters(kernel.inputs),
            "outputs": _parameters(kernel.written),
            "turn": self.part(kernel.turn),
            "until": None if kernel.until is None else self.part(kernel.until),
        }

    def part(self, part: Part) -> dict[str, Any]:
        return {
            "given": {str(v): position for v, position in part.given.items()},
            "plan": self.plan(part.plan(self.limits)),
        }


def _parameters(params: Sequence[FieldParam]) -> list[Any]:
    return [[p.hint, described(p.type), p.by_value] for p in params]


def _binary(source: Source, architecture: str, kind: str) -> bytes:
    try:
        given = source.text, architecture, kind
        return patiently(given, partial(compile_cuda, *given), architecture, source.name)
    except RuntimeError as refused:
        raise CompileError(f"NVRTC refused the kernel {source.entry}:\n{refused}", source.numbered()) from None
