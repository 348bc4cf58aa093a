"""What the pages name exists: every file in backticks, and the name after its colon."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FILES = [
    file
    for folder in ("gpuop", "docs", "tests", "benchmarks", "examples")
    for file in (ROOT / folder).rglob("*.py*")
    if file.suffix != ".pyc"
]
NAMED = re.compile(r"`((?:\w+/)*\w+\.pyi?)(?:: (\w+))?`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_and_their_names_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert named or page.name not in ("ARCHITECTURE.md", "adding.md", "glossary.md")
    for path, name in named:
        found = [file for file in FILES if f"/{file.relative_to(ROOT).as_posix()}".endswith(f"/{path}")]
        assert found or (ROOT / "gpuop" / path).exists(), f"there is no {path}"
        assert not name or any(name in _defined(file) for file in found), f"{path} has no {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_table_has_a_row_twice(page: Path) -> None:
    """Rows are known by their first cells, where these say something."""
    for table in re.split(r"\n(?!\|)", page.read_text()):
        first = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
        said = [cell for cell in first if cell and cell != "word"]
        assert len(said) == len(set(said)), next(cell for cell in said if said.count(cell) > 1)


def _defined(file: Path) -> set[str]:
    """The classes, functions and variables at the top of a file and of its classes."""
    tree = ast.parse(file.read_text())
    nodes = [*tree.body, *(part for node in tree.body if isinstance(node, ast.ClassDef) for part in node.body)]
    names = {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    targets = [t for node in nodes if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    return names | {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
