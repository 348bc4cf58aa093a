"""Results of drivers for values that live across barriers and for other orders: the table of `tests/fuzz/waits.py`, against NumPy.

    python benchmarks/waits.py [--device NAME …] [--seconds N] [--type NAME …] [--seed N]

Every device that gpuop finds is given so many seconds of random rows of the table, of each dtype in turn. Without --seconds
the whole table is run. Ends with 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import gpuop as gp
from tests.fuzz.waits import FLOATS, INTEGERS, Row, rows, wrong


def shuffled(types: list[str], seed: int) -> Iterator[Row]:
    """All rows of these dtypes, in a random order, of one dtype after the other."""
    tables = [list(rows(dtype)) for dtype in types]
    for table in tables:
        random.Random(seed).shuffle(table)
    return (row for row in chain.from_iterable(zip_longest(*tables)) if row is not None)


def examine(device: str, types: list[str], seed: int, seconds: float) -> bool:
    """Return whether a device has errors, which are printed, a line each."""
    ran = failed = 0
    end = time.monotonic() + seconds
    with gp.use_device(device):
        for row in shuffled(types, seed):
            if time.monotonic() > end:
                break
            ran += 1
            if found := wrong(row):
                failed += 1
                print(f"{device}: {row}: {found}", flush=True)
    print(f"{device}: {failed} wrong of {ran} rows", flush=True)
    return bool(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", action="append", default=[])
    parser.add_argument("--type", action="append", default=[], choices=[*FLOATS, *INTEGERS])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each device")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    types = given.type or [*FLOATS, *INTEGERS]
    wanted = given.device or [d.name for d in gp.devices()]
    failed = [device for device in wanted if examine(device, types, given.seed, given.seconds)]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
