"""The kinds of random programs, by name."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import numpy as np

from tests.borders import CHECKED

from .algebra import INEXACT
from .blocks import a_block, what_is_read_back
from .bodies import a_kernel
from .choose import Maker
from .collectives import a_collective
from .driving import a_graph
from .fields import a_slice
from .filters import a_chain, a_grid_of_filters
from .layouts import a_layout
from .loops import HOST, Calls, Host, eager, parameters
from .program import Input, Program, Show
from .reblocks import a_reblocking
from .reductions import a_reduction
from .schedules import OF_GPUS, PINS, a_near_stencil, a_pin, a_ragged_grid, suited
from .stencils import a_sample, a_stencil
from .turns import an_iteration
from .updates import an_update
from .values import Rng, a_grid, numbers


def algebra(rng: Rng) -> Maker:
    """Functions of whole fields on one grid, all looked at together."""
    maker = Maker(rng, a_grid(rng), float(rng.choice((0.05, 0.3))))
    for _ in range(int(rng.integers(5, 13))):
        maker.let(maker.one_of(list(INEXACT)) if maker.chance(0.1) else "")
    return shown(maker)


def slices(rng: Rng) -> Maker:
    """Slices, what is computed of them, and reductions."""
    maker = Maker(rng, a_grid(rng), float(rng.choice((0.05, 0.3))))
    for _ in range(int(rng.integers(4, 8))):
        maker.one_of((maker.let, a_slice_in(maker), a_slice_in(maker), a_reduction_in(maker)))()
    return shown(maker)


def reductions(rng: Rng) -> Maker:
    maker = Maker(rng, a_grid(rng, 400), float(rng.choice((0.02, 0.2))))
    for _ in range(int(rng.integers(1, 3))):
        maker.let()
    for _ in range(int(rng.integers(2, 5))):
        a_reduction(maker)
    return shown(maker)


def stencils(rng: Rng) -> Maker:
    """Reads around points, of what others have computed."""
    maker = Maker(rng, a_grid(rng, 100, (1, 1, 2, 2, 3)), 0.05)
    for _ in range(int(rng.integers(2, 5))):
        draw = rng.random()
        if draw < 0.6:
            a_stencil(maker)
        elif draw < 0.8:
            a_sample(maker)
        else:
            maker.let()
    return shown(maker)


def schedules(rng: Rng) -> Maker:
    """Stencils, functions of their points and what else a schedule is for, which is pinned."""
    method = list(PINS)[int(rng.integers(len(PINS)))]
    maker = Maker(rng, a_ragged_grid(rng, method), 0.05)
    border = maker.one_of((*CHECKED, 7))
    maker.input(
        maker.one_of(("float32", "float32", "uint8", "int32", "int16", "float16")), maker.one_of(((), (), (), (3,)))
    )
    for _ in range(int(rng.integers(2, 6))):
        draw = rng.random()
        if draw < 0.4:
            suited(maker, method, border)
        elif draw < 0.65:
            a_near_stencil(maker, border)
        else:
            maker.let()
    suited(maker, method, border)
    results = [step.name for step in maker.steps if not isinstance(step, Input)]
    if results:
        a_pin(maker, method, tuple(dict.fromkeys((*results[-1:], maker.one_of(results)))))
    return maker


def filters(rng: Rng) -> Maker:
    """SciPy's filters, and what reads at offsets, in a row and of slices, as a device runs them or under a schedule of GPUs."""
    maker = Maker(rng, a_grid_of_filters(rng), 0.05)
    a_chain(maker)
    results = [step.name for step in maker.steps if not isinstance(step, Input)]
    names = tuple(dict.fromkeys((*results[-2:], maker.one_of(results))))
    if maker.chance(0.4):
        a_pin(maker, maker.one_of(OF_GPUS), names)
    else:
        maker.add(Show(names))
    return maker


def kernels(rng: Rng) -> Maker:
    """One kernel, or two of which the second reads what the first one writes."""
    maker = Maker(rng, a_grid(rng, 60, (0, 1, 1, 1, 2, 2, 3)), float(rng.choice((0.05, 0.2))))
    for _ in range(int(rng.choice((1, 1, 2)))):
        a_kernel(maker)
    return shown(maker)


def reblockings(rng: Rng) -> Maker:
    """Points in another order, of what others have computed, which compute of them."""
    maker = Maker(rng, a_grid(rng, 200, (1, 2, 2, 3)), 0.05)
    for _ in range(int(rng.integers(2, 6))):
        if not maker.chance(0.6) or not a_reblocking(maker):
            maker.let()
    a_reblocking(maker)
    return shown(maker)


