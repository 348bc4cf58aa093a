"""numpy.einsum of fields: contractions over axes that are labelled by letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuop.base.errors import ArgumentError, described
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.lib.linalg.contractions import Contraction, contracted, labelled_axes
from gpuop.lib.linalg.products import matmul
from gpuop.lib.linalg.split_k import aligned_sums, are_long_sums, by_matrices, summed_alone


def einsum(subscripts: Any, *operands: Any) -> Any:
    """numpy.einsum: `einsum("...ij,...j->...i", m, v)` are products of matrices and vectors at each point.

    Args:
        subscripts: letters of the axes of each operand, separated by commas, and of the result after `->`; `...` stands for the
            other axes. Letters that the result lacks are summed over.
        operands: up to four fields, arrays or lists; the axes of the grid come first, then those of tensors.

    Returns:
        A lazy Field; products of matrices are tiled as in `matmul`. For arrays, an array of the same library.

    Raises:
        ArgumentError: letters do not match the axes; a ValueError.
    """
    if not isinstance(subscripts, str) or not 1 <= len(operands) <= 4:
        raise ArgumentError(
            f'einsum takes subscripts, as "ij,jk->ik", and up to four operands, not {described(subscripts)}'
        )
    return _summed(*operands, subscripts=subscripts)


@takes_arrays("a", "b", "c", "d")
def _summed(a: Any, b: Any = None, c: Any = None, d: Any = None, *, subscripts: str) -> Any:
    fields = [as_field(x) for x in (a, b, c, d) if x is not None]
    what = parsed(subscripts, fields)
    labelled_axes("einsum", fields, what)  # refuses extents that do not match
    if _is_matmul(what, fields) and what.output[-1] == what.inputs[1][-1]:
        return matmul(*fields)
    fields, what = summed_alone(fields, what)
    if are_long_sums(fields, what):
        return aligned_sums(fields, what)
    result = by_matrices(fields, what, matmul)
    return contracted("einsum", fields, what) if result is None else result


def _is_matmul(what: Contraction, fields: Sequence[Field]) -> bool:
    """Return whether the last axes are a product of two matrices, and the others are broadcast."""
    if len(what.inputs) != 2 or min(map(len, (*what.inputs, what.output))) < 2:
        return False
    (*batch, m, inner), (*other, again, n) = what.inputs
    longest = max(batch, other, key=len)
    if fields[0].type.array_shape[-1] != fields[1].type.array_shape[-2]:
        return False  # an axis of extent 1 is broadcast
    aligned = [longest[len(longest) - len(each) :] == each for each in (batch, other)]
    return what.output == (*longest, m, n) and inner == again and inner not in what.output and all(aligned) and m != n


def parsed(subscripts: str, fields: Sequence[Field]) -> Contraction:
    """The labels of the operands' and the result's axes."""
    text, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = text.split(",")
    if len(terms) != len(fields):
        raise ArgumentError(f"einsum: {subscripts!r} is for {len(terms)} operands, not {len(fields)}")
    inputs = [_labels(subscripts, term, len(f.type.array_shape)) for term, f in zip(terms, fields, strict=True)]
    flat = [one for labels in inputs for one in labels]
    dots = max(([one for one in labels if len(one) > 1] for labels in inputs), key=len)
    if arrow:
        before, ellipsis, behind = result.partition("...")
        output = [*before, *(dots if ellipsis else []), *behind]
    else:
        output = [*dots, *sorted(one for one in set(flat) if len(one) == 1 and flat.count(one) == 1)]
    if len(set(output)) < len(output) or not set(output) <= set(flat):
        raise ArgumentError(
            f"einsum: each letter behind `->` in {subscripts!r} stands there once, and labels an axis of an operand"
        )
    return Contraction(tuple(map(tuple, inputs)), tuple(output))


def _labels(subscripts: str, term: str, count: int) -> list[str]:
    """The labels of one operand's axes; axes under `...` are labelled by their number from the end."""
    before, dots, behind = term.partition("...")
    rest = count - len(before) - len(behind)
    if rest < 0 or (rest and not dots) or not (before + behind + "a").isalpha():
        raise ArgumentError(
            f"einsum: {term!r} in {subscripts!r} does not label the {count} axes of its operand with a letter each"
        )
    return [*before, *(f"...{n}" for n in reversed(range(rest))), *behind]
