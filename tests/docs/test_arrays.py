"""docs/reference/numpy.md is what the table of NumPy's functions says, its rows have NumPy's arguments, and each has a test."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl.fields.numpy_hints import WAYS
from gpuop.dsl.guards.trace_constants import is_constant
from gpuop.ops.array_functions import TABLE
from gpuop.ops.elementwise import numpy_functions
from tests.ops.layout_calls import NAMES

from .test_language import script

OPS = Path(__file__).parents[1] / "ops"
ELSEWHERE = {"full_like": "test_making.py", "meshgrid": "test_making.py", "astype": "test_algebra.py"}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_arrays")


def test_the_page_is_what_the_table_says(maker: ModuleType, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        maker.PAGE.write_text(maker.page())
    assert maker.page() == maker.PAGE.read_text(encoding="utf-8"), "run docs/make_arrays.py"


def test_the_program_of_the_page_runs(maker: ModuleType) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", maker.HEAD, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(program, scope)
    image = scope["image"].copy()
    assert np.array_equal(scope["framed"].numpy(), np.pad(np.roll(image, 1, axis=0) - image, 2, mode="reflect"))
    assert scope["colours"].type == gp.FieldType((480, 640), 3)
    assert np.array_equal(scope["planes"].numpy()[2], image.T.reshape(480, 640))
    assert scope["ramp"].field_shape == (480, 640)
    image[2:5, ::2] = 0.5
    assert np.array_equal(scope["patched"].numpy(), image)


@pytest.mark.parametrize("name", TABLE)
def test_a_row_has_numpys_arguments(name: str) -> None:
    """The arguments of a function are those of NumPy, in its order; `clip` and reductions look at the rest themselves."""
    function, numpys = TABLE[name], inspect.signature(getattr(np, name))
    if function.group == "Reductions" or name in ("where", "real", "imag"):
        return
    own, theirs = inspect.signature(function.call).parameters, numpys.parameters
    assert [p for p in theirs if p in own] == list(own)
    for parameter in own.values():
        place = theirs[parameter.name]
        assert parameter.kind in (place.kind, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and place.kind is not parameter.kind:
            assert place.kind is inspect.Parameter.POSITIONAL_ONLY


def test_a_row_has_a_test() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in OPS.glob("test_*.py")}
    for name in set(TABLE) - set(NAMES) - {"amin", "amax"}:  # other names of `min` and `max`
        name = name.removeprefix("nan") if name.startswith("nancum") else name
        used = re.compile(rf"\bnp\.{name}\b|\"{name}\"|\.{name}\(")
        texts = [files[ELSEWHERE[name]]] if name in ELSEWHERE else files.values()
        assert any(used.search(text) for text in texts), name


def test_a_row_keeps_functions_from_being_traced_again() -> None:
    assert [name for name in TABLE if not is_constant(getattr(np, name))] == []


def test_every_ufunc_of_the_page_is_one(maker: ModuleType) -> None:
    section = maker.page().split("## Elementwise")[1].split("With two")[0]
    listed = re.findall(r"`(\w+)`", section)
    assert set(listed) == set(numpy_functions.TABLE) - {"clip"}
    assert all(isinstance(getattr(np, name), np.ufunc) for name in listed)


def test_what_is_refused_is_numpys_and_no_row() -> None:
    for name in WAYS:
        function, _, method = name.partition(".")
        assert name not in TABLE and hasattr(getattr(np, function), method or "__call__"), name


def test_all_of_numpys_functions_take_fields_or_say_what_does() -> None:
    """None falls through to what NumPy does with objects."""
    field = gp.ScalarField([1.0, 2.0])
    for name in ("cov", "kron", "i0", "float_power", "unravel_index"):
        with pytest.raises(gp.UnsupportedError, match=f"numpy.{name} does not take Fields"):
            getattr(np, name)(*[field] * (2 if name not in ("cov", "i0") else 1))
    with pytest.raises(gp.UnsupportedError, match=r"numpy.add.at does not take Fields; an operator with `_atomic_add`"):
        np.add.at(field, [0], 1)
