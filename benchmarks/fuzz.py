"""Random kernels by the thousand: the programs of `tests/fuzz`, other ones every time.

    python benchmarks/fuzz.py --programs 10000 [--device NAME …] [--pairs N] [--graphs N] [--dags N] [--cuda N]
        [--calls N] [--mistakes N] [--seed N]

Devices are those that gpuop finds, "lowered" (the interpreter after all passes, the default), "passes unrolled" and "passes
vector" (which compare what kernels compute after each pass) and "checked" (checked execution of what was recorded).
Programs run in batches, each with a seed of its own; a failure is made as small as
hypothesis can, and printed with its batch's seed. Ends with 1 where something failed. Needs the `test` extra.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from tests.codegen.nvrtc import compile_cuda
from tests.fuzz import calls, dags, graph_programs, running, test_errors
from tests.fuzz.programs import Program, pairs, programs

BATCH = 100
count: Counter[str] = Counter()


def one_program(program: Program, devices: list[str]) -> None:
    """On every device what it is on the reference."""
    made = running.recorded(program, careful="checked" in devices)
    want = running.computed(made, "reference")
    for device in devices:
        wrong = running.differences(program, running.computed(made, device), want)
        assert not wrong, "\n".join([device, *wrong, running.shown(made)])
        count[device] += 1


def one_pair(pair: tuple[Program, Program], devices: list[str]) -> None:
    """Fused and apart on every device what it is on the reference."""
    want, _ = running.pair_in_a_graph(pair, "reference", optimize=False)
    for device in [d for d in devices if d != "checked"]:
        for optimize in (True, False):
            got, kernels = running.pair_in_a_graph(pair, device, optimize)
            for name, value in got.items():
                np.testing.assert_array_equal(value, want[name], err_msg=f"{device}, optimize={optimize}: {name}")
            count[f"pairs on {device} in {kernels} kernels"] += 1


def one_graph(graph: graph_programs.Graph, devices: list[str]) -> None:
    """Fused and unfused what the reference makes of it unfused, bit for bit."""
    for device in [d for d in devices if d not in ("checked", "lowered")] or ["reference"]:
        with gp.use_device(device):
            count.update(graph_programs.check(graph, unfused_too=device != "reference"))


def one_dag(number: int, devices: list[str]) -> None:
    """Fused and unfused what NumPy makes of it; small and large ones in turns."""
    with running.using(next((d for d in devices if d != "checked"), "reference")):
        dags.check(dags.drawn(number, 8 + number % 5 * 4))
    count["dags"] += 1


def one_for_cuda(program: Program, devices: list[str]) -> None:
    compile_cuda(generate(running.kernel(running.recorded(program)), target_named("cuda")).text, "sm_90")
    count["compiled for CUDA"] += 1


def one_mistake(mistake: tuple[Any, Any], devices: list[str]) -> None:
    count[f"mistakes: {test_errors.attempt(*mistake)}"] += 1


def one_function(number: int, devices: list[str]) -> None:
    """Called again and again with arrays of each library that lie where the device computes: what NumPy makes of them."""
    for device in [d for d in devices if d not in ("checked", "lowered")] or ["reference"]:
        libraries = ["numpy", *(name for name in calls.LIBRARIES if device.startswith("cuda") and find_spec(name))]
        with gp.use_device(device):
            for library in libraries:
                count[f"calls of {library} on {device}"] += calls.check(calls.drawn(number), library)


MISTAKES = st.tuples(st.lists(test_errors.STEPS, min_size=1, max_size=3), st.sampled_from([test_errors.TYPE, None]))


def batch(check: Callable[..., None], strategy: Any, devices: list[str], number: int, size: int) -> bool:
    """Return whether all examples of a batch pass; a failure is printed at its smallest."""

    @seed(number)
    @settings(
        max_examples=size, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False,
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(strategy)
    def run(example: Any) -> None:
        check(example, devices)

    try:
        run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the next batch is another one
        print(f"--- seed {number}, {check.__name__}: {type(error).__name__}: {error}", flush=True)
        print("\n".join(getattr(error, "__notes__", ())), flush=True)
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument(
        "--pairs", type=int, default=0, help="programs that read one another's outputs, fused and apart"
    )
    parser.add_argument(
        "--graphs", type=int, default=0, help="graphs of operators of every kind (by default on the reference)"
    )
    parser.add_argument("--dags", type=int, default=0, help="dense graphs of integers, compared with NumPy")
    parser.add_argument("--cuda", type=int, default=0, help="programs that are compiled for CUDA")
    parser.add_argument(
        "--calls", type=int, default=0, help="functions of arrays, called in many ways, compared with NumPy"
    )
    parser.add_argument("--mistakes", type=int, default=0, help="ill-typed bodies")
    parser.add_argument("--device", action="append", default=[])
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given_ = parser.parse_args()
    devices = given_.device or ["lowered"]
    print(f"seed {given_.seed}, on {', '.join(devices)}", flush=True)
    start, failed, number = time.time(), 0, given_.seed
    work = (
        (one_program, programs(), given_.programs),
        (one_pair, pairs(), given_.pairs),
        (one_graph, graph_programs.graphs(9), given_.graphs),
        (one_dag, st.integers(0, 2**40), given_.dags),
        (one_function, st.integers(0, 2**40), given_.calls),
        (one_for_cuda, programs(), given_.cuda),
        (one_mistake, MISTAKES, given_.mistakes),
    )
    for check, strategy, total in work:
        for first in range(0, total, BATCH):
            failed += not batch(check, strategy, devices, number, min(BATCH, total - first))
            number += 1
            print(f"{time.time() - start:6.0f} s: {dict(count)}", flush=True)
    print(f"{failed} of {number - given_.seed} batches failed; {time.time() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
