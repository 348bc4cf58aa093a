"""Random stateful graphs, and random orders of what is done to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .algebra import Let
from .bodies import a_kernel
from .choose import Maker
from .fields import a_slice
from .graphs import Action, Frame, Graph, Sensor
from .loops import CLOSED, HOST, Host
from .program import Env, Input, Step
from .reductions import a_reduction
from .stencils import a_stencil
from .turns import an_iteration
from .values import Val, numbers

STATES = ("float32", "float32", "int32", "int32", "uint8", "float64", "bool", "int64", "uint16", "float16")


def a_graph(maker: Maker) -> bool:
    """States over one grid, a body over them, and a schedule."""
    inputs = [_input(maker, f"s{k}_", maker.one_of(STATES)) for k in range(int(maker.rng.integers(1, 4)))]
    states = [i.name for i in inputs]
    inputs += [_parameter(maker, f"p{k}_") for k in range(int(maker.rng.integers(0, 3)))]
    if maker.chance(0.4):
        inputs.append(_input(maker, "c0_", maker.dtype()))
    sensors = tuple(_sensor(maker, f"f{k}_") for k in range(int(maker.one_of((0, 0, 1, 1, 2)))))
    values = {i.name: i.value() for i in inputs} | {s.name: s.value((0,)) for s in sensors}
    inner = Maker(maker.rng, maker.grid, 0.05, Env(values))
    for _ in range(int(maker.rng.integers(2, 7))):
        _operator(inner)
    nexts = _nexts(inner, states)
    results = [n for n in inner.env.values if n not in values]
    names = [*values, *results, *results]
    probes = tuple(dict.fromkeys(maker.one_of(names) for _ in range(int(maker.rng.integers(1, 5)))))
    fed = maker.one_of(names) if maker.chance(0.3) else ""
    body = tuple(s for s in inner.steps if not (isinstance(s, Input) and s.parameter))
    parameters = [i for i in inputs if i.parameter]
    for _ in range(3):
        actions = tuple(_actions(maker, probes, parameters, bool(fed)))
        graph = Graph(tuple(inputs), sensors, body, nexts, probes, actions, fed, maker.chance(0.85))
        if maker.add(graph):
            return True
    return False


def _input(maker: Maker, name: str, dtype: str) -> Input:
    tensor = maker.one_of(((), (), (), (3,), (2, 2), (5,)))
    grid = maker.grid if maker.chance(0.85) else ()
    return Input(name, numbers(maker.rng, dtype, 7, 0.05), dtype, grid + tensor, len(tensor))


def _parameter(maker: Maker, name: str) -> Input:
    dtype, shape = maker.one_of(("float32", "int32", "uint8", "bool", "float64")), maker.one_of(((), (), (), (3,)))
    return Input(name, numbers(maker.rng, dtype, max(sum(shape), 1), 0.05), dtype, shape, parameter=True)


def _sensor(maker: Maker, name: str) -> Sensor:
    dtype = maker.one_of(("uint8", "float32", "int32", "bool", "unorm8"))
    tensor = maker.one_of(((), (), (3,), (6,)))
    count = int(maker.rng.integers(0, 9))
    frames: list[Frame] = [None if maker.chance(0.15) else numbers(maker.rng, dtype, 7, 0.05) for _ in range(count)]
    return Sensor(name, dtype, maker.grid + tensor, len(tensor), tuple(frames), maker.chance(0.2))


def _operator(inner: Maker) -> None:
    draw = inner.rng.random()
    with np.errstate(all="ignore"):
        if draw < 0.55:
            inner.add(inner.proposed(inner.one_of(CLOSED), inner.field(), inner.name()))
        elif draw < 0.68:
            a_stencil(inner)
        elif draw < 0.76:
            a_reduction(inner)
        elif draw < 0.82:
            a_slice(inner)
        elif draw < 0.9:
            a_kernel(inner, 2)
        elif draw < 0.96:
            an_iteration(inner)
        else:
            inner.add(Host(inner.name(), inner.field(), inner.one_of(list(HOST)), inner.chance(0.5)))


def _nexts(inner: Maker, states: list[str]) -> tuple[tuple[str, str], ...]:
    """The next values of states: values of their types, or ones made for them."""
    results = []
    for state in states:
        if inner.chance(0.1):
            continue
        kind = inner.value(state)
        fit = [n for n in inner.usable() if inner.value(n).type == kind.type and n != state]
        if not fit or inner.chance(0.6):
            loop = _closed(inner, state, kind)
            fit = [loop] if loop else fit
        if fit:
            results.append((state, inner.one_of(fit)))
    return tuple(results)


def _closed(inner: Maker, state: str, kind: Val) -> str:
    """A new value of the state's type, often of a parameter."""
    parameters = [n for n in inner.env.values if n.startswith("p")]
    for _ in range(8):
        step: Step = inner.proposed(inner.one_of(CLOSED), state, inner.name())
        if parameters and inner.chance(0.5):
            step = Let(
                inner.name(), inner.one_of(("add", "multiply", "maximum", "xor")), (state, inner.one_of(parameters))
            )
        if inner.add(step):
            name = list(inner.env.values)[-1]
            if inner.value(name).type == kind.type and not inner.value(name).ends:
                return name
            inner.steps.pop()
            del inner.env.values[name]
    return ""


def _actions(maker: Maker, probes: tuple[str, ...], parameters: list[Input], fed: bool) -> list[Action]:
    results: list[Action] = []
    saved = False
    for _ in range(int(maker.rng.integers(4, 14))):
        draw = maker.rng.random()
        if draw < 0.4:
            results.append(Action("step", data=int(maker.one_of((0, 1, 1, 1, 2, 3)))))
        elif draw < 0.65:
            results.append(Action("read", maker.one_of(probes)))
        elif draw < 0.8 and parameters:
            value = maker.one_of(parameters)
            count: Any = int(np.prod(value.shape))
            results.append(Action("set", value.name, numbers(maker.rng, value.dtype, count, 0.05)))
        elif draw < 0.85:
            results.append(Action("reset"))
        elif draw < 0.88:
            results.append(Action("tick"))
        elif draw < 0.94:
            results.append(Action("load" if saved and maker.chance(0.6) else "save"))
            saved = True
        else:
            results.append(Action("fed" if fed else "sync"))
    results += [Action("read", name) for name in probes] + [Action("tick")]
    return results + ([Action("fed")] if fed else [])
