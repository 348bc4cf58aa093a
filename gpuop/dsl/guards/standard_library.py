"""The standard library in what a function captures: functions, classes, paths and loggers that are constant."""

from __future__ import annotations

import decimal
import logging
import re
import sys
from _abc import _get_dump  # type: ignore[import-not-found]
from collections.abc import Collection
from inspect import Signature
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

# Modules whose functions and classes depend on their arguments alone, or only write messages. None of them takes an attribute
# of an object by a computed name, as `dataclasses.asdict` does
STEADY = {
    "_bisect", "_collections", "_heapq", "_struct", "_warnings", "base64", "binascii", "bisect", "collections",
    "colorsys", "contextlib", "enum", "fnmatch", "fractions", "heapq", "html", "json", "json.decoder",
    "json.encoder", "keyword", "logging", "ntpath", "numbers", "pathlib", "pathlib._local", "posixpath", "re", "statistics",
    "string", "struct", "textwrap", "types", "typing", "warnings", "zlib",
}  # fmt: skip
# Functions of those modules that ask the file system, the environment, or what others have set
ASKING = {
    "abspath", "expanduser", "expandvars", "getLevelName", "getLevelNamesMapping", "get_type_hints", "islink", "ismount",
    "lexists", "realpath", "relpath",
}  # fmt: skip
BY_VALUE = (re.Pattern,)
BY_TEXT = (decimal.Decimal,)
# Attributes that ask the file system or the environment, and those of a logger that other loggers decide
OF_PATHS = {
    "absolute", "cwd", "exists", "expanduser", "glob", "home", "is_block_device", "is_char_device", "is_dir",
    "is_fifo", "is_file", "is_junction", "is_mount", "is_socket", "is_symlink", "iterdir", "lstat", "open", "owner",
    "read_bytes", "read_text", "readlink", "resolve", "rglob", "samefile", "stat", "walk",
}  # fmt: skip
OF_LOGGERS = {"getEffectiveLevel", "hasHandlers", "isEnabledFor"}
SETTINGS = ("disabled", "level")  # attributes of a logger that are compared by value


def decimal_context() -> tuple[Any, ...]:
    """Settings that decide the arithmetic of decimals."""
    c = decimal.getcontext()
    return c.prec, c.rounding, c.Emin, c.Emax, c.capitals, c.clamp, *c.traps.values()


def registered(cls: Any) -> list[type]:
    """Classes that count as subclasses of an abstract class because they are registered, by name."""
    below: list[Any] = cls.__subclasses__()
    own = _get_dump(cls)[0]
    classes = {*(reference() for reference in own), *(each for b in below for each in registered(b))} - {None}
    return sorted(classes, key=lambda each: f"{each.__module__}.{each.__qualname__}")


def is_steady(value: Any) -> bool:
    """True for a function or class of the standard library that is, and does, the same at all times."""
    if isinstance(value, BuiltinFunctionType):
        owner = value.__self__
        return isinstance(owner, ModuleType) and owner.__name__ in STEADY
    if isinstance(value, FunctionType):
        own = value.__globals__.get("__name__") == value.__module__  # a wrapper has the name of another
        return own and value.__module__ in STEADY and value.__name__ not in ASKING
    return (isinstance(value, type) and is_defined_in(STEADY, value)) or isinstance(value, (logging.Logger, Signature))


def is_defined_in(modules: Collection[str], cls: type) -> bool:
    """True for a class of one of these modules; `ABCMeta` and `make_dataclass` give theirs to classes of users."""
    module = cls.__module__
    return module in modules and module in sys.modules and vars(sys.modules[module]).get(cls.__name__) is cls


def asking(value: Any) -> Collection[str]:
    """Attributes of a path, a logger, or their classes, that may give another result each time."""
    kind = value if isinstance(value, type) else type(value)
    for base, names in ((PurePath, OF_PATHS), (logging.Logger, OF_LOGGERS)):
        if issubclass(kind, base) and kind.__module__ in STEADY:
            return names
    return ()
