"""Bundles from files: compiled plans, and the choice of a plan for a device."""

from __future__ import annotations

import io
import keyword
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuop.base.cache.atomic_files import Path, named
from gpuop.base.errors import DeviceError, SemanticError
from gpuop.codegen.generate import target_named
from gpuop.engine.bundles.architectures import code_for
from gpuop.engine.bundles.dynamic_sizes import Sizes, position_of
from gpuop.engine.bundles.plan_reading import PassedValue, PlanReader
from gpuop.engine.bundles.writing import FORMAT, HEAD, VERSION, Interface, digest
from gpuop.fusion.plan import Plan
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import NO_BUNDLES
from gpuop.runtime.files.archive import Archive, Damaged, Foreign, opened
from gpuop.runtime.files.validated_json import Item, document

MOST_SIZE = 2**31 - 1


@dataclass(frozen=True)
class Contents:
    """The contents of a bundle.

    Attributes:
        code: a plan by the name of its target, as "opencl", "opencl:cpu" and "cuda:sm_90".
        portable: plans of PTX by their architecture; later architectures run them too.
        positions: for each axis of an argument the position of its extent among the sizes; -1 for an extent that is fixed.
        range: the least and the greatest size.
        data: the bytes of the file, if extents are open.
    """

    interface: Interface
    code: Mapping[str, Plan]
    portable: Mapping[int, Plan]
    positions: Mapping[str, Sequence[int]]
    range: Sequence[int]
    data: bytes

    def at(self, sizes: Sizes, like: Plan) -> tuple[Interface, Plan]:
        """The interface for other sizes, and the plan of the same code as one of those here."""
        plans = [(text, "cubin" if ":sm_" in text else None, plan) for text, plan in self.code.items()]
        plans += [(f"cuda:sm_{n}", "ptx", plan) for n, plan in self.portable.items()]
        text, binary = next((text, binary) for text, binary, plan in plans if plan is like)
        try:
            archive = Archive(io.BytesIO(self.data))
            interface, _, plan_of = _told(archive, Item(document(archive.read(HEAD)).value, "", sizes))
            return interface, plan_of(text, binary)
        except Damaged as damaged:
            raise SemanticError(
                f"bundle `{self.interface.name}` is damaged: {damaged}; write it anew with `gpuop compile`"
            ) from None


def read(path: Path) -> Contents:
    """Read the contents of a bundle.

    Raises:
        SemanticError: it is no bundle, or it is damaged.
    """
    name = named(path)
    try:
        with opened(name) as archive:
            head = _head(name, archive)
            sizes = head.entry("sizes").wholes(1, MOST_SIZE)
            return _contents(archive, Item(head.value, "", sizes))
    except FileNotFoundError:
        raise SemanticError(f"there is no file {name}; `gpuop compile` writes bundles") from None
    except Foreign:
        if os.path.isdir(name):
            raise SemanticError(f"{name} is a folder; name the file that `gpuop compile` wrote") from None
        raise SemanticError(f"{name} is no bundle that `gpuop compile` wrote, or it is cut off") from None
    except OSError as failed:
        raise SemanticError(f"{name} cannot be read: {failed}") from None
    except Damaged as damaged:
        raise SemanticError(f"{name} is damaged: {damaged}; write it anew with `gpuop compile`") from None


def _head(name: str, archive: Archive) -> Item:
    head = document(archive.read(HEAD)) if HEAD in archive.names else Item({})
    if head.entries().get("format", Item(None)).value != FORMAT:
        raise SemanticError(f"{name} is a zip file, but no bundle that `gpuop compile` wrote")
    version = head.entry("version").whole()
    if version != VERSION:
        raise SemanticError(
            f"{name} has version {version} of the format, and this gpuop reads version {VERSION}; write it anew"
        )
    members = {member: archive.read(member) for member in archive.names if member != HEAD}
    if head.entry("digest").value != digest(head.value, members):
        raise Damaged("it does not hold what was written")
    return head


def _contents(archive: Archive, head: Item) -> Contents:
    interface, named, plan = _told(archive, head)
    cuda = [text for text, target in named.items() if target.architecture]
    code = {text: plan(text, "cubin" if text in cuda else None) for text in named}
    portable = {named[text].architecture: plan(text, "ptx") for text in cuda}
    limits = head.entry("range").wholes(0, MOST_SIZE, 2)
    return Contents(interface, code, portable, _positions(head), limits, archive.whole() if head.sizes else b"")


