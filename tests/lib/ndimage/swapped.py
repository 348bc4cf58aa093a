"""A plugin for pytest that puts gpuop.ndimage into the place of scipy.ndimage, for SciPy's own tests of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gpuop.base.errors import ArgumentError


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--method", help="of functions that have it, for the windows that it is of")


def pytest_configure(config: Any) -> None:
    import scipy.ndimage as theirs
    from scipy._lib._array_api import xp_capabilities_table as known

    import gpuop.ndimage as ours

    for name in ours.__all__:
        old, new = getattr(theirs, name), pinned(getattr(ours, name), config.getoption("--method"))
        known[new] = known[old]
        setattr(theirs, name, new)


def pinned(function: Callable[..., Any], method: str | None) -> Callable[..., Any]:
    """The function with a method, where it has it."""
    if method is None or "method" not in inspect.signature(function).parameters:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs, method=method)
        except ArgumentError as error:
            if "`method" not in str(error):
                raise
            return function(*args, **kwargs)

    return called
