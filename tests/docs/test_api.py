"""docs/reference/api.md is what the docstrings say, and these name every argument."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from types import ModuleType

import pytest

import gpuop as gp

from .test_language import script


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_api")


def test_the_page_is_what_the_docstrings_say(maker: ModuleType, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        maker.PAGE.write_text(maker.page())
    assert maker.page() == maker.PAGE.read_text(), "run docs/make_api.py"


def test_every_name_is_on_the_page(maker: ModuleType) -> None:
    assert set(re.findall(r"^### `gp\.(\w+)`", maker.PAGE.read_text(), re.M)) == set(gp.__all__)


def test_everything_is_described(maker: ModuleType) -> None:
    """A sentence, and each argument: in the docstring, or for all reductions together in that of their class."""
    values = [value for values in maker.SECTIONS.values() for value in values]
    shared = {member: maker.Reductions.__doc__ for member in vars(maker.Reductions).values() if callable(member)}
    parts = [(member, name) for value in values if isinstance(value, type) for name, member in maker.members(value)]
    for value, name in [*((value, value.__name__) for value in values), *parts]:
        doc = inspect.getdoc(value) or ""
        assert re.match(r".+[.:]$", doc.split("\n\n")[0], re.S), f"{name} has no sentence"
        for argument in [] if isinstance(value, (property, cached_property)) else _taken(value):
            message = doc + shared.get(value, "")
            assert re.search(rf"^ +(\w+, )*{argument}(, \w+)*: ", message, re.M), f"{name} says nothing of {argument}"


def _taken(value: object) -> list[str]:
    """The arguments of a function, or of a class that takes some."""
    if getattr(value, "__init__", None) is Exception.__init__:
        return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "contents")]
