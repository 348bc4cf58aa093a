"""Ten slips that a type checker refuses, each at its line; `test_typing.py` runs mypy on this file. It is never imported."""

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl import _colunm  # refused: attr-defined


@gp.operator
def kernel(image, exponent):
    _localThreads(8, 8, whole_group=True)  # refused: call-arg
    x = _readTensr(image)  # refused: name-defined
    y = _readTensor(border="zero") + _colunm  # refused: call-arg
    z = _pow(x)  # refused: call-arg
    return _sqrt(y, exponent) + z  # refused: call-arg


photo = gp.ScalarFeild(np.zeros((4, 4)))  # refused: attr-defined
half = gp.ScalarField(np.zeros((4, 4))) / 2
rows, columns = half.shapes  # refused: attr-defined
with gp.ComputeGraph(devise="reference") as graph:  # refused: call-arg
    graph.probes(half)  # refused: attr-defined
