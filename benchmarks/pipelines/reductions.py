"""Counts, sums and transposes, and the chain before them."""

from __future__ import annotations

import gpuop as gp
from gpuop.dsl import *

from .stencils import chain_of_eight


def sum_of_chain(x):
    return chain_of_eight(x).sum()


def row_sums(x):
    return chain_of_eight(x).sum(axis=1)


def column_sums(x):
    return chain_of_eight(x).sum(axis=0)


@gp.operator(outputs=lambda f: f.type.replace(field_shape=f.field_shape[::-1]))
def transposed(field):
    return _readTensor(field, _column, _row)


def transpose_of_chain(x):
    return transposed(chain_of_eight(x))
