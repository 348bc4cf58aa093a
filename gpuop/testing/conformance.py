"""The conformance suite for back ends, those of users too."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gpuop.base.errors import GpuopError, SemanticError
from gpuop.base.misspelt import hinted
from gpuop.runtime.devices import current, use_device
from gpuop.testing.comparison import assert_allclose
from gpuop.testing.programs import PROGRAMS

# errors that a faulty back end may raise
FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@hinted
def conformance(device: Any = None, skip: Collection[str] = (), only: Collection[str] | None = None) -> list[str]:
    """Run small programs on a device, and compare all that they compute with NumPy.

        gpuop.testing.conformance("opencl:0")
        gpuop.testing.conformance(MyBackend(), skip={"doubles"})

    Args:
        device: a name as of `gp.use_device`, or a Backend; None: the device in use.
        skip: names of programs to skip, such as those of types that the device lacks; `PROGRAMS` has all.
        only: names of the programs to run; None: all.

    Returns:
        The names of the programs that ran.

    Raises:
        AssertionError: a program fails; the message has the differences of each.
        SemanticError: an unknown name.
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
    """Run a program on the device in use; return the message of its failure, "" if it passes."""
    try:
        for value, expected, *within in PROGRAMS[name]():
            assert_allclose(value, expected, 0, 0, *within)
    except (AssertionError, GpuopError, NotImplementedError, *FAILURES) as failed:
        return str(failed) if isinstance(failed, (AssertionError, GpuopError)) else f"{type(failed).__name__}: {failed}"
    return ""
