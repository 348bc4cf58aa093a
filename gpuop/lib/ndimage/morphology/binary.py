"""Binary morphology of scipy.ndimage: erosion and dilation, once, several times, or until nothing changes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.operator import library_call
from gpuop.engine.iterate import iterate
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.bit_masks import (
    Links,
    OwnWord,
    begins,
    for_words,
    has_bit,
    links_of,
    packed,
    run_of,
    threads_of_words,
)
from gpuop.lib.ndimage.filter_arguments import as_output, axes_of, each, named, rank
from gpuop.lib.ndimage.filters.extrema import extremum
from gpuop.lib.ndimage.measure.union_find import Forest, forest
from gpuop.ops.elementwise.algebra import where
from gpuop.ops.layout.gather import apart

LOOKS = 8  # iterations between checks for changes


def generate_binary_structure(rank: int, connectivity: int) -> Numbers:
    """scipy.ndimage.generate_binary_structure: the neighbours that differ along at most `connectivity` axes, 3 along each axis."""
    if rank < 1:
        return np.array(True)
    steps = np.abs(np.indices([3] * rank) - 1).sum(0)
    return np.asarray(steps <= max(connectivity, 1))


def _dilated(once: Numbers, iterations: int) -> Numbers:
    """Return a structure dilated by itself, as the bits of an integer: a shift moves the structure to another of its points."""
    shape = [iterations * (n - 1) + 1 for n in once.shape]
    steps = np.ravel_multi_index(np.nonzero(np.atleast_1d(once)), shape or [1]).tolist()
    grown = 1
    for _ in range(iterations):
        grown = functools.reduce(operator.or_, [grown << step for step in steps], 0)
    count = math.prod(shape)
    bits = np.frombuffer(grown.to_bytes(-(-count // 8), "little"), np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little").astype(bool).reshape(shape)


def iterate_structure(structure: Any, iterations: int, origin: Any = None) -> Any:
    """scipy.ndimage.iterate_structure: a structure dilated by itself; with `origin`, also the result's origin."""
    once = np.asarray(structure) != 0
    grown = _dilated(once, iterations) if iterations > 1 else once
    if origin is None:
        return grown if iterations > 1 else np.array(structure)
    return grown, [iterations * o for o in each(origin, once.ndim, "origin")]


EROSION = """true where all values of a structure around the point are true.

    Args:
        input: a Field, or an array; values that are not 0 are true.
        structure: truth values over the axes; by default the point and its neighbours along the axes.
        iterations: number of iterations; below 1, until nothing changes, which is checked every few iterations.
        mask: truth values of the input's shape; where they are false the input's values stay.
        output: a dtype, bool by default, or an array.
        border_value: value outside of the input.
        origin: shift of the structure towards the end of each axis: an integer, or one for each.
        brute_force: an argument of SciPy; results do not depend on it.
        axes: axes of the structure; by default all of the grid.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong structures, axes, masks or origins; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers, or iterations that are not an integer; a TypeError.
    """


def _by_one(name: str, dilating: bool, about: str) -> Callable[..., Any]:
    """Return binary erosion or dilation."""

    def function(
        input: Any,
        structure: Any = None,
        iterations: Any = 1,
        mask: Any = None,
        output: Any = None,
        border_value: Any = 0,
        origin: Any = 0,
        brute_force: bool = False,
        *,
        axes: Any = None,
    ) -> Any:
        step = BinaryStep(input, structure, border_value, origin, axes, dilating)
        return _repeated(input, step, iterations, mask, output)

    return named(function, name, about, "input", "mask")


def _by_both(name: str, dilating: bool, about: str) -> Callable[..., Any]:
    """Return binary opening or closing, which begins with an erosion or a dilation."""

    def function(
        input: Any,
        structure: Any = None,
        iterations: Any = 1,
        output: Any = None,
        origin: Any = 0,
        mask: Any = None,
        border_value: Any = 0,
        brute_force: bool = False,
        *,
        axes: Any = None,
    ) -> Any:
        first, second = (
            BinaryStep(input, structure, border_value, origin, axes, which) for which in (dilating, not dilating)
        )
        return _repeated(_repeated(input, first, iterations, mask, None), second, iterations, mask, output)

    return named(function, name, about, "input", "mask")


