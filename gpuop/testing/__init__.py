"""For tests of programs and of back ends: how far values are from what they should be, digests, noise, the conformance suite."""

from gpuop.testing.comparison import assert_allclose
from gpuop.testing.conformance import conformance
from gpuop.testing.hashes import digest, noise
from gpuop.testing.metrics import Errors, errors, ulps
from gpuop.testing.programs import PROGRAMS

__all__ = ["PROGRAMS", "Errors", "assert_allclose", "conformance", "digest", "errors", "noise", "ulps"]
