"""Wrong blocks: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import BIG, SCALAR, VECTOR3, Wrongs

WRONGS = Wrongs()


# --- what leaves loops ---------------------------------------------------------------------------------------------------


@WRONGS.add("`_break` without parentheses does nothing; write `_break()`")
def uncalled_break():
    @gp.operator
    def first(field):
        with _for(10) as i, _if(i > 3):
            _break  # here
        _writeTensor(_out0, 1)

    first(SCALAR)


@WRONGS.add("`_continue` without parentheses does nothing; write `_continue()`")
def uncalled_continue():
    with gp.GPUOperator(SCALAR.type):
        with _for(10):
            _continue  # here
        _writeTensor(_out0, 1)


@WRONGS.add("`_break` without parentheses does nothing; write `_break()`")
def uncalled_break_in_a_helper():
    def leave(c):
        with _if(c):
            _break  # here

    @gp.operator
    def first(field):
        with _for(10) as i:
            leave(i > 3)
        _writeTensor(_out0, 1)

    first(SCALAR)


@WRONGS.add("`_break()` stands outside a loop")
def break_outside_a_loop():
    @gp.operator
    def stop(field):
        with _if(_readTensor(field) > 0):
            _break()  # here
        _writeTensor(_out0, 1)

    stop(SCALAR)


@WRONGS.add("`_break()` cannot leave `_forEachTensorElement`: its elements are handled independently; use `_if`")
def break_of_tensor_elements():
    @gp.operator
    def stop(field):
        with _forEachTensorElement(field.tensor_shape):
            _break()  # here

    stop(BIG)


# --- with ------------------------------------------------------------------------------------------------------------


@WRONGS.add("`_if(…)` stands without `with`; write `with _if(…):`")
def if_without_with():
    @gp.operator
    def clip(field):
        x = _var(_readTensor(field))
        _if(x > 1)  # here
        x @= 1
        _writeTensor(_out0, x)

    clip(SCALAR)


@WRONGS.add("`_if(…)` stands without `with`; write `with _if(…):`")
def if_without_with_at_the_end():
    @gp.operator
    def clip(field):
        _writeTensor(_out0, 1)
        _if(_readTensor(field) > 1)  # here

    clip(SCALAR)


@WRONGS.add("`_for(…)` stands without `with`; write `with _for(…):`")
def for_without_with_at_the_end_of_a_block():
    with gp.GPUOperator(SCALAR.type):
        _writeTensor(_out0, 1)
        with _if(_readTensor(SCALAR) > 1):
            _for(10)  # here


@WRONGS.add("`_if(…)` opens a block; write `with _if(…):`")
def python_if_of_if():
    @gp.operator
    def clip(field):
        x = _readTensor(field)
        if _if(x > 1):  # here
            _writeTensor(_out0, 1)

    clip(SCALAR)


@WRONGS.add("`_for(…)` opens a block; write `with _for(…) as i:`")
def python_for_of_for():
    @gp.operator
    def total(field):
        sum_ = _floatVar()
        for i in _for(10):  # here
            sum_ += i
        _writeTensor(_out0, sum_)

    total(SCALAR)


@WRONGS.add("`_else` opens a block when it is called; write `with _else(…):`")
def else_without_call():
    @gp.operator
    def clip(field):
        with _if(_readTensor(field) > 1):
            _writeTensor(_out0, 1)
        with _else:  # here
            _writeTensor(_out0, 0)

    clip(SCALAR)


# --- chains ------------------------------------------------------------------------------------------------------------


@WRONGS.add("`_else` does not follow an `_if` or `_elseif` block; nothing may stand between them")
def else_without_if():
    @gp.operator
    def clip(field):
        _writeTensor(_out0, _readTensor(field))
        with _else():  # here
            _writeTensor(_out0, 1)

    clip(SCALAR)


@WRONGS.add("`_else` does not follow an `_if` or `_elseif` block; nothing may stand between them")
def statement_before_else():
    @gp.operator
    def clip(field):
        x = _var(_readTensor(field))
        with _if(x > 1):
            x @= 1
        x += 1
        with _else():  # here
            x @= 2
        _writeTensor(_out0, x)

    clip(SCALAR)


@WRONGS.add("`_elseif` does not follow an `_if` or `_elseif` block; nothing may stand between them")
def elseif_after_else():
    @gp.operator
    def clip(field):
        x = _readTensor(field)
        with _if(x > 1):
            _writeTensor(_out0, 1)
        with _else():
            _writeTensor(_out0, 0)
        with _elseif(x < 0):  # here
            _writeTensor(_out0, 2)

    clip(SCALAR)


@WRONGS.add("`_elseif` does not follow an `_if` or `_elseif` block; nothing may stand between them")
def condition_before_elseif():
    @gp.operator
    def clip(field):
        x = _readTensor(field)
        with _if(x > 1):
            _writeTensor(_out0, 1)
        low = x < 0
        with _elseif(low):  # here
            _writeTensor(_out0, 0)

    clip(SCALAR)


@WRONGS.add(
    "the condition was computed before the loop and never changes; write the expression inside the `_while(…)` itself"
)
def condition_before_while():
    @gp.operator
    def halve(field):
        x = _var(_readTensor(field))
        large = x > 1
        with _while(large):  # here
            x /= 2
        _writeTensor(_out0, x)

    halve(SCALAR)


@WRONGS.add("`_if` wants a scalar condition, not a bool3; combine the components, as in `c.x & c.y`")
def vector_condition():
    @gp.operator
    def clip(field):
        with _if(_readTensor(field) > 1):  # here
            _writeTensor(_out0, 1)

    clip(VECTOR3)


@WRONGS.add("a bound of `_for` is a scalar integer, not a float; convert with `_convert_int(x)`")
def float_bound():
    @gp.operator
    def total(field):
        with _for(_readTensor(field)):  # here
            pass

    total(SCALAR)


@WRONGS.add("a `_for` with step 0 never ends")
def step_0():
    @gp.operator
    def total(field):
        with _for(0, 10, 0):  # here
            pass

    total(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
