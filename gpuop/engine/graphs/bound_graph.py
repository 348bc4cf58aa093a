"""A compute graph that runs: its buffers on a device, and launches bound to them. An interrupted step has happened wholly or not
at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuop.engine.evaluate import argument
from gpuop.engine.graphs.sensors import Frames
from gpuop.fusion.buffer_rotation import rotation
from gpuop.fusion.buffers import allocation
from gpuop.fusion.launch import Rate
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Program
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, LeafSource
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch, Part, download, indivisible
from gpuop.runtime.base.host_arrays import planes_of
from gpuop.runtime.execute import Prepared

Copies = Sequence[tuple[FieldType, int, int]]  # (type, next value, state): copies of a step on the device
Buffers = dict[int, Argument]

no_op = bool  # a part that does nothing, in one C call


class BoundLaunches:
    """The launches of a plan, bound to one set of buffers.

    Attributes:
        launch: enqueues parts.
        every_step: the parts of every evaluation.
        deferred: parts at the start of the following step that compute next values beside the states: they may run again.
        overwrites: parts of the following step, after these, that write next values over the states. None may run twice;
            once the first has run, the graph is at the next tick.
    """

    def __init__(self, prepared: Prepared, buffers: Buffers, copies: Copies, following: Buffers) -> None:
        planned, backend = prepared.plan.launches, prepared.backend
        self.launch = backend.launch
        self.launches: list[Launch] = [prepared.bind(number, buffers) for number in range(len(planned))]
        each_step = [(p, bound) for p, bound in zip(planned, self.launches, strict=True) if p.rate is Rate.EVERY_STEP]
        self.every_step = backend.sequence([bound for p, bound in each_step if not p.over])
        updates = backend.sequence([bound for p, bound in each_step if p.over])
        self.deferred: list[Part] = [] if backend.only_enqueues else updates
        self.overwrites: list[Part] = updates if backend.only_enqueues else []
        self.overwrites += [
            partial(backend.copy, kind, buffers[value], following[state]) for kind, value, state in copies
        ]
        if self.overwrites and not indivisible(self.overwrites[0]):
            self.overwrites.insert(0, no_op)


class BufferSet:
    """A buffer for each value, and the launches bound to these buffers once they are wanted.

    Attributes:
        following: the set that the next step uses; this one where nothing changes places.
    """

    following: BufferSet

    def __init__(self, prepared: Prepared, buffers: Buffers, copies: Copies) -> None:
        self.prepared, self.buffers, self.copies = prepared, buffers, copies
        self.bound: BoundLaunches | None = None

    def bind(self) -> BoundLaunches:
        if self.bound is None:
            self.bound = BoundLaunches(self.prepared, self.buffers, self.copies, self.following.buffers)
        return self.bound


# the tick (None before the first reset), and the buffers in use
Moment = tuple["int | None", BufferSet]


class Change:
    """A transition of the states to another moment: parts that run in order; it cannot be undone once the first has run.

    A signal handler may raise an exception between any two bytecodes, but not within a C call.
    `Backend.launch` counts parts as it runs them, without a bytecode in between, so parts that are `indivisible`, such as
    the first, run once; the others may run again.

    Attributes:
        to: the moment.
        ran: the return values of the parts that have run. The moment counts as reached once there is one: the rest runs
            before a value is read.
    """

    __slots__ = ("parts", "ran", "to")

    def __init__(self, to: Moment, parts: Sequence[Part], ran: Sequence[Any] = ()) -> None:
        self.to, self.parts, self.ran = to, parts, [*ran]

    def finish(self) -> None:
        """Run the remaining parts; if one fails, it and those after it remain."""
        backend = self.to[1].prepared.backend
        backend.launch(self.parts[len(self.ran) :] if self.ran else self.parts, self.ran)


class BoundGraph:
    """A graph's buffers on a device, and launches bound to them.

    A state moves to the buffer of its next value at each step, so launches are bound once for each way in which values lie
    in buffers. An evaluation writes to no buffer of a current state. After an exception, of a driver or a signal handler,
    single attributes tell the state of the graph: `now` is the moment, or the one that `change` leads to once the first of
    its parts has run; its values are computed if it is `evaluated`.

    Values are numbered as in the program, launches as in the plan.

    Args:
        program: its results are the values that can be read, then the next values of the states.
        states: the leaves of the states, in the order of their next values.
        readable: the number of values that can be read.

    Attributes:
        readable: the values that can be read.
        next_values: the values that states take next.
        sensors: the value of each sensor.
        state_leaves: the states that anything depends on; each leaf has the array that its state starts from.
        occasional: the launches that do not run at every step.
        occasional_due: those of them that have to run before the next evaluation.
        buffer_sets: the buffers of values after 0, 1, 2 … steps, then cyclically.
    """

    def __init__(self, prepared: Prepared, program: Program, states: list[Leaf], readable: int) -> None:
        self.program, self.plan = program, prepared.plan
        number = {node: value for value, node in program.leaves.items()}
        self.readable, self.next_values = program.results[:readable], program.results[readable:]
        sources = {v: n.source for v, n in program.leaves.items() if isinstance(n, Leaf)}
        self.parameters = BoundParameters(program, prepared.plan, self.next_values)
        self.sensors = {source: v for v, source in sources.items() if isinstance(source, Frames)}
        self.state_leaves = {number[leaf]: leaf for leaf in states if leaf in number}
        self.occasional = [n for n, launch in enumerate(self.plan.launches) if launch.rate is not Rate.EVERY_STEP]
        self.occasional_due = set(self.occasional)
        self.buffer_sets, self._again = self._rotating(prepared)
        self.now: Moment = (None, self.buffer_sets[0])
        self.change: Change | None = None
        self.evaluated: Moment | None = None

    @property
    def prepared(self) -> Prepared:
        return self.now[1].prepared

    @property
    def backend(self) -> Backend:
        return self.prepared.backend

    @property
    def tick(self) -> int | None:
        change = self.change
        return (change.to if change is not None and change.ran else self.now)[0]

    def _rotating(self, prepared: Prepared) -> tuple[list[BufferSet], int]:
        """The buffers of values after 0, 1, 2 … steps, and the number of the set that follows the last one.

        A value that is recomputed when a parameter is set must not share its buffer with a state, so the state takes a copy.
        """
        buffers, cycle = self._allocate(prepared.backend), self.program.cycle
        rates = {v: launch.rate for launch in self.plan.launches for v in launch.outputs}
        nexts = {s: v for s, v in (cycle.nexts if cycle is not None else ()) if buffers[s] is not buffers[v]}
        copies = [(self.program.types[s], v, s) for s, v in nexts.items() if rates.get(v) is Rate.SET]
        copied = {state for _, _, state in copies}
        nexts = {s: v for s, v in nexts.items() if s not in copied}
        anew = copied.union(self.sensors.values(), (v for v, rate in rates.items() if rate is Rate.EVERY_STEP))
        steps, again = rotation(nexts, anew.intersection(nexts.values()))
        places = [buffers | {v: buffers[at] for v, at in step.items()} for step in steps]
        return _in_turn([BufferSet(prepared, each, copies) for each in places], again), again

    def _allocate(self, backend: Backend) -> dict[int, Argument]:
        types = self.program.types
        own = {*self.state_leaves, *self.parameters, *self.sensors.values()}
        buffers = {v: argument(n, backend) for v, n in self.program.leaves.items() if v not in own}
        buffers |= {v: backend.empty(types[v]) for v in own if v not in self.parameters.by_value}
        shared = allocation(self.plan)
        memory = [backend.empty(kind) for kind in shared.kinds]
        buffers |= {v: memory[number] for v, number in shared.of.items()}
        for value, state in (pair for launch in self.plan.launches for pair in launch.over):
            buffers[value] = buffers[state] if backend.only_enqueues else backend.empty(types[value])
        for value in self.sensors.values():
            zeros = np.zeros((types[value].planes, types[value].field_shape.points), types[value].memory_dtype)
            backend.write(buffers[value], zeros)
        return buffers

    # --- parameters ---------------------------------------------------------------------------------------------

    def _set(self) -> None:
        """Pass parameters that were set to the launches, and mark the launches that depend on them as due."""
        for value in self.parameters.changed():
            data, version = self.parameters[value].read()
            planes = planes_of(self.program.types[value], data)
            if value in self.parameters.by_value:
                self._adjust(value, tuple(planes.reshape(-1).tolist()))
            else:
                self.backend.write(self.now[1].buffers[value], planes)
            self.occasional_due.update(self.parameters.occasional[value])
            self.parameters.versions[value] = version

    def _adjust(self, value: int, scalars: Argument) -> None:
        for buffer_set in self.buffer_sets:
            buffer_set.buffers[value] = scalars
            if buffer_set.bound is not None:
                for number, position in self.parameters.positions[value]:
                    buffer_set.bound.launches[number].adjust(position, scalars)

    # --- a step -------------------------------------------------------------------------------------------------

    def reset(self, frames: Sequence[Frames] = (), also: Sequence[Part] = ()) -> None:
        """States take their initial values: tick 0, to be evaluated. The rest is as in `advance`."""
        self.load([leaf.source.read()[0] for leaf in self.state_leaves.values()], 0, frames, also)

    def load(
        self, states: Sequence[Array], tick: int, frames: Sequence[Frames] = (), also: Sequence[Part] = ()
    ) -> None:
        """States take values from outside; to be evaluated. The rest is as in `advance`."""
        first = self.buffer_sets[0]  # states that take the same value have one buffer later
        pairs = zip(self.state_leaves.items(), states, strict=True)
        writes: list[Part] = [
            partial(self.backend.write, first.buffers[value], planes_of(leaf.type, array))
            for (value, leaf), array in pairs
        ]
        parts: list[Part] = [no_op, *self._frame_parts(frames, first), *writes, *also]
        self._commit(Change((tick, first), parts, [False]))  # the first part counts as run

    def copy_states(self, states: Sequence[Buffer], tick: int) -> None:
        """States take values from memory of the device; to be evaluated."""
        first, leaves = self.buffer_sets[0], self.state_leaves.items()
        copies: list[Part] = [
            partial(self.backend.copy, leaf.type, source, first.buffers[value])
            for (value, leaf), source in zip(leaves, states, strict=True)
        ]
        self._commit(Change((tick, first), [no_op, *copies], [False]))

    def advance(self, frames: Sequence[Frames] = (), also: Sequence[Part] = ()) -> None:
        """States take their next values: the next tick, to be evaluated.

        Args:
            frames: those of sensors that show the next one.
            also: parts of the step that come after that, and may run again.
        """
        if self.change is not None:
            self.settle()
        if self.evaluated is not self.now:
            self.evaluate()
        if self.parameters:
            self._follow()
        tick, current = self.now
        assert tick is not None
        to = tick + 1, current.following
        bound = current.bound or current.bind()
        if bound.deferred:
            bound.launch(bound.deferred)
        if bound.overwrites or also:
            parts = [*(bound.overwrites or [no_op]), *self._frame_parts(frames, to[1]), *also]
            self._commit(Change(to, parts))
        else:
            self.now = to

    def _follow(self) -> None:
        """Recompute the next values of states that depend on parameters that were set."""
        changed = self.parameters.changed()
        if changed:
            self.evaluated = None
            self._set()
            self._run_occasional({number for v in changed for number in self.parameters.recompute[v]})

    def _frame_parts(self, frames: Sequence[Frames], to: BufferSet) -> list[Part]:
        """Parts that move the frames of sensors to other buffers: the frame that is ready, or else the current one."""
        parts: list[Part] = []
        for source, value in self.sensors.items():
            planes = source.planes if source in frames else None
            shown, buffer = self.now[1].buffers[value], to.buffers[value]
            if planes is not None:
                parts.append(self.prepared.upload(value, buffer, planes))
            elif shown is not buffer:
                parts.append(partial(self.backend.copy, self.program.types[value], shown, buffer))
        return parts

    def _commit(self, change: Change) -> None:
        self.change = change
        change.finish()
        self.now = change.to
        self.change = None

    def settle(self) -> None:
        """Finish a change that was interrupted, if it has begun."""
        change = self.change
        if change is not None:
            if change.ran and self.now is not change.to:
                self._commit(change)
            self.change = None

    def evaluate(self) -> None:
        """Compute everything from states, sensors and parameters."""
        if self.change is not None:
            self.settle()
        now, self.evaluated = self.now, None
        if self.parameters:
            self._set()
        if self.occasional_due:
            self._run_occasional(set())
        bound = now[1].bound or now[1].bind()
        bound.launch(bound.every_step)
        self.evaluated = now

    def _run_occasional(self, besides: set[int]) -> None:
        """Run the occasional launches that are due, and those in `besides`."""
        bound = self.now[1].bind()
        bound.launch([part for n in sorted(self.occasional_due | besides) for part in bound.launches[n].parts])
        self.occasional_due.clear()

    def renew(self) -> None:
        """Mark all occasional launches as due, so that the next evaluation computes everything."""
        self.occasional_due.update(self.occasional)

    def rebind(self, prepared: Prepared) -> None:
        """Launch another preparation of the same plan from now on, on the same device and memory."""
        self.settle()
        self.backend.synchronize()
        tick, current = before = self.now
        number = self.buffer_sets.index(current)
        again = [BufferSet(prepared, each.buffers, each.copies) for each in self.buffer_sets]
        self.buffer_sets = _in_turn(again, self._again)
        self.now = tick, self.buffer_sets[number]
        if self.evaluated is before:
            self.evaluated = self.now

    # --- values -------------------------------------------------------------------------------------------------

    def read(self, number: int) -> Array:
        """The array of a value that can be read; waits."""
        self.settle()
        if self.evaluated is not self.now:
            self.evaluate()
        value = self.readable[number]
        return download(self.program.types[value], self.now[1].buffers[value], self.backend)

    def states(self) -> list[tuple[Leaf, Array]]:
        """The states that anything depends on, with their values; waits."""
        self.settle()
        buffers = self.now[1].buffers
        return [(leaf, download(leaf.type, buffers[v], self.backend)) for v, leaf in self.state_leaves.items()]


class BoundParameters(dict[int, LeafSource]):
    """The parameters, by the numbers of their values. Launches are numbered as in the plan.

    Attributes:
        by_value: parameters that are arguments of launches; the others have buffers.
        versions: the version of each parameter that the launches have; -1: none yet.
        positions: the launches that take each parameter, with its position among their arguments.
        recompute: for each parameter the launches that compute next values of states from it; they run again before the
            next step when it is set. None for one that no state depends on.
        occasional: for each parameter the launches that depend on it and do not run at every step.
    """

    def __init__(self, program: Program, plan: Plan, next_values: Collection[int]) -> None:
        leaves = {v: node for v, node in program.leaves.items() if isinstance(node, Leaf)}
        super().__init__({v: n.source for v, n in leaves.items() if n.source.role == "parameter"})
        self.by_value = {v for v in self if leaves[v].by_value}
        self.versions: dict[int, int | None] = dict.fromkeys(self, -1)
        self.positions = {v: _positions(plan, v) for v in self}
        self.recompute = {v: _recompute(program, plan, next_values, v) for v in self}
        self.occasional = {v: _occasional(plan, v) for v in self}

    def changed(self) -> list[int]:
        """The parameters that were set after the launches took them."""
        return [v for v, source in self.items() if source.version != self.versions[v]]


def _positions(plan: Plan, parameter: int) -> list[tuple[int, int]]:
    launches = enumerate(plan.launches)
    return [(n, position) for n, launch in launches for position, v in enumerate(launch.inputs) if v == parameter]


def _occasional(plan: Plan, parameter: int) -> list[int]:
    reached, launches = {parameter}, []
    for number, launch in enumerate(plan.launches):
        if launch.rate is not Rate.EVERY_STEP and reached.intersection(launch.inputs):
            reached.update(launch.outputs)
            launches.append(number)
    return launches


def _recompute(program: Program, plan: Plan, next_values: Collection[int], parameter: int) -> list[int]:
    reached = {parameter}
    for op in program.ops:
        if reached.intersection(op.inputs):
            reached.update(op.outputs)
    needed, launches = reached.intersection(next_values), []
    for number, launch in reversed(list(enumerate(plan.launches))):
        if launch.rate is Rate.EVERY_STEP and needed.intersection(launch.outputs):
            needed.update(launch.inputs)
            if not launch.over:  # one that writes over states runs then in any case
                launches.append(number)
    return launches


def _in_turn(buffer_sets: list[BufferSet], again: int) -> list[BufferSet]:
    """Link each set to the next one, and the last to the set with the number `again`."""
    for each, following in zip(buffer_sets, [*buffer_sets[1:], buffer_sets[again]], strict=True):
        each.following = following
    return buffer_sets
