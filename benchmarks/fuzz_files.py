"""Files of states and bundles, changed at random: none may raise anything but what is promised, or change what it should not.

    python benchmarks/fuzz_files.py [--files 10000] [--seed 0]

Prints what became of them. The same seed gives the same files; a failure prints that of its file.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import gpuop as gp
from tests.fuzz import test_files
from tests.fuzz.files import BUNDLES, STATES, Format, mutated


def attempts(name: str, form: Format, data: bytes, attempt: Callable[[Path], str], path: Path, seeds: range) -> None:
    seen, start = Counter[str](), time.process_time()
    for seed in seeds:
        path.write_bytes(mutated(data, form, random.Random(seed)))
        try:
            seen[attempt(path)] += 1
        except BaseException:
            print(f"{name}: the file of seed {seed} fails")
            raise
    print(f"{name}: {len(seeds)} files, {time.process_time() - start:.0f} s")
    for what, count in seen.most_common():
        print(f"  {count:7} {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.files)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.bin"
        graph = test_files.stepping()
        graph.step(3)
        graph.save(path)
        attempts("states", STATES, path.read_bytes(), partial(test_files.load_states, graph), path, seeds)
        test_files.write_bundle(path)
        written = test_files.texts(gp.load_bundle(path))
        attempts("bundles", BUNDLES, path.read_bytes(), partial(test_files.load_bundle, written), path, seeds)


if __name__ == "__main__":
    main()
