"""Bundles from files: compiled plans, checked to be valid before anything is allocated or launched, and the choice for a device."""

from __future__ import annotations

import io
import keyword
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence

from gpuop.base.cache.atomic_files import Path, named
from gpuop.base.errors import DeviceError, SemanticError
from gpuop.base.records import dataclass
from gpuop.codegen.c.dialect import Source
from gpuop.codegen.generate import target_named
from gpuop.engine.bundles.architectures import code_for
from gpuop.engine.bundles.dynamic_sizes import Sizes, position_of
from gpuop.engine.bundles.writing import FORMAT, HEAD, VERSION, Interface, digest, folder, last_line
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.kernel_limits import LEAST, Limits
from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Program
from gpuop.ir.kernel import Launchable, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import SMALL_TENSOR, FieldType, Shape
from gpuop.runtime.base.backend import NO_BUNDLES
from gpuop.runtime.execute import Prebuilt
from gpuop.runtime.files.archive import Archive, Damaged, Foreign, opened
from gpuop.runtime.files.validated_json import Item, document

ELF = b"\x7fELF"
ENTRY = re.compile(r"[A-Za-z_]\w*", re.ASCII)
MOST_THREADS = 2**31 - 1  # along an axis: positions are ints
VALUES = ("inputs", "outputs")  # the entries of a step that do not describe its kernel
MOST_NESTED = 32  # nested iterations
Extents = tuple[int, int, int]
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
            interface, _, plan_of = _parsed(archive, Item(document(archive.read(HEAD)).value, "", sizes))
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
        raise SemanticError(f"{name} is not a bundle that `gpuop compile` wrote, or it is cut off") from None
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
    interface, named, plan = _parsed(archive, head)
    cuda = [text for text, target in named.items() if target.architecture]
    code = {text: plan(text, "cubin" if text in cuda else None) for text in named}
    portable = {named[text].architecture: plan(text, "ptx") for text in cuda}
    limits = head.entry("range").wholes(0, MOST_SIZE, 2)
    return Contents(interface, code, portable, _positions(head), limits, archive.whole() if head.sizes else b"")


def _parsed(archive: Archive, head: Item) -> tuple[Interface, dict[str, Target], Callable[[str, str | None], Plan]]:
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
    parameters, kinds = _arguments(arguments), tuple(each.seen_kind() for each in results.members())
    passed = {v: PassedValue(kind.folded) for _, v, kind in parameters if v >= 0}
    fixed = _constants(constants)
    if len(passed) < sum(v >= 0 for _, v, _ in parameters) or passed.keys() & fixed.keys():
        raise Damaged("arguments and constants are the same values")
    arrays = {v: archive.array(f"constants/{v}.npy", value.kind) for v, value in fixed.items()}
    scalars = frozenset(v for v, value in fixed.items() if value.by_value)
    interface = Interface(name.text(), parameters, arrays, scalars, kinds, several.flag(), head.sizes)
    named = {text: _target(text, item) for text, item in targets.entries().items()}
    if not named:
        raise targets.is_not("the code of a target")

    def plan(text: str, binary: str | None) -> Plan:
        ready = PlanReader(archive, named[text], binary).plan(targets.entries()[text], passed | fixed)
        if len(ready.program.results) != 1 and not (interface.several and ready.program.results):
            raise Damaged(f"`{targets.place}.{text}` gives {len(ready.program.results)} results")
        if [ready.program.types[v] for v in ready.program.results] != [kind.folded for kind in kinds]:
            raise Damaged(f"`{targets.place}.{text}` gives others than `{results.place}`")
        return ready

    return interface, named, plan


def _positions(head: Item) -> dict[str, Sequence[int]]:
    positions: dict[str, Sequence[int]] = {}
    sizes = set[int]()
    for each in head.entry("arguments").members():
        name, _, kind = each.members(3)
        grid, tensor, *_ = kind.members(4)
        positions[name.text()] = [*map(position_of, grid.members()), *[-1] * len(tensor.value)]
        sizes |= {*positions[name.value]}
    if sizes - {-1} != {*range(len(head.sizes))}:
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
    code = code_for(target.architecture, contents.portable)
    if code is not None:
        newest, kind = code
        return contents.code[f"cuda:sm_{newest}"] if kind == "cubin" else contents.portable[newest]
    for name in (str(target), target.backend):
        if name in contents.code:
            return contents.code[name]
    if target.backend == "reference":
        raise DeviceError(NO_BUNDLES.format(target))
    target_name = f"sm_{target.architecture}" if target.architecture else target
    raise DeviceError(
        f"bundle `{contents.interface.name}` has no code for {target}: it has {', '.join(contents.code)}; "
        f"add it with `gpuop compile --targets {target_name},…`"
    )


