"""Hooks of pytest that leave out tests which call no function of gpuop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

calls: list[str] = []  # of functions of gpuop, in the test that runs


def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls are noted."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return function(*args, **kwargs)

    return call


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = yield
    if call.when == "call" and not calls and report.outcome != "skipped":
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, "calls no function of gpuop")
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: Any) -> None:
    calls.clear()
