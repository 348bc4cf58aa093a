"""The worst error of every function of every floating type, in ULP, as a table in Markdown.

    python benchmarks/accuracy.py [--device NAME]

Of every device found, on the arguments of the tests (`tests/conformance/accuracy.py`), against 50 digits. Needs the
`test` extra.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import gpuop as gp
from tests.conformance.accuracy import TABLES, arguments, bound, denormals, measured
from tests.conformance.compare import has_double

DTYPES = ("float32", "float64", "float16")


def worst(device: str) -> dict[tuple[str, str], tuple[float, str]]:
    """By function and type: the greatest error, and the call that made it."""
    found = {}
    with gp.use_device(device):
        for dtype in DTYPES if has_double() else ("float32", "float16"):
            for kind in TABLES:
                arrays = arguments(kind, dtype, denormals(dtype))
                for name, (got, _, off) in measured(kind, dtype).items():
                    at = int(np.argmax(off))
                    call = f"{name}({', '.join(shown(a[at]) for a in arrays)}) = {shown(got[at])}"
                    found[name, dtype] = float(off[at]), call
    return found


def shown(number: Any) -> str:
    return f"{number:.9g}" if isinstance(number, np.floating) else str(number)


def table(device: str, found: dict[tuple[str, str], tuple[float, str]]) -> str:
    lines = [f"## {device}", "", "| function | type | bound | worst | where |", "|---|---|---|---|---|"]
    for (name, dtype), (error, call) in sorted(found.items()):
        limit = bound(name, dtype)
        text = f"**{error:.2f}**" if error > limit * (1 + 1e-6) else f"{error:.2f}"
        lines.append(
            f"| `_{name}` | {dtype} | {limit:g} | {text} | `{call}` |"
            if error
            else f"| `_{name}` | {dtype} | {limit:g} | 0 | |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="only this one; default: every device found")
    chosen = parser.parse_args().device
    for device in gp.devices():
        if device.problem is None and chosen in (None, device.name, *device.aliases):
            print(table(f"{device.name}: {device.description}", worst(device.name)))


if __name__ == "__main__":
    main()
