"""Random graphs by the thousand: those of `tests/fuzz`, other ones every time.

    python benchmarks/fuzz.py --graphs 2000 [--device NAME] [--seed N]

Each is run fused and (but for the reference) unfused on the device, and unfused on the reference; the bits must be
equal. Graphs run in batches, each with a seed of its own; a failure is made as small as hypothesis can, and printed with
its batch's seed. Ends with 1 where something failed. Needs the `test` extra.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from hypothesis import HealthCheck, Phase, given, seed, settings

import gpuop as gp
from tests.fuzz import graph_programs
from tests.fuzz.graph_kinds import KINDS
from tests.fuzz.graph_programs import graphs

BATCH = 100
count: Counter[str] = Counter()


def batch(number: int, size: int, device: str) -> bool:
    """Whether all of a batch's graphs pass; what fails is printed at its smallest."""

    @seed(number)
    @settings(
        max_examples=size, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False,
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(graphs(9))
    def run(graph: graph_programs.Graph) -> None:
        count.update(graph_programs.check(graph, unfused_too=device != "reference"))

    try:
        run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the next batch is another one
        print(f"--- seed {number}: {type(error).__name__}: {error}", flush=True)
        print("\n".join(getattr(error, "__notes__", ())), flush=True)
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--device", default="reference")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given_ = parser.parse_args()
    print(f"seed {given_.seed}, on {given_.device}", flush=True)
    start, failed = time.time(), 0
    with gp.use_device(given_.device):
        for n, first in enumerate(range(0, given_.graphs, BATCH)):
            failed += not batch(given_.seed + n, min(BATCH, given_.graphs - first), given_.device)
            print(f"{time.time() - start:6.0f} s: {count['graphs']} graphs, {failed} batches failed", flush=True)
    for what, n in sorted(count.items(), key=lambda item: -item[1]):
        print(f"{n:8} {what}")
    print(f"operators that never occurred: {[k for k in KINDS if not count[f'operator {k}']]}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
