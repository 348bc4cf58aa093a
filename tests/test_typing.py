"""Type checkers know the vocabulary and `gp`: the README's programs and the examples pass, and slips are refused at their lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuop import dsl

from .test_docs import BLOCK

pytest.importorskip("mypy")
ROOT = Path(__file__).parent.parent
SLIPS = Path(__file__).parent / "mistyped.py"
STAR = re.compile(r"from gpuop\.dsl import \*.*")


def readme() -> str:
    """The README's programs, one after the other."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    return "\n".join(body for kind, body in blocks if kind == "python")


def named(program: str) -> str:
    """The program with imports of the names that it uses in the place of the star."""
    used = set(re.findall(r"\b_\w+", program)) & set(dsl.__all__)
    return STAR.sub(f"from gpuop.dsl import {', '.join(sorted(used))}", program)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What mypy says of each file: the code of the error by line. Bodies of kernels, which have no annotations, are checked too."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "star.py").write_text(readme())
    (folder / "named.py").write_text(named(readme()))
    files = [folder / "star.py", folder / "named.py", *sorted((ROOT / "examples").glob("*.py")), SLIPS]
    options = ["--config-file=", "--check-untyped-defs", "--follow-imports=silent", f"--cache-dir={folder / 'cache'}"]
    options += ["--ignore-missing-imports", "--no-error-summary", "--hide-error-context"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, files)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        timeout=600,  # of a busy machine
    )
    assert done.returncode == 1 and not done.stderr, done.stdout + done.stderr
    found: dict[str, dict[int, str]] = {}
    for path, line, code in re.findall(r"^(.*?):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M):
        found.setdefault(Path(path).name, {})[int(line)] = code
    return found


def test_programs_are_accepted(told: dict[str, dict[int, str]]) -> None:
    assert "_readTensor" in named(readme()) and not STAR.search(named(readme()))
    assert {file: errors for file, errors in told.items() if file != SLIPS.name} == {}


def test_slips_are_refused(told: dict[str, dict[int, str]]) -> None:
    lines = SLIPS.read_text().splitlines()
    expected = {n: found[1] for n, line in enumerate(lines, 1) if (found := re.search(r"# refused: ([\w-]+)$", line))}
    assert len(expected) == 10
    assert told[SLIPS.name] == expected
