"""Operands that host algebra does not take, in words."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from gpuop.dsl.fields.arrays import Placeholder, numbers
from gpuop.errors import SemanticError, described
from gpuop.ir.types import Shape


def told(operand: Any, tensors: Set[Shape]) -> str:
    """What an operand is, and what to do."""
    advice = "wrap it in a Field (`gp.ScalarField(a)`)"
    if isinstance(operand, Placeholder):
        return f"an array argument of the pipeline: {advice}"
    kind = "an array" if isinstance(operand, np.ndarray) else described(operand)
    try:
        array = numbers(operand)
    except SemanticError:
        return f"{kind}: beside a Field are Fields and numbers"
    for tensor in tensors:
        if array.ndim == len(tensor):
            has, wants = ("×".join(map(str, shape)) for shape in (array.shape, tensor))
            return f"{kind} of {has} numbers: the Field's tensors have {wants}; give as many, or {advice}"
    return f"{kind}: {advice}, or in a `gp.Parameter` if every point takes all of it"


def refuse_negative(exponent: Any) -> None:
    """Refuse powers of integers that NumPy refuses, where the exponents are known."""
    least = np.min(exponent)
    if least < 0:
        raise SemanticError(
            f"power: integers to negative integer powers are not allowed; a float exponent, as {float(least)}, gives float32"
        )
