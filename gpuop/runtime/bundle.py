"""Compiled plans in files: a zip of a plan's launches for several targets, which runs without what it was recorded from.

`bundle.json` has the types of values, arguments and results, and for each target its launches and the buffers they share.
Beside it lie the texts, CUDA's binaries (a cubin for each architecture, PTX for those to come), and the constants.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.codegen.dialect import Source
from gpuop.codegen.targets import generate
from gpuop.errors import CompileError, DeviceError, SemanticError
from gpuop.fusion.buffers import allocation
from gpuop.fusion.plan import Plan
from gpuop.fusion.targets import plan_for
from gpuop.ir.kernel import Opaque
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.runtime.backend import NO_BUNDLES, Array
from gpuop.runtime.files import Path, replacing
from gpuop.runtime.nvrtc import compile_cuda

FORMAT = "gpuop bundle"
VERSION = 1
HEAD = "bundle.json"
ENDINGS = {"opencl": "cl", "cuda": "cu"}


@dataclass(frozen=True)
class Step:
    """A launch: its text, CUDA's binaries of it by kind, and the values that its arguments stand for."""

    source: Source
    values: tuple[int, ...]
    binaries: Mapping[str, bytes]


@dataclass(frozen=True)
class Code:
    """The launches for a target, and the buffers of what they write."""

    steps: tuple[Step, ...]
    buffers: tuple[FieldType, ...]
    buffer_of: Mapping[int, int]


@dataclass(frozen=True)
class Contents:
    """What a bundle holds. Values are numbers.

    Attributes:
        arguments: names, values (-1: nothing depends on it) and types, in order.
        constants: the values that were known when it was made.
        types: of arguments, constants and results.
        scalars: the constants that are passed by value.
        results: what it computes; `several` says whether as a tuple.
        code: by the name of a target, as "opencl" or "cuda:sm_90".
    """

    name: str
    arguments: tuple[tuple[str, int, FieldType], ...]
    constants: Mapping[int, Array]
    types: Mapping[int, FieldType]
    scalars: frozenset[int]
    results: tuple[int, ...]
    several: bool
    code: Mapping[str, Code]


# --- making -------------------------------------------------------------------------------------------------------------


def compiled(plan: Plan, targets: Sequence[Target]) -> dict[str, Code]:
    """A plan's code for each target, with PTX for the newest architecture.

    Raises:
        SemanticError: part of the plan runs on the host, or repeats.
        CompileError, DeviceError: CUDA's compiler refuses the text, or knows no such architecture.
    """
    for step in plan.steps:
        if isinstance(step.kernel, Opaque):
            raise SemanticError(
                f"a bundle holds kernels, and `{step.kernel.name}` {step.kernel.apart}", step.kernel.loc
            )
    newest = max(target.architecture for target in targets)
    return {str(target): _code(plan_for(plan, target), target, newest) for target in targets}


def _code(plan: Plan, target: Target, newest: int) -> Code:
    memory = allocation(plan)
    kinds = () if target.backend != "cuda" else ("cubin", "ptx") if target.architecture == newest else ("cubin",)
    steps = []
    for step in plan.steps:
        source = generate(step.kernel, target)
        binaries = {kind: _binary(source, f"sm_{target.architecture}", kind) for kind in kinds}
        steps.append(Step(source, (*step.inputs, *step.outputs), binaries))
    return Code(tuple(steps), memory.kinds, memory.of)


def _binary(source: Source, architecture: str, kind: str) -> bytes:
    try:
        return compile_cuda(source.text, architecture, kind)
    except RuntimeError as refused:
        raise CompileError(f"NVRTC refused the kernel {source.entry}:\n{refused}", source.numbered()) from None


def write(path: Path, contents: Contents) -> None:
    """Write a bundle, replacing the file at once."""
    members = {f"constants/{v}.npy": _npy(array) for v, array in contents.constants.items()}
    for target, code in contents.code.items():
        for n, step in enumerate(code.steps):
            members[_place(target, n, ENDINGS[target.split(":")[0]])] = step.source.text.encode()
            members |= {_place(target, n, kind): data for kind, data in step.binaries.items()}
    members[HEAD] = json.dumps(_head(contents), indent=1).encode()
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            archive.writestr(
                zipfile.ZipInfo(name), members[name], zipfile.ZIP_DEFLATED
            )  # no date: equal bundles are equal


def _place(target: str, number: int, ending: str) -> str:
    return f"{target.replace(':', '_')}/{number}.{ending}"


def _npy(array: Array) -> bytes:
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    return data.getvalue()


def _head(contents: Contents) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": contents.name,
        "arguments": [[name, v, _type(kind)] for name, v, kind in contents.arguments],
        "constants": sorted(contents.constants),
        "types": {str(v): _type(kind) for v, kind in contents.types.items()},
        "scalars": sorted(contents.scalars),
        "results": contents.results,
        "several": contents.several,
        "targets": {target: _described(code) for target, code in contents.code.items()},
    }


