"""One function measured: gpuop's call and those of other libraries in turns, and how far their results are apart."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gpuop as gp
from benchmarks.turns import in_turns, middle_half, step_of

from .comparing import difference
from .given import Arrays, scope_of
from .libraries import GPUOP, Library, field_of
from .row import Row, action, leaves

Action = Callable[[], Any]
MOST, LEAST, LONG = 9, 3, 0.5  # rounds after the first one, and the seconds of one that has none after it
LONGEST = 3  # seconds of a first call that is all there is
TAKEN_AS_CALLED = ("ndimage", "linalg", "fft")  # modules whose functions take arrays of the other libraries


@dataclass
class Others:
    """The actions of other libraries for a row; `once` are times of calls that are too long for more."""

    first: Any = None
    actions: dict[str, Action] = field(default_factory=dict)
    once: dict[str, tuple[float, float]] = field(default_factory=dict)
    without: dict[str, str] = field(default_factory=dict)


class Measuring:
    """A device with the libraries beside gpuop on it.

    Args:
        libraries: the first one's results are what others are compared with, and the first one's arrays what gpuop takes.
        wait: for what was enqueued.
        sizes: what is known of their arrays.
        seconds: that the rounds of what is as quick take, unless three take longer; and of what is slower.
    """

    def __init__(
        self, libraries: list[Library], size: int, sizes: dict[int, Arrays], wait: Callable[[], object], seconds: float
    ) -> None:
        self.libraries, self.sizes, self.wait, self.seconds = libraries, sizes, wait, seconds
        self.fields: dict[tuple[str, int], gp.Field] = {}
        self.size = size

    def given(self, row: Row) -> Arrays:
        size = self.size // row.part
        return self.sizes.setdefault(size, Arrays(size))

    def found(self, row: Row) -> dict[str, Any]:
        """The entry of a function in the file.

        Returns:
            `ms`: of each library the median and the width of the middle half; `error`: as of `comparing.difference`;
            `view`: whether the first library's result is a view of what it gets; `without`: why a library has no time.
        """
        ours, result, graph = self._ours(row)
        others = self._others(row)
        known: dict[str, Any] = {"ms": {}}
        if self.seconds:
            known["ms"] = self._times({"gpuop": ours} | others.actions) | others.once
            if row.compared and others.first is not None:
                known["error"] = difference(_compared(row, result()), _compared(row, others.first))
                known |= {"view": True} if self._is_view(row, others.first) else {}
        else:  # only what is compiled is wanted, which caches keep
            ours()
        if graph is not None:
            graph.release()
        return known | ({"without": others.without} if others.without else {})

    def free(self) -> None:
        """Give back the device's memory that no array has any more; where others prepare too, all of it."""
        if not self.seconds:
            self.fields.clear()
            for library in self.libraries:
                library.kept.clear()
            gp.release()
        for library in self.libraries:
            library.free()

    def _others(self, row: Row) -> Others:
        found = Others()
        for library in self.libraries:
            if not library.code(row):
                continue
            try:
                run = library.action(row, self.given(row))
                began = time.perf_counter()
                result = run()
                self.wait()
                took = time.perf_counter() - began
            except Exception as error:  # noqa: BLE001 - whatever a library raises that has not the function
                found.without[library.name] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
                continue
            name = "NumPy" if library.name == "SciPy" and row.module not in ("ndimage", "fft") else library.name
            if library is self.libraries[0]:
                found.first = result
            if took > LONGEST:
                found.once[name] = _of_few([took])
            else:
                found.actions[name] = run
        return found

    def _ours(self, row: Row) -> tuple[Action, Action, gp.ComputeGraph | None]:
        """The action to measure, a function that returns its result, and a graph if there is one."""
        given = self.given(row)
        if row.module in TAKEN_AS_CALLED:
            kept = self.libraries[0]
            arrays = lambda name, value: kept.array(name, value, given.size)  # noqa: E731
            small = lambda a: kept.made(a) if a.ndim > 2 else a  # noqa: E731 - places are arrays as images are
            run = action(row.call, GPUOP | scope_of(row.names(), given, arrays, small))
            return run, run, None
        run = action(row.call, GPUOP | scope_of(row.names(), given, self._field, lambda a: a))
        if row.eager:
            return run, run, None
        with gp.ComputeGraph() as graph:
            fields = leaves(run())
            for n, field in enumerate(fields):
                graph.probe(field, f"result {n}")
        return step_of(graph), lambda: [graph.read(f"result {n}") for n in range(len(fields))], graph

    def _field(self, name: str, array: Any) -> gp.Field:
        key = (name, array.shape[0])
        if key not in self.fields:
            self.fields[key] = gp.evaluate(field_of(name, array))
        return self.fields[key]

    def _is_view(self, row: Row, result: Any) -> bool:
        owners = {id(getattr(array, "base", None)) for array in leaves(result)}
        return any(
            id(array if array.base is None else array.base) in owners for array in self.libraries[0].kept.values()
        )

    def _times(self, actions: dict[str, Action]) -> dict[str, tuple[float, float]]:
        """Medians and widths; what is quick has rounds of its own, since one reading of it says little."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            once = in_turns(actions, 1, wait=self.wait, warm=1)
            quick = {name for name, (seconds,) in once.items() if seconds <= self.seconds}
            taken = dict(once)
            for names in (quick, once.keys() - quick):
                group = {name: action for name, action in actions.items() if name in names}
                rounds = self._rounds(sum(once[name][0] for name in names))
                for name, more in in_turns(group, rounds, wait=self.wait, warm=0).items():
                    taken[name] = [*taken[name], *more]
        return {name: _of_few(seconds) for name, seconds in taken.items()}

    def _rounds(self, seconds: float) -> int:
        """The number of rounds after the first one, which took so long."""
        return 0 if seconds > LONG or not seconds else max(LEAST, min(MOST, int(self.seconds / seconds)))


def _of_few(seconds: list[float]) -> tuple[float, float]:
    median, width = middle_half(seconds) if len(seconds) > 1 else (1e3 * seconds[0], 0.0)
    return round(median, 4), round(width, 4)


def _compared(row: Row, result: Any) -> Any:
    """The part of a result that is compared; several fields of gpuop are a list."""
    return eval(row.compared, {"r": result, "np": np})
