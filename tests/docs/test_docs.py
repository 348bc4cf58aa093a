"""The Python of every page runs; `text` blocks are the output of the block before, `console` blocks that on a CPU."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import linecache
import re
from pathlib import Path

import numpy as np
import pytest
from skimage import data

import gpuop as gp
from gpuop.dsl.vocabulary import NAMES
from gpuop.passes.schedules.methods import METHODS, PLAIN

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(python|text|console)\n(.*?)```", re.S)
TIMES = re.compile(r"[\d.]+ ms")
ELSEWHERE = {"docs/reference/api.md", "docs/reference/numpy.md"}  # signatures; tests/docs/test_arrays.py runs the other
ON_DRIVERS = {"architecture", "stream", "mpi", "dask", "windows"}  # pages of programs that are more than shown output
NEEDS = {"dask": "dask"}


def shows_python(page: Path) -> bool:
    return "```python\n" in page.read_text(encoding="utf-8") and page.relative_to(ROOT).as_posix() not in ELSEWHERE


PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if shows_python(page)]
WITH_PLANS = [page for page in PAGES if "```console\n" in page.read_text(encoding="utf-8")]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run(page: Path, folder: Path) -> list[tuple[str, str, str]]:
    """Each shown output: its kind, what the page shows, and what the block before it printed."""
    script, shown, scope, written, printed = folder / f"{page.stem}.py", [], {"__name__": "__page__"}, "", ""
    for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind != "python":
            shown.append((kind, body.strip(), printed.strip()))
            continue
        script.write_text(written + body, encoding="utf-8")
        linecache.checkcache(str(script))
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * written.count("\n") + body, str(script), "exec"), scope)
        written, printed = written + body, output.getvalue()
    return shown


def update(page: Path, shown: list[tuple[str, str, str]]) -> None:
    """Writes the actual output into the `text` blocks of the page."""
    outputs = iter(actual for kind, _, actual in shown if kind == "text")
    text = re.sub(r"```text\n.*?```", lambda _: f"```text\n{next(outputs)}\n```", page.read_text("utf-8"), flags=re.S)
    page.write_text(text, encoding="utf-8")


@pytest.mark.daily
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if page.stem in NEEDS and importlib.util.find_spec(NEEDS[page.stem]) is None:
        pytest.skip(f"{NEEDS[page.stem]} is not installed")
    monkeypatch.chdir(tmp_path)
    with contextlib.nullcontext() if page.stem in ON_DRIVERS else gp.use_device("reference"):
        shown = run(page, tmp_path)
    if request.config.getoption("--update-golden"):
        update(page, shown)
        return
    for kind, expected, actual in shown:
        assert kind == "console" or actual == expected


@pytest.mark.parametrize("page", WITH_PLANS, ids=name_of)
def test_page_shows_lines_of_a_plan_of_a_cpu(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order; times are the device's."""
    name = next((each.name for each in gp.devices() if "opencl:cpu" in each.aliases), None)
    if name is None:
        pytest.skip("there is no OpenCL for a CPU")
    monkeypatch.chdir(tmp_path)
    with gp.use_device(name):
        shown = run(page, tmp_path)
    for _, expected, actual in (each for each in shown if each[0] == "console"):
        printed = (line.strip() for line in TIMES.sub("… ms", actual).splitlines())
        for line in TIMES.sub("… ms", expected).splitlines():
            assert line.strip() in printed, f"{line!r}, of:\n{actual}"


def test_the_page_of_schedules_lists_all() -> None:
    page = (ROOT / "docs" / "reference" / "schedules.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \| `gpuop/", page, re.MULTILINE)
    assert sorted(rows) == sorted({PLAIN, *(method.name for method in METHODS)})


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_the_steepness_of_the_tutorial_is_that_of_any_picture(dtype: str) -> None:
    """Differences of bytes are not bytes."""
    page = (ROOT / "docs" / "tutorials" / "stencil.md").read_text(encoding="utf-8")
    (body,) = (body for kind, body in BLOCK.findall(page) if kind == "python" and "def steepness" in body)
    linecache.cache["steepness.py"] = (len(body), None, body.splitlines(True), "steepness.py")
    scope = {"gp": gp, **{name: value for name, value in NAMES.items() if name.startswith("_")}}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(body, "steepness.py", "exec"), scope)
    picture = data.camera().astype(dtype)
    padded = np.pad(picture.astype(np.float32), ((0, 0), (1, 1)), mode="symmetric")
    rise = scope["steepness"](gp.ScalarField(picture), "symmetric").numpy()
    np.testing.assert_array_equal(rise, np.abs(padded[:, 2:] - padded[:, :-2]))


def test_the_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
