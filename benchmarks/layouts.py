"""NumPy's functions that move values, of fields and of arrays, in turns: on a CPU device beside NumPy, whose results are equal.

    python benchmarks/layouts.py [--device NAME] [--size 4096] [--runs 12] [--dtype NAME] [--case NAME]

Device times by the driver's events, and NumPy's by the clock, each with a result of its own: the least of all runs in milliseconds
with the median, and what gpuop takes over what NumPy takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.runtime.devices import current

WARM = 2
DTYPES = ("float32", "uint8")
ROWS, COLUMNS = 3, 5  # by which things are shifted and widened
MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
Case = Callable[[Any], Any]  # of a field or an array


def blocked(x: Any) -> Any:
    """As filters are re-blocked: tiles of 8×8 values one after another."""
    rows, columns = x.shape if isinstance(x, np.ndarray) else x.field_shape
    return x.reshape((rows // 8, 8, columns // 8, 8)).transpose((0, 2, 1, 3))


def padded(mode: str) -> Case:
    return lambda x: np.pad(x, ((ROWS, ROWS), (COLUMNS, COLUMNS)), mode=mode)


def cases(size: int) -> dict[str, Case]:
    order = np.random.default_rng(1).permutation(size)
    return {
        "transpose": lambda x: np.transpose(x),
        "swapaxes of planes": lambda x: np.swapaxes(x.reshape((16, size // 16, size)), 0, 1),
        "moveaxis of planes": lambda x: np.moveaxis(x.reshape((16, size // 16, size)), 0, 2),
        "flip rows": lambda x: np.flip(x, 0),
        "flip columns": lambda x: np.flip(x, 1),
        "flip": lambda x: np.flip(x),
        "rot90": lambda x: np.rot90(x),
        "rot90 three times": lambda x: np.rot90(x, 3),
        "roll rows": lambda x: np.roll(x, ROWS, 0),
        "roll columns": lambda x: np.roll(x, COLUMNS, 1),
        "roll both": lambda x: np.roll(x, (ROWS, COLUMNS), (0, 1)),
        **{f"pad {mode}": padded(mode) for mode in MODES},
        "concatenate rows": lambda x: np.concatenate([x, x], 0),
        "concatenate columns": lambda x: np.concatenate([x, x], 1),
        "concatenate odd columns": lambda x: np.concatenate([x[:, :-COLUMNS], x], 1),
        "stack": lambda x: np.stack([x, x]),
        "stack columns": lambda x: np.stack([x, x], 1).reshape((2 * size, size)),
        "repeat rows": lambda x: np.repeat(x, 2, 0),
        "repeat columns": lambda x: np.repeat(x, 2, 1),
        "tile": lambda x: np.tile(x, (2, 2)),
        "take rows": lambda x: np.take(x, order, 0),
        "take columns": lambda x: np.take(x, order, 1),
        "slice": lambda x: x[ROWS:-ROWS, COLUMNS:-COLUMNS],
        "every other column": lambda x: x[:, ::2],
        "reshape of transposed": lambda x: x.T.reshape((size // 2, size * 2)),
        "reblocked": blocked,
        "astype": lambda x: x.astype("uint8" if x.dtype == np.float32 else "float32"),
    }


def measured(case: Case, values: np.ndarray, runs: int) -> dict[str, np.ndarray]:
    """Milliseconds of all runs, in turns."""
    field = gp.ScalarField(values)
    with gp.ComputeGraph() as graph:
        graph.probe(case(field), "out")
    assert np.array_equal(graph.read("out"), case(values)), "other values"
    times: dict[str, list[float]] = {"gpuop": [], "NumPy": []}
    for _ in range(runs + WARM):
        times["gpuop"].append(sum(row.median_ms for row in graph.profile(1).rows))
        start = time.perf_counter()
        result = case(values)
        copied = np.array(result, order="C") if np.may_share_memory(result, values) else result
        times["NumPy"].append(1e3 * (time.perf_counter() - start))
        del result, copied
    return {name: np.array(each[WARM:]) for name, each in times.items()}


def main(arguments: Sequence[str] | None = None, show: Callable[[str], Any] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="only this one")
    parser.add_argument("--case", action="append", help="only this one")
    given = parser.parse_args(arguments)
    with gp.use_device(given.device or current().name):
        show(f"{current().name}, {current().description}: {given.size}², milliseconds, least and median")
        for dtype in given.dtype or DTYPES:
            values = np.random.default_rng(0).integers(0, 200, (given.size, given.size)).astype(dtype)
            for name, case in cases(given.size).items():
                if given.case and name not in given.case:
                    continue
                found = measured(case, values, given.runs)
                shown = [f"{what} {each.min():7.2f} {np.median(each):7.2f}" for what, each in found.items()]
                ratio = found["gpuop"].min() / found["NumPy"].min()
                show(f"{dtype:8} {name:24} {'   '.join(shown)}   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
