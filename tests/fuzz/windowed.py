"""Random pipelines and random windows of their grids: stencils, work-groups and counts, under every border, of one to three
dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.builtins.threads import generated
from gpuop.fusion.windows.footprint import Footprint

BORDERS = ("clamp", "wrap", "reflect", "symmetric", 0.25)
OWN = ("layer", "row", "column")
Array = np.ndarray[Any, Any]
Ends = tuple[tuple[int, ...], tuple[int, ...]]
Body = Callable[[Any, Sequence[Any], Sequence[Any]], Any]  # of a field, own positions and extents


class WindowedProgram:
    """A pipeline, its arguments, and a way to cut its grid, by a seed."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.kinds: list[str] = []
        self.groups: dict[Body, tuple[int, ...]] = {}
        ndim = int(rng.integers(1, 4))
        self.grid = tuple(map(int, rng.integers(5, {1: 200, 2: 40, 3: 14}[ndim], ndim)))
        self.border = rng.choice(np.array(BORDERS, object))
        bodies = [self._body(ndim) for _ in range(int(rng.integers(1, 5)))]
        sums = _counted() if rng.random() < 0.2 else None
        self.array = rng.random(self.grid, np.float32)
        self.weights = rng.random(3, np.float32)
        times = int(rng.integers(0, 3))
        operators = [self._operator(body, ndim) for body in bodies]

        @gp.pipeline
        def program(image: Any, weights: Any) -> gp.Field:
            made, table = gp.ScalarField(image), gp.ScalarField(weights)
            for operator in operators:
                made = operator(made, table)
            if times:
                made = gp.iterate(lambda u: operators[0](u, table), made, times=times)
            return made if sums is None else made + sums(made).max() / 1024.0

        self.pipeline = program

    def _operator(self, body: Body, ndim: int) -> Any:
        self.kinds.append(body.__name__)
        own = [generated()[f"_{name}"] for name in OWN[3 - ndim :]]
        extents = [generated()[f"_{name}s"] for name in OWN[3 - ndim :]]

        @gp.operator
        def step(f: Any, table: Any) -> Any:
            if body in self.groups:
                _localThreads(*self.groups[body])
            return body(f, own, extents) * 0.5 + _readTensor(table, 1) * 0.125

        return step

    def _taps(self, ndim: int) -> list[tuple[tuple[int, ...], float]]:
        count = int(self.rng.integers(1, 5))
        return [
            (tuple(map(int, self.rng.integers(-3, 4, ndim))), float(self.rng.uniform(0.2, 1))) for _ in range(count)
        ]

    def _body(self, ndim: int) -> Body:
        kind, taps = int(self.rng.choice(7, p=[0.16] * 6 + [0.04])), self._taps(ndim)
        border = self.border if self.rng.random() < 0.9 else self.rng.choice(np.array(BORDERS, object))
        axis, reach = int(self.rng.integers(0, ndim)), int(self.rng.integers(1, 4))

        def stencil(f: Any, own: Sequence[Any], extents: Sequence[Any]) -> Any:
            parts = (
                _readTensor(f, *(x + d for x, d in zip(own, at, strict=True)), border=border) * w for at, w in taps
            )
            return sum(parts, start=_readTensor(f))

        def placed(f: Any, own: Sequence[Any], extents: Sequence[Any]) -> Any:
            far = _convert_float(own[axis] * 3 + extents[axis]) / 64
            return stencil(f, own, extents) + far * 0.25

        def looped(f: Any, own: Sequence[Any], extents: Sequence[Any]) -> Any:
            total = _var(0.0)
            with _for(-reach, reach) as i:
                at = [x + (i if k == axis else 0) for k, x in enumerate(own)]
                total += _readTensor(f, *at, border=border) * _convert_float(i + 5)
            return total * 0.125

        def held(f: Any, own: Sequence[Any], extents: Sequence[Any]) -> Any:
            at = [
                _clamp(x + (reach if k == axis else 0), 0, n - 1)
                for k, (x, n) in enumerate(zip(own, extents, strict=True))
            ]
            return _readTensor(f, *at, border="unchecked") - _readTensor(f) * 0.5

        def thrown(f: Any, own: Sequence[Any], extents: Sequence[Any]) -> Any:
            value = _readTensor(f) * 64
            far = _convert_int(_clamp((value - _floor(value) - 0.5) * (8.0 * reach), -float(reach), float(reach)))
            at = [x + (far if k == axis else 0) for k, x in enumerate(own)]
            return _readTensor(f, *at, border=border) + _readTensor(f) * 0.25

        def waiting(f: Any, own: Sequence[Any], extents: Sequence[Any]) -> Any:
            total = _var(_fabs(stencil(f, own, extents)) + 0.01)
            with _while(total < 1):
                total *= 1.5
            return total

        def grouped(f: Any, own: Sequence[Any], extents: Sequence[Any]) -> Any:
            tile = _tile(f, *group, halo=reach, border=border)
            places = [generated()[f"_local{name.title()}"] for name in OWN[3 - ndim :]]
            parts = (
                tile[tuple(x + min(max(d, -reach), reach) for x, d in zip(places, at, strict=True))] * w
                for at, w in taps
            )
            number = generated()[f"_group{OWN[-1].title()}"]
            return sum(parts, start=tile[tuple(places)]) + _convert_float(number) * 0.25

        group = tuple(map(int, self.rng.integers(1, 5, ndim)))
        if kind == 6:
            self.groups[grouped] = group
        return (stencil, placed, looped, held, thrown, waiting, grouped)[kind]

    # --- windows ------------------------------------------------------------------------------------------------

    def cuts(self, whole: Sequence[int]) -> list[list[tuple[int, int]]]:
        """A way to cut each axis into parts of any lengths, of one point or work-group too; those in `whole` are left whole."""
        results, multiples = [], self.footprint.multiples
        for axis, n in enumerate(self.grid):
            places = np.arange(0, n, multiples.get(axis, (1,))[0])[1:]
            most = min(len(places), {1: 8, 2: 5, 3: 3}[len(self.grid)])
            many = 0 if axis in whole else int(self.rng.integers(0, most + 1))
            ends = [0, *sorted(map(int, self.rng.choice(places, many, replace=False))), n]
            results.append(list(pairwise(ends)))
        return results

    def windows(self) -> Iterator[Ends]:
        cuts = self.cuts(list(self.footprint.whole))
        for place in np.ndindex(*map(len, cuts)):
            start, stop = zip(*(parts[k] for parts, k in zip(cuts, place, strict=True)), strict=True)
            yield start, stop

    @property
    def footprint(self) -> Footprint:
        return self.pipeline.footprint(self.array, self.weights)

    def in_windows(self, windows: Iterable[Ends], needed: Footprint) -> Array:
        """The result, put together of windows, with as much around each as a footprint says."""
        longer = {ends: _longer(ends, needed) for ends in windows}
        values = [(ends, taken(self.array, needed.window(*more)), self.weights) for ends, more in longer.items()]
        totals: tuple[Any, ...] = ()

        def window(ends: Ends, stage: int | None) -> Any:
            return self.pipeline.window(self.grid, *ends, "weights", stage, totals, longer[ends])

        for stage in range(len(needed.stages)):
            totals += needed.known([window(ends, stage)(*arrays) for ends, *arrays in values])
        result = np.full(self.grid, np.nan, np.float32)
        for ends, *arrays in values:
            result[tuple(map(slice, *ends))] = window(ends, None)(*arrays)
        return result

    def notices(self, axis: int, times: int = 8) -> bool | None:
        """Return whether some input shows that windows have a point less along an axis; None if that leaves them as they are."""
        needed, n = self.footprint, self.grid[axis]
        if axis in needed.whole or axis in needed.multiples or not 0 < min(each or n for each in needed.halo[axis]) < n:
            return None
        for _ in range(times):
            whole = self.pipeline(self.array, self.weights)
            if not np.array_equal(self.lessened(axis), whole):
                return True
            self.array = self.rng.random(self.grid, np.float32)
        return False

    def lessened(self, axis: int) -> Array:
        """The result of windows of a point along an axis, with a point less around each than is needed."""
        needed = self.footprint
        halo = [(max(a - (k == axis), 0), max(b - (k == axis), 0)) for k, (a, b) in enumerate(needed.halo)]
        less = replace(needed, halo=tuple(halo))
        self.pipeline._in_parts((self.array, self.weights), {}, ("weights",))
        for partition in self.pipeline._partitions._entries.values():
            object.__setattr__(partition, "footprint", less)
        ends = [[(0, n)] if k != axis else [(i, i + 1) for i in range(n)] for k, n in enumerate(self.grid)]
        return self.in_windows((tuple(zip(*place, strict=True)) for place in product(*ends)), less)


def _longer(ends: Ends, needed: Footprint) -> Ends:
    """As many points or a few more: windows at the ends of a grid may be as long as others."""
    more = np.random.default_rng(list(map(sum, ends))).integers(0, 3, (2, len(ends[0])))
    more[:, list(needed.multiples)] = 0
    start, stop = ends
    first = tuple(max(a - int(n), 0) for a, n in zip(start, more[0], strict=True))
    return first, tuple(min(b + int(n), m) for b, n, m in zip(stop, more[1], needed.grid, strict=True))


def _counted() -> Any:
    """Counts of values, made by atomic operations."""

    @gp.operator(outputs=gp.FieldType(8, (), "int32"))
    def counts(f: Any) -> None:
        _globalThreads(f)
        _atomic_inc(_pointerTo(_out0, _convert_int(_clamp(_fabs(_readTensor(f)) * 4, 0.0, 7.0))))

    return counts


def taken(array: Array, ends: Sequence[tuple[int, int]]) -> Array:
    """The points of a window, which go on at the other end."""
    return array[np.ix_(*(np.arange(a, b) % n for (a, b), n in zip(ends, array.shape, strict=False)))]
