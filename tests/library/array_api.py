"""The array API standard's own tests run on gpuop.array_namespace: how many pass, and why others are left out.

python -m tests.library.array_api PATH                   a checkout of github.com/data-apis/array-api-tests, with its submodule
GPUOP_DEVICE=opencl:0 python -m tests.library.array_api PATH -k sort --max-examples 5
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# What is left out: parts of tests' names, and why.
SKIPS = {
    "test_setitem": "fields do not change; `gp.updated` makes new ones",
    "test_getitem_masking": "indices are no bool fields; the capabilities say so",
    "__setitem__": "fields do not change; `gp.updated` makes new ones",
    "__index__": "a field is no Python integer: it may have no value yet",
    "complex128": "there is no dtype of two float64",
    "test_cumulative_prod": "running products are of real numbers",
    "test_set_functions": "complex numbers have no order, in which equal ones are found",
    "test_linalg": "an extension",
    "test_fft": "an extension",
}


def command(suite: str, *more: str, skips: str) -> list[str]:
    """The command that runs them."""
    options = ["-q", "-p", "no:cacheprovider", "-rfE", "--tb=line", "-W", "ignore", "--skips-file", skips]
    return [sys.executable, "-m", "pytest", *options, *more, str(Path(suite) / "array_api_tests")]


def skips_text() -> str:
    """The file of what is left out, as the suite reads it."""
    return "".join(f"# {reason}\n{name}\n" for name, reason in SKIPS.items())


def counts_of(text: str) -> dict[str, int]:
    """What pytest's last line says."""
    return {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", text[-400:])}


def run(suite: str, *more: str) -> tuple[dict[str, int], str]:
    """How many tests passed, failed and were skipped, and what pytest wrote."""
    here = str(Path(__file__).parents[2])
    known = os.environ | {
        "ARRAY_API_TESTS_MODULE": "gpuop.array_namespace",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]),
    }
    with tempfile.TemporaryDirectory() as folder:
        skips = Path(folder) / "skips.txt"
        skips.write_text(skips_text())
        line = command(str(Path(suite).resolve()), *more, skips=str(skips))
        done = subprocess.run(line, capture_output=True, text=True, cwd=suite, env=known)
    return counts_of(done.stdout), done.stdout + done.stderr


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    counts, text = run(*sys.argv[1:])
    passed, failed = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    print("\n".join(line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))) or text[-2000:])
    print(
        f"{passed} of {passed + failed} pass ({passed / max(passed + failed, 1):.1%}); {counts.get('skipped', 0)} are left out:"
    )
    for name, reason in SKIPS.items():
        print(f"  {name:24} {reason}")
