"""`check_grads` over every function and pipeline: some cases a day to the first order, all of them at night to the second.

Expected values are central differences, on the reference: derivatives are the same kernels on all devices.
"""

from __future__ import annotations

import re

import pytest

import gpuop as gp
from gpuop.testing import check_grads
from tests.gradients import sweep
from tests.nightly import is_nightly, left_to_nightly
from tests.rotation import is_turn

CASES = sweep.cases()
FEW = 3  # days in which the share of a day takes turns; with the fortnight of shares all cases come in 42 days
REFUSED: dict[str, str] = {}  # the sentences of those that have no derivative
# steps and tolerances of functions that compute in float32, with jumps nearby
ROUGH = {"pipeline bilateral_grid": (1e-4, 2e-2)}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    if not is_turn(name, FEW):
        left_to_nightly("a third of the share of a day is run")
    with gp.use_device("reference"):
        call, args = CASES[name]()
        f = sweep.smooth(call)
        if not args or (isinstance(f(*args), tuple) and not f(*args)):
            return  # integers and truth values have no derivative
        step, tolerance = ROUGH.get(name, (None, None))
        if name in REFUSED:
            with pytest.raises(gp.SemanticError, match=re.escape(REFUSED[name])):
                check_grads(f, args)
            return
        check_grads(f, args, order=2 if is_nightly() else 1, rtol=tolerance, atol=tolerance, eps=step)


def test_most_functions_have_derivatives() -> None:
    assert len(REFUSED) <= 0.05 * len(CASES)
