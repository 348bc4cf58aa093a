"""The conformance suite: what every back end must compute, for those that users write too."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gpuop.base.errors import GpuopError, SemanticError
from gpuop.runtime.devices import current, use_device
from gpuop.testing.comparison import assert_allclose
from gpuop.testing.programs import PROGRAMS

PYTHONS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)  # of a back end at work


def conformance(device: Any = None, skip: Collection[str] = (), only: Collection[str] | None = None) -> list[str]:
    """Run small programs on a device, and compare all that they compute with NumPy.

        gpuop.testing.conformance("opencl:0")
        gpuop.testing.conformance(MyBackend(), skip={"doubles"})

    Args:
        device: a name as `gp.use_device` takes it, or a Backend of one's own; None: the device in use.
        skip: names of programs that are left out, as what the device lacks; `PROGRAMS` has all.
        only: names of the programs that are run; None: all.

    Returns:
        The names of the programs that ran.

    Raises:
        AssertionError: with what is wrong in each program that fails.
        SemanticError: a name of no program.
    """
    __tracebackhide__ = True
    chosen = [name for name in (PROGRAMS if only is None else only) if name not in skip]
    for name in {*skip, *chosen}.difference(PROGRAMS):
        raise SemanticError(f"there is no program `{name}` in the conformance suite; it has {', '.join(PROGRAMS)}")
    with use_device(current() if device is None else device) as backend:
        wrong = {name: _wrong(name) for name in chosen}
    failed = [f"{name}: {message}" for name, message in wrong.items() if message]
    if failed:
        raise AssertionError(f"{backend.name} fails {len(failed)} of {len(chosen)} programs\n\n" + "\n\n".join(failed))
    return chosen


def _wrong(name: str) -> str:
    """What is wrong with what a program computes on the device in use; "" if nothing."""
    try:
        for value, expected, *within in PROGRAMS[name]():
            assert_allclose(value, expected, 0, 0, *within)
    except (AssertionError, GpuopError, NotImplementedError, *PYTHONS) as failed:
        return str(failed) if isinstance(failed, (AssertionError, GpuopError)) else f"{type(failed).__name__}: {failed}"
    return ""