@dataclass(frozen=True, eq=False)
class _Planned(Part):
    """A part of an iteration with a ready plan."""

    ready: Plan

    def plan(self, limits: Limits) -> Plan:
        return self.ready


@dataclass(frozen=True, slots=True)
class PassedValue:
    """A value of a plan: its type, and True if it is passed by value."""

    kind: FieldType
    by_value: bool = False

    def check(self, item: Item) -> None:
        if self.by_value and (self.kind.field_shape or self.kind.planes > SMALL_TENSOR):
            raise Damaged(f"`{item.place}` is a {self.kind} field, which is not passed by value")


class PlanReader:
    """Reads the plan of a target.

    Args:
        binary: "cubin" or "ptx" on CUDA.
    """

    def __init__(self, archive: Archive, target: Target, binary: str | None) -> None:
        self.archive, self.folder, self.binary, self.count = archive, folder(target), binary, 0

    def plan(self, item: Item, leaves: Mapping[int, PassedValue], nested: int = 0) -> Plan:
        """Read a plan; its values are in order: the leaves, then the outputs of each step."""
        if nested > MOST_NESTED:
            raise Damaged(f"`{item.place}` is nested too deeply")
        results, types, steps = item.fields("wanted", "types", "steps")
        kinds = {v: kind.kind() for v, kind in types.numbered().items()}
        for v, leaf in leaves.items():
            if kinds.setdefault(v, leaf.kind) != leaf.kind:
                raise Damaged(f"`{types.place}` has {kinds[v]} for value {v}, which is {leaf.kind}")
        context = dict(leaves)
        launches = [self._step(step, kinds, context, nested) for step in steps.members()]
        program = Program({}, (), _known(results, context), kinds, (), {})
        return Plan(program, tuple(launches), (), LEAST)

    def _step(
        self, item: Item, kinds: Mapping[int, FieldType], context: dict[int, PassedValue], nested: int
    ) -> PlannedLaunch:
        """Read a step, and add its outputs to the known values."""
        facts = item.entries()
        if not set(VALUES) <= facts.keys():
            raise item.is_not("a step with inputs and outputs")
        inputs, outputs = _known(facts["inputs"], context), facts["outputs"].wholes()
        if not outputs or len(set(outputs)) < len(outputs) or any(v in context or v not in kinds for v in outputs):
            raise Damaged(f"`{facts['outputs'].place}` are no new values with types")
        context |= {v: PassedValue(kinds[v]) for v in outputs}
        kernel = self._iteration(item, nested) if "repeat" in facts else self._kernel(item, len(inputs))
        params, values = (*kernel.inputs, *kernel.written), [context[v] for v in (*inputs, *outputs)]
        if [PassedValue(p.type, p.by_value) for p in params] != values:
            raise Damaged(f"`{item.place}` passes other values than its kernel takes")
        return PlannedLaunch(kernel, inputs, outputs, ())

    # --- kernels ------------------------------------------------------------------------------------------------

    def _kernel(self, item: Item, count: int) -> Launchable:
        _, _, name, entry, threads, group, extents, arguments, fills, begins, needs = item.fields(
            *VALUES, "name", "entry", "threads", "group", "extents", "arguments", "fills", "begins", "needs"
        )
        params = _parameters(arguments)
        text, launch = self._member("text"), last_line({f: item.value[f] for f in item.value if f not in VALUES})
        if not text.endswith(launch):
            raise Damaged(f"`{item.place}` is not what {self._place('text')} ends with")
        text = text.removesuffix(launch)
        if not ENTRY.fullmatch(entry.text()) or entry.value not in text:
            raise entry.is_not("the name of a function of its text")
        filled, needed = _fills(fills, params, count), frozenset(need.text() for need in needs.members())
        size, counts = _size(threads, group)
        outputs = _outputs(begins, params[:count], params[count:])
        starting = {k for k, output in enumerate(outputs, count) if output.initial is not None}
        unwritten = (p for k, p in enumerate(params) if k >= count and k not in {*filled, *starting} and p.type.nbytes)
        if not math.prod(size) and any(unwritten):
            raise Damaged(f"`{threads.place}` are none, and there is something to write")
        source = Source(
            entry.value,
            text,
            size,
            counts,
            params,
            count,
            filled,
            needs=needed,
            extents=extents.wholes(0, MOST_THREADS),
        )
        code = self._binary() if self.binary else None
        self.count += 1
        return Prebuilt(name.text(), params[:count], outputs, source=source, binary=code)

    def _place(self, ending: str) -> str:
        return f"{self.folder}/{self.count}.{ending}"

    def _member(self, ending: str) -> str:
        try:
            return self.archive.read(self._place(ending)).decode()
        except UnicodeDecodeError as wrong:
            raise Damaged(f"{self._place(ending)}: {wrong}") from None

    def _binary(self) -> bytes:
        """Read a binary and check its form: the CUDA driver would read beyond the end of any other."""
        assert self.binary is not None
        code = self.archive.read(self._place(self.binary))
        if not (code.endswith(b"\0") if self.binary == "ptx" else code.startswith(ELF)):
            raise Damaged(f"{self._place(self.binary)} is no {self.binary}")
        return code

    # --- iterations ---------------------------------------------------------------------------------------------

    def _iteration(self, item: Item, nested: int) -> Launchable:
        _, _, name, repeat = item.fields(*VALUES, "name", "repeat")
        times, every, inputs, outputs, turn, until = repeat.fields(
            "times", "every", "inputs", "outputs", "turn", "until"
        )
        params, written = _parameters(inputs), _parameters(outputs)
        states = [param.type for param in written]
        if [param.type for param in params[: len(states)]] != states:
            raise Damaged(f"`{inputs.place}` are not the states, and what comes besides")
        if times.value is None and until.value is None:
            raise Damaged(f"`{repeat.place}` never ends")
        part = self._part(turn, params, len(states), nested)
        if _kinds(part) != states:
            raise Damaged(f"`{turn.place}` does not give the states")
        ends = None if until.value is None else self._part(until, params, 0, nested)
        if ends is not None and [kind.array_shape for kind in _kinds(ends)] != [Shape()]:
            raise Damaged(f"`{until.place}` does not give a number")
        most = None if times.value is None else times.whole(1)
        so_many = every.whole(1)
        return Iteration(
            name.text(), params, tuple(map(Output, written)),
            turn=part, until=ends, times=most, every=so_many,
        )  # fmt: skip

    def _part(self, item: Item, params: Sequence[FieldParam], states: int, nested: int) -> Part:
        passed, plan = item.fields("given", "plan")
        positions = {v: position.whole(0, len(params) - 1) for v, position in passed.numbered().items()}
        leaves = {v: PassedValue(params[p].type, params[p].by_value) for v, p in positions.items()}
        ready = self.plan(plan, leaves, nested + 1)
        if any(
            positions.get(v, -1) >= states for v in ready.program.results
        ):  # inputs besides the states are not in memory of the iteration
            raise Damaged(f"`{plan.place}` wants what it is given")
        return _Planned(ready.program, positions, ready)


