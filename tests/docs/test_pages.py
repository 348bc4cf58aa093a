"""Names in pages exist: each file in backticks, the name after its colon, and the target of each link."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FILES = [
    file
    for folder in ("gpuop", "docs", "tests", "benchmarks", "examples")
    for file in (ROOT / folder).rglob("*.py*")
    if file.suffix != ".pyc"
]
RECIPES = [page for page in PAGES if page.parent.name == "adding" and page.name != "README.md"]
FENCED = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)#?([^)]*)\)")
NAMED = re.compile(r"`((?:\w+/)*\w+\.pyi?)(?:: (\w+))?`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_and_their_names_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert named or page.name not in ("architecture.md", "glossary.md")
    for path, name in named:
        results = [file for file in FILES if f"/{file.relative_to(ROOT).as_posix()}".endswith(f"/{path}")]
        assert results or (ROOT / "gpuop" / path).exists(), f"there is no {path}"
        assert not name or any(name in _defined(file) for file in results), f"{path} has no {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Of links in the checkout: the file exists, and has the heading."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for path, anchor in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{path} does not exist"
        assert target.is_relative_to(ROOT), f"{path} is outside of the checkout"
        assert not anchor or anchor in _anchors(target), f"{path} has no heading #{anchor}"


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.name)
def test_recipes_show_code_that_exists(page: Path) -> None:
    """Each line of an excerpt is a line of the file that its first line names."""
    excerpts = re.findall(r"```py\n# (\S+)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert excerpts
    for path, excerpt in excerpts:
        lines = {line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()}
        for line in excerpt.splitlines():
            assert line.strip() in lines, f"{path} has no line {line.strip()!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_table_has_a_row_twice(page: Path) -> None:
    """Rows are known by their first cells, where these say something."""
    for table in re.split(r"\n(?!\|)", page.read_text()):
        first = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
        messages = [cell for cell in first if cell and cell != "word"]
        assert len(messages) == len(set(messages)), next(cell for cell in messages if messages.count(cell) > 1)


def _anchors(page: Path) -> set[str]:
    """The anchors of headings, by the rule of GitHub."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _defined(file: Path) -> set[str]:
    """The classes, functions and variables at the top of a file and of its classes."""
    tree = ast.parse(file.read_text())
    nodes = [*tree.body, *(part for node in tree.body if isinstance(node, ast.ClassDef) for part in node.body)]
    names = {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    targets = [t for node in nodes if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    return names | {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
