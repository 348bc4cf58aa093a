"""SciPy's tests of scipy.ndimage run on gpuop.ndimage: how many of those for the functions that it has pass, and why others fail.

python -m tests.lib.ndimage                      all of them, on the reference device (some minutes)
GPUOP_DEVICE=opencl:0 python -m tests.lib.ndimage -k gaussian -n 2
python -m tests.lib.ndimage --method nested      with that algorithm, wherever it is one of a function
"""

from __future__ import annotations

import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FILES = ("test_filters", "test_fourier", "test_interpolation", "test_measurements", "test_morphology", "test_splines")
# what gpuop.ndimage does not have
ABSENT = "Threading"
REASONS = {
    "float16": "SciPy refuses float16, gpuop computes it",
    "Arrays are not equal": "SciPy's erosion of unsigned values below 0",
}


def command(*more: str, files: tuple[str, ...]) -> list[str]:
    """The command that runs SciPy's tests."""
    modules = [f"scipy.ndimage.tests.{name}" for name in files]
    options = ["-q", "-p", "tests.lib.ndimage.swapped", "-p", "no:cacheprovider", "--assert=plain", "--tb=line"]
    options += ["-W", "ignore"]
    return [sys.executable, "-m", "pytest", *options, "-k", f"not ({ABSENT})", *more, "--pyargs", *modules]


def run(*more: str, files: tuple[str, ...] = FILES) -> tuple[int, int, str]:
    """The numbers of passed and failed tests, and pytest's output."""
    here = str(Path(__file__).parents[3])
    with tempfile.TemporaryDirectory() as elsewhere:  # the settings of pytest here are not SciPy's
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(
            command(*more, files=files), capture_output=True, text=True, cwd=elsewhere, env=environment
        )
    counts = collections.Counter(
        {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout[-400:])}
    )
    return counts["passed"], counts["failed"] + counts["error"], done.stdout


if __name__ == "__main__":
    passed, failed, text = run(*sys.argv[1:])
    why = collections.Counter(
        next((reason for sign, reason in REASONS.items() if sign in line), line[-150:])
        for line in text.splitlines()
        if re.match(r"^(/|E  ).*(Error|Warn|Fail)", line)
    )
    print(f"{passed} of {passed + failed} pass ({passed / max(passed + failed, 1):.1%})")
    for reason, count in why.most_common(20):
        print(f"{count:5} {reason}")