def layouts(rng: Rng) -> Maker:
    """Values that NumPy's functions move, and what is computed of them."""
    maker = Maker(rng, a_grid(rng, 120, (1, 2, 2, 3)), 0.05)
    for _ in range(int(rng.integers(3, 8))):
        if not maker.chance(0.7) or not a_layout(maker):
            maker.let()
    return shown(maker)


def collectives(rng: Rng) -> Maker:
    """Work-groups that share values, among functions of the points."""
    maker = Maker(rng, a_grid(rng, 300, (1, 2)), 0.05)
    for _ in range(int(rng.integers(2, 5))):
        if not maker.chance(0.7) or not a_collective(maker):
            maker.let()
    a_collective(maker)
    return shown(maker)


def blocks(rng: Rng) -> Maker:
    """Work-groups that load blocks and read what they have written, and operators that update, among functions of the points."""
    maker = Maker(rng, a_grid(rng, 200, (1, 2, 2, 3)), 0.05)
    for _ in range(int(rng.integers(2, 6))):
        maker.one_of((maker.let, lambda: a_block(maker), lambda: what_is_read_back(maker), lambda: an_update(maker)))()
    return shown(maker)


def loops(rng: Rng) -> Maker:
    """Eager loops over names that are bound again."""
    maker = Maker(rng, a_grid(rng, 40), 0.05)
    eager(maker)
    return maker


def set_parameters(rng: Rng) -> Maker:
    maker = Maker(rng, a_grid(rng, 40), 0.05)
    parameters(maker)
    return maker


def turns(rng: Rng) -> Maker:
    """Iterations and host operators among algebra, or a pipeline of such."""
    maker = Maker(rng, a_grid(rng, 60), 0.05)
    for _ in range(int(rng.integers(3, 6))):
        draw = rng.random()
        if draw < 0.4:
            an_iteration(maker)
        elif draw < 0.5:
            maker.add(Host(maker.name(), maker.field(), maker.one_of(list(HOST)), maker.chance(0.5)))
        else:
            maker.let()
    return shown(maker, 4)


def pipelines(rng: Rng) -> Maker:
    """A pipeline called with arrays of the same and of other shapes."""
    maker = Maker(rng, a_grid(rng, 60), 0.05)
    outer = [maker.input() for _ in range(int(rng.integers(1, 3)))]
    values = [s for s in maker.steps if isinstance(s, Input) and s.dtype != "unorm8"]
    for _ in range(int(rng.integers(2, 6))):
        maker.one_of((maker.let, maker.let, a_slice_in(maker), a_reduction_in(maker), lambda: an_iteration(maker)))()
    body = tuple(s for s in maker.steps if s not in values)
    results = tuple(n for n in maker.env.values if n not in {s.name for s in values})[-3:]
    calls = [tuple(_again(s, rng) for s in values) for _ in range(int(rng.integers(1, 4)))]
    final = Maker(rng, maker.grid)
    if results and values and outer:
        step = Calls("process", tuple((s.name, s.order) for s in values), body, results, tuple(calls))
        final.add(step) or final.add(Calls(step.name, step.given, body, results, (tuple(values),)))
    return final


def _again(value: Input, rng: Rng) -> Input:
    return Input(value.name, numbers(rng, value.dtype, 7, 0.05), value.dtype, value.shape, value.order)


def graphs(rng: Rng) -> Maker:
    """A stateful graph."""
    maker = Maker(rng, a_grid(rng, 60), 0.05)
    while not a_graph(maker):
        pass
    return maker


def a_slice_in(maker: Maker) -> Callable[[], bool]:
    return lambda: a_slice(maker)


def a_reduction_in(maker: Maker) -> Callable[[], bool]:
    return lambda: a_reduction(maker)


def shown(maker: Maker, most: int = 8) -> Maker:
    """Look at the last results, some earlier ones, together."""
    values = {s.name for s in maker.steps if isinstance(s, Input)}
    late = [name for name in maker.env.values if name not in values][-most:]
    if late:
        maker.add(Show(tuple(late)))
    return maker


KINDS: dict[str, Callable[[Rng], Maker]] = {
    "algebra": algebra, "slices": slices, "reductions": reductions, "stencils": stencils, "schedules": schedules,
    "filters": filters, "kernels": kernels, "loops": loops, "parameters": set_parameters, "turns": turns,
    "pipelines": pipelines, "graphs": graphs,
    "reblockings": reblockings, "layouts": layouts, "collectives": collectives, "blocks": blocks,
}  # fmt: skip

GRAPHS = ("graphs",)
PROGRAMS = tuple(kind for kind in KINDS if kind not in GRAPHS)


def program(kind: str, seed: int) -> Program:
    """The program of a seed."""
    rng = np.random.default_rng([crc32(kind.encode()), seed])
    return Program(kind, seed, tuple(KINDS[kind](rng).steps))
