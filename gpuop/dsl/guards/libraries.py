"""Functions and classes of NumPy, SciPy and scikit-image in what a function captures: constant, unless they ask for state.

Their code is not examined: it computes on its arguments. Exceptions are parts with random numbers or files, functions that ask for
settings, and those that draw random numbers where the caller passes no generator.
"""

from __future__ import annotations

import re
import sys
from inspect import unwrap
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from gpuop.dsl.guards.standard_library import is_defined_in

PACKAGES = ("numpy", "scipy", "skimage")
# Parts of module names whose functions draw random numbers, read files, or start from random numbers
CHANGING_PARTS = {
    "_npyio_impl", "cluster", "conftest", "ctypeslib", "data", "datasets", "future", "io", "npyio", "optimize", "random", "sparse",
    "stats", "testing", "viewer",
}  # fmt: skip
# Functions that ask for settings, or for files
ASKING = {
    "array2string", "array_repr", "array_str", "from_dlpack", "frombuffer", "fromfile", "fromregex", "genfromtxt",
    "get_backend", "get_include", "get_printoptions", "get_workers", "getbufsize", "geterr", "geterrcall", "load", "loadtxt",
    "memmap", "nditer", "open_memmap", "save", "savetxt", "savez", "savez_compressed", "show_config", "tofile",
}  # fmt: skip
SETTING = re.compile(r"_?(set|register|unregister|reset)_?")  # prefixes of functions that change settings
GENERATORS = {"random_state", "rng", "seed"}  # parameters that are generators of random numbers
DISPATCHER = type(np.sum)  # of functions of NumPy that arrays of other libraries may replace


def is_library_constant(value: Any) -> bool:
    """True for a function or class of these packages that depends on its arguments alone."""
    if isinstance(value, np.ufunc):  # of NumPy or SciPy: `frompyfunc` makes others of functions
        modules = (np, sys.modules.get("scipy.special"))
        return any(getattr(module, value.__name__, None) is value for module in modules)
    if isinstance(value, type):
        module = value.__module__
        return is_defined_in((module,), value) and _is_of_steady_part(module) and value.__name__ not in ASKING
    if isinstance(value, BuiltinFunctionType):  # of a module: a method has the state of its object
        owner = value.__self__
        if owner is not None and not isinstance(owner, ModuleType):
            return False
        module = value.__module__ or getattr(owner, "__name__", "")
        return _is_of_steady_part(module) and _is_steady_name(value.__name__)
    if isinstance(value, (FunctionType, DISPATCHER)) or type(value).__name__ == "cython_function_or_method":
        return _is_of_steady_part(value.__module__ or "") and _is_steady_name(value.__name__) and not _draws(value)
    return False


def _is_of_steady_part(module: str) -> bool:
    package, *parts = module.split(".")
    return package in PACKAGES and CHANGING_PARTS.isdisjoint(parts)


def _is_steady_name(name: str) -> bool:
    return name not in ASKING and not SETTING.match(name)


def _draws(function: Any) -> bool:
    """True if a parameter is a generator of random numbers."""
    code = getattr(unwrap(function), "__code__", None)
    return code is not None and not GENERATORS.isdisjoint(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
