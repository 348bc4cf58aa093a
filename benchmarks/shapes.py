"""Results of compilers for small nests of integer operators: the table of `tests/fuzz/shapes.py`, against NumPy.

    python benchmarks/shapes.py [--device NAME …] [--seconds N] [--type NAME …] [--form NAME …] [--seed N] [--report FILE]

Every device that gpuop finds is given so many seconds of random shapes of the table, in every form: in masked and in full
work-groups, apart and side by side, on vectors, and in lanes. Without --seconds the whole table is run. Ends with 1 where
something is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import gpuop as gp
from tests.fuzz import shapes
from tests.fuzz.shapes import INTEGERS

FORMS = {  # shapes of a kernel, and the arguments of `wrong`
    "masked": (60, {"grid": (13, 5)}),
    "full": (60, {"grid": (16, 4)}),
    "in masked rows": (60, {"grid": (1, 61)}),
    "side by side": (8, {"grid": (13, 5), "blocks": False}),
    "vectors": (15, {"grid": (13, 5), "tensor": 3}),
    "lanes": (8, {"grid": (1, 4161), "blocks": False}),
    "wide lanes": (4, {"grid": (1024, 1024), "blocks": False}),
}
REDUCTIONS = ("(-f).max()", "(-f).min()", "(~f).max()", "(~f).min()", "abs(f).min()", "(-abs(f)).max()", "(-f).sum()")


def reductions(dtype: str) -> dict[str, str]:
    """The errors of reductions, of fields of several sizes."""
    found = {}
    for count in (3, 8, 1000):
        f = np.resize(shapes.values(dtype, min(count, 1000))[0], count)
        for text in REDUCTIONS:
            with np.errstate(all="ignore"):
                want = np.asarray(eval(text, {"f": f})).astype(dtype)
            got = eval(text, {"f": gp.ScalarField(f)}).numpy()
            if got.astype(dtype) != want:
                found[f"{text} of {count}"] = f"{got} for {want}"
    return found


def batches(table: list[str], types: list[str], forms: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """(form, dtype, shapes) by turns, until the table is through for all."""
    starts = Counter(dict.fromkeys(((form, dtype) for form in forms for dtype in types), 0))
    while any(start < len(table) for start in starts.values()):
        for form, dtype in starts:
            start, count = starts[form, dtype], FORMS[form][0]
            if start < len(table):
                yield form, dtype, table[start : start + count]
                starts[form, dtype] += count


def examine(device: str, table: list[str], types: list[str], forms: list[str], seconds: float) -> list[str]:
    """The errors of a device, a line each."""
    lines, ran = [], Counter[str]()
    with gp.use_device(device):
        for dtype in types:
            lines += [f"{device} {dtype} reductions: {what}: {how}" for what, how in reductions(dtype).items()]
        end = time.monotonic() + seconds
        for form, dtype, chosen in batches(table, types, forms):
            if time.monotonic() > end:
                break
            found = shapes.wrong(chosen, dtype, **FORMS[form][1])
            lines += [f"{device} {dtype} {form}: {shape}: {how}" for shape, how in found.items()]
            ran[form] += len(chosen)
    print(f"{device}: {len(lines)} wrong of {dict(ran)}", flush=True)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", action="append", default=[])
    parser.add_argument("--type", action="append", default=[], choices=INTEGERS)
    parser.add_argument("--form", action="append", default=[], choices=FORMS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each device")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--report", type=Path, help="where to write all that is wrong")
    given = parser.parse_args()
    table = shapes.table()
    random.Random(given.seed).shuffle(table)
    table = [*shapes.KNOWN, *table]
    print(f"{len(table)} shapes, seed {given.seed}", flush=True)
    lines = []
    for device in given.device or [d.name for d in gp.devices()]:
        lines += examine(device, table, given.type or list(INTEGERS), given.form or list(FORMS), given.seconds)
    print("\n".join(lines if given.report is None else lines[:100]))
    if given.report is not None:
        given.report.write_text("\n".join(lines) + "\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
