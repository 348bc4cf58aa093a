"""The derivatives of determinants and inverses."""

from __future__ import annotations

from collections.abc import Sequence

from gpuop.dsl.fields.derivative_rules import derivatives
from gpuop.dsl.fields.field import Field
from gpuop.lib.linalg.lu_cholesky import inv
from gpuop.lib.linalg.products import matmul
from gpuop.ops.elementwise.algebra import apply
from gpuop.ops.layout.layouts import expand_dims
from gpuop.ops.layout.shape_functions import matrix_transpose


def _det_pulled(inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
    """The cotangent times the determinant times the transposed inverse."""
    (matrices,) = inputs
    factor = apply("multiply", cotangent, result)
    if not matrices.tensor_shape:
        factor = expand_dims(factor, (-2, -1))
    return [apply("multiply", matrix_transpose(inv(matrices)), factor)]


def _inv_pulled(inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
    turned = matrix_transpose(result)
    return [apply("negative", matmul(matmul(turned, cotangent), turned))]


derivatives.update({"linalg.det pulled": _det_pulled, "linalg.inv pulled": _inv_pulled})
