"""Checks of gradients that Kornia and MONAI have, on functions of gpuop: how many pass of those that call one, and why others fail.

They need PyTorch, the library, and the folder of its sources, where its tests are.

python -m tests.frameworks.of_others kornia ../kornia                   filters, colours, morphology and warps
python -m tests.frameworks.of_others kornia ../kornia -k "not compile"  all tests of these
python -m tests.frameworks.of_others monai ../MONAI                     bilateral filters, with all that is tested of them
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDERS = {
    "kornia": ("filters", "color", "morphology", "geometry/transform"),
    "monai": tuple(
        f"networks/layers/filtering/test_{name}.py"
        for name in ("bilateral_precise", "trainable_bilateral", "trainable_joint_bilateral")
    ),
}
OPTIONS = {"kornia": ("--device", "cpu", "--dtype", "float32"), "monai": ()}


def command(library: str, sources: Path, *more: str) -> list[str]:
    options = ["-p", f"of_others.{library}_swapped", "-p", "no:cacheprovider", "--tb=short", "-W", "ignore", "-ra"]
    options += ["--color=no", *OPTIONS[library], *(more or (("-k", "gradcheck") if library == "kornia" else ()))]
    return [sys.executable, "-m", "pytest", *options, *(str(sources / "tests" / name) for name in FOLDERS[library])]


def run(library: str, sources: Path, *more: str) -> tuple[int, int, str]:
    """The numbers of passed and failed tests, and the output of pytest."""
    here = Path(__file__).parents  # the tests of the library are in a package `tests` too
    paths = [str(here[3]), str(here[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        command(library, sources, *more), capture_output=True, text=True, cwd=sources, env=environment
    )
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout[-200:])}
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0), done.stdout + done.stderr


if __name__ == "__main__":
    passed, failed, text = run(sys.argv[1], Path(sys.argv[2]).resolve(), *sys.argv[3:])
    sys.stdout.write(text[-8000:])
    sys.stdout.write(f"{passed} of {passed + failed} pass ({passed / max(passed + failed, 1):.1%})\n")
