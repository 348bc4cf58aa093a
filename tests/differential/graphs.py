"""Stateful graphs: states, sensors and parameters, driven in random order, and a model that steps in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .loops import bodies
from .program import Env, Input, Step, indented
from .values import Rejected, Val, array_of, array_text

Frame = tuple[Any, ...] | None  # the values of a frame; None keeps the one before


@dataclass(frozen=True)
class Sensor:
    """A sensor and its frames."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    order: int
    frames: tuple[Frame, ...]
    pipelined: bool = False

    def lines(self) -> list[str]:
        split = len(self.shape) - self.order
        kind = f'gp.FieldType({self.shape[:split]}, {self.shape[split:]}, "{self.dtype}")'
        shown = ["None" if f is None else array_text(f, self.dtype, self.shape) for f in self.frames]
        more = ", pipelined=True" if self.pipelined else ""
        return [f"{self.name} = gp.Sensor({kind}, iter([{', '.join(shown)}]){more})"]

    def value(self, frame: tuple[Any, ...]) -> Val:
        return Val(array_of(frame, self.dtype, self.shape), self.order, self.dtype == "unorm8")


@dataclass(frozen=True)
class Action:
    """A change of an existing graph.

    Attributes:
        what: "step", "reset", "read", "set", "tick", "save", "load", "sync" or "fed" (what the actuator got).
        name: of what is read or set.
        data: how many steps, or the new values.
    """

    what: str
    name: str = ""
    data: Any = None

    def lines(self) -> list[str]:
        if self.what == "set":
            value = repr(self.data[0]) if len(self.data) == 1 else f"np.array({list(self.data)!r})"
            return [f"{self.name}.set({value})"]
        return {
            "step": [f"seen.append(np.bool_(graph.step({self.data})))"], "reset": ["graph.reset()"],
            "read": [f'seen.append(graph.read("{self.name}"))'], "tick": ["seen.append(np.int64(graph.tick))"],
            "save": ['graph.save(os.path.join(folder.name, "states"))'],
            "load": ['graph.load(os.path.join(folder.name, "states"))'],
            "sync": ["graph.synchronize()"], "fed": ["graph.synchronize()", "seen.extend(fed)", "fed.clear()"],
        }[self.what]  # fmt: skip


@dataclass
class Model:
    """The graph in NumPy."""

    graph: Graph
    values: dict[str, Val]
    fixed: Env
    tick: int | None = None
    states: dict[str, Val] = field(default_factory=dict)
    frames: dict[str, Val] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    now: Env = field(default_factory=Env)
    fed: list[Val] = field(default_factory=list)
    saved: tuple[int, dict[str, Val]] | None = None

    def evaluate(self) -> Env:
        """Everything, of the states, frames and parameters that there are."""
        env = Env(self.fixed.values | self.values | self.states | self.frames)
        for step in self.graph.body:
            step.run(env)
        return env

    def take(self) -> None:
        for sensor in self.graph.sensors:
            at = self.taken.get(sensor.name, 0)
            if at < len(sensor.frames):
                self.taken[sensor.name] = at + 1
                frame = sensor.frames[at]
                if frame is not None:
                    self.frames[sensor.name] = sensor.value(frame)

    def feed(self) -> None:
        if self.graph.fed:
            self.fed.append(self.now.values[self.graph.fed])

    def reset(self) -> None:
        self.states = {name: self.values[name] for name in self.graph.nexts}
        self.take()
        self.now, self.tick = self.evaluate(), 0
        self.feed()

    def live(self) -> None:
        if self.tick is None:
            self.reset()

    def step(self) -> bool:
        """The next values are computed with the parameters of now."""
        if any(self.taken.get(s.name, 0) >= len(s.frames) for s in self.graph.sensors):
            return False
        following = self.evaluate()
        self.states = {state: following.usable(name) for state, name in self.graph.nexts.items()}
        self.take()
        self.now = self.evaluate()
        self.tick = (self.tick or 0) + 1
        self.feed()
        return True

    def act(self, action: Action, values: list[Val]) -> None:
        match action.what:
            case "step":
                self.live()
                values.append(Val(np.array(all(self.step() for _ in range(action.data)))))
            case "reset":
                self.reset()
            case "read":
                self.live()
                values.append(self.now.values[action.name])
            case "tick":
                values.append(Val(np.array(self.tick or 0, np.int64)))
            case "set":
                old = self.values[action.name]
                self.values[action.name] = replace(old, array=array_of(action.data, old.dtype, old.array.shape))
            case "save":
                self.live()
                self.saved = self.tick or 0, self.states
            case "load":
                self.load()
            case "fed":
                values += self.fed
                self.fed = []

    def load(self) -> None:
        """Sensors keep their frames; actuators are not fed."""
        if self.saved is None:
            raise Rejected("nothing saved")
        if self.tick is None and self.graph.sensors:
            raise Rejected("a graph that has not run")
        self.tick, self.states = self.saved
        self.now = self.evaluate()


