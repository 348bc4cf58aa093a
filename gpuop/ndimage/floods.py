"""What truth values come to within a mask, from neighbour to neighbour: a component of the mask has them everywhere, or nowhere."""

from __future__ import annotations

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ndimage.forests import Links, forest, root
from gpuop.ops.layouts import ravel, reshape


def flooded(seeds: Field, within: Field, links: Links) -> Field:
    """Where a mask has points that are connected to a seed in it."""
    parents = forest(within, links)
    known = parents.type.replace(dtype="bool")

    def mark() -> None:
        with k._if((k._readTensor(parents) >= 0) & k._readTensor(sown)):
            k._writeTensor(k._out0, True, root(parents, k._column))

    def look_up() -> None:
        reached = k._var(k._readTensor(parents) >= 0)
        with k._if(reached):
            reached.assign(k._readTensor(marks, root(parents, k._column), border="unchecked"))
        k._writeTensor(k._out0, reached)

    sown = ravel(seeds)
    marks = library_call("mark", (known,), [parents, sown], mark, ())[0]
    made = library_call("flooded", (known,), [parents, marks], look_up, ())[0]
    return reshape(made, tuple(within.field_shape))
