"""Messages for operands that host algebra does not take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder, numbers


def operand_description(operand: Any, fields: Sequence[Field]) -> str:
    """Return a description of an operand beside fields, with the remedy."""
    advice = "wrap it in a Field (`gp.ScalarField(a)`)"
    if isinstance(operand, Placeholder):
        return f"an array argument of the pipeline: {advice}"
    kind = "an array" if isinstance(operand, np.ndarray) else described(operand)
    try:
        array = numbers(operand)
    except SemanticError:
        return f"{kind}: beside a Field are Fields and numbers"
    for tensor in {f.tensor_shape for f in fields} - {()}:
        if array.ndim == len(tensor):
            has, wants = ("×".join(map(str, shape)) for shape in (array.shape, tensor))
            return f"{kind} of {has} numbers: the Field's tensors have {wants}; give as many, or {advice}"
    every = "in a `gp.Parameter` if every point takes all of it"
    for f in fields:
        whole = tuple(f.type.array_shape)
        if not _stretch(array.shape, whole) and array.shape != tuple(f.field_shape):
            has, wants = ("×".join(map(str, shape)) for shape in (array.shape, whole))
            return (
                f"{kind} of shape {has}: the Field has {wants}, and counted from the last axis extents must be equal, or one "
                f"side 1; wrap it {every}"
            )
    return f"{kind}: {advice}, or {every}"


def _stretch(*shapes: tuple[int, ...]) -> bool:
    """Return whether arrays of these shapes broadcast to one."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def refuse_negative(exponent: Any) -> None:
    """Refuse integer powers that NumPy refuses, if the exponents are known."""
    least = np.min(exponent)
    if least < 0:
        raise SemanticError(
            f"power: integers to negative integer powers are not allowed; a float exponent, as {float(least)}, gives float32"
        )
