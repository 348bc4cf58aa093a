"""Values that a library computes where devices have arrays for one, and kernels elsewhere."""

from __future__ import annotations

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.alternatives import together
from gpuop.dsl.operators.gpu_operator import results_of
from gpuop.errors import here
from gpuop.ir.kernel import Kernel
from gpuop.ir.symbolic import Known
from gpuop.ir.values import Node, Result
from gpuop.ir.variants import Variant


def library_or_kernels(library: Field, kernels: Field) -> Field:
    """A field that is one of two on a device: what the other one is made of is left out before anything is fused.

    Args:
        library, kernels: the only results of kernels, and of one type.
    """
    lent: Known = k._target.has_arrays.known
    made = together([_variant(library, lent, True), _variant(kernels, lent, False)], (library.type,))
    return results_of(made.kernel, made.identity, made.inputs, here(), made.kinds)[0]


def _variant(field: Field, known: Known, value: bool) -> tuple[Variant, tuple[Node, ...]]:
    node = field.node
    assert isinstance(node, Result)
    call = node.call
    assert isinstance(call.kernel, Kernel)
    return Variant(call.kernel, call.identity, (), (), ((known, value),)), call.inputs
