"""Wrong calls of operators: each message, and the line that it names."""

import functools

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


@gp.operator
def scaled(field, factor=1):
    return _readTensor(field) * factor


@WRONGS.add(
    "argument `factor` of operator `scaled` is an array; wrap it in a Field (`gp.ScalarField(a)`) or a `gp.Parameter`"
)
def array_argument():
    scaled(SCALAR, np.ones(3))  # here


@WRONGS.add("argument `field` of operator `scaled` is an array")
def array_instead_of_a_field():
    scaled(np.ones((4, 5), "f"))  # here


@WRONGS.add(
    "argument `factor` of operator `scaled` is a list; "
    "it must be a Field, a Parameter or a hashable constant (a tuple instead of a list)"
)
def unhashable_constant():
    scaled(SCALAR, [1, 2])  # here


@WRONGS.add("operator `scaled`: missing a required argument: 'field'")
def missing_argument():
    scaled()  # here


@WRONGS.add("operator `scaled` is called with a kernel value for `field`; inside a body call plain Python functions")
def operator_in_a_body():
    gp.operator(lambda f: scaled(_readTensor(f)))(SCALAR)  # here


@WRONGS.add(
    "operator `nothing` has no fields among its arguments: declare its outputs, as in `@gp.operator(outputs=gp.FieldType(…))`"
)
def no_fields():
    @gp.operator
    def nothing(n):
        return _row * n  # here

    nothing(3)


@WRONGS.add("an output is declared by a FieldType, not by a ScalarField; write `field.type`")
def field_as_an_output_type():
    with gp.GPUOperator(SCALAR):  # here
        _writeTensor(_out0, 1)


@WRONGS.add("`default=` has 1 values, and the outputs are 2")
def too_few_defaults():
    with gp.GPUOperator(SCALAR.type, SCALAR.type, default=(0,)):  # here
        _writeTensor(_out0, 1)


@WRONGS.add("the outputs of a GPUOperator exist after its `with` block")
def output_too_early():
    with gp.GPUOperator(SCALAR.type) as op:
        _writeTensor(_out0, 1)
        op.output  # here


@WRONGS.add("this GPUOperator has 2 outputs; use `.outputs`")
def output_of_two():
    with gp.GPUOperator(SCALAR.type, SCALAR.type) as op:
        _writeTensor(_out0, 1)
        _writeTensor(_out1, 1)
    op.output  # here


@WRONGS.add("an operator is made of a Python function, not of a partial; write a `def`")
def operator_of_a_partial():
    gp.operator(functools.partial(max, 1))  # here


@WRONGS.add("a pipeline is made of a Python function, not of an int; write a `def`")
def pipeline_of_a_number():
    gp.pipeline(3)  # here


@WRONGS.add("an operator has 1 to 10 outputs, not 11")
def too_many_outputs():
    with gp.GPUOperator(*[SCALAR.type] * 11):  # here
        pass


@WRONGS.add("an operator has 1 to 10 outputs, not 11")
def too_many_values():
    @gp.operator
    def eleven(field):
        return (_readTensor(field),) * 11  # here

    eleven(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
