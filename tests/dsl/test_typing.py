"""Type checkers know the vocabulary and `gp`: programs of pages and the examples pass, and slips are refused at their lines."""

from __future__ import annotations

import inspect
import os
import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import dsl
from tests.docs.test_docs import BLOCK, PAGES

pytest.importorskip("mypy")
ROOT = Path(__file__).parents[2]
SLIPS = {Path(__file__).parent / "mistyped.py": 10, Path(__file__).parent / "library_mistyped.py": 13}
TYPED = [page for page in PAGES if page.parent.name in ("tutorials", "how-to") or page.name == "README.md"]
STENCIL = ROOT / "docs" / "tutorials" / "stencil.md"
# Packages with types, which take mypy longer than gpuop does, and whose own code is nothing to these programs.
SKIPPED = ("dask", "distributed", "imageio", "PIL", "skimage", "xarray", "zarr")
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
    """The errors of mypy in each file, codes by line. Bodies of kernels, which have no annotations, are checked too."""
    folder = tmp_path_factory.mktemp("typed")
    for page in TYPED:
        name = page.stem.replace("-", "_")
        (folder / f"page_{name}.py").write_text(program(page), encoding="utf-8")
    (folder / "named.py").write_text(named(program(STENCIL)), encoding="utf-8")
    config = folder / "mypy.ini"
    skipped = "\n".join(f"[mypy-{package}.*]\nfollow_imports = skip" for package in SKIPPED)
    config.write_text(f"[mypy]\n{skipped}\n", encoding="utf-8")
    files = [*sorted(folder.glob("*.py")), *sorted((ROOT / "examples").glob("*.py")), *SLIPS]
    options = [
        f"--config-file={config}",
        "--check-untyped-defs",
        "--follow-imports=silent",
        f"--cache-dir={folder / 'cache'}",
    ]
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
    results: dict[str, dict[int, str]] = {}
    for path, line, code in re.findall(r"^(.*?):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M):
        results.setdefault(Path(path).name, {})[int(line)] = code
    return results


def test_programs_are_accepted(told: dict[str, dict[int, str]]) -> None:
    stencil = program(STENCIL)
    assert STAR.search(stencil) and "_readTensor" in named(stencil) and not STAR.search(named(stencil))
    assert {file: errors for file, errors in told.items() if file not in {path.name for path in SLIPS}} == {}


@pytest.mark.parametrize("slips", SLIPS, ids=lambda path: path.stem)
def test_slips_are_refused(slips: Path, told: dict[str, dict[int, str]]) -> None:
    lines = slips.read_text().splitlines()
    expected = {n: match[1] for n, line in enumerate(lines, 1) if (match := re.search(r"# refused: ([\w-]+)$", line))}
    assert len(expected) == SLIPS[slips]
    assert told[slips.name] == expected


STUBS = list(runpy.run_path(str(ROOT / "docs" / "make_library_stubs.py"))["stubs"]())


def test_stubs_of_the_library_are_of_its_functions() -> None:
    for path, text in STUBS:
        assert path.read_text(encoding="utf-8") == text, "run docs/make_library_stubs.py"


VECTOR, ROWS, MATRIX = (gp.Field(np.ones(shape, "f"), 0) for shape in (8, (8, 3), (8, 8)))
FIRST = {  # fields of other shapes and dtypes than 8×8 float32
    "cross": ROWS, "vecmat": VECTOR, "watershed_ift": gp.Field(np.ones((8, 8), "u1"), 0),
}  # fmt: skip
REST = {  # what functions take beside the field
    "affine_transform": (np.eye(2),), "map_coordinates": (np.zeros((2, 5)),), "shift": (1,), "zoom": (2,), "rotate": (30,),
    "gaussian_filter1d": (1,), "percentile_filter": (50, 3), "rank_filter": (1, 3), "geometric_transform": (lambda at: at,),
    "generic_filter": (np.mean, 3), "generic_laplace": (gp.ndimage.sobel,), "generic_gradient_magnitude": (gp.ndimage.sobel,),
    "generic_filter1d": (lambda read, written: None, 3), "watershed_ift": (np.ones((8, 8), "i4"),), "fourier_shift": (1,),
    "cross": (ROWS,), "matvec": (VECTOR,),
    **dict.fromkeys(("dot", "matmul", "outer", "solve", "tensordot", "vecdot", "vecmat"), (MATRIX,)),
    **dict.fromkeys(("convolve", "correlate"), (np.ones((3, 3)),)), **dict.fromkeys(("convolve1d", "correlate1d"), (np.ones(3),)),
    **dict.fromkeys(("gaussian_filter", "gaussian_gradient_magnitude", "gaussian_laplace"), (1,)),
    **dict.fromkeys(("fourier_ellipsoid", "fourier_gaussian", "fourier_uniform", "maximum_filter1d", "minimum_filter1d"), (3,)),
    "vectorized_filter": (np.mean,),
}  # fmt: skip


def said_to_give_fields() -> list[tuple[str, str]]:
    """Functions whose stubs say that they give a field of a field."""
    signature = r"^def (\w+)\(\w+: Field[,)].* -> Field: \.\.\."
    results = [(path.stem, name) for path, _ in STUBS for name in re.findall(signature, path.read_text(), re.M)]
    return [(room, name) for room, name in results if room != "random"]


@pytest.mark.parametrize(("room", "name"), said_to_give_fields())
def test_functions_that_are_said_to_give_fields_do(room: str, name: str) -> None:
    function = getattr(import_module(f"gpuop.{room}"), name)
    kind = "?" if name.startswith("binary") else "c8" if name.startswith("fourier") else "f"
    field = FIRST[name] if name in FIRST else gp.Field(np.eye(8).astype(kind), 0)
    sized = (name not in REST and "size" in inspect.signature(function).parameters) or name == "vectorized_filter"
    rest: tuple[Any, ...] = REST.get(name, ())
    assert isinstance(function(field, *rest, **({"size": 3} if sized else {})), gp.Field)
