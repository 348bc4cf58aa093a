"""Tools for tests of programs and of back ends: error metrics, digests, noise, the conformance suite.

`gpuop/testing/plugin.py` is the pytest plugin, which pytest loads wherever gpuop is installed. Names here load on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for checkers and editors; `NAMES` serves the run time
    from gpuop.testing.comparison import assert_allclose
    from gpuop.testing.conformance import conformance
    from gpuop.testing.gradients import check_grads
    from gpuop.testing.hashes import digest, noise
    from gpuop.testing.metrics import Errors, errors, ulps
    from gpuop.testing.programs import PROGRAMS

__all__ = ["PROGRAMS", "Errors", "assert_allclose", "check_grads", "conformance", "digest", "errors", "noise", "ulps"]
NAMES = {
    "PROGRAMS": "gpuop.testing.programs.PROGRAMS",
    "Errors": "gpuop.testing.metrics.Errors",
    "assert_allclose": "gpuop.testing.comparison.assert_allclose",
    "check_grads": "gpuop.testing.gradients.check_grads",
    "conformance": "gpuop.testing.conformance.conformance",
    "digest": "gpuop.testing.hashes.digest",
    "errors": "gpuop.testing.metrics.errors",
    "noise": "gpuop.testing.hashes.noise",
    "ulps": "gpuop.testing.metrics.ulps",
}


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # type checkers report unknown names themselves

    def __getattr__(name: str) -> Any:
        if name in NAMES:
            module, _, own = NAMES[name].rpartition(".")
            value = globals()[name] = getattr(import_module(module), own)
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
