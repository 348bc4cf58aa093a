"""Plans from bundles: read, and checked to be valid plans before anything is allocated or launched."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuop.codegen.c.dialect import Source
from gpuop.engine.bundles.packing import folder, last_line
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.kernel_limits import LEAST, Limits
from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Program
from gpuop.ir.kernel import Launchable, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import SMALL_TENSOR, FieldType, Shape
from gpuop.runtime.execute import Prebuilt
from gpuop.runtime.files.archive import Archive, Damaged
from gpuop.runtime.files.validated_json import Item

ELF = b"\x7fELF"
ENTRY = re.compile(r"[A-Za-z_]\w*", re.ASCII)
MOST_THREADS = 2**31 - 1  # along an axis: positions are ints
VALUES = ("inputs", "outputs")  # the entries of a step that do not describe its kernel
MOST_NESTED = 32  # nested iterations
Extents = tuple[int, int, int]


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
        wanted, types, steps = item.fields("wanted", "types", "steps")
        kinds = {v: kind.kind() for v, kind in types.numbered().items()}
        for v, leaf in leaves.items():
            if kinds.setdefault(v, leaf.kind) != leaf.kind:
                raise Damaged(f"`{types.place}` has {kinds[v]} for value {v}, which is {leaf.kind}")
        known = dict(leaves)
        made = [self._step(step, kinds, known, nested) for step in steps.members()]
        program = Program({}, (), _known(wanted, known), kinds, (), {})
        return Plan(program, tuple(made), (), LEAST)

    def _step(
        self, item: Item, kinds: Mapping[int, FieldType], known: dict[int, PassedValue], nested: int
    ) -> PlannedLaunch:
        """Read a step, and add its outputs to the known values."""
        facts = item.entries()
        if not set(VALUES) <= facts.keys():
            raise item.is_not("a step with inputs and outputs")
        inputs, outputs = _known(facts["inputs"], known), facts["outputs"].wholes()
        if not outputs or len(set(outputs)) < len(outputs) or any(v in known or v not in kinds for v in outputs):
            raise Damaged(f"`{facts['outputs'].place}` are no new values with types")
        known |= {v: PassedValue(kinds[v]) for v in outputs}
        kernel = self._iteration(item, nested) if "repeat" in facts else self._kernel(item, len(inputs))
        params, values = (*kernel.inputs, *kernel.written), [known[v] for v in (*inputs, *outputs)]
        if [PassedValue(p.type, p.by_value) for p in params] != values:
            raise Damaged(f"`{item.place}` passes other values than its kernel takes")
        return PlannedLaunch(kernel, inputs, outputs, ())

    # --- kernels ------------------------------------------------------------------------------------------------

    def _kernel(self, item: Item, count: int) -> Launchable:
        _, _, name, entry, threads, group, extents, arguments, fills, begins, needs = item.fields(
            *VALUES, "name", "entry", "threads", "group", "extents", "arguments", "fills", "begins", "needs"
        )
        params = _parameters(arguments)
        text, told = self._member("text"), last_line({f: item.value[f] for f in item.value if f not in VALUES})
        if not text.endswith(told):
            raise Damaged(f"`{item.place}` is not what {self._place('text')} ends with")
        text = text.removesuffix(told)
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
        taken, written = _parameters(inputs), _parameters(outputs)
        states = [param.type for param in written]
        if [param.type for param in taken[: len(states)]] != states:
            raise Damaged(f"`{inputs.place}` are not the states, and what comes besides")
        if times.value is None and until.value is None:
            raise Damaged(f"`{repeat.place}` never ends")
        part = self._part(turn, taken, len(states), nested)
        if _kinds(part) != states:
            raise Damaged(f"`{turn.place}` does not give the states")
        ends = None if until.value is None else self._part(until, taken, 0, nested)
        if ends is not None and [kind.array_shape for kind in _kinds(ends)] != [Shape()]:
            raise Damaged(f"`{until.place}` does not give a number")
        most = None if times.value is None else times.whole(1)
        so_many = every.whole(1)
        return Iteration(
            name.text(), taken, tuple(map(Output, written)),
            turn=part, until=ends, times=most, every=so_many,
        )  # fmt: skip

    def _part(self, item: Item, params: Sequence[FieldParam], states: int, nested: int) -> Part:
        given, plan = item.fields("given", "plan")
        positions = {v: position.whole(0, len(params) - 1) for v, position in given.numbered().items()}
        leaves = {v: PassedValue(params[p].type, params[p].by_value) for v, p in positions.items()}
        ready = self.plan(plan, leaves, nested + 1)
        if any(
            positions.get(v, -1) >= states for v in ready.program.wanted
        ):  # inputs besides the states are not in memory of the iteration
            raise Damaged(f"`{plan.place}` wants what it is given")
        return _Planned(ready.program, positions, ready)


def _known(item: Item, known: Mapping[int, PassedValue]) -> tuple[int, ...]:
    """Read values; Damaged if one is not known yet."""
    values = item.wholes()
    for v in values:
        if v not in known:
            raise Damaged(f"`{item.place}` has value {v}, which nothing has computed before")
    return values


def _kinds(part: Part) -> list[FieldType]:
    return [part.program.types[v] for v in part.program.wanted]


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
    for position, begun in item.numbered().items():
        given = begun.whole()
        if not 0 <= position < len(written) or not 0 <= given < len(inputs):
            raise begun.is_not("the position of an input that an output begins as")
        begins[position] = inputs[given]
        if inputs[given].by_value or inputs[given].type != written[position].type:
            raise begun.is_not("the position of an input like the output that begins as it")
    return tuple(Output(param, initial=begins.get(k)) for k, param in enumerate(written))


def _fills(item: Item, params: Sequence[FieldParam], count: int) -> dict[int, float]:
    """The initial values of outputs, by position among the arguments."""
    fills = {}
    for position, fill in item.numbered().items():
        if not count <= position < len(params) or not params[position].type.storage.holds(fill.number()):
            raise fill.is_not("what an output holds")
        fills[position] = fill.number()
    return fills