def _known(item: Item, context: Mapping[int, PassedValue]) -> tuple[int, ...]:
    """Read values; Damaged if one is not known yet."""
    values = item.wholes()
    for v in values:
        if v not in context:
            raise Damaged(f"`{item.place}` has value {v}, which nothing has computed before")
    return values


def _kinds(part: Part) -> list[FieldType]:
    return [part.program.types[v] for v in part.program.results]


def _parameters(item: Item) -> tuple[FieldParam, ...]:
    params = []
    for each in item.members():
        hint, kind, by_value = each.members(3)
        PassedValue(kind.kind(), by_value.flag()).check(each)
        params.append(FieldParam(hint.text(), kind.kind(), by_value.value))
    return tuple(params)


def _size(threads: Item, group: Item) -> tuple[Extents, Extents]:
    """The number of threads, in whole groups, and the threads of a group."""
    columns, rows, layers = threads.wholes(0, MOST_THREADS, 3)
    width, height, depth = group.wholes(1, MOST_THREADS, 3)
    if columns % width or rows % height or layers % depth:
        raise threads.is_not(f"whole groups of {[width, height, depth]}")
    return (columns, rows, layers), (width, height, depth)


def _outputs(item: Item, inputs: Sequence[FieldParam], written: Sequence[FieldParam]) -> tuple[Output, ...]:
    """The outputs; `begins` has, by position, the inputs that some of them start from."""
    begins: dict[int, FieldParam] = {}
    for position, start in item.numbered().items():
        source = start.whole()
        if not 0 <= position < len(written) or not 0 <= source < len(inputs):
            raise start.is_not("the position of an input that an output begins as")
        begins[position] = inputs[source]
        if inputs[source].by_value or inputs[source].type != written[position].type:
            raise start.is_not("the position of an input like the output that begins as it")
    return tuple(Output(param, initial=begins.get(k)) for k, param in enumerate(written))


def _fills(item: Item, params: Sequence[FieldParam], count: int) -> dict[int, float]:
    """The initial values of outputs, by position among the arguments."""
    fills = {}
    for position, fill in item.numbered().items():
        if not count <= position < len(params) or not params[position].type.storage.holds(fill.number()):
            raise fill.is_not("what an output holds")
        fills[position] = fill.number()
    return fills
