"""Random programs: steps that are Python text for gpuop, and that know in NumPy what they do."""

from __future__ import annotations

import itertools
import linecache
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError
from tests.as_gpus import AS_A_GPU, used
from tests.runtime.cuda_on_host.host_device import ON_HOST

from .values import Rejected, Val, array_of, array_text, disagreement

_numbers = itertools.count()


@dataclass
class Env:
    """The values of the steps so far."""

    values: dict[str, Val] = field(default_factory=dict)
    seen: list[Val] = field(default_factory=list)
    history: list[Step] = field(default_factory=list)

    def usable(self, name: str) -> Val:
        if name not in self.values or self.values[name].ends:
            raise Rejected(name)
        return self.values[name]


class Step:
    """One statement."""

    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self, env: Env) -> None:
        """The step in NumPy.

        Raises:
            Rejected: nothing that is defined.
        """
        raise NotImplementedError

    def above(self) -> dict[str, list[str]]:
        """Definitions that it needs, by name."""
        return {}

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        """Simpler steps that could stand in its place."""
        return iter(())

    def alternatives(self, env: Env) -> dict[str, Val]:
        """Values that inputs could have instead, after it has run."""
        return {}


def perform(env: Env, step: Step) -> None:
    step.run(env)
    env.history.append(step)


def indented(steps: tuple[Step, ...]) -> list[str]:
    return [f"    {line}" for step in steps for line in step.lines()] or ["    pass"]


@dataclass(frozen=True)
class Input(Step):
    """A field of given values."""

    name: str
    values: tuple[Any, ...]
    dtype: str
    shape: tuple[int, ...]
    order: int = 0
    parameter: bool = False

    def lines(self) -> list[str]:
        array = array_text(self.values, self.dtype, self.shape)
        if self.parameter:
            return [f"{self.name} = gp.Parameter({array})"]
        more = ', dtype="unorm8"' if self.dtype == "unorm8" else ""
        return [f"{self.name} = gp.Field({array}, {self.order}{more})"]

    def value(self) -> Val:
        order = len(self.shape) if self.parameter else self.order
        return Val(array_of(self.values, self.dtype, self.shape), order, self.dtype == "unorm8")

    def run(self, env: Env) -> None:
        env.values[self.name] = self.value()

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        n = len(self.values)
        for part in (self.values[: n // 2], self.values[n // 2 :]):
            if part and n > 1:
                yield (replace(self, values=part),)


@dataclass(frozen=True)
class Show(Step):
    """Look at fields, together or one by one."""

    names: tuple[str, ...]

    def lines(self) -> list[str]:
        first = [f"gp.evaluate({', '.join(self.names)})"] if len(self.names) > 1 else []
        return first + [f"seen.append({name}.numpy())" for name in self.names]

    def run(self, env: Env) -> None:
        for name in self.names:
            if name not in env.values:
                raise Rejected(name)
            env.seen.append(env.values[name])

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if len(self.names) > 1:
            for name in self.names:
                yield (Show((name,)),)
                yield (Show(tuple(n for n in self.names if n != name)),)


@dataclass(frozen=True)
class Program:
    """Steps, and where they come from."""

    kind: str
    seed: int
    steps: tuple[Step, ...]

    def text(self) -> str:
        """A script that appends to `seen` what it looks at."""
        above = {name: lines for step in self.steps for name, lines in step.above().items()}
        body = [line for lines in above.values() for line in ["", *lines]]
        body += [line for step in self.steps for line in step.lines()]
        head = ["import numpy as np", "from numpy import inf, nan", "import gpuop as gp", "from gpuop.dsl import *"]
        return "\n".join([*head, "", "seen = []", *body, ""])

    def expected(self) -> list[Val]:
        env = Env()
        with np.errstate(all="ignore"):
            for step in self.steps:
                perform(env, step)
        return env.seen

    def got(self, device: str) -> list[Any]:
        """The results of gpuop."""
        text, name = self.text(), f"<program {next(_numbers)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        space: dict[str, Any] = {"__name__": "program"}
        try:
            with used(device):
                exec(compile(text, name, "exec"), space)
        finally:
            linecache.cache.pop(name, None)
        values: list[Any] = space["seen"]
        return values


@dataclass(frozen=True)
class Failure:
    """A failure of a program: its kind, and the text to read."""

    what: str
    details: str


def failure(program: Program, device: str) -> Failure | None:
    """The fault in the results of gpuop; None if there is none."""
    want = program.expected()
    try:
        actual = program.got(device)
    except DeviceError as error:
        if "has no arrays for a DeviceOperator" in str(error):
            return None  # an OpenCL GPU refuses it, with this sentence
        return _raised(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return _raised(error)
    if len(actual) != len(want):
        return Failure("count", f"{len(actual)} results, not {len(want)}")
    for k, (value, expected) in enumerate(zip(actual, want, strict=True)):
        what, where = disagreement(value, expected)
        if what:
            return Failure("values" if where is not None else "type", _message(k, value, expected, what, where))
    return None


def _raised(error: Exception) -> Failure:
    last = "".join(traceback.format_exception(error)[-4:]).splitlines()
    return Failure(type(error).__name__, "\n".join(line[:240] for line in last))


def _message(k: int, actual: Any, want: Val, what: str, where: np.ndarray | None) -> str:
    if where is None:
        return f"# seen[{k}] is {what}"
    lines = [f"# {int(where.sum())} of {where.size} values of seen[{k}] are wrong ({want.dtype}, {want.ulps or 0} ULP)"]
    exact = want.array if want.exact is None else want.exact
    for at in np.argwhere(where)[:4]:
        place = tuple(int(i) for i in at)
        index = f"[{', '.join(map(str, place))}]" if place else ""
        lines.append(f"print(seen[{k}]{index}, 'expected', {str(exact[place])!r})  # got {np.asarray(actual)[place]!r}")
    return "\n".join(lines)


def script(program: Program, device: str, failed: Failure) -> str:
    """A script of its own that shows a failure."""
    lines = failed.details.splitlines()
    tail = lines if failed.what in ("values", "type") else [f"# {line}" for line in lines]
    note = f"# {program.kind} {program.seed} on {device}: {failed.what}"
    body = [f"    {line}" if line else "" for line in program.text().splitlines()]
    head = body[: body.index("    seen = []")]
    rest = body[len(head) :]
    start = [line[4:] for line in head]
    form = "from tests.as_gpus import used" if AS_A_GPU in device or device == ON_HOST else ""
    using = f'with {"used" if form else "gp.use_device"}("{device}"):'
    return "\n".join([note, form, *start, using, *rest, *tail, ""])
