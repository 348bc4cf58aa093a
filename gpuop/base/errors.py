"""Source locations and the exceptions of gpuop. Every message states the fault, its place and the remedy."""

from __future__ import annotations

import inspect
import linecache
import math
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec, TypeVar

import numpy as np

Arguments = ParamSpec("Arguments")
Gives = TypeVar("Gives")
MOST_BITS = 128  # of integers that messages write out
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
WRITTEN_WITH = (PACKAGE, os.path.dirname(np.__file__) + os.sep)  # what a user's line calls by name
PYTHON = os.path.dirname(os.__file__) + os.sep  # its standard library; other libraries may be installed below it
CALLERS = ("dask", "distributed", "joblib", "toolz", "xarray")  # libraries that call what users give them
INSTALLED = re.compile(rf"[\\/](?:site|dist)-packages[\\/](?:({'|'.join(CALLERS)})[\\/])?")
OPERATORS = tuple(
    os.path.join(PACKAGE, part) + os.sep for part in ("ops", "testing")
)  # kernels as a user would write them


@dataclass(frozen=True, slots=True)
class Loc:
    """A line of the user's program.

    Attributes:
        through: the functions of the library that lead from there to an operator of its own.
    """

    file: str
    line: int
    through: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def text(self) -> str:
        """The source text of the line, stripped; empty where the source is not available."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def path(self) -> str:
        """The file, relative to the working directory when it lies below it."""
        relative = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return self.file if relative.startswith("..") else relative

    @property
    def called(self) -> str:
        """The function of the library that the line calls by name, if it is known."""
        words = set(re.findall(r"\w+", self.text)) if self.through else ()
        return next((name for name in self.through if name in words), "")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def is_users(file: str) -> bool:
    """Whether a user wrote a file, or a library that is written with this one: neither this package, NumPy nor Python did, nor a
    library that only calls what it is given, as Dask and threads do.
    """
    if file.startswith((*WRITTEN_WITH, "<frozen ")):
        return False
    installed = INSTALLED.search(file)
    return not installed[1] if installed else not file.startswith(PYTHON)


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """The nearest frame of a user's file, from the given one outwards: the line that the user wrote; None where others call."""
    frame = frame or sys._getframe(1)
    while frame is not None and not _writers[frame.f_code.co_filename][0]:
        frame = frame.f_back
    return frame


def kernel_frame() -> FrameType | None:
    """The nearest frame that writes a kernel: the user's, or one of the library's operators."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _writers[frame.f_code.co_filename][1]:
        frame = frame.f_back
    return frame


def writes_kernels(frame: FrameType) -> bool:
    return _writers[frame.f_code.co_filename][1]


class _Writers(dict[str, tuple[bool, bool]]):
    """Of files, whether the user's lines are in them, and whether lines that write kernels are: asked for each operation."""

    def __missing__(self, file: str) -> tuple[bool, bool]:
        found = self[file] = is_users(file), not file.startswith(WRITTEN_WITH) or file.startswith(OPERATORS)
        return found


_writers = _Writers()


_blamed = threading.local()


def here() -> Loc | None:
    """The user's current line; None where a library or a thread calls, and no line of the user's."""
    if getattr(_blamed, "loc", None) is not None:
        return _blamed.loc  # type: ignore[no-any-return]
    frame = user_frame()
    return Loc(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


def called_here() -> Loc | None:
    """As `here`, for an operator of the library's: its line knows which functions have led to it."""
    if getattr(_blamed, "loc", None) is not None:
        return _blamed.loc  # type: ignore[no-any-return]
    frame: FrameType | None = sys._getframe(1)
    names = []
    while frame is not None and not _writers[frame.f_code.co_filename][0]:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno, tuple(reversed(names))) if frame is not None else None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, once for each."""
    frame = user_frame() or sys._getframe(1)
    seen = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, registry=seen)


@contextmanager
def blaming(loc: Loc | None) -> Iterator[None]:
    """Meanwhile `here` is this line, if there is one: for what follows from a line that has run already, such as a `return`."""
    before = getattr(_blamed, "loc", None)
    _blamed.loc = loc
    try:
        yield
    finally:
        _blamed.loc = before


def located(message: str, loc: Loc | None) -> str:
    """The message with the user's file, line and source text below it."""
    if loc is None:
        return message
    return f"{message}\n  at {loc}" + (f"\n    {loc.text}" if loc.text else "")


