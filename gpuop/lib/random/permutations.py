"""Random permutations and choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.ir.types import is_integer
from gpuop.lib.random.uniform import bits, integers, uniform
from gpuop.ops.create.evenly_spaced import arange
from gpuop.ops.layout.axes import numbered, of_field
from gpuop.ops.layout.reorder import take
from gpuop.ops.sort.search import searchsorted
from gpuop.ops.sort.sorts import argsort


@takes_arrays("x")
def permutation(key: Any, x: Any, axis: int = 0) -> Any:
    """Integers, or slices along an axis, in random order, as numpy.random.Generator.permutation: 64 random bits each are sorted.

    Args:
        key: as of `bits`.
        x: the number of integers, from 0 on; or a Field, or an array.
        axis: the axis of the Field; its slices are permuted as wholes.

    Returns:
        A lazy Field; integers are int32. For an array, an array of the same library.

    Raises:
        SemanticError: no key, or no such axis.
    """
    if is_integer(x):
        return argsort(bits(key, x, "uint64")).astype("int32")
    field = as_field(x)
    number = numbered(axis, *of_field(field))
    order = argsort(bits(key, field.type.array_shape[number], "uint64"))
    return take(field, order, number, mode="clip")


@takes_arrays("a")
def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """A random sample of integers, or of slices along an axis, as numpy.random.Generator.choice.

    Args:
        key, shape: as of `bits`; the shape is a tuple or an integer.
        a: the number of integers, from 0 on; or a Field, or an array, whose slices along an axis are chosen.
        replace: whether one may be chosen again.
        p: the probability of each: a list, an array or a Field of one dimension; uniform by default.
        axis: the axis of the Field.

    Returns:
        A lazy Field; integers are int32. For an array, an array of the same library.

    Raises:
        ArgumentError: a sample larger than the population without `replace`, or a wrong number of probabilities; a ValueError.
        SemanticError: no key, or no such axis.
    """
    field = arange(a) if is_integer(a) else as_field(a)
    number = numbered(axis, *of_field(field))
    count = field.type.array_shape[number]
    wanted = (int(shape),) if is_integer(shape) else tuple(shape)
    if p is not None:
        if not replace:
            raise ArgumentError("random.choice: what is chosen once only is equally likely: leave out `p=`")
        places = _weighed(key, wanted, p, count)
    elif replace:
        places = integers(key, count, shape=wanted)
    else:
        most = int(np.prod(wanted))
        if most > count:
            raise ArgumentError(f"random.choice: of {count} no {most} are chosen without `replace=True`")
        places = permutation(key, count)[:most].reshape(wanted)
    return places if is_integer(a) else take(field, places, number, mode="clip")


def _weighed(key: Any, shape: tuple[int, ...], p: Any, count: int) -> Field:
    """Weighted choices: the positions of uniform numbers among the cumulative probabilities."""
    likely = as_field(p).astype("float64")
    if tuple(likely.type.array_shape) != (count,):
        raise ArgumentError(f"random.choice: there are {count} to choose from, and `p=` has {likely.type.array_shape}")
    sums = likely.cumsum()
    return searchsorted(sums, uniform(key, shape, "float64") * sums[-1], side="right").astype("int32")
