"""Wrong programs: each says what message it gets, and marks the line that the message must name with `# here`."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

SCALAR = gp.ScalarField(np.arange(20, dtype="f").reshape(4, 5))
INTEGER = gp.ScalarField(np.arange(20).reshape(4, 5).astype("i"))
VECTOR2 = gp.VectorField(np.ones((4, 5, 2), "f"))
VECTOR3 = gp.VectorField(np.ones((4, 5, 3), "f"))
BIG = gp.VectorField(np.ones((4, 5, 7), "f"))


@gp.operator
def right(field):
    x = _var(_readTensor(field))
    with _if(x > 3):
        x @= 3
    _writeTensor(_out0, x + 1)


def check_usable() -> None:
    """After an error everything works: a new operator is recorded, fused with another one, and computes."""
    changed = gp.operator(lambda f: _readTensor(f) * 2)
    with gp.use_device("reference"):
        assert np.array_equal(changed(right(SCALAR)).numpy(), (np.minimum(SCALAR.numpy(), 3) + 1) * 2)


class Wrong:
    """A wrong program, its error and the message that it must get."""

    def __init__(self, program: Callable[[], Any], message: str, error: type[Exception]) -> None:
        self.program, self.message, self.error = program, message, error

    def line(self) -> int:
        """The line marked `# here`."""
        lines, first = inspect.getsourcelines(self.program)
        (marked,) = [number for number, text in enumerate(lines, first) if text.rstrip().endswith("# here")]
        return marked

    def check(self) -> None:
        with gp.use_device("reference"), pytest.raises(self.error) as caught:
            self.program()
        error = caught.value
        assert self.message in str(error)
        assert isinstance(error, gp.GpuopError)
        if isinstance(error, gp.SemanticError):
            assert error.loc is not None
            text = linecache.getline(__file__ if False else error.loc.file, error.loc.line).strip()
            assert (error.loc.file, error.loc.line) == (inspect.getfile(self.program), self.line()), str(error)
            assert str(error).endswith(f"\n  at {error.loc}\n    {text}")
            assert text.endswith("# here")
        check_usable()


class Wrongs:
    """The wrong programs of a file."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, message: str, error: type[Exception] = gp.SemanticError) -> Callable[[Callable[[], Any]], Wrong]:
        def register(program: Callable[[], Any]) -> Wrong:
            wrong = Wrong(program, message, error)
            self.all.append(pytest.param(wrong, id=program.__name__))
            return wrong

        return register