def _type(kind: FieldType) -> list[Any]:
    return [kind.field_shape, kind.tensor_shape, kind.dtype]


def _described(code: Code) -> dict[str, Any]:
    return {
        "buffers": [_type(kind) for kind in code.buffers],
        "buffer_of": {str(v): buffer for v, buffer in code.buffer_of.items()},
        "steps": [
            {
                "entry": step.source.entry,
                "threads": step.source.threads,
                "group": step.source.group,
                "arguments": [[p.hint, _type(p.type), p.by_value] for p in step.source.arguments],
                "fills": {str(k): fill for k, fill in step.source.fills.items()},
                "needs": sorted(step.source.needs),
                "values": step.values,
                "binaries": sorted(step.binaries),
            }
            for step in code.steps
        ],
    }


# --- reading ------------------------------------------------------------------------------------------------------------


def read(path: Path) -> Contents:
    """What a bundle holds.

    Raises:
        SemanticError: it is no bundle, or it is damaged.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise SemanticError(f"{name} is no bundle that `gpuop compile` wrote, or it is cut off")
            with zipfile.ZipFile(file) as archive:
                return _contents(name, archive)
    except FileNotFoundError:
        raise SemanticError(f"there is no file {name}; `gpuop compile` writes bundles") from None
    except (ValueError, TypeError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as damaged:
        raise SemanticError(f"{name} is damaged: {damaged}; write it anew with `gpuop compile`") from None


def _contents(name: str, archive: zipfile.ZipFile) -> Contents:
    head = json.loads(archive.read(HEAD)) if HEAD in archive.namelist() else None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise SemanticError(f"{name} is a zip file, but no bundle that `gpuop compile` wrote")
    if head["version"] != VERSION:
        raise SemanticError(
            f"{name} has version {head['version']} of the format, and this gpuop reads version {VERSION}; write it anew"
        )
    constants = {
        v: np.load(io.BytesIO(archive.read(f"constants/{v}.npy")), allow_pickle=False) for v in head["constants"]
    }
    return Contents(
        str(head["name"]),
        tuple((str(argument), int(v), FieldType(*kind)) for argument, v, kind in head["arguments"]),
        constants,
        {int(v): FieldType(*kind) for v, kind in head["types"].items()},
        frozenset(head["scalars"]),
        tuple(head["results"]),
        bool(head["several"]),
        {target: _read_code(archive, target, code) for target, code in head["targets"].items()},
    )


def _read_code(archive: zipfile.ZipFile, target: str, code: dict[str, Any]) -> Code:
    steps = []
    for n, step in enumerate(code["steps"]):
        source = Source(
            step["entry"],
            archive.read(_place(target, n, ENDINGS[target.split(":")[0]])).decode(),
            tuple(step["threads"]),
            tuple(step["group"]),
            tuple(FieldParam(hint, FieldType(*kind), by_value) for hint, kind, by_value in step["arguments"]),
            {int(k): fill for k, fill in step["fills"].items()},
            needs=frozenset(step["needs"]),
        )
        binaries = {kind: archive.read(_place(target, n, kind)) for kind in step["binaries"]}
        steps.append(Step(source, tuple(step["values"]), binaries))
    buffers = tuple(FieldType(*kind) for kind in code["buffers"])
    return Code(tuple(steps), buffers, {int(v): b for v, b in code["buffer_of"].items()})


# --- choosing -----------------------------------------------------------------------------------------------------------


def code_for(contents: Contents, target: Target) -> tuple[Code, str | None]:
    """The code that runs on a device, and the kind of its binaries: cubins of its major architecture, else PTX.

    Raises:
        DeviceError: there is none.
    """
    if target.backend != "cuda":
        if target.backend in contents.code:
            return contents.code[target.backend], None
        raise _missing(contents, target)
    built = {int(name.partition(":sm_")[2]): code for name, code in contents.code.items() if name.startswith("cuda")}
    older = [number for number in built if number <= target.architecture]
    same = [number for number in older if number // 10 == target.architecture // 10]
    portable = [number for number in older if all("ptx" in step.binaries for step in built[number].steps)]
    if same:
        return built[max(same)], "cubin"
    if portable:
        return built[max(portable)], "ptx"
    raise _missing(contents, target)


def _missing(contents: Contents, target: Target) -> DeviceError:
    if target.backend == "reference":
        return DeviceError(NO_BUNDLES.format(target))
    wanted = f"sm_{target.architecture}" if target.architecture else target.backend
    return DeviceError(
        f"bundle `{contents.name}` has no code for {target}: it has {', '.join(contents.code)}; "
        f"add it with `gpuop compile --targets {wanted},…`"
    )
