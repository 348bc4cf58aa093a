"""Measure the gradient of an example that learns in one library: seconds, and the memory that it adds.

    python -m benchmarks.learned.run pattern_fit gpuop [--size 512] [--rounds 5]

One library a process, as memory is the peak of the process. The last line has the value and the norm of the gradient.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))


def megabytes() -> float:
    """The peak of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("example")
    parser.add_argument("library", choices=("gpuop", "jax", "torch"))
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    module = importlib.import_module(f"benchmarks.learned.{args.example}")
    both = getattr(module, f"with_{args.library}")(args.size)
    before, times = megabytes(), list[float]()
    for _ in range(args.rounds + 1):
        start, cpu = time.perf_counter(), time.process_time()
        loss, slope = both()
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            print(f"{args.library}: first {times[0]:.2f} s, {time.process_time() - cpu:.2f} s of CPU", end="; ")
    print(f"then {median(times[1:]):.3f} s, {megabytes() - before:.0f} MB more")
    print(f"loss {float(loss):.7g}, gradient {np.linalg.norm(np.asarray(slope)):.7g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
