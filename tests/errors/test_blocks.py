"""Wrong blocks, variables and scopes: each message, and the line that it names."""

import pytest
from wrong import BIG, INTEGER, SCALAR, VECTOR3, Wrongs

import gpuop as gp
from gpuop.dsl import *

WRONGS = Wrongs()


# --- what leaves loops ---------------------------------------------------------------------------------------------------


@WRONGS.add("`_break` without parentheses does nothing; write `_break()`")
def uncalled_break():
    @gp.operator
    def first(field):
        with _for(10) as i:
            with _if(i > 3):
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


@WRONGS.add("_else")
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


@WRONGS.add("the condition was computed before the loop and never changes; write the expression inside the `_while(…)` itself")
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


# --- names and scopes ------------------------------------------------------------------------------------------------------


@WRONGS.add("declare `x = _var(…)` before the block and assign `x @= …` inside")
def name_rebound_in_a_block():
    @gp.operator
    def clip(field):
        x = _readTensor(field)
        with _if(x > 1):  # here
            x = x * 0 + 1
        return x

    clip(SCALAR)


@WRONGS.add("`x` is a variable: assign with `x @= …`")
def variable_rebound_in_a_block():
    @gp.operator
    def clip(field):
        x = _var(_readTensor(field))
        with _if(x > 1):  # here
            x = _readTensor(field) + 1
        _writeTensor(_out0, x)

    clip(SCALAR)


@WRONGS.add("`y` was made in a `_if` block that has ended")
def value_after_its_block():
    @gp.operator
    def doubled(field):
        x = _readTensor(field)
        with _if(x > 1):
            y = x * 2
        _writeTensor(_out0, y)  # here

    doubled(SCALAR)


@WRONGS.add("`v` was made in a `_for` block that has ended")
def variable_after_its_block():
    @gp.operator
    def last(field):
        with _for(10) as i:
            v = _var(i)
        v @= 1  # here
        _writeTensor(_out0, v)

    last(INTEGER)


@WRONGS.add("`i` was made in a `_for` block that has ended")
def counter_after_its_loop():
    @gp.operator
    def last(field):
        with _for(10) as i:
            pass
        return i  # here

    last(INTEGER)


@WRONGS.add("array `a` belongs to a block that has ended")
def array_after_its_block():
    @gp.operator
    def last(field):
        with _if(_readTensor(field) > 0):
            a = _floatArray(3)
        return a[0]  # here

    last(SCALAR)


@WRONGS.add("`x` was made in another operator; pass it as a Field, or compute it here")
def value_of_another_operator():
    kept = []
    with gp.GPUOperator(SCALAR.type):
        x = _readTensor(SCALAR)
        kept.append(x)
        _writeTensor(_out0, x)
    gp.operator(lambda f: _readTensor(f) + kept[0])(SCALAR)  # here


@WRONGS.add("`@=` assigns to variables, and this is an expression; make a variable of it with `v = _var(x)`")
def assign_to_an_expression():
    @gp.operator
    def one(field):
        x = _readTensor(field)
        x @= 1  # here
        return x

    one(SCALAR)


@WRONGS.add("`i` is read-only: a loop's counter is not assigned; copy it with `v = _var(i)`")
def assign_to_a_counter():
    @gp.operator
    def last(field):
        with _for(10) as i:
            i += 1  # here
        _writeTensor(_out0, 1)

    last(SCALAR)


@WRONGS.add("expression")
def component_of_an_expression():
    @gp.operator
    def red(field):
        v = _readTensor(field)
        v.x = 1  # here
        return v

    red(VECTOR3)


@WRONGS.add("component")
def item_of_an_expression():
    @gp.operator
    def red(field):
        v = _readTensor(field)
        v[0] = 1  # here
        return v

    red(VECTOR3)


@WRONGS.add("read-only")
def assign_to_a_thread_constant():
    @gp.operator
    def row(field):
        _row.assign(1)  # here
        return _row

    row(SCALAR)


@WRONGS.add("array `a` has 2 dimensions: give 2 indices, not 1")
def array_index_count():
    @gp.operator
    def first(field):
        a = _floatArray(2, 3)
        return a[0]  # here

    first(SCALAR)


@WRONGS.add("index 3 is outside array `a`, whose extent is 3")
def array_index_outside():
    @gp.operator
    def first(field):
        a = _floatArray(3)
        a[3] = 1  # here
        return a[0]

    first(SCALAR)


@WRONGS.add("the dimensions of an array are positive Python integers")
def computed_dimension():
    @gp.operator
    def first(field):
        return _floatArray(_readTensor(field))[0]  # here

    first(INTEGER)


@WRONGS.add("a big tensor (7 elements) fits no variable; use `_tensorElementVar(f)`")
def big_variable():
    gp.operator(lambda f: _tensorVar(f))(BIG)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
