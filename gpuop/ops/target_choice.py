"""Multi-versioned values: facts of the target select one of several computations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import gpuop.dsl as k
from gpuop.base.errors import called_here
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.gpu_operator import results_of
from gpuop.dsl.operators.variants import together
from gpuop.ir.kernel import Kernel
from gpuop.ir.target_expressions import Plain
from gpuop.ir.values import Node, Result
from gpuop.ir.variants import Variant

Facts = Mapping[str, Plain]  # facts of `_target`, by name


def by_target(choices: Sequence[tuple[Facts, Field]]) -> Field:
    """Return a field that is one of several on a device: the others' operators are removed before fusion.

    Args:
        choices: fields of one type, the only results of kernels, each with the facts of its targets.
    """
    result = together([_variant(field, facts) for facts, field in choices], (choices[0][1].type,))
    return results_of(result.kernel, result.identity, result.inputs, called_here(), result.kinds)[0]


def _variant(field: Field, facts: Facts) -> tuple[Variant, tuple[Node, ...]]:
    node = field.node
    assert isinstance(node, Result)
    call = node.call
    assert isinstance(call.kernel, Kernel)
    key = tuple((getattr(k._target, name).fact, value) for name, value in facts.items())
    return Variant(call.kernel, call.identity, (), (), key), call.inputs
