"""Programs for checked execution: each has a bug at the line that it marks with `# here`, and a correct twin."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.errors.wrong import check_line, check_usable

Program = Callable[[bool], Any]  # given whether it is to be right: a field, or several


def arrays(result: Any) -> list[Any]:
    return [f.numpy() for f in (result if isinstance(result, tuple) else (result,))]


def checked() -> Any:
    return gp.use_device("reference", checked=True)


def line_of(program: Program, mark: str) -> str:
    """The part of a message about another line of a program."""
    lines, first = inspect.getsourcelines(program)
    (result,) = [(n, text) for n, text in enumerate(lines, first) if text.rstrip().endswith(mark)]
    return f"`{result[1].strip()}` (line {result[0]})"


class Bugs:
    """The programs of a file, with the messages that the wrong ones must get, whole but for the line."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, message: str, there: str = "") -> Callable[[Program], Program]:
        """Add the function below. `{there}` in the message is the line with that mark."""

        def register(program: Program) -> Program:
            text = message.replace("{there}", line_of(program, there)) if there else message
            self.all.append(pytest.param(program, text, id=program.__name__))
            return program

        return register


def check_wrong(program: Program, message: str) -> None:
    with checked(), pytest.raises(gp.SemanticError) as caught:
        arrays(program(False))
    assert caught.value.message == message
    check_line(caught.value, program)
    with gp.use_device("reference"):
        arrays(program(False))  # unchecked it runs
    with checked():
        assert np.array_equal((gp.ScalarField(np.ones(3, "f")) + 1).numpy(), [2, 2, 2])
    check_usable()


def check_right(program: Program) -> None:
    """The twin gives the same with and without checks."""
    with gp.use_device("reference"):
        expected = arrays(program(True))
    with checked():
        for result, want in zip(arrays(program(True)), expected, strict=True):
            np.testing.assert_array_equal(result, want)