@dataclass(frozen=True)
class Graph(Step):
    """A ComputeGraph and what is done to it.

    Attributes:
        inputs: states, constants and parameters.
        nexts: of states, the names of what they become.
        fed: the name of what an actuator gets.
    """

    inputs: tuple[Input, ...]
    sensors: tuple[Sensor, ...]
    body: tuple[Step, ...]
    next_names: tuple[tuple[str, str], ...]
    probes: tuple[str, ...]
    actions: tuple[Action, ...]
    fed: str = ""
    optimize: bool = True

    @property
    def nexts(self) -> dict[str, str]:
        return dict(self.next_names)

    def above(self) -> dict[str, list[str]]:
        results = {name: lines for step in self.body for name, lines in step.above().items()}
        if any(a.what == "save" for a in self.actions):
            results["os"] = ["import os, tempfile", "folder = tempfile.TemporaryDirectory()"]
        return results

    def lines(self) -> list[str]:
        inner = indented((*self.inputs,))
        inner += [f"    {line}" for s in self.sensors for line in s.lines()]
        inner += indented(self.body) if self.body else []
        inner += [f"    {state}.next = {name}" for state, name in self.next_names]
        inner += [f'    graph.probe({name}, "{name}")' for name in self.probes]
        head = ["fed = []"] if self.fed else []
        inner += [f"    gp.Actuator({self.fed}, fed.append)"] if self.fed else []
        head.append(f"with gp.ComputeGraph({'' if self.optimize else 'optimize=False'}) as graph:")
        actions = [line for a in self.actions for line in a.lines()]
        end = ["folder.cleanup()"] if any(a.what == "save" for a in self.actions) else []
        return [*head, *inner, *actions, "graph.release()", *end]

    def run(self, env: Env) -> None:
        values = {i.name: i.value() for i in self.inputs}
        sensors = {s.name: s.value((0,)) for s in self.sensors}
        model = Model(self, values, Env(dict(env.values)), frames=sensors)
        self._check(model)
        for action in self.actions:
            if action.what == "read" and action.name not in self.probes:
                raise Rejected("no probe")
            model.act(action, env.seen)

    def _check(self, model: Model) -> None:
        """Everything that is named is there, and next values are of their states' types."""
        model.states = {name: model.values[name] for name in self.nexts if name in model.values}
        now = model.evaluate()
        for state, name in self.next_names:
            if state not in now.values or name not in now.values or now.values[state].type != now.values[name].type:
                raise Rejected("next")
        if not set(self.probes) | ({self.fed} - {""}) <= now.values.keys():
            raise Rejected("probes")
        if not self.probes:
            raise Rejected("nothing to see")

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for k in range(len(self.actions)):
            yield (replace(self, actions=self.actions[:k] + self.actions[k + 1 :]),)
        for k, action in enumerate(self.actions):
            if action.what == "step" and action.data > 1:
                one = replace(action, data=1)
                yield (replace(self, actions=(*self.actions[:k], one, *self.actions[k + 1 :])),)
        for attribute in ("next_names", "probes", "sensors", "inputs"):
            items = getattr(self, attribute)
            for k in range(len(items)):
                yield (replace(self, **{attribute: items[:k] + items[k + 1 :]}),)
        if self.fed:
            yield (replace(self, fed="", actions=tuple(a for a in self.actions if a.what != "fed")),)
        for body in bodies(self.body):
            yield (replace(self, body=body),)
        if not self.optimize:
            yield (replace(self, optimize=True),)
