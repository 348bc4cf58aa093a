"""A pipeline of the tests of frameworks."""

from __future__ import annotations

import gpuop as gp
from gpuop.dsl import *


@gp.operator
def laplacian(u):
    total = _readTensor(u, offset=(-1, 0), border="wrap") + _readTensor(u, offset=(1, 0), border="wrap")
    total += _readTensor(u, offset=(0, -1), border="wrap") + _readTensor(u, offset=(0, 1), border="wrap")
    return total - 4.0 * _readTensor(u)


@gp.pipeline
def diffused(image, rate):
    u = gp.ScalarField(image)
    return u + gp.ScalarField(rate) * laplacian(u) * u


@gp.operator
def halved(u):
    value = _var(_readTensor(u))
    with _while(value > 1.0):
        value @= value * 0.5
    return value
