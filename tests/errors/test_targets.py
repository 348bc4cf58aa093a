"""Wrong uses of `_target` and of blocks for targets: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


# --- conditions ---------------------------------------------------------------------------------------------------------


@WRONGS.add(
    "`_codegenIf` decides when code is generated, and a recorded value is known only on the device; use `with _if(c):`"
)
def recorded_condition():
    @gp.operator
    def wrong(field):
        with _codegenIf(_readTensor(field) > 0):  # here
            pass
        return 1

    wrong(SCALAR)


@WRONGS.add("`_target.backend` is never 'openCL'; it is 'opencl' or 'cuda' or 'reference'")
def text_that_no_backend_is():
    @gp.operator
    def wrong(field):
        with _codegenIf(_target.backend == "openCL"):  # here
            pass
        return 1

    wrong(SCALAR)


@WRONGS.add("recorded value is known only on the device; use `with _elseif(c):`")
def recorded_second_condition():
    @gp.operator
    def wrong(field):
        x = _var(_readTensor(field))
        with _codegenIf(_target.has_fp64):
            x += 1
        with _codegenElseif(x > 0):  # here
            x += 2
        return x

    wrong(SCALAR)


@WRONGS.add(
    "`_codegenIf` wants an expression of `_target`, not the Python bool True, which is known while recording; use Python's `if`"
)
def python_condition():
    @gp.operator
    def wrong(field):
        with _codegenIf(len("abc") == 3):  # here
            pass
        return 1

    wrong(SCALAR)


@WRONGS.add("`_codegenIf` wants a condition, and `_target.backend` is a text; compare it with another one")
def text_as_a_condition():
    @gp.operator
    def wrong(field):
        with _codegenIf(_target.backend):  # here
            pass
        return 1

    wrong(SCALAR)


@WRONGS.add("`_codegenElse` does not follow a `_codegenIf` or `_codegenElseif` block; nothing may stand between them")
def else_of_the_other_kind():
    @gp.operator
    def wrong(field):
        x = _var(_readTensor(field))
        with _if(x > 0):
            x += 1
        with _codegenElse():  # here
            x += 2
        return x

    wrong(SCALAR)


@WRONGS.add("`_else` does not follow an `_if` or `_elseif` block; nothing may stand between them")
def recorded_else_of_a_target():
    @gp.operator
    def wrong(field):
        x = _var(_readTensor(field))
        with _codegenIf(_target.has_fp64):
            x += 1
        with _else():  # here
            x += 2
        return x

    wrong(SCALAR)


@WRONGS.add("`_codegenElseif` does not follow a `_codegenIf` or `_codegenElseif` block")
def elseif_after_else():
    @gp.operator
    def wrong(field):
        x = _var(_readTensor(field))
        with _codegenIf(_target.has_fp64):
            x += 1
        with _codegenElse():
            x += 2
        with _codegenElseif(_target.has_fp16):  # here
            x += 3
        return x

    wrong(SCALAR)


@WRONGS.add("`_codegenIf(…)` stands without `with`; write `with _codegenIf(…):`")
def without_with():
    @gp.operator
    def wrong(field):
        _codegenIf(_target.has_fp64)  # here
        return _readTensor(field)

    wrong(SCALAR)


@WRONGS.add("`return` inside a `with _codegenIf(…)` block ends the recording whatever the condition is")
def return_in_a_branch():
    @gp.operator
    def wrong(field):
        with _codegenIf(_target.has_fp64):
            return _readTensor(field)  # here
        return 1

    wrong(SCALAR)


# --- branches are checked, whatever the target --------------------------------------------------------------------------


@WRONGS.add("a float4 has no component 5")
def wrong_in_a_branch_for_another_target():
    @gp.operator
    def wrong(field):
        x = _var(_readTensor(field))
        with _codegenIf(_target.architecture > 9999):
            x += _float4(x)[5]  # here
        return x

    wrong(SCALAR)


@WRONGS.add("`x` was made in a `_codegenIf` block that has ended")
def value_of_a_branch():
    @gp.operator
    def wrong(field):
        with _codegenIf(_target.has_fp64):
            x = _readTensor(field) + 1
        return x * 2  # here

    wrong(SCALAR)


@WRONGS.add("`x` is bound to another value inside this `_codegenElse` block")
def rebound_in_a_branch():
    @gp.operator
    def wrong(field):
        x = _readTensor(field)
        with _codegenIf(_target.has_fp64):
            pass
        with _codegenElse():
            x = x + 1  # here
        return x * 2

    wrong(SCALAR)


@WRONGS.add(
    "_out0 is not written on every path through `wrong`; write it in the other branch too, or give the output a `default=`"
)
def not_written_for_every_target():
    @gp.operator
    def wrong(field):
        with _codegenIf(_target.has_fp64):
            _writeTensor(_out0, _readTensor(field))  # here
        with _codegenElseif(_target.has_fp16):
            _writeTensor(_out0, 2)

    wrong(SCALAR)


# --- target expressions where they are none -----------------------------------------------------------------------------

ADVICE = "is known only when code is generated, and is not a value of a thread: decide on it by `with _codegenIf(c):`"


@WRONGS.add(f"`_target.simd_width` {ADVICE}")
def arithmetic_with_values():
    @gp.operator
    def wrong(field):
        return _readTensor(field) * _target.simd_width  # here

    wrong(SCALAR)


@WRONGS.add(
    "a target expression takes facts of the target, numbers and texts, not a recorded value; put what depends on the target "
    "into `with _codegenIf(c):` blocks"
)
def arithmetic_with_values_on_the_right():
    @gp.operator
    def wrong(field):
        return _target.simd_width + _readTensor(field)  # here

    wrong(SCALAR)


@WRONGS.add(f"`_target.has_fp16` {ADVICE}")
def recorded_if():
    @gp.operator
    def wrong(field):
        with _if(_target.has_fp16):  # here
            pass
        return 1

    wrong(SCALAR)


@WRONGS.add(
    "`_target.architecture >= 80` is known only when code is generated: `if`, `and`, `or`, `not`, `min` and `max` of"
)
def python_if():
    @gp.operator
    def wrong(field):
        if _target.architecture >= 80:  # here
            pass
        return 1

    wrong(SCALAR)


@WRONGS.add(f"`_target.simd_width - 1` {ADVICE}")
def read_coordinate():
    @gp.operator
    def wrong(field):
        return _readTensor(field, _row, _target.simd_width - 1)  # here

    wrong(SCALAR)


@WRONGS.add(f"`_target.simd_width` {ADVICE}")
def written_value():
    @gp.operator
    def wrong(field):
        _writeTensor(_out0, _target.simd_width)  # here

    wrong(SCALAR)


@WRONGS.add("`_target.simd_width` is known only when code is generated: it is not a Python number")
def python_range():
    @gp.operator
    def wrong(field):
        return sum(_readTensor(field) for _ in range(_target.simd_width))  # here

    wrong(SCALAR)


@WRONGS.add(f"`_target.simd_width` {ADVICE}")
def returned_value():
    @gp.operator
    def wrong(field):
        return _target.simd_width  # here

    wrong(SCALAR)


@WRONGS.add(f"`_target.simd_width` {ADVICE}")
def variable():
    @gp.operator
    def wrong(field):
        x = _intVar(_target.simd_width)  # here
        return x + 1

    wrong(SCALAR)


@WRONGS.add(
    "`_target` has no attribute 'warp'; it has backend, architecture, device, simd_width, local_memory_bytes, has_fp16, "
    "has_fp64, has_arrays, and choose"
)
def unknown_attribute():
    @gp.operator
    def wrong(field):
        _localThreads(_target.warp)  # here
        return 1

    wrong(SCALAR)


@WRONGS.add("target expressions: `+` does not take a text and int")
def text_plus_number():
    _target.backend + 1  # here


@WRONGS.add("target expressions: `==` does not take int and a text")
def number_and_text():
    _target.architecture == "sm_80"  # here


@WRONGS.add("target expressions have no operator for divide: `//` divides")
def true_division():
    _target.simd_width / 2  # here


@WRONGS.add("target expressions: `~` does not take float")
def bits_of_a_float():
    ~(_target.simd_width * 0.5)  # here


# --- tables, extents ----------------------------------------------------------------------------------------------------


@WRONGS.add("'cuda:80' names no target: entries are for opencl, cuda, cuda:sm_80 or reference")
def unknown_entry():
    _target.choose({"opencl": 1, "cuda:80": 2})  # here


@WRONGS.add('a table is a dict such as {"opencl": 64, "cuda:sm_80": 128} with an entry, not a dict')
def empty_table():
    _target.choose({})  # here


@WRONGS.add("the entries of a table are numbers or texts, not a list")
def list_in_a_table():
    _target.choose({"opencl": [1]})  # here


@WRONGS.add("the entries of a table are of one type, not of int, str")
def mixed_table():
    _target.choose({"opencl": 1, "cuda": "x"})  # here


@WRONGS.add("an extent of a work-group is an integer, and `_target.backend` is a text")
def text_as_a_group():
    @gp.operator
    def wrong(field):
        _localThreads(4, _target.backend)  # here
        return 1

    wrong(SCALAR)


@WRONGS.add("a dimension of an array is an integer, and `_target.simd_width * 0.5` is a float")
def float_as_a_dimension():
    @gp.operator
    def wrong(field):
        a = _floatArray(_target.simd_width * 0.5)  # here
        return a[0]

    wrong(SCALAR)


@WRONGS.add("the table has no entry for reference: it has opencl, cuda:sm_80; add one, or give the table a `default=`")
def no_entry():
    @gp.operator
    def wrong(field):
        _localThreads(1, _target.choose({"opencl": 1, "cuda:sm_80": 2}))  # here
        return _readTensor(field)

    wrong(SCALAR).numpy()


@WRONGS.add("the table has no entry for cuda:sm_75: it has opencl, cuda:sm_80; add one")
def no_entry_in_text():
    @gp.operator
    def wrong(field):
        _localThreads(1, _target.choose({"opencl": 1, "cuda:sm_80": 2}))  # here
        return _readTensor(field)

    wrong.source(SCALAR.type, target="cuda:sm_75")


@WRONGS.add("an extent of a work-group is at least 1, and for reference `_target.simd_width - 1` is 0")
def empty_group():
    @gp.operator
    def wrong(field):
        _localThreads(1, _target.simd_width - 1)  # here
        return _readTensor(field)

    wrong(SCALAR).numpy()


@WRONGS.add("a dimension of array `a` is at least 1, and for reference `_target.architecture` is 0")
def empty_array():
    @gp.operator
    def wrong(field):
        a = _floatArray(_target.architecture)  # here
        return a[0]

    wrong(SCALAR).numpy()


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()


def test_an_unknown_target():
    @gp.operator
    def right(field):
        return _readTensor(field)

    for name in ("metal", "cuda:90", "cuda:sm_9"):
        with pytest.raises(gp.SemanticError, match=f"there is no target '{name}'"):
            right.source(SCALAR.type, target=name)


def test_a_field_times_a_target_expression():
    for wrong in (lambda: SCALAR * _target.simd_width, lambda: np.float32(2) * _target.simd_width * SCALAR):
        with pytest.raises(gp.SemanticError, match=r"(?i)target ?expression"):
            wrong()