def _told(archive: Archive, head: Item) -> tuple[Interface, dict[str, Target], Callable[[str, str | None], Plan]]:
    """The interface, the targets, and a function that reads the plan of a target, with a kind of binary."""
    _, _, _, name, _, _, arguments, results, constants, several, targets = head.fields(
        "format",
        "version",
        "digest",
        "name",
        "sizes",
        "range",
        "arguments",
        "results",
        "constants",
        "several",
        "targets",
    )
    given, kinds = _arguments(arguments), tuple(each.seen_kind() for each in results.members())
    known = {v: PassedValue(kind.folded) for _, v, kind in given if v >= 0}
    fixed = _constants(constants)
    if len(known) < sum(v >= 0 for _, v, _ in given) or known.keys() & fixed.keys():
        raise Damaged("arguments and constants are the same values")
    arrays = {v: archive.array(f"constants/{v}.npy", value.kind) for v, value in fixed.items()}
    scalars = frozenset(v for v, value in fixed.items() if value.by_value)
    interface = Interface(name.text(), given, arrays, scalars, kinds, several.flag(), head.sizes)
    named = {text: _target(text, item) for text, item in targets.entries().items()}
    if not named:
        raise targets.is_not("the code of a target")

    def plan(text: str, binary: str | None) -> Plan:
        made = PlanReader(archive, named[text], binary).plan(targets.entries()[text], known | fixed)
        if len(made.program.wanted) != 1 and not (interface.several and made.program.wanted):
            raise Damaged(f"`{targets.place}.{text}` gives {len(made.program.wanted)} results")
        if [made.program.types[v] for v in made.program.wanted] != [kind.folded for kind in kinds]:
            raise Damaged(f"`{targets.place}.{text}` gives others than `{results.place}`")
        return made

    return interface, named, plan


def _positions(head: Item) -> dict[str, Sequence[int]]:
    positions: dict[str, Sequence[int]] = {}
    found = set[int]()
    for each in head.entry("arguments").members():
        name, _, kind = each.members(3)
        grid, tensor, *_ = kind.members(4)
        positions[name.text()] = [*map(position_of, grid.members()), *[-1] * len(tensor.value)]
        found |= {*positions[name.value]}
    if found - {-1} != {*range(len(head.sizes))}:
        raise head.entry("sizes").is_not("the extents that arguments have")
    return positions


def _arguments(item: Item) -> tuple[tuple[str, int, FieldType], ...]:
    arguments = []
    for each in item.members():
        name, v, kind = each.members(3)
        if not name.text().isidentifier() or keyword.iskeyword(name.value):
            raise name.is_not("a Python identifier")
        arguments.append((name.text(), v.whole(-1), kind.seen_kind()))
    if len({name for name, _, _ in arguments}) < len(arguments):
        raise item.is_not("arguments of different names")
    return tuple(arguments)


def _constants(item: Item) -> dict[int, PassedValue]:
    constants = {}
    for each in item.members():
        v, kind, by_value = each.members(3)
        constants[v.whole()] = value = PassedValue(kind.kind(), by_value.flag())
        value.check(each)
    if len(constants) < len(item.value):
        raise item.is_not("constants of different values")
    return constants


def _target(name: str, item: Item) -> Target:
    try:
        target = target_named(name)
    except SemanticError as wrong:
        raise Damaged(wrong.message) from None
    if str(target) != name:
        raise Damaged(f"`{item.place}` is written {target}")
    return target


# --- choosing -----------------------------------------------------------------------------------------------------------


def plan_on(contents: Contents, target: Target) -> Plan:
    """The plan for a device: on CUDA by `code_for`; on OpenCL that for CPUs if it is one, else that for any OpenCL device.

    Raises:
        DeviceError: there is none.
    """
    found = code_for(target.architecture, contents.portable)
    if found is not None:
        newest, kind = found
        return contents.code[f"cuda:sm_{newest}"] if kind == "cubin" else contents.portable[newest]
    for name in (str(target), target.backend):
        if name in contents.code:
            return contents.code[name]
    if target.backend == "reference":
        raise DeviceError(NO_BUNDLES.format(target))
    wanted = f"sm_{target.architecture}" if target.architecture else target
    raise DeviceError(
        f"bundle `{contents.interface.name}` has no code for {target}: it has {', '.join(contents.code)}; "
        f"add it with `gpuop compile --targets {wanted},…`"
    )
