"""Type checkers know the vocabulary and `gp`: programs of pages and the examples pass, and slips are refused at their lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuop import dsl

from .test_docs import BLOCK, PAGES

pytest.importorskip("mypy")
ROOT = Path(__file__).parent.parent
SLIPS = Path(__file__).parent / "mistyped.py"
TYPED = [page for page in PAGES if page.parent.name in ("tutorials", "how-to") or page.name == "README.md"]
STENCIL = ROOT / "docs" / "tutorials" / "stencil.md"
STAR = re.compile(r"from gpuop\.dsl import \*.*")


def program(page: Path) -> str:
    """The programs of a page, one after the other."""
    return "\n".join(body for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == "python")


def named(text: str) -> str:
    """The program with imports of the names that it uses in the place of the star."""
    used = set(re.findall(r"\b_\w+", text)) & set(dsl.__all__)
    return STAR.sub(f"from gpuop.dsl import {', '.join(sorted(used))}", text)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What mypy says of each file: the code of the error by line. Bodies of kernels, which have no annotations, are checked too."""
    folder = tmp_path_factory.mktemp("typed")
    for page in TYPED:
        name = page.stem.replace("-", "_")
        (folder / f"page_{name}.py").write_text(program(page), encoding="utf-8")
    (folder / "named.py").write_text(named(program(STENCIL)), encoding="utf-8")
    files = [*sorted(folder.glob("*.py")), *sorted((ROOT / "examples").glob("*.py")), SLIPS]
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
    stencil = program(STENCIL)
    assert STAR.search(stencil) and "_readTensor" in named(stencil) and not STAR.search(named(stencil))
    assert {file: errors for file, errors in told.items() if file != SLIPS.name} == {}


def test_slips_are_refused(told: dict[str, dict[int, str]]) -> None:
    lines = SLIPS.read_text().splitlines()
    expected = {n: found[1] for n, line in enumerate(lines, 1) if (found := re.search(r"# refused: ([\w-]+)$", line))}
    assert len(expected) == 10
    assert told[SLIPS.name] == expected
