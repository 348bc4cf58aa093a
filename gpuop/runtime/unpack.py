"""Bundles from files: plans whose kernels are compiled, and which of them runs on a device."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.codegen.dialect import Source
from gpuop.errors import DeviceError, SemanticError
from gpuop.fusion.graph import Program
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.limits import LEAST, Limits
from gpuop.fusion.plan import Plan
from gpuop.fusion.step import Step
from gpuop.ir.kernel import Domain, Kernel, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType, Shape
from gpuop.runtime.backend import NO_BUNDLES
from gpuop.runtime.bundle import FORMAT, HEAD, VERSION, Interface
from gpuop.runtime.execute import Prebuilt
from gpuop.runtime.files import Path


@dataclass(frozen=True)
class Contents:
    """What a bundle holds.

    Attributes:
        code: a plan by the name of its target, as "opencl" and "cuda:sm_90".
        portable: the newest architecture, and a plan of PTX, which later ones run too; None where there is no CUDA.
    """

    interface: Interface
    code: Mapping[str, Plan]
    portable: tuple[int, Plan] | None


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
                return _contents(archive, _head(name, archive))
    except FileNotFoundError:
        raise SemanticError(f"there is no file {name}; `gpuop compile` writes bundles") from None
    except IsADirectoryError:
        raise SemanticError(f"{name} is a folder; name the file that `gpuop compile` wrote") from None
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        EOFError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
    ) as damaged:
        raise SemanticError(f"{name} is damaged: {damaged}; write it anew with `gpuop compile`") from None


def _head(name: str, archive: zipfile.ZipFile) -> dict[str, Any]:
    head = json.loads(archive.read(HEAD)) if HEAD in archive.namelist() else None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise SemanticError(f"{name} is a zip file, but no bundle that `gpuop compile` wrote")
    if head["version"] != VERSION:
        raise SemanticError(
            f"{name} has version {head['version']} of the format, and this gpuop reads version {VERSION}; write it anew"
        )
    return head


def _contents(archive: zipfile.ZipFile, head: dict[str, Any]) -> Contents:
    arrays = {v: io.BytesIO(archive.read(f"constants/{v}.npy")) for v in head["constants"]}
    interface = Interface(
        str(head["name"]),
        tuple((str(argument), int(v), FieldType(*kind)) for argument, v, kind in head["arguments"]),
        {v: np.load(data, allow_pickle=False) for v, data in arrays.items()},
        frozenset(head["scalars"]),
        bool(head["several"]),
    )
    plans = head["targets"]
    code = {name: _plan(archive, plan, "cubin" if name.startswith("cuda") else None) for name, plan in plans.items()}
    newest = plans.get(f"cuda:sm_{head['newest']}")
    return Contents(interface, code, newest and (int(head["newest"]), _plan(archive, newest, "ptx")))


# --- plans --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Planned(Part):
    """A part of an iteration whose plan was made before."""

    ready: Plan

    def plan(self, limits: Limits) -> Plan:
        return self.ready


def _plan(archive: zipfile.ZipFile, given: dict[str, Any], binary: str | None) -> Plan:
    types = {int(v): FieldType(*kind) for v, kind in given["types"].items()}
    program = Program({}, (), tuple(given["wanted"]), types, (), {})
    steps = []
    for step in given["steps"]:
        kernel = _iteration(archive, step, binary) if "repeat" in step else _prebuilt(archive, step, binary)
        steps.append(Step(kernel, tuple(step["inputs"]), tuple(step["outputs"]), ()))
    return Plan(program, tuple(steps), (), LEAST)


def _prebuilt(archive: zipfile.ZipFile, step: dict[str, Any], binary: str | None) -> Kernel:
    params, count = _parameters(step["arguments"]), len(step["inputs"])
    source = Source(
        step["entry"],
        archive.read(f"{step['code']}.text").decode(),
        tuple(step["threads"]),
        tuple(step["group"]),
        params,
        count,
        {int(k): fill for k, fill in step["fills"].items()},
        needs=frozenset(step["needs"]),
    )
    code = archive.read(f"{step['code']}.{binary}") if binary else None
    outputs = tuple(map(Output, params[count:]))
    return Prebuilt(step["name"], params[:count], outputs, Domain(Shape()), (), source=source, binary=code)


def _iteration(archive: zipfile.ZipFile, step: dict[str, Any], binary: str | None) -> Kernel:
    def part(given: dict[str, Any]) -> Part:
        plan = _plan(archive, given["plan"], binary)
        return _Planned(plan.program, {int(v): position for v, position in given["given"].items()}, plan)

    given = step["repeat"]
    return Iteration(
        step["name"],
        _parameters(given["inputs"]),
        tuple(map(Output, _parameters(given["outputs"]))),
        Domain(Shape()),
        (),
        turn=part(given["turn"]),
        until=given["until"] and part(given["until"]),
        times=given["times"],
        every=given["every"],
    )


def _parameters(given: list[Any]) -> tuple[FieldParam, ...]:
    return tuple(FieldParam(hint, FieldType(*kind), by_value) for hint, kind, by_value in given)


# --- choosing -----------------------------------------------------------------------------------------------------------


def plan_on(contents: Contents, target: Target) -> Plan:
    """The plan for a device: on CUDA cubins of its major architecture, else PTX.

    Raises:
        DeviceError: there is none.
    """
    built = {int(name.partition(":sm_")[2]): plan for name, plan in contents.code.items() if name.startswith("cuda")}
    same = [n for n in built if n <= target.architecture and n // 10 == target.architecture // 10]
    if same:
        return built[max(same)]
    if contents.portable is not None and contents.portable[0] <= target.architecture:
        return contents.portable[1]
    if target.backend in contents.code and target.backend != "cuda":
        return contents.code[target.backend]
    if target.backend == "reference":
        raise DeviceError(NO_BUNDLES.format(target))
    wanted = f"sm_{target.architecture}" if target.architecture else target.backend
    raise DeviceError(
        f"bundle `{contents.interface.name}` has no code for {target}: it has {', '.join(contents.code)}; "
        f"add it with `gpuop compile --targets {wanted},…`"
    )
