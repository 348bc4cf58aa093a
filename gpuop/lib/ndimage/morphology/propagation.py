"""Binary propagation within a mask: a component of the mask is filled as a whole if it has a seed."""

from __future__ import annotations

from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.bit_masks import Links, OwnWord, begins, for_words, has_bit, packed, run_of, threads_of_words
from gpuop.lib.ndimage.measure.union_find import Forest, forest
from gpuop.ops.layout.gather import apart


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
