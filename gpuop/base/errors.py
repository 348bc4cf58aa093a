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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec, TypeVar

import numpy as np

from gpuop.base.records import dataclass

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
MOST_BITS = 128  # bits of the largest integer that messages write out
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
WRITTEN_WITH = (PACKAGE, os.path.dirname(np.__file__) + os.sep)  # packages whose functions a user line calls by name
PYTHON = os.path.dirname(os.__file__) + os.sep  # the standard library; other libraries may be installed below it
CALLERS = ("dask", "distributed", "joblib", "toolz", "xarray")  # libraries that call functions of users
INSTALLED = re.compile(rf"[\\/](?:site|dist)-packages[\\/](?:({'|'.join(CALLERS)})[\\/])?")
OPERATORS = tuple(
    os.path.join(PACKAGE, part) + os.sep for part in ("ops", "testing")
)  # kernels as a user would write them


@dataclass(frozen=True, slots=True)
class Loc:
    """A line of the user program.

    Attributes:
        through: the library functions between it and a library operator.
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
        """Library function that the line calls by name, if known."""
        words = set(re.findall(r"\w+", self.text)) if self.through else ()
        return next((name for name in self.through if name in words), "")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def is_users(file: str) -> bool:
    """Return whether a file is of a user, or of a library built on this one: not of this package, NumPy or Python, nor of
    a library that only calls functions of others, such as Dask.
    """
    if file.startswith((*WRITTEN_WITH, "<frozen ")):
        return False
    installed = INSTALLED.search(file)
    return not installed[1] if installed else not file.startswith(PYTHON)


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """Nearest frame of a user file, from this one outwards; None if only libraries call."""
    frame = frame or sys._getframe(1)
    while frame is not None and not _writers[frame.f_code.co_filename][0]:
        frame = frame.f_back
    return frame


def kernel_frame() -> FrameType | None:
    """Nearest frame that writes a kernel: of the user, or of a library operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _writers[frame.f_code.co_filename][1]:
        frame = frame.f_back
    return frame


def writes_kernels(frame: FrameType) -> bool:
    return _writers[frame.f_code.co_filename][1]


class _Writers(dict[str, tuple[bool, bool]]):
    """Per file: is it a user file, and does it write kernels? Looked up for each operation."""

    def __missing__(self, file: str) -> tuple[bool, bool]:
        flags = self[file] = is_users(file), not file.startswith(WRITTEN_WITH) or file.startswith(OPERATORS)
        return flags


_writers = _Writers()


_blamed = threading.local()


