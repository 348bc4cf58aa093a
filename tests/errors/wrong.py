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
def right(field: gp.Field) -> None:
    x = _var(_readTensor(field))
    with _if(x > 3):
        x @= 3
    _writeTensor(_out0, x + 1)


def check_usable(device: str = "reference") -> None:
    """After an error everything works: a new operator is recorded, fused with another one, and computes."""
    changed = gp.operator(lambda f: _readTensor(f) * 2)
    with gp.use_device(device):
        assert np.array_equal(changed(right(SCALAR)).numpy(), (np.minimum(SCALAR.numpy(), 3) + 1) * 2)


def marked(program: Callable[..., Any], mark: str = "# here") -> int:
    """The line of a function that ends with the mark."""
    lines, first = inspect.getsourcelines(program)
    (result,) = [number for number, text in enumerate(lines, first) if text.rstrip().endswith(mark)]
    return result


def check_line(error: BaseException, program: Callable[..., Any], mark: str = "# here") -> None:
    """The error is a SemanticError that names the marked line, and ends with its text."""
    assert isinstance(error, gp.SemanticError)
    file, line = inspect.getfile(program), marked(program, mark)
    assert error.loc is not None
    assert (error.loc.file, error.loc.line) == (file, line), str(error)
    assert str(error).endswith(f"\n  at {error.loc}\n    {linecache.getline(file, line).strip()}")


class Wrong:
    """A wrong program and the message that it must get."""

    def __init__(self, program: Callable[[], Any], message: str) -> None:
        self.program, self.message = program, message

    def check(self) -> None:
        with gp.use_device("reference"), pytest.raises(gp.SemanticError) as caught:
            self.program()
        assert self.message in str(caught.value)
        check_line(caught.value, self.program)
        check_usable()


class Wrongs:
    """The wrong programs of a file."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, message: str) -> Callable[[Callable[[], Any]], Wrong]:
        """Add the function below; it must end in a SemanticError with this text at the line that it marks."""

        def register(program: Callable[[], Any]) -> Wrong:
            wrong = Wrong(program, message)
            self.all.append(pytest.param(wrong, id=program.__name__))
            return wrong

        return register