def article(noun: str) -> str:
    """The noun after "a" or "an": a float, an int."""
    return f"an {noun}" if noun[:1] in "aeioAEIO" or noun.startswith("nd") else f"a {noun}"


def written_out(number: object) -> str:
    """A number of Python's, for a message; integers of hundreds of digits, of which Python refuses some, by their magnitude."""
    bits = number.bit_length() if isinstance(number, int) else 0
    return repr(number) if bits <= MOST_BITS else f"~1e{round(bits * math.log10(2))}"


def described(value: object) -> str:
    """What the user gave, in words: a list, an int."""
    return article(type(value).__name__) if value is not None else "None"


def meant(given: str, known: Iterable[str]) -> str:
    """The name that is near one that there is not, as a question that ends a sentence; nothing where none is near."""
    near = get_close_matches(given, list(known), 1)
    return f". Did you mean {near[0]!r}?" if near else ""


class KernelWarning(UserWarning):
    """A kernel computes what hardly anybody means: a comparison that a type decides, a quotient of integers that becomes a float.

    It is warned of once for each line of the user's.

    Args:
        message: what it computes, and what to write instead.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


class GpuopError(Exception):
    """Base of all errors that gpuop raises on purpose. They pickle: an error that does not stops a pool of processes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, vars(self))


class StaysHere:
    """What belongs to a device or to threads of this process, and is not sent to others.

    Attributes:
        stays: why, and what is sent instead.
    """

    stays: ClassVar[str]

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(self.stays)


def _restored(cls: type[GpuopError], args: tuple[Any, ...], attributes: dict[str, Any]) -> GpuopError:
    error = cls.__new__(cls, *args)
    vars(error).update(attributes)
    return error


class SemanticError(GpuopError):
    """The program is wrong.

    Args:
        message: what is wrong, and what to do instead.
        loc: the user's line, which also ends the message; by default the current one.

    Attributes:
        loc: the line (`file`, `line`, `text`), or None.
        message: without the line.
    """

    def __init__(self, message: str, loc: Loc | None = None) -> None:
        self.loc = loc or here()
        self.message = message
        super().__init__(located(message, self.loc))


class MissingError(SemanticError, AttributeError):
    """There is no such attribute, or not yet."""


def missing(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """What a module raises for a name that it has not: with a near one, or the `import` of what is a module of its own."""
    if name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    if "__path__" in vars(sys.modules[module]) and find_spec(f"{module}.{name}") is not None:
        return MissingError(f"{module}.{name} is a module: `import {module}.{name}`")
    return MissingError(f"{module} has no `{name}`{meant(name, known)}")


class UnsupportedError(SemanticError, TypeError):
    """A function of Python's or NumPy's that does not take fields or kernel values.

    A body that raises it, as `raise gp.UnsupportedError("the tile is too large")`, has no such variant (`tune=` of `gp.operator`).

    Args:
        message, loc: as of SemanticError.
    """


class NearNames:
    """What is asked for an attribute that it has not: the error names the near one."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a checker is to say of a name that there is none

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            if name.startswith("_"):  # Python and NumPy ask for these
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            known = (each for each in dir(self) if not each.startswith("_"))
            raise MissingError(f"{article(kind)} has no attribute {name!r}{meant(name, known)}")


def naming_arguments(function: Callable[Arguments, Gives]) -> Callable[Arguments, Gives]:
    """The function, which says of an argument that there is not which one is near."""
    known, title = inspect.signature(function).parameters, function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def called(*args: Arguments.args, **named: Arguments.kwargs) -> Gives:
        unknown = [name for name in named if name not in known]
        if unknown:
            raise UnsupportedError(
                f"{title}: got an unexpected keyword argument {unknown[0]!r}{meant(unknown[0], known)}"
            )
        return function(*args, **named)

    return called


class BoundsError(SemanticError, IndexError, ValueError):
    """There is no such axis, or no such index: NumPy raises IndexError, or AxisError, which is a ValueError too."""


class ArgumentError(SemanticError, ValueError, RuntimeError):
    """A wrong argument of a function of SciPy's, which raises ValueError for some and RuntimeError for others.

    Args:
        message, loc: as of SemanticError.
    """


class CompileError(GpuopError):
    """A driver refused generated code.

    Args:
        message: the compiler's, with the user's lines behind the failing ones.
        source: the code.

    Attributes:
        source: the code with line numbers.
    """

    def __init__(self, message: str, source: str = "") -> None:
        self.source = source
        super().__init__(message)


class DeviceError(GpuopError):
    """No device, a type that the device lacks, memory exhausted, or a device lost."""
