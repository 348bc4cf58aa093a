"""The pages that show what gpuop prints: their Python runs, and each `text` block is what the block before it prints."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import linecache
import re
from pathlib import Path

import pytest

from gpuop.passes.schedules import METHODS, PLAIN

ROOT = Path(__file__).parent.parent
WITHOUT_DASK = pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="Dask is not installed")
PAGES = [
    "docs/explanation/architecture.md",
    "docs/how-to/stream.md",
    pytest.param("docs/how-to/dask.md", marks=WITHOUT_DASK),
]
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.S)


def run(page: Path) -> list[tuple[str, str]]:
    """Each expected output with the actual one."""
    pairs, scope, printed = [], {"__name__": "__page__"}, ""
    for number, (kind, body) in enumerate(BLOCK.findall(page.read_text())):
        if kind == "text":
            pairs.append((body.strip(), printed.strip()))
            continue
        name = f"{page.name}:{number}"
        linecache.cache[name] = (len(body), None, body.splitlines(True), name)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(body, name, "exec"), scope)
        printed = output.getvalue()
    return pairs


def compare(page: Path, pairs: list[tuple[str, str]], update: bool) -> None:
    """Every output that a page shows is the actual one; `update` rewrites the page instead."""
    if update:
        outputs = iter(actual for _, actual in pairs)
        text = re.sub(r"```text\n.*?```", lambda _: f"```text\n{next(outputs)}\n```", page.read_text(), flags=re.S)
        page.write_text(text)
        return
    for expected, actual in pairs:
        assert actual == expected


@pytest.mark.parametrize("page", PAGES)
def test_page_prints_what_it_shows(page: str, request: pytest.FixtureRequest) -> None:
    path = ROOT / page
    pairs = run(path)
    assert pairs, "the page shows nothing"
    compare(path, pairs, request.config.getoption("--update-golden"))


def test_the_readme_lists_all_schedules() -> None:
    table = re.search(r"\| schedule \| for \|.*?\n\n", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert table is not None
    assert set(re.findall(r"^\| ([a-z ]+) \|", table[0], re.MULTILINE)[1:]) == {
        PLAIN,
        *(method.name for method in METHODS),
    }