def here() -> Loc | None:
    """Current user line; None if a library or a thread calls without one."""
    if getattr(_blamed, "loc", None) is not None:
        return _blamed.loc  # type: ignore[no-any-return]
    frame = user_frame()
    return Loc(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


def called_here() -> Loc | None:
    """Return the location of `here` for a library operator: its line also has the functions that led to it."""
    if getattr(_blamed, "loc", None) is not None:
        return _blamed.loc  # type: ignore[no-any-return]
    frame: FrameType | None = sys._getframe(1)
    names = []
    while frame is not None and not _writers[frame.f_code.co_filename][0]:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno, tuple(reversed(names))) if frame is not None else None


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user line, once per line."""
    frame = user_frame() or sys._getframe(1)
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, registry=registry)


@contextmanager
def blaming(loc: Loc | None) -> Iterator[None]:
    """Context in which `here` is this line, if any: for errors that follow from an earlier line, such as a `return`."""
    before = getattr(_blamed, "loc", None)
    _blamed.loc = loc
    try:
        yield
    finally:
        _blamed.loc = before


def located(message: str, loc: Loc | None) -> str:
    """Message with file, line and source text of the user below it."""
    if loc is None:
        return message
    return f"{message}\n  at {loc}" + (f"\n    {loc.text}" if loc.text else "")


def article(noun: str) -> str:
    """The noun after "a" or "an": a float, an int."""
    return f"an {noun}" if noun[:1] in "aeioAEIO" or noun.startswith("nd") else f"a {noun}"


def written_out(number: object) -> str:
    """Python number for a message; integers of hundreds of digits, some of which Python refuses to print, by magnitude."""
    bits = number.bit_length() if isinstance(number, int) else 0
    return repr(number) if bits <= MOST_BITS else f"~1e{round(bits * math.log10(2))}"


def described(value: object) -> str:
    """Value in words: a list, an int; classes that users never name have their own words."""
    return getattr(type(value), "in_words", article(type(value).__name__)) if value is not None else "None"


def meant(name: str, names: Iterable[str]) -> str:
    """Question about the nearest known name, for the end of a sentence; empty if none is near."""
    near = get_close_matches(name, list(names), 1)
    return f". Did you mean {near[0]!r}?" if near else ""


class KernelWarning(UserWarning):
    """A kernel computes what hardly anybody means: a comparison that a type decides, a quotient of integers that becomes a float,
    a difference of unsigned integers, or a sum or product of narrow ones, that may wrap around and becomes a float.

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
    """Mixin of objects that belong to a device or to threads of this process, and do not pickle.

    Attributes:
        stays: the reason, and the object to send instead.
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


def missing(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """Error for a missing module attribute, with the nearest name, or with the `import` of a submodule."""
    if name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    if "__path__" in vars(sys.modules[module]) and find_spec(f"{module}.{name}") is not None:
        return MissingError(f"{module}.{name} is a module: `import {module}.{name}`")
    return MissingError(f"{module} has no `{name}`{meant(name, names)}")


class UnsupportedError(SemanticError, TypeError):
    """A function of Python's or NumPy's that does not take fields or kernel values.

    A body that raises it, as `raise gp.UnsupportedError("the tile is too large")`, has no such variant (`tune=` of `gp.operator`).

    Args:
        message, loc: as of SemanticError.
    """


class NearNames:
    """Mixin whose error for a missing attribute gives the nearest name."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers must report missing names

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            if name.startswith("_"):  # Python and NumPy probe for these
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            names = (each for each in dir(self) if not each.startswith("_"))
            raise MissingError(f"{article(kind)} has no attribute {name!r}{meant(name, names)}")


def _of_class(title: str, ordered: Sequence[str], args: Sequence[Any]) -> str:
    """The name of a function, that of a method with the class of its object, which users know."""
    if ordered[:1] == ["self"] and args and "." in title:
        return f"{type(args[0]).__name__}.{title.rpartition('.')[2]}"
    return title


def naming_arguments(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Decorator with sentences for too many, missing and unknown arguments, with the nearest name."""
    parameters, title = inspect.signature(function).parameters, function.__qualname__.removesuffix(".__init__")
    kinds = {p.kind for p in parameters.values()}
    ordered = [name for name, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    wanted = [name for name in ordered if parameters[name].default is inspect.Parameter.empty]
    most = sys.maxsize if inspect.Parameter.VAR_POSITIONAL in kinds else len(ordered)
    named_freely = inspect.Parameter.VAR_KEYWORD in kinds

    @wraps(function)
    def called(*args: Arguments.args, **named: Arguments.kwargs) -> Returned:
        unknown = [] if named_freely else [name for name in named if name not in parameters]
        if unknown:
            raise UnsupportedError(
                f"{title}: got an unexpected keyword argument {unknown[0]!r}{meant(unknown[0], parameters)}"
            )
        if len(args) > most:
            usual = ", ".join(name for name in ordered if name != "self")
            more = f", and by name {', '.join(by_name)}" if by_name else ""
            raise UnsupportedError(f"{title}: too many positional arguments; it takes ({usual}){more}")
        missing = [name for name in wanted[len(args) :] if name not in named]
        if missing:
            raise UnsupportedError(f"{_of_class(title, ordered, args)}: argument `{missing[0]}` is missing")
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