binary_erosion = _by_one("binary_erosion", False, EROSION)
binary_dilation = _by_one(
    "binary_dilation", True, "true where any value of the reflected structure is true; as `binary_erosion`."
)
binary_opening = _by_both("binary_opening", False, "the dilation of the erosion; as `binary_erosion`.")
binary_closing = _by_both("binary_closing", True, "the erosion of the dilation; as `binary_erosion`.")


@takes_arrays()
def binary_hit_or_miss(
    input: Any,
    structure1: Any = None,
    structure2: Any = None,
    output: Any = None,
    origin1: Any = 0,
    origin2: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """scipy.ndimage.binary_hit_or_miss: true where one structure has only true values, and the other only false ones.

    Args:
        input, output, axes: as in `binary_erosion`.
        structure1, origin1: as in `binary_erosion`.
        structure2, origin2: by default the complement of `structure1`, and `origin1`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong structures, axes or origins; a ValueError and a RuntimeError.
    """
    hit = _structure(structure1, len(axes_of(axes, rank(input))))
    miss = ~hit if structure2 is None else np.asarray(structure2, bool)
    hits = BinaryStep(input, hit, 0, origin1, axes)(_true(input))
    misses = BinaryStep(input, miss, 1, origin1 if origin2 is None else origin2, axes)(~_true(input))
    return as_output(hits & misses, output)


@takes_arrays("input", "mask")
def binary_propagation(
    input: Any,
    structure: Any = None,
    mask: Any = None,
    output: Any = None,
    border_value: Any = 0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """scipy.ndimage.binary_propagation: dilations within a mask, until nothing changes; as `binary_dilation`."""
    return _repeated(input, BinaryStep(input, structure, border_value, origin, axes, dilating=True), -1, mask, output)


@takes_arrays()
def binary_fill_holes(
    input: Any, structure: Any = None, output: Any = None, origin: Any = 0, *, axes: Any = None
) -> Any:
    """scipy.ndimage.binary_fill_holes: true also where the outside cannot reach; as `binary_erosion`."""
    open_ = ~_true(input)
    outside = BinaryStep(input, structure, 1, origin, axes, dilating=True)
    return as_output(~_repeated(open_ & False, outside, -1, open_, None), output)


# --- one step ---------------------------------------------------------------------------------------------------------


class BinaryStep:
    """Erosion or dilation by a structure."""

    def __init__(
        self, field: Field, structure: Any, border: Any, origin: Any, axes: Any, dilating: bool = False
    ) -> None:
        if field.dtype in COMPLEX_DTYPES:
            raise UnsupportedError("Complex type not supported: complex numbers are neither true nor false")
        self.axes, self.shape = axes_of(axes, rank(field)), tuple(field.field_shape)
        self.structure = _structure(structure, len(self.axes))
        if self.structure.ndim != len(self.axes):
            raise ArgumentError(
                f"structure and input must have same dimensionality: structure.ndim ({self.structure.ndim}) must match "
                f"len(axes) ({len(self.axes)})"
            )
        if not self.structure.size:
            raise ArgumentError("structure must not be empty")
        self.border, self.dilating = bool(border), dilating
        self.origin = each(origin, len(self.axes), "origin")
        if dilating:
            self.origin = [-o - (n % 2 == 0) for o, n in zip(self.origin, self.structure.shape, strict=True)]
            self.structure = np.flip(self.structure)

    @property
    def links(self) -> Links | None:
        """Connected neighbours of a symmetric structure, by which values spread in whole components; else None."""
        shape, bits = self.shape, self.structure
        whole = self.axes == tuple(range(len(shape))) and bits.shape == (3,) * len(shape) and not any(self.origin)
        if not (shape and whole and bits[(1,) * len(shape)] and np.array_equal(bits, np.flip(bits))):
            return None
        return links_of(shape, bits) if 0 not in shape else None

    def __call__(self, field: Field) -> Field:
        which = "maximum" if self.dilating else "minimum"
        if not self.structure.any():
            return field & False if self.dilating else field | True
        return extremum(which, field, None, self.structure, None, None, "constant", self.border, self.origin, self.axes)


def _structure(arg: Any, count: int) -> Numbers:
    return generate_binary_structure(count, 1) if arg is None else np.asarray(arg, bool)


def _true(field: Field) -> Field:
    return field if field.dtype == "bool" else field != 0


def _repeated(field: Field, step: BinaryStep, iterations: Any, mask: Any, output: Any) -> Field:
    try:
        times = operator.index(iterations)
    except TypeError:
        raise UnsupportedError(f"iterations parameter should be an integer, not {described(iterations)}") from None
    if mask is not None and mask.field_shape != field.field_shape:
        raise ArgumentError(f"mask and input must have equal sizes, not {mask.field_shape} and {field.field_shape}")
    first, within = _true(field), None if mask is None else _true(mask)

    def turn(now: Field) -> Field:
        moved = step(now)
        return moved if within is None else where(within, moved, first)

    if times < 1 and step.links is not None:
        everywhere = first | True if within is None else within
        seeds = turn(first) if step.dilating else ~turn(first)
        reached = flooded(seeds, everywhere, step.links)
        result = reached if step.dilating else ~reached
        return as_output(result if within is None else where(within, result, first), output)
    if times < 1:

        def both(now: Field, before: Field) -> tuple[Field, Field]:
            return turn(now), now

        grown = iterate(both, (turn(first), first), until=lambda now, before: (now == before).all(), every=LOOKS)
        return as_output(grown[0], output)
    result = first
    for _ in range(times):
        result = turn(result)
    return as_output(result, output)


# --- binary propagation within a mask: a component of the mask is filled as a whole if it has a seed ------------------


def flooded(seeds: Field, within: Field, links: Links) -> Field:
    """Return the components of a mask that have a seed."""
    trees, sown = forest(within, links), packed(seeds, links)
    return _reached(trees, _marks(trees, sown))


def _marks(trees: Forest, sown: Field) -> Field:
    """Return a bit for each root that has a seed."""
    links = trees.links

    def mark(word: OwnWord) -> None:
        bits = k._readTensor(trees.words, word.place, border="unchecked")
        seeds = bits & k._readTensor(sown, word.place, border="unchecked")

        def mark_run(bit: Any) -> None:
            with k._if((run_of(bits, bit, links.in_row) & seeds) != 0):
                there, one = _place(trees.root(word, bits, bit), links)
                k._atomic_or(k._pointerTo(k._out0, there), one)

        with k._if(seeds != 0):
            word.for_bits(begins(bits, links.in_row), mark_run)

    def body() -> None:
        threads_of_words(links)
        for_words(links, mark)

    return library_call("mark", (sown.type,), [*trees.fields, sown], body, links)[0]


def _place(root: Any, links: Links) -> tuple[Any, Any]:
    """Return the index of the root's word, and its bit."""
    row = root / links.columns
    column = root - row * links.columns
    return row * links.words + (column >> 5), k._convert_uint(1) << k._as_uint(column & 31)


def _reached(trees: Forest, marks: Field) -> Field:
    """Return the points whose root is marked."""
    links = trees.links

    def look_up(word: OwnWord) -> None:
        bits = k._readTensor(trees.words, word.place, border="unchecked")
        reached = k._var(k._convert_uint(0))

        def look(bit: Any) -> None:
            there, one = _place(trees.root(word, bits, bit), links)
            with k._if((k._readTensor(marks, there, border="unchecked") & one) != 0):
                reached.assign(reached | run_of(bits, bit, links.in_row) if word.alone else bits)

        word.for_bits(begins(bits, links.in_row) if word.alone else bits, look)
        lead = apart(k._row, links.shape[:-1])
        word.for_columns(lambda bit: k._writeTensor(k._out0, has_bit(reached, bit), *lead, word.begin + bit))

    def body() -> None:
        threads_of_words(links)
        for_words(links, look_up)

    out = FieldType(links.shape, (), "bool")
    return library_call("flooded", (out,), [*trees.fields, marks], body, links, whole=True)[0]
