"""docs/reference/library-table.md is made of the catalogue of benchmarks, and has every function with its kernels."""

from __future__ import annotations

from types import ModuleType

import pytest

import gpuop as gp
from benchmarks.library import plans
from benchmarks.library.catalogue import ROWS
from benchmarks.library.given import Arrays
from gpuop.lib.fft import numpy_names as fft_names
from gpuop.lib.linalg import numpy_names
from gpuop.ops.array_functions import TABLE
from gpuop.ops.elementwise import numpy_functions, ufunc_methods

from .test_language import script

MODULES = {name: getattr(gp, name) for name in ("ndimage", "linalg", "fft", "random")}
NUMPYS = {**TABLE, **numpy_names.TABLE, **fft_names.TABLE, **numpy_functions.TABLE, **ufunc_methods.FUNCTIONS}
NAMES = {"np", "device", "rng", "len", "int", *MODULES}  # of expressions, besides arrays and what modules have


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_library")


def test_the_page_is_what_the_catalogue_says(maker: ModuleType, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        maker.PAGE.write_text(maker.page(), encoding="utf-8")
    assert maker.page() == maker.PAGE.read_text(encoding="utf-8"), "run docs/make_library.py"


def test_every_function_has_a_row() -> None:
    public = {f"{name}.{each}" for name, module in MODULES.items() for each in module.__all__ if each != "LinAlgError"}
    assert public <= set(ROWS)
    elsewhere = {row.name for row in ROWS.values()}
    of_numpy = {name.removeprefix("linalg.").removeprefix("fft.") for name in NUMPYS if not name.endswith(".outer")}
    assert of_numpy <= elsewhere
    assert {row.key for row in ROWS.values() if row.module == "numpy"} <= {f"numpy.{name}" for name in NUMPYS}


def test_calls_name_arrays_and_modules() -> None:
    for row in ROWS.values():
        root = row.names()[0]
        assert root in NAMES or hasattr(Arrays, root), row.call


@pytest.mark.parametrize(
    "key", ["ndimage.sobel", "ndimage.correlate", "linalg.vecdot", "numpy.gradient", "numpy.cumsum", "random.uniform"]
)
def test_kernels_are_those_of_the_page(key: str) -> None:
    kernels = plans.kernels(ROWS[key])
    assert kernels == {target: message for target, message in plans.read()[key].items() if target in plans.TARGETS}
